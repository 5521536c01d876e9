/**
 * Texts of any length. Whoever answers a client or a monitor chooses how long a text is, so no check may end in an error
 * of the JavaScript engine: a stack or a string that is too large, or a call with too many arguments.
 */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as claims from "#cairnlog/engine/verify/claims/claims.js";
import * as verify from "#cairnlog/engine/verify/index.js";
import { cairnlog } from "../cli/harness.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { envelopeOf, STATEMENT } from "./dsse/envelopes.js";

/** Beyond what a repeated group of a regular expression bears (4.47 million characters), and beyond arguments of a call. */
const LENGTH = 5_000_000;

const inputs: Readonly<Record<string, string | Uint8Array>> = {
  base64: "A".repeat(LENGTH),
  lines: "A\n".repeat(LENGTH / 2),
  surrogates: "\ud83d\ude00".repeat(LENGTH / 4),
  quotes: JSON.stringify("\\".repeat(LENGTH)),
  number: `-${"9".repeat(LENGTH)}.${"9".repeat(LENGTH)}e${"9".repeat(LENGTH)}`,
  pem: `-----BEGIN PUBLIC KEY-----\n${"AAAA\n".repeat(LENGTH / 5)}-----END PUBLIC KEY-----\n`,
  note: `example.org/log\n1\n${"A".repeat(43)}=\n${"x\n".repeat(LENGTH / 2)}\n\u2014 name ${"A".repeat(LENGTH)}\n`,
  bytes: new Uint8Array(200_000),
};

/** An object with members of heads, entries and envelopes, some of them `value`. */
const shapeOf = (value: unknown) => ({
  ...{ payload: value, payloadType: "a", signatures: [{ sig: value, keyid: "a" }] },
  ...{ root_hash: "a", tree_size: 1, timestamp: "a", signature: value, key_id: "a", tree_version: 2 },
});

/** What V8 says when its own bounds are met. */
const BOUNDS = /call stack|string length|array length|typed array|regular expression|arguments/i;

const functions = Object.entries({ ...verify, ...verify.rfc6962, ...claims }).filter(
  (entry): entry is [string, (...input: readonly unknown[]) => unknown] => typeof entry[1] === "function",
);

/** Of these, a text is no argument: each of its characters would be taken for a member. */
const OF_OBJECTS = new Set(["requestAct", "unwrapBytes", "isPayloadOf"]);

const argumentsOf = (name: string, input: string | Uint8Array): readonly (readonly unknown[])[] => {
  if (OF_OBJECTS.has(name)) return [[shapeOf(input)], [shapeOf(input), shapeOf(input)], ["a", "a", shapeOf(input)]];
  const plain = [[input], ["a", input], [shapeOf(input)]];
  return typeof input === "string" ? plain : [...plain, ["a", input, input]];
};

test.each(functions)("%s", async (name, called) => {
  const refusals: string[] = [];
  for (const [kind, input] of Object.entries(inputs))
    for (const given of argumentsOf(name, input)) {
      try {
        await called(...given);
      } catch (error) {
        refusals.push(`${kind}: ${`${(error as Error).message}`.slice(0, 200)}`);
      }
    }
  expect(refusals.filter((refusal) => BOUNDS.test(refusal))).toEqual([]);
});

/** Values of every kind that JSON has, each far larger than any honest one. */
const LARGE: Readonly<Record<string, unknown>> = {
  base64: inputs.base64,
  lines: inputs.lines,
  surrogates: inputs.surrogates,
  "an array": new Array(200_000).fill("a"),
  "an object": Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`member${i}`, i])),
  "a deep value": JSON.parse(`${'{"a":['.repeat(3_000)}1${"]}".repeat(3_000)}`),
};

/** A genuine attestation and its envelope, a proof, and everything that is needed to verify them. */
async function genuine() {
  const service = await startTestService();
  const folder = temporaryFolder();
  const [key, file] = [join(folder, "me.pem"), join(folder, "build.json")];
  const builder = generateKeyPairSync("ed25519");
  const pem = (one: KeyObject) => one.export({ type: "spki", format: "pem" }) as string;
  const envelope = envelopeOf(STATEMENT, builder.privateKey);
  writeFileSync(file, JSON.stringify(envelope));
  writeFileSync(`${key}.builder`, pem(builder.publicKey));
  expect((await cairnlog(["keygen", "--out", key])).code).toBe(0);
  const attested = ["attest", file, "--dsse", "--envelope-key", `${key}.builder`, "--key", key];
  expect((await cairnlog([...attested, "--server", service.url])).code).toBe(0);
  const { public_key } = (await service.get("/log/operator-key")).body;
  const operatorKey = verify.parsePublicKey(public_key);
  const bundle = JSON.parse(readFileSync(`${file}.attestation.json`, "utf8"));
  const checkpoint = await (await fetch(`${service.url}/api/v1/log/checkpoint`)).text();
  const origin = checkpoint.split("\n")[0]!;
  const vkey = verify.noteKey(origin, operatorKey);
  const policy = verify.parsePolicy(`log ${verify.formatVkey(vkey)}\nquorum none\n`);
  const proof = { index: 1, extra: null, hashes: [new Uint8Array(32)], checkpoint };
  const note = verify.parseNote(checkpoint)!;
  const trust = { operatorKey, fileHash: bundle.manifest.document.content_hash };
  const builderKey = verify.parsePublicKey(pem(builder.publicKey));
  return { bundle, envelope, builderKey, operatorKey, trust, checkpoint, origin, vkey, policy, proof, note };
}

/** Values with which a function does its work, and the call. Keys and policies are the verifier's own. */
type Row = readonly [name: string, genuine: unknown, call: (value: never) => unknown];
const rowsOf = (made: Awaited<ReturnType<typeof genuine>>): readonly Row[] => {
  const { bundle, envelope, builderKey, operatorKey, trust, checkpoint, origin, vkey, policy, proof, note } = made;
  const { entry, tree_head, manifest, proof: inclusion } = bundle;
  const hash = new Uint8Array(32);
  const place = { leafIndex: inclusion.leaf_index, treeSize: inclusion.tree_size, auditPath: inclusion.audit_path };
  const claim = { ...place, leaf: entry.entry_hash, rootHash: inclusion.root_hash, treeVersion: 2 };
  const between = { fromSize: 1, toSize: 2, fromRoot: "a", toRoot: "b", proof: inclusion.audit_path, treeVersion: 2 };
  return [
    ["verifyBundle", bundle, (value) => verify.verifyBundle(value, trust)],
    ["verifyEnvelopeBundle", envelope, (value) => verify.verifyEnvelopeBundle(bundle, value, { operatorKey })],
    ["envelopeSubject", envelope, (value) => verify.envelopeSubject(value, builderKey)],
    ["checkServiceEntry", entry, (value) => verify.checkServiceEntry(value)],
    ["entryHash", entry, (value) => verify.entryHash(value)],
    ["manifestHash", manifest, (value) => verify.manifestHash(value)],
    ["attestationPayloads", manifest, (value) => verify.attestationPayloads(value, 0)],
    ["verifyTreeHead", tree_head, (value) => verify.verifyTreeHead(value, operatorKey as never)],
    ["verifyInclusion", claim, (value) => verify.verifyInclusion(value)],
    ["verifyConsistency", between, (value) => verify.verifyConsistency(value)],
    ["verifyCheckpoint", checkpoint, (value) => verify.verifyCheckpoint(value, operatorKey, origin)],
    ["verifyNote", checkpoint, (value) => verify.verifyNote(value, [vkey])],
    ["verifySignatures", note, (value) => verify.verifySignatures(value, [vkey])],
    ["verifyByPolicy", checkpoint, (value) => verify.verifyByPolicy(value, policy)],
    ["verifyTlogProof", proof, (value) => verify.verifyTlogProof(value, hash, policy)],
    ["foldPeaks", [entry.entry_hash, entry.entry_hash], (value) => verify.foldPeaks(value, 3, 2)],
  ];
};

/** `value` with each of its members, at any depth, replaced by `large` in turn, and last as a whole. */
function* replaced(value: unknown, large: unknown): Generator<unknown> {
  if (typeof value === "object" && value !== null && !(value instanceof Uint8Array))
    for (const [name, member] of Object.entries(value))
      for (const other of replaced(member, large))
        yield Array.isArray(value)
          ? value.map((item, i) => (String(i) === name ? other : item))
          : { ...value, [name]: other };
  yield large;
}

/** What never throws, whatever it is given. */
const NEVER_THROWS = new Set(["verifyBundle", "verifyEnvelopeBundle"]);

test("each member of structured input, replaced by a long one of each kind", async () => {
  const made = await genuine();
  for (const [name, value, call] of rowsOf(made)) {
    await call(value as never);
    for (const [kind, large] of Object.entries(LARGE))
      for (const changed of replaced(value, large)) {
        const thrown = await Promise.resolve(changed)
          .then((given) => call(given as never))
          .then(
            () => null,
            (error: Error) => error.message.slice(0, 200),
          );
        if (thrown === null) continue;
        expect(thrown, `${name}, ${kind}`).not.toMatch(BOUNDS);
        expect(NEVER_THROWS.has(name), `${name}, ${kind}: ${thrown}`).toBe(false);
      }
  }
});
