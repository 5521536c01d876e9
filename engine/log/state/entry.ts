/**
 * Entries as they are made: hashed (docs/spec §2.2, version 2) and spelled as they will be served, once.
 * The same canonical payload text goes into the hash and into the stored JSON.
 */
import { hash } from "node:crypto";
import type { WithheldEntry } from "../../verify/events/withheld.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import type { Receipt } from "./executor.js";

/** JSON text of everything a version 2 hash covers, behind the domain prefix. */
const DOMAIN = "service.log.entry.v2\0";

interface SecondaryDigest {
  readonly algorithm: string;
  readonly digest_hex: string;
}
/** Computes further digests over the same preimage. */
export type SecondaryDigests = (preimage: Uint8Array) => readonly SecondaryDigest[];

interface EntryDraft {
  readonly id: number;
  /** Canonical form. */
  readonly timestamp: string;
  readonly event_type: string;
  /** RFC 8785 text of the payload. */
  readonly canonicalPayload: string;
}

interface FinishedEntry {
  /** The entry as it is served, without `ots_proof`. Made of parts: to be joined with others, and encoded with them. */
  readonly text: string;
  /** Hex. */
  readonly entryHash: string;
  /** The digests in `entry_hashes` that come after the entry hash. */
  readonly further: readonly SecondaryDigest[];
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

/**
 * An entry that was made elsewhere, as it is served, without `ots_proof`.
 * @param canonicalPayload RFC 8785 text of its payload
 */
export function spellEntry(entry: Omit<Entry, "payload" | "ots_proof">, canonicalPayload: string): string {
  const { id, timestamp, event_type, previous_hash, entry_hash, chain_version, entry_hashes } = entry;
  let digests = "";
  for (const { algorithm, digest_hex, is_primary } of entry_hashes)
    digests += (digests === "" ? "" : ",") + spellDigest(algorithm, digest_hex, is_primary);
  const version = chain_version === undefined ? "" : `"chain_version":${chain_version},`;
  const [time, type, before] = [JSON.stringify(timestamp), quotedType(event_type), quoted(previous_hash)];
  return spell(id, time, type, canonicalPayload, before, entry_hash, version, digests);
}

/** An entry whose payload is withheld, or the name in it, as it is served, without `ots_proof`. */
export const spellWithheld = ({ payload, withheld_by, ...entry }: WithheldEntry): string =>
  spellEntry(entry, `${payload ? canonicalJson(payload) : null},"withheld_by":${withheld_by}`);

/** The one spelling of an entry, for what is appended and for what is imported. All texts but the hash are JSON. */
const spell = (
  id: number,
  timestamp: string,
  eventType: string,
  payload: string,
  previousHash: string,
  entryHash: string,
  version: string,
  digests: string,
): string =>
  `{"id":${id},"timestamp":${timestamp},"event_type":${eventType},"payload":${payload},"previous_hash":${previousHash},` +
  `"entry_hash":"${entryHash}",${version}"entry_hashes":[${digests}]}`;

const spellDigest = (algorithm: string, hex: string, isPrimary: boolean): string =>
  `{"algorithm":${JSON.stringify(algorithm)},"digest_hex":"${hex}","is_primary":${isPrimary}}`;

const quoted = (hash: string | null): string => (hash === null ? "null" : `"${hash}"`);

let lastType = "";
let lastTypeText = '""';

/** An event type as JSON; neighbours mostly have the same one, so the last text is kept. */
function quotedType(type: string): string {
  if (type !== lastType) {
    lastTypeText = JSON.stringify(type);
    lastType = type;
  }
  return lastTypeText;
}

const NO_DIGESTS: readonly SecondaryDigest[] = [];

/** Links a draft to the entry before it. */
export function finishEntry(
  draft: EntryDraft,
  previousHash: string | null,
  secondaryDigests: SecondaryDigests | null,
): FinishedEntry {
  const { id, timestamp, event_type, canonicalPayload } = draft;
  const preimage = preimageText(2, canonicalPayload, previousHash, timestamp);
  const entryHash = hash("sha256", preimage, "hex");
  const further = secondaryDigests?.(Buffer.from(preimage, "utf8")) ?? NO_DIGESTS;
  let digests = `{"algorithm":"sha2-256","digest_hex":"${entryHash}","is_primary":true}`;
  for (const { algorithm, digest_hex } of further) digests += `,${spellDigest(algorithm, digest_hex, false)}`;
  const [time, type, before] = [`"${timestamp}"`, quotedType(event_type), quoted(previousHash)];
  const text = spell(id, time, type, canonicalPayload, before, entryHash, '"chain_version":2,', digests);
  return { text, entryHash, further };
}

export class EntryReceipt implements Receipt {
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly timestamp: string;
  readonly sth: TreeHead;
  readonly json: Buffer;

  constructor({ log_entry_id, leaf_index, entry_hash, timestamp, sth, json }: Receipt) {
    this.log_entry_id = log_entry_id;
    this.leaf_index = leaf_index;
    this.entry_hash = entry_hash;
    this.timestamp = timestamp;
    this.sth = sth;
    this.json = json;
  }

  /** For `JSON.stringify`. */
  toJSON(): object {
    const { json, ...rest } = this;
    return { ...rest, entry: JSON.parse(json.toString()) };
  }
}
