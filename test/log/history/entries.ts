/** Entries of a history by another writer: hashed by the rules of docs/spec §2.2, in a few lines of independent code. */
import { createHash, type KeyObject, sign } from "node:crypto";
import canonicalize from "canonicalize";

export const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

export interface MadeEntry {
  readonly id: number;
  readonly timestamp: string;
  readonly event_type: string;
  readonly payload: Record<string, unknown>;
  readonly previous_hash: string | null;
  readonly entry_hash: string;
  readonly chain_version?: 1 | 2;
  readonly entry_hashes: readonly { algorithm: string; digest_hex: string; is_primary: boolean }[];
  readonly ots_proof?: string;
}

export interface Wanted {
  readonly id?: number;
  readonly timestamp?: string;
  readonly event_type?: string;
  readonly payload?: Record<string, unknown>;
  /** Null: the member is omitted, which means 1. */
  readonly chain_version?: 1 | 2 | null;
  readonly ots_proof?: string;
}

/** Moment number `n` of a test, in canonical form. */
export const momentNumber = (n: number): string =>
  new Date(Date.UTC(2020, 0, 1) + n * 60_000).toISOString().replace("Z", "000Z");

/** An event without effect. Version 2 entries of the service's log must have known types. */
function someEvent(n: number, version: 1 | 2 | null) {
  if (version !== 2) return { event_type: "note", payload: { n } };
  // In the served form: members in the order of RFC 8785.
  const claim = { ciphertext: "", commitment: "", commitment_alg: "", ephemeral_public_key: "" };
  const event_type = "encrypted_claim";
  return { event_type, payload: { ...claim, event_type, lookup_key: "", n, nonce: "" } };
}

/** Links the given entries into a chain; by default ids and timestamps ascend. */
export function chain(wanted: readonly Wanted[], after: MadeEntry | null = null): MadeEntry[] {
  let previous = after;
  return wanted.map((wish, n) => {
    const { chain_version = 1 } = wish;
    const { event_type, payload } = { ...someEvent(n, chain_version), ...wish };
    const id = wish.id ?? (previous?.id ?? 0) + 1;
    const timestamp = wish.timestamp ?? momentNumber(id);
    const previous_hash = previous?.entry_hash ?? null;
    const entry_hash = sha256(
      chain_version === 2
        ? `service.log.entry.v2\0${canonicalize({ payload, previous_hash, timestamp: canonicalUtc(timestamp) })}`
        : canonicalize(payload) + (previous_hash ?? ""),
    );
    const entry: MadeEntry = {
      id,
      timestamp,
      event_type,
      payload,
      previous_hash,
      entry_hash,
      ...(chain_version === null ? {} : { chain_version }),
      entry_hashes: [{ algorithm: "sha2-256", digest_hex: entry_hash, is_primary: true }],
      ...(wish.ots_proof === undefined ? {} : { ots_proof: wish.ots_proof }),
    };
    previous = entry;
    return entry;
  });
}

/** Only for timestamps in tests: seconds, an optional fraction, `Z` or `+00:00`. */
function canonicalUtc(timestamp: string): string {
  const [, seconds, fraction = ""] = /^(.{19})(?:\.(\d{1,6}))?(?:Z|\+00:00)$/.exec(timestamp)!;
  return `${seconds}.${fraction.padEnd(6, "0")}Z`;
}

export const line = (entry: object): Buffer => Buffer.from(JSON.stringify(entry));

/** docs/spec §3.2: nodes are paired, the last one with itself, until one is left. */
export function definedRoot(digests: readonly string[], version: 1 | 2): string {
  const [leafPrefix, nodePrefix] = version === 2 ? ["\0", "\x01"] : ["", ""];
  let row = digests.map((digest) => sha256(leafPrefix + digest));
  while (row.length > 1) {
    const parents: string[] = [];
    for (let i = 0; i < row.length; i += 2) parents.push(sha256(nodePrefix + row[i]! + (row[i + 1] ?? row[i]!)));
    row = parents;
  }
  return row[0]!;
}

/** A head as the operator would have signed it. */
export function signedHead(
  digests: readonly string[],
  {
    key,
    fingerprint,
    timestamp,
    version = 2,
  }: { key: KeyObject; fingerprint: string; timestamp: string; version?: 1 | 2 },
) {
  const root_hash = definedRoot(digests, version);
  const message = Buffer.from(`${root_hash}:${digests.length}:${timestamp}`);
  return {
    tree_size: digests.length,
    root_hash,
    signature: sign(null, message, key).toString("base64"),
    timestamp,
    key_id: fingerprint,
    tree_version: version,
  };
}
