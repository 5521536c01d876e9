/** Bundles as the documentation defines them, and what `verifyBundle` finds wrong with one. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { type BundleTrust, verifyBundle } from "#cairnlog/engine/verify/bundle/bundle.js";
import type { AttestationBundle } from "#cairnlog/engine/verify/bundle/format.js";
import { parsePublicKey } from "#cairnlog/engine/verify/keys/publickey.js";
import { sha256 } from "../keys/keys.js";

export const PREDICATES = "https://log.example/predicates";
export const FILE = sha256("the file");
const operator = generateKeyPairSync("ed25519");
export const publicPem = (key: KeyObject) => key.export({ type: "spki", format: "pem" }) as string;
const fingerprint = (key: KeyObject) => `sha256:${sha256(key.export({ type: "spki", format: "der" }))}`;
/** Enough of RFC 8785 for the ASCII members used here. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, member) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );

export interface Recipe {
  signer?: { privateKey: KeyObject; publicKey: KeyObject };
  algorithm?: string;
  type?: string;
  eventType?: string;
  prior?: object[];
  covers?: "prior" | "document";
  statement?: string | null;
  tags?: unknown;
  index?: number;
  /** The SHA-256 of what is attested. */
  file?: string;
  /** Further members of the document, such as those that name type and statement. */
  named?: object | undefined;
  /** `signed_payload_hash` in the entry's payload. */
  signedPayloadHash?: string;
  /** Values that a careless or dishonest log may write. */
  loggedTags?: string[];
  previous?: string | null;
  headTime?: string;
}

/** A genuine bundle, made by node:crypto from the documentation alone: leaf `index` of a tree of 6, version 2. */
export function genuine(recipe: Recipe = {}): AttestationBundle {
  const {
    signer = generateKeyPairSync("ed25519"),
    algorithm = "ed25519",
    type = "editorial_review",
    index = 4,
  } = recipe;
  const { prior = [], statement = "I reviewed it.", tags = ["one", "two"] } = recipe;
  const { file = FILE } = recipe;
  const document_hash = `sha256:${file}`;
  const manifest = {
    document: { title: "A title", content_hash: file, tags, ...recipe.named },
    attestations: prior,
    note: { deep: [1, null] },
  };
  const covered = recipe.covers === "document" ? { ...manifest, attestations: [] } : manifest;
  const digest = algorithm === "ed25519" ? null : "sha256";
  const shared = {
    signer_key_fingerprint: fingerprint(signer.publicKey),
    signature_algorithm: algorithm,
    signature: sign(digest, Buffer.from(canonical(covered)), signer.privateKey).toString("base64"),
    timestamp: "2025-03-01T11:59:59.000000Z",
    ...(statement === null ? {} : { intent_statement: statement }),
  };
  const attestation = { id: "a-1", type, scope: { content_hash: document_hash }, ...shared };
  const payload = {
    ...shared,
    attestation_id: "a-1",
    attestation_type: type,
    document_hash,
    manifest_hash: sha256(canonical(manifest)),
    document_title: "A title",
    intent_statement: statement,
    tags: recipe.loggedTags ?? (Array.isArray(tags) ? tags : []),
    ...(recipe.signedPayloadHash === undefined ? {} : { signed_payload_hash: recipe.signedPayloadHash }),
  };
  const timestamp = "2025-03-01T12:00:00.250000Z";
  const previous_hash = recipe.previous !== undefined ? recipe.previous : index === 0 ? null : sha256("previous");
  const headTime = recipe.headTime ?? timestamp;
  const preimage = `service.log.entry.v2\0${canonical({ payload, previous_hash, timestamp })}`;
  const entry_hash = sha256(preimage);
  const entry_hashes = [
    { algorithm: "sha2-256", digest_hex: entry_hash, is_primary: true },
    { algorithm: "sha2-512", digest_hex: createHash("sha512").update(preimage).digest("hex"), is_primary: false },
  ];
  const event_type = recipe.eventType ?? `${PREDICATES}/editorial-review/v1`;
  const entry = {
    id: index + 1,
    timestamp,
    event_type,
    payload,
    previous_hash,
    entry_hash,
    chain_version: 2,
    entry_hashes,
  };

  const leaf_hash = sha256(`\0${entry_hash}`);
  const node = (a: string, b: string) => sha256(`\x01${a}${b}`);
  const [x, y] = [sha256("x"), sha256("y")];
  const four = index === 0 ? node(node(leaf_hash, x), y) : sha256("four");
  const two = index === 4 ? node(leaf_hash, x) : sha256("two");
  const right = node(two, two);
  const audit_path = index === 0 ? [x, y, right] : [x, four];
  const root_hash = node(four, right);
  const tree_head = {
    tree_size: 6,
    root_hash,
    signature: sign(null, Buffer.from(`${root_hash}:6:${headTime}`), operator.privateKey).toString("base64"),
    timestamp: headTime,
    key_id: fingerprint(operator.publicKey),
    tree_version: 2,
  };
  const proof = {
    leaf_index: index,
    tree_size: 6,
    tree_version: 2,
    leaf_hash,
    root_hash,
    audit_path,
    entry_hash,
    sth: tree_head,
  };
  const public_key = publicPem(signer.publicKey);
  const bundle = { format: "cairnlog-attestation/v1", manifest, attestation, public_key, entry, proof, tree_head };
  return structuredClone(bundle) as unknown as AttestationBundle;
}

export const trust: BundleTrust = {
  fileHash: FILE,
  operatorKey: parsePublicKey(publicPem(operator.publicKey)),
  predicateBase: PREDICATES,
};
export const failures = async (bundle: unknown, against: BundleTrust = trust) =>
  (await verifyBundle(bundle, against)).checks
    .filter((check) => !check.ok)
    .map((check) => `${check.name}: ${check.detail}`);
