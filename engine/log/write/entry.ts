/**
 * Entries as they are made: hashed (`spec.md`, entry hash version 2) and spelled as they will be served, once.
 * The same canonical payload text goes into the hash and into the stored JSON.
 */
import { hash } from "node:crypto";
import type { Entry } from "../../verify/entry.js";

/** JSON text of everything a version 2 hash covers, behind the domain prefix. */
const DOMAIN = "service.log.entry.v2\0";

export interface SecondaryDigest {
  readonly algorithm: string;
  readonly digest_hex: string;
}
/** Computes further digests over the same preimage. */
export type SecondaryDigests = (preimage: Uint8Array) => readonly SecondaryDigest[];

export interface EntryDraft {
  readonly id: number;
  /** Canonical form. */
  readonly timestamp: string;
  readonly event_type: string;
  /** RFC 8785 text of the payload. */
  readonly canonicalPayload: string;
}

export interface FinishedEntry {
  /** The entry as it is served, without `ots_proof`. */
  readonly json: Buffer;
  /** Hex. */
  readonly entryHash: string;
  /** Every digest in `entry_hashes`, the entry hash first. */
  readonly digests: readonly string[];
}

/**
 * The text whose UTF-8 is hashed for an entry of a chain version.
 * @param payload RFC 8785 text
 * @param timestamp canonical form; version 1 does not cover it
 */
export function preimageText(
  version: 1 | 2,
  payload: string,
  previousHash: string | null,
  timestamp: string | undefined,
): string {
  if (version === 1) return payload + (previousHash ?? "");
  // The three members in RFC 8785 order; timestamp and hash need no escaping.
  return `${DOMAIN}{"payload":${payload},"previous_hash":${quoted(previousHash)},"timestamp":"${timestamp}"}`;
}

/** What an entry is served as: its members, the payload as RFC 8785 text. */
export interface SpelledEntry extends Omit<Entry, "payload" | "ots_proof"> {
  readonly canonicalPayload: string;
}

/** An entry as it is served, without `ots_proof`: one spelling for what is appended and for what is imported. */
export function spellEntry(entry: SpelledEntry): Buffer {
  const { id, timestamp, event_type, canonicalPayload, previous_hash, entry_hash, chain_version, entry_hashes } = entry;
  const version = chain_version === undefined ? "" : `"chain_version":${chain_version},`;
  const digests = entry_hashes.map(
    ({ algorithm, digest_hex, is_primary }) =>
      `{"algorithm":${JSON.stringify(algorithm)},"digest_hex":"${digest_hex}","is_primary":${is_primary}}`,
  );
  return Buffer.from(
    `{"id":${id},"timestamp":${JSON.stringify(timestamp)},"event_type":${JSON.stringify(event_type)},` +
      `"payload":${canonicalPayload},"previous_hash":${quoted(previous_hash)},"entry_hash":"${entry_hash}",` +
      `${version}"entry_hashes":[${digests.join()}]}`,
    "utf8",
  );
}

const quoted = (hash: string | null): string => (hash === null ? "null" : `"${hash}"`);

/** Links a draft to the entry before it. */
export function finishEntry(
  draft: EntryDraft,
  previousHash: string | null,
  secondaryDigests: SecondaryDigests | null,
): FinishedEntry {
  const { id, timestamp, event_type, canonicalPayload } = draft;
  const preimage = preimageText(2, canonicalPayload, previousHash, timestamp);
  const entryHash = hash("sha256", preimage, "hex");
  const further = secondaryDigests?.(Buffer.from(preimage, "utf8")) ?? [];
  const json = spellEntry({
    id,
    timestamp,
    event_type,
    canonicalPayload,
    previous_hash: previousHash,
    entry_hash: entryHash,
    chain_version: 2,
    entry_hashes: [
      { algorithm: "sha2-256", digest_hex: entryHash, is_primary: true },
      ...further.map((digest) => ({ ...digest, is_primary: false })),
    ],
  });
  return { json, entryHash, digests: [entryHash, ...further.map(({ digest_hex }) => digest_hex)] };
}
