/**
 * Log entries: which of their members are hashed, and whether their hashes are right. Version 1 hashes `payload` and
 * `previous_hash`; version 2 also hashes `timestamp`. Neither version hashes `id`, `event_type` (the payload says what
 * the event is: `eventcheck.ts`), `chain_version` (it selects the version; a changed value only makes the check fail)
 * and `ots_proof`.
 */
import { blake3 } from "@noble/hashes/blake3.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { sha3_256 } from "@noble/hashes/sha3.js";
import { inputError } from "../../base/error.js";
import { toHex, utf8 } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import { canonicalJson } from "../json/canonical.js";
import {
  anyObject,
  anyText,
  arrayOf,
  hexHash,
  type JsonObject,
  objectOf,
  orNull,
  positiveInteger,
  where,
} from "../json/shape.js";

/** A digest of an entry's preimage. */
export interface EntryDigest {
  /** `sha2-256`, `sha2-512`, `sha3-256` or `blake3`. */
  readonly algorithm: string;
  readonly digest_hex: string;
  /** True only for the digest that is `entry_hash`. */
  readonly is_primary: boolean;
}

/** A log entry as it is served. */
export interface Entry {
  /** Not hashed. A proof is bound to the entry's place in the tree. */
  readonly id: number;
  /** ISO 8601. Version 2 hashes it, in its canonical spelling. */
  readonly timestamp: string;
  /** Not hashed. */
  readonly event_type: string;
  /** Null if the operator withholds it, and with another name if he withholds that (`withheld.ts`). */
  readonly payload: JsonObject | null;
  /** Id of the entry by which the operator withholds the payload or the name in it. Not hashed. */
  readonly withheld_by?: number;
  /** Null for the first entry. */
  readonly previous_hash: string | null;
  /** Bare lower-case hex. */
  readonly entry_hash: string;
  /** 1 if absent. */
  readonly chain_version?: 1 | 2;
  readonly entry_hashes: readonly EntryDigest[];
  /** Base64; not hashed. */
  readonly ots_proof?: string;
}

/** A problem that `checkEntry` found. Only `checkServiceEntry` finds `wrong-event`. */
export interface EntryProblem {
  readonly code:
    | "malformed-entry"
    | "hash-mismatch"
    | "digest-mismatch"
    | "unknown-digest"
    | "primary-digest"
    /** The payload is not shown. Whether an entry of the operator withholds it, says `withholdingFault`. */
    | "withheld"
    | "wrong-event";
  /** A sentence. */
  readonly message: string;
}

const V2_PREFIX = "service.log.entry.v2\0";
const TIMESTAMP =
  /^(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,6}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
/**
 * A canonical timestamp on a day that exists in every month, so nothing has to be converted. Eleven in twelve of the
 * log's own timestamps match.
 */
const PLAINLY_CANONICAL = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z$/;

const sha2_256 = (preimage: Uint8Array): Uint8Array => kernel.sha256(preimage);
const DIGESTS: Readonly<Record<string, (preimage: Uint8Array) => Uint8Array>> = {
  "sha2-256": sha2_256,
  "sha2-512": (preimage) => sha512(preimage),
  "sha3-256": (preimage) => sha3_256(preimage),
  blake3: (preimage) => blake3(preimage),
};

/** The members that every entry has. Version 1 never hashed the timestamp, so old entries may have one in any form. */
export const ENTRY_MEMBERS = {
  id: positiveInteger,
  timestamp: anyText,
  event_type: anyText,
  payload: anyObject,
  previous_hash: orNull(hexHash),
  entry_hash: hexHash,
  entry_hashes: arrayOf(
    objectOf({
      algorithm: anyText,
      digest_hex: anyText,
      is_primary: where("true or false", (v) => typeof v === "boolean"),
    }),
  ),
};

const ENTRY = objectOf(
  { ...ENTRY_MEMBERS, payload: orNull(anyObject) },
  { chain_version: where("1 or 2", (v) => v === 1 || v === 2), ots_proof: anyText, withheld_by: positiveInteger },
  "ignored",
);

/**
 * `YYYY-MM-DDTHH:MM:SS.ffffffZ`, in UTC, for an instant in any ISO 8601 spelling with an offset (`…Z`, `…+00:00`,
 * `….5+02:00`). `undefined` for anything else: no offset, a date that does not exist, more than six decimals (the
 * hashed form cannot contain them), a year outside 0000–9999.
 */
export function canonicalTimestamp(timestamp: unknown): string | undefined {
  if (typeof timestamp !== "string") return undefined;
  if (PLAINLY_CANONICAL.test(timestamp)) return timestamp;
  const match = TIMESTAMP.exec(timestamp);
  if (match === null) return undefined;
  const [, local = "", fraction = "", sign, hours = "0", minutes = "0"] = match;
  const localMs = Date.parse(`${local}Z`);
  // Date.parse may turn 30 February into a day of March.
  if (Number.isNaN(localMs) || new Date(localMs).toISOString() !== `${local}.000Z`) return undefined;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const utc = new Date(localMs + (sign === "-" ? offsetMs : -offsetMs)).toISOString();
  // Years outside 0000–9999 have a sign and six digits.
  return utc.length === 24 ? `${utc.slice(0, 19)}.${fraction.padEnd(6, "0")}Z` : undefined;
}

/**
 * As `canonicalTimestamp`, of a time that somebody writes into a request or query: up to nine decimals, of which six count,
 * and `t` and `z`, as RFC 3339 allows. Nothing here rounds, so a time never becomes a later one.
 */
export function requestedTime(time: unknown): string | undefined {
  return canonicalTimestamp(
    typeof time === "string" ? time.toUpperCase().replace(/(\.\d{6})\d{1,3}(?=[Z+-])/, "$1") : time,
  );
}

/**
 * The bytes that an entry's digests are computed from, by its `chain_version` (1 if absent).
 * @throws CairnlogError `invalid-input` for another chain version or a timestamp that cannot be normalised;
 *   `not-i-json` for a payload without canonical form.
 */
export function entryPreimage(
  entry: Pick<Entry, "payload" | "previous_hash" | "timestamp" | "chain_version">,
): Uint8Array {
  const { payload, previous_hash, chain_version = 1 } = entry;
  if (payload === null) throw inputError("The payload is withheld, so there is nothing to hash.");
  if (chain_version === 1) return utf8(canonicalJson(payload) + (previous_hash ?? ""));
  if (chain_version !== 2) throw inputError("The chain version is neither 1 nor 2.");
  const timestamp = canonicalTimestamp(entry.timestamp);
  if (timestamp === undefined) throw inputError("The timestamp cannot be normalised.");
  return utf8(V2_PREFIX + canonicalJson({ payload, previous_hash, timestamp }));
}

/** Stands where an entry named a key, if the operator withholds the name. */
export const WITHHELD_NAME = "withheld";

/** Whether events of a type name a key. */
export const namesKey = (eventType: string): boolean => /^key_(registration|succession)$/.test(eventType);

/**
 * Whether an entry has the form of one that is shown without its payload, or without the name in it: then no hash of it can be
 * computed. Only `withholdingFault` says whether it rightly has.
 */
export const isCut = ({ event_type, payload, withheld_by }: Pick<Entry, "event_type" | "payload" | "withheld_by">) =>
  payload === null || (withheld_by !== undefined && namesKey(event_type) && payload.pseudonym === WITHHELD_NAME);

/** SHA-256 of the entry's preimage in lower-case hex. @throws CairnlogError as `entryPreimage` does. */
export function entryHash(entry: Pick<Entry, "payload" | "previous_hash" | "timestamp" | "chain_version">): string {
  return toHex(kernel.sha256(entryPreimage(entry)));
}

/**
 * All problems of a single entry. Empty if `entry_hash` and every one of `entry_hashes` agree with its content. Links to other
 * entries are not checked. Unknown members are ignored. Never throws: the entry may be any JSON value.
 * @param sha256 another implementation: Node's takes 1 µs for an entry, the kernel 5
 */
export function checkEntry(entry: Entry, sha256: (preimage: Uint8Array) => Uint8Array = sha2_256): EntryProblem[] {
  const misfit = ENTRY(entry, "");
  if (misfit !== undefined) return [{ code: "malformed-entry", message: misfit }];
  const problems = isCut(entry) ? [NOT_SHOWN] : contentProblems(entry, sha256);
  const primary = entry.entry_hashes.filter((digest) => digest.is_primary);
  if (primary.length !== 1 || primary[0]!.algorithm !== "sha2-256" || primary[0]!.digest_hex !== entry.entry_hash) {
    problems.push({
      code: "primary-digest",
      message: "Exactly one digest must be primary: sha2-256, equal to entry_hash.",
    });
  }
  if (new Set(entry.entry_hashes.map((digest) => digest.algorithm)).size !== entry.entry_hashes.length) {
    problems.push({ code: "digest-mismatch", message: "A digest algorithm appears more than once." });
  }
  return problems;
}

const NOT_SHOWN: EntryProblem = { code: "withheld", message: "The payload is not shown." };

function contentProblems(entry: Entry, sha256: (preimage: Uint8Array) => Uint8Array): EntryProblem[] {
  let preimage: Uint8Array;
  try {
    preimage = entryPreimage(entry);
  } catch (error) {
    return [{ code: "malformed-entry", message: (error as Error).message }];
  }
  const problems: EntryProblem[] = [];
  const sha256Hex = toHex(sha256(preimage));
  if (sha256Hex !== entry.entry_hash) {
    problems.push({ code: "hash-mismatch", message: "The content of the entry does not hash to its entry_hash." });
  }
  for (const { algorithm, digest_hex } of entry.entry_hashes) {
    const digest = Object.hasOwn(DIGESTS, algorithm) ? DIGESTS[algorithm] : undefined;
    if (digest === undefined) {
      problems.push({ code: "unknown-digest", message: `The digest algorithm ${algorithm} cannot be checked.` });
    } else if ((digest === sha2_256 ? sha256Hex : toHex(digest(preimage))) !== digest_hex) {
      problems.push({ code: "digest-mismatch", message: `The ${algorithm} digest does not fit the entry's content.` });
    }
  }
  return problems;
}
