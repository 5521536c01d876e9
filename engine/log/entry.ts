/**
 * Entries as they are made: hashed (`spec.md`, entry hash version 2) and spelled as they will be served, once.
 * The same canonical payload text goes into the hash and into the stored JSON.
 */
import { hash } from "node:crypto";

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

/** Links a draft to the entry before it. */
export function finishEntry(
  draft: EntryDraft,
  previousHash: string | null,
  secondaryDigests: SecondaryDigests | null,
): FinishedEntry {
  const { canonicalPayload: payload, timestamp } = draft;
  const previous = previousHash === null ? "null" : `"${previousHash}"`;
  // The three members in RFC 8785 order; timestamp and hash need no escaping.
  const preimage = `${DOMAIN}{"payload":${payload},"previous_hash":${previous},"timestamp":"${timestamp}"}`;
  const entryHash = hash("sha256", preimage, "hex");
  const primary = `{"algorithm":"sha2-256","digest_hex":"${entryHash}","is_primary":true}`;
  const further = secondaryDigests?.(Buffer.from(preimage, "utf8")) ?? [];
  const secondary = further
    .map(({ algorithm, digest_hex }) => `,{"algorithm":"${algorithm}","digest_hex":"${digest_hex}","is_primary":false}`)
    .join("");
  const json = Buffer.from(
    `{"id":${draft.id},"timestamp":"${timestamp}","event_type":${JSON.stringify(draft.event_type)},"payload":${payload},` +
      `"previous_hash":${previous},"entry_hash":"${entryHash}","chain_version":2,"entry_hashes":[${primary}${secondary}]}`,
    "utf8",
  );
  return { json, entryHash, digests: [entryHash, ...further.map(({ digest_hex }) => digest_hex)] };
}

/** The id of the entry at a leaf index. Ids count from 1. */
export const entryId = (leafIndex: number): number => leafIndex + 1;

/** The leaf index of the entry with this id. */
export const leafIndexOf = (id: number): number => id - 1;
