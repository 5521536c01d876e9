/** Chains of operator keys: what both keys of a rotation sign, and which chains hold. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import {
  OperatorKeys,
  type OperatorTerm,
  type PublicKey,
  parsePublicKey,
  rotationMessage,
  verifyCheckpoint,
} from "#cairnlog/engine/verify/index.js";
import { noteKeyId } from "#cairnlog/engine/verify/note/key.js";
import { signedNote } from "#cairnlog/engine/verify/note/note.js";
import { scratchFolder } from "../../service.js";

const scratch = scratchFolder();
afterAll(() => scratch.remove());
const file = (name: string) => join(scratch.path, name);
const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe" });

const ROOT = "0123456789abcdef".repeat(4);

/** Keys that OpenSSL made: Ed25519, P-256, RSA. */
const KINDS = [["ED25519"], ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]];
const keys: readonly PublicKey[] = KINDS.map(([algorithm, ...more], i) => {
  openssl("genpkey", "-algorithm", algorithm!, ...more, "-out", file(`${i}.pem`));
  openssl("pkey", "-in", file(`${i}.pem`), "-pubout", "-out", file(`${i}.pub`));
  return parsePublicKey(readFileSync(file(`${i}.pub`), "utf8"));
});

/** The signature of key `i` over a text, by OpenSSL alone. */
function signedBy(i: number, text: string): string {
  writeFileSync(file("text"), text);
  if (i === 0) openssl("pkeyutl", "-sign", "-inkey", file("0.pem"), "-rawin", "-in", file("text"), "-out", file("sig"));
  else openssl("dgst", "-sha256", "-sign", file(`${i}.pem`), "-out", file("sig"), file("text"));
  return readFileSync(file("sig")).toString("base64");
}

/** The term of key `i`, which begins behind `size` entries with this root. */
function term(i: number, size: number, until_size: number | null, root = ROOT): OperatorTerm {
  const [old, key] = [keys[i - 1], keys[i]!];
  const text = `cairnlog-operator-key-rotation/v1:${old?.fingerprint}:${key.fingerprint}:${size}:${root}`;
  const rotation = old && {
    entry_id: size + 1,
    root_hash: root,
    old_key_signature: signedBy(i - 1, text),
    new_key_signature: signedBy(i, text),
  };
  const { fingerprint: key_id, algorithm, pem: public_key } = key;
  return { key_id, algorithm, public_key, from_size: size + 1, until_size, rotation: rotation ?? null };
}

const chain = [term(0, 0, 7), term(1, 7, 9), term(2, 9, null)];
const [a, b, c] = chain as [OperatorTerm, OperatorTerm, OperatorTerm];

test("the statement of a rotation", () => {
  const old_fingerprint = `sha256:${"a".repeat(64)}`;
  const fingerprint = `sha256:${"b".repeat(64)}`;
  const message = rotationMessage({ old_fingerprint, fingerprint, tree_size: 7, root_hash: ROOT });
  expect(Buffer.from(message).toString("utf8")).toBe(
    `cairnlog-operator-key-rotation/v1:sha256:${"a".repeat(64)}:sha256:${"b".repeat(64)}:7:${ROOT}`,
  );
});

describe("a chain that OpenSSL signed", () => {
  test("holds for each of its keys, and gives the key of every size", async () => {
    for (const pinned of keys) {
      const operators = await OperatorKeys.verify(chain, pinned);
      expect(operators.current).toEqual(keys[2]);
      expect(
        [-1, 0, 1, 7, 8, 9, 10, 1e9].map((size) => keys.findIndex((key) => key.pem === operators.keyAt(size).pem)),
      ).toEqual([0, 0, 0, 0, 1, 1, 2, 2]);
      expect(operators.upTo(8)).toEqual([a, { ...b, until_size: null }]);
      expect(operators.indexOf(keys[1]!.fingerprint)).toBe(1);
      expect(operators.indexOf("sha256:")).toBe(-1);
    }
  });

  test("goes on from its own beginnings, and from no other", async () => {
    const whole = await OperatorKeys.verify(chain, keys[0]!);
    const short = await OperatorKeys.verify(whole.upTo(9), keys[0]!);
    expect([whole.continues(short), short.continues(whole), whole.continues(whole)]).toEqual([true, false, true]);
    expect(whole.continues(OperatorKeys.of(keys[0]!))).toBe(true);
    expect(whole.continues(OperatorKeys.of(keys[1]!))).toBe(false);
    for (const other of [
      [{ ...a, until_size: 6 }, term(1, 6, null)],
      // The same keys at the same sizes, over other entries.
      [a, term(1, 7, null, "ff".repeat(32))],
    ]) {
      const forked = await OperatorKeys.verify(other, keys[0]!);
      expect([whole.continues(forked), forked.continues(short)]).toEqual([false, false]);
    }
  });
});

test("a checkpoint counts with the key whose term its size is in, and with no later one", async () => {
  const operators = await OperatorKeys.verify(chain, keys[2]!);
  const name = "log.example";
  const signed = (size: number) => {
    const text = `${name}\n${size}\n${Buffer.from(ROOT, "hex").toString("base64")}\n`;
    return signedNote(text, name, noteKeyId(name, keys[0]!), Buffer.from(signedBy(0, text), "base64"));
  };
  expect(await verifyCheckpoint(signed(7), operators, name)).toEqual({ origin: name, treeSize: 7, rootHash: ROOT });
  expect(await verifyCheckpoint(signed(8), operators, name)).toBeNull();
});

const rotated = (of: OperatorTerm, changes: object) => ({ ...of, rotation: { ...of.rotation, ...changes } });
const OTHER = signedBy(0, "something else");

test.each<[string, unknown, string]>([
  ["no array", { 0: a }, "invalid-input"],
  ["an empty one", [], "invalid-input"],
  ["a term without a member", [{ ...a, until_size: undefined }], "invalid-input"],
  ["a member that nobody knows", [{ ...a, until_size: null, note: 1 }], "invalid-input"],
  ["a key that is none", [{ ...a, until_size: null, public_key: "no key" }], "invalid-key"],
  ["a fingerprint of another key", [{ ...a, until_size: null, key_id: b.key_id }], "invalid-input"],
  ["another algorithm", [{ ...a, until_size: null, algorithm: "rsa-2048" }], "invalid-input"],
  ["another spelling of a key", [{ ...a, until_size: null, public_key: `\n${a.public_key}` }], "invalid-input"],
  ["another order", [b, a, c], "invalid-input"],
  ["a gap", [a, c], "invalid-input"],
  ["a first key with a rotation", [b, c], "invalid-input"],
  ["a later key without one", [a, { ...b, rotation: null }, c], "invalid-input"],
  ["an end of the last key", [a, { ...b, until_size: 9 }], "invalid-input"],
  ["no end of an earlier one", [{ ...a, until_size: null }, b, c], "invalid-input"],
  ["an end before the beginning", [a, { ...b, until_size: 7 }, { ...c, from_size: 8 }], "invalid-input"],
  [
    "a key that was used before",
    [a, b, { ...a, from_size: 10, until_size: null, rotation: c.rotation }],
    "invalid-input",
  ],
  ["no signature of the old key", [a, rotated(b, { old_key_signature: OTHER }), c], "invalid-signature"],
  ["no signature of the new key", [a, rotated(b, { new_key_signature: "!" }), c], "invalid-signature"],
  ["another root", [a, rotated(b, { root_hash: "ff".repeat(32) }), c], "invalid-signature"],
  ["another size", [{ ...a, until_size: 6 }, { ...b, from_size: 7 }, c], "invalid-signature"],
  ["more keys than a log may have", Array.from({ length: 101 }, () => a), "invalid-input"],
])("a chain is refused for %s", async (_, wrong, code) => {
  await expect(OperatorKeys.verify(wrong, keys[0]!)).rejects.toMatchObject({ name: "CairnlogError", code });
});

test("a chain is refused by those who pinned a key that is not in it", async () => {
  await expect(OperatorKeys.verify([a, { ...b, until_size: null }], keys[2]!)).rejects.toMatchObject({
    code: "wrong-operator",
  });
});
