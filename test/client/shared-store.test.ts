/** Clients that run at the same time and share a store: what one of them has noted, a save of another one does not take back. */
import { sign } from "node:crypto";
import { expect, test } from "vitest";
import { OperatorKeys, type OperatorTerm, parsePublicKey, rotationMessage } from "#cairnlog/engine/verify/index.js";
import { Http } from "#cairnlog/server/client/base/http.js";
import { memoryStore, type State } from "#cairnlog/server/client/index.js";
import { OperatorPins } from "#cairnlog/server/client/log/operators.js";
import { newSigner } from "../server/signers.js";

const signers = [newSigner("ed25519"), newSigner("ed25519")] as const;
const keys = signers.map(({ publicKey }) => parsePublicKey(publicKey));
const [first, second] = keys as [(typeof keys)[0], (typeof keys)[0]];
const ROOT = "ab".repeat(32);
const rotated = { old_fingerprint: first.fingerprint, fingerprint: second.fingerprint, tree_size: 3, root_hash: ROOT };
const signed = signers.map(({ privateKey }) => sign(null, Buffer.from(rotationMessage(rotated)), privateKey));
const [old_key_signature, new_key_signature] = signed.map((signature) => signature.toString("base64"));
const term = { algorithm: "ed25519" } as const;
const CHAIN = [
  { ...term, key_id: first.fingerprint, public_key: first.pem, from_size: 1, until_size: 3, rotation: null },
  {
    ...{ ...term, key_id: second.fingerprint, public_key: second.pem, from_size: 4, until_size: null },
    rotation: { entry_id: 4, root_hash: ROOT, old_key_signature, new_key_signature },
  },
] as OperatorTerm[];
const head = (tree_size: number): NonNullable<State["head"]> => ({
  ...{ tree_size, root_hash: ROOT, tree_version: 2, timestamp: "2026-01-01T00:00:00.000000Z" },
  ...{ key_id: first.fingerprint, signature: "" },
});
const END = { entry_id: 5, tree_size: 5 };

/** Everything that there is to note, and parts of it: a client may know the chain from before the rotation. */
const NOTES = [0, 1, 2].flatMap((terms) =>
  [false, true].flatMap((end) => [null, 2, 5].map((size) => ({ terms, end, size }))),
);
type Note = (typeof NOTES)[number];

test("the store has the largest head, the longest chain and the end that any of them has noted, in whichever order", async () => {
  const nobody = new Http("http://log.invalid", () => Promise.reject(new Error("nobody is asked")));
  const chains = [null, OperatorKeys.of(first), await OperatorKeys.verify(CHAIN, first)] as const;
  for (const a of NOTES)
    for (const b of NOTES) {
      const store = memoryStore();
      const pins = [a, b].map(() => new OperatorPins(nobody, store, first.pem));
      // Both have read the store before either writes.
      for (const each of pins) await each.key();
      const keep = (each: OperatorPins, { terms, end, size }: Note) => {
        each.believe(chains[terms]!);
        if (end) each.end = END;
        return each.keep(size === null ? null : head(size));
      };
      await keep(pins[0]!, a);
      await keep(pins[1]!, b);
      const size = Math.max(a.size ?? 0, b.size ?? 0);
      const terms = Math.max(a.terms, b.terms);
      expect(await store.load(), JSON.stringify([a, b])).toEqual({
        operator_key: first.pem,
        head: size ? head(size) : null,
        ...(terms && { operators: chains[terms]!.chain }),
        ...((a.end || b.end) && { frozen: END }),
      });
      // The end is believed by those, too, that have not noted it.
      expect(pins[1]!.end).toEqual(a.end || b.end ? END : undefined);
    }
});
