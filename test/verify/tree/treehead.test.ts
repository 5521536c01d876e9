import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { TREE_HEAD, type TreeHead, treeHeadMessage, verifyTreeHead } from "#cairnlog/engine/verify/tree/treehead.js";
import { sha256 } from "../keys/keys.js";

const root_hash = sha256("root");
const timestamp = "2025-03-01T12:00:00.000000Z";
const publicPem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }) as string;

it("the signed message is root hash, size and timestamp, joined with colons", () => {
  expect(Buffer.from(treeHeadMessage(root_hash, 9007199254740991, timestamp)).toString()).toBe(
    `${root_hash}:9007199254740991:${timestamp}`,
  );
});

describe.each([
  ["ed25519", generateKeyPairSync("ed25519"), null],
  ["ecdsa-p256", generateKeyPairSync("ec", { namedCurve: "prime256v1" }), "sha256"],
  ["rsa-2048", generateKeyPairSync("rsa", { modulusLength: 2048 }), "sha256"],
] as const)("signed by an operator key of type %s", (_, pair, digest) => {
  const operatorKey = parsePublicKey(publicPem(pair.publicKey));
  const signature = sign(digest, Buffer.from(`${root_hash}:12:${timestamp}`), pair.privateKey).toString("base64");
  const head: TreeHead = {
    tree_size: 12,
    root_hash,
    signature,
    timestamp,
    key_id: operatorKey.fingerprint,
    tree_version: 2,
  };

  it("verifies", async () => {
    expect(await verifyTreeHead(head, operatorKey)).toBe(true);
    // The signature does not cover the tree version.
    expect(await verifyTreeHead({ ...head, tree_version: 1 }, operatorKey)).toBe(true);
    expect(await verifyTreeHead({ ...head, note: "x" } as TreeHead, operatorKey)).toBe(true);
  });

  it.each<Partial<Record<keyof TreeHead, unknown>>>([
    { root_hash: root_hash.toUpperCase() },
    { root_hash: `${root_hash}:12`, tree_size: 13 },
    { root_hash: "" },
    { tree_size: 0 },
    { tree_size: 1.5 },
    { tree_size: 2 ** 53 },
    { timestamp: "yesterday" },
    { timestamp: "2025-03-01T12:00:00" },
  ])("does not verify when %j is signed as it stands", async (change) => {
    const changed = { ...head, ...change } as TreeHead;
    const text = `${changed.root_hash}:${changed.tree_size}:${changed.timestamp}`;
    const own = sign(digest, Buffer.from(text), pair.privateKey).toString("base64");
    expect(await verifyTreeHead({ ...changed, signature: own }, operatorKey)).toBe(false);
  });

  it("does not verify when anything signed is changed, or another key is meant", async () => {
    const other = parsePublicKey(publicPem(generateKeyPairSync("ed25519").publicKey));
    const changes: object[] = [
      { tree_size: 13 },
      { tree_size: "12" },
      { tree_size: 0 },
      { root_hash: sha256("other") },
      { root_hash: root_hash.toUpperCase() },
      { timestamp: "2025-03-01T12:00:00.000001Z" },
      { timestamp: "2025-03-01T12:00:00Z" },
      { timestamp: `${timestamp}:` },
      { signature: `${signature}\n` },
      { signature: signature.replace(/.(=*)$/, "$1") },
      { signature: "" },
      { key_id: other.fingerprint },
      { tree_version: 3 },
    ];
    for (const change of changes)
      expect(await verifyTreeHead({ ...head, ...change } as TreeHead, operatorKey)).toBe(false);
    expect(await verifyTreeHead(head, other)).toBe(false);
    expect(await verifyTreeHead({ ...head, key_id: other.fingerprint }, other)).toBe(false);
    for (const value of [null, 1, "head", [], {}]) {
      expect(await verifyTreeHead(value as unknown as TreeHead, operatorKey)).toBe(false);
    }
  });
});

it.each<[string, unknown, string]>([
  ["tree_size", "1", "an integer of at least 1"],
  ["root_hash", "x", "64 lower-case hexadecimal characters"],
  ["signature", 7, "a string"],
  ["timestamp", "now", "an ISO 8601 date and time with an offset"],
  ["key_id", null, "a string"],
  ["tree_version", 3, "1 or 2"],
])("the member %s of a head has a form", (member, value, wanted) => {
  const head = { tree_size: 1, root_hash, signature: "", timestamp, key_id: "", tree_version: 1 };
  expect(TREE_HEAD(head, "")).toBeUndefined();
  expect(TREE_HEAD({ ...head, [member]: value }, "")).toBe(`/${member} must be ${wanted}.`);
  const { [member as "key_id"]: _, ...others } = head;
  expect(TREE_HEAD(others, "")).toBe(`/${member} is missing.`);
});
