/**
 * Reads one entry of a history from elsewhere: every byte may be hostile. The result has been checked by itself and
 * against the previous entry, and is serialised as this log serialises entries.
 *
 * Serialisation: members in the order in which they are served, the payload as RFC 8785 text, no white space. Values
 * that no hash covers (`id`, `timestamp`, `event_type`) are kept exactly. Unknown members are dropped.
 */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import { createDigests, type DigestName } from "../../crypto/digests.js";
import { decodeBase64 } from "../../verify/bytes/encoding.js";
import { eventMisfit } from "../../verify/events/eventcheck.js";
import { eventIn, isWithheld, withholdableFault, withholdingFault } from "../../verify/events/withheld.js";
import { canonicalJson, canonicalJsonWithin, checkIJson, MAX_DEPTH, parseJson } from "../../verify/json/canonical.js";
import { anyObject, anyText, objectOf, orNull, positiveInteger, where } from "../../verify/json/shape.js";
import { canonicalTimestamp, ENTRY_MEMBERS, type Entry, type EntryDigest, isCut } from "../../verify/tree/entry.js";
import { isProofOf } from "../anchor/proof.js";
import { behindTheEnd, LOG_CONTINUES, LOG_FROZEN, NOT_THE_FIRST } from "../operator/entries.js";
import { type Edge, EMPTY_EDGE } from "../read/seams.js";
import { instantOf, microsOf, parseTimestamp } from "../state/clock.js";
import { preimageText, spellEntry, spellWithheld } from "../state/entry.js";
import type { LoggedEvent, Projection } from "../state/projection.js";

/** Longer entries are refused. This is sixteen times the default limit of a request. */
export const MAX_ENTRY_BYTES = 16 * 2 ** 20;

/** The values against which the next entry is checked. */
export interface Predecessor extends Edge {
  readonly entryHash: string | null;
  readonly chainVersion: 1 | 2;
  /** Undefined if version 2 could not hash this timestamp. */
  readonly canonicalTimestamp: string | undefined;
  /** Whether it froze the log, so that nothing may follow. */
  readonly isEnd: boolean;
}
export const NO_PREDECESSOR: Predecessor = {
  ...EMPTY_EDGE,
  entryHash: null,
  chainVersion: 1,
  canonicalTimestamp: undefined,
  isEnd: false,
};

/** The newest stored entry, as the predecessor of the next one. */
export function predecessorOf(entry: Entry): Predecessor {
  return {
    id: entry.id,
    micros: microsOf(entry.timestamp),
    entryHash: entry.entry_hash,
    chainVersion: entry.chain_version ?? 1,
    canonicalTimestamp: canonicalTimestamp(entry.timestamp),
    isEnd: entry.event_type === LOG_FROZEN,
  };
}

/** Something unusual in a history that is not an error. */
export interface HistoryWarning {
  readonly leafIndex: number;
  readonly id: number;
  readonly code: "v1-after-v2" | "unknown-digest" | "unreadable-proof";
  /** A sentence. */
  readonly message: string;
}

export interface CheckedEntry extends Predecessor {
  /** The entry as it will be served, without `ots_proof`. */
  readonly json: Buffer;
  readonly entryHash: string;
  /** Whether it comes without its payload, or without the name in it. */
  readonly isCut: boolean;
  readonly event: LoggedEvent;
  /** Every digest in `entry_hashes`. */
  readonly digests: readonly string[];
  readonly otsProof: Uint8Array | null;
  readonly warnings: readonly HistoryWarning[];
}

const DIGEST_TEXT = /^(?:[0-9a-f]{2}){4,256}$/;
const PRIMARY = "sha2-256";
const NAMES = ["sha2-512", "sha3-256", "blake3"] as const satisfies readonly DigestName[];

const ENTRY = objectOf(
  { ...ENTRY_MEMBERS, payload: orNull(anyObject) },
  {
    chain_version: where("1 or 2", (v) => v === 1 || v === 2),
    ots_proof: orNull(anyText),
    withheld_by: positiveInteger,
  },
  "ignored",
);

type Digest = (preimage: string) => string;

/** Loads the hash functions. The resulting reader checks entries synchronously. */
export async function createHistoryReader(projection: Pick<Projection, "checksEvents">): Promise<HistoryReader> {
  const digests = new Map<string, Digest>([[PRIMARY, (preimage) => hash("sha256", preimage, "hex")]]);
  for (const name of NAMES) {
    const compute = await createDigests([name]);
    digests.set(name, (preimage) => compute(Buffer.from(preimage, "utf8"))[0]!.digest_hex);
  }
  return new HistoryReader(digests, projection.checksEvents === true);
}

export class HistoryReader {
  readonly #digests: ReadonlyMap<string, Digest>;
  readonly #checksEvents: boolean;

  /** Use `createHistoryReader`. */
  constructor(digests: ReadonlyMap<string, Digest>, checksEvents: boolean) {
    this.#digests = digests;
    this.#checksEvents = checksEvents;
  }

  /**
   * The entry in `bytes`, which must follow `previous` and will be at `leafIndex`. The result may share memory with them.
   * @param proof its anchoring proof; null: the one in `bytes`, if there is one
   * @throws CairnlogError `invalid-input`, `not-i-json`, `payload-too-large`: it is not an entry, or does not follow
   *   `previous`
   */
  read(bytes: Uint8Array, previous: Predecessor, leafIndex: number, proof: Uint8Array | null): CheckedEntry {
    const { entry, canonicalPayload, json } = parsed(bytes);
    const { id, event_type, chain_version, entry_hash, entry_hashes } = entry;
    const version = chain_version ?? 1;
    if (previous.isEnd) refuse(behindTheEnd(previous.id));
    if (event_type === LOG_CONTINUES && leafIndex > 0) refuse(NOT_THE_FIRST);
    if (id <= previous.id) refuse(`The id ${id} does not ascend: the entry before has ${previous.id}.`);
    if (entry.previous_hash !== previous.entryHash)
      refuse(
        previous.entryHash === null
          ? "The first entry of a log has previous_hash null: this history lacks its beginning."
          : "previous_hash is not the entry_hash of the entry before: an entry is missing, or was changed.",
      );
    const canonical = canonicalTimestamp(entry.timestamp);
    const instant =
      canonical ?? instantOf(entry.timestamp) ?? refuse("The timestamp is not an ISO 8601 date and time.");
    const micros = parseTimestamp(instant);
    if (!Number.isSafeInteger(micros)) refuse("The timestamp is not between the years 1685 and 2255.");
    if (version === 2) checkOrder(previous, canonical);

    // Nothing can be computed of a payload that is withheld. The entry after it, and the head over both, vouch for its hash.
    const preimage = isCut(entry) ? null : preimageText(version, canonicalPayload, entry.previous_hash, canonical);
    if (preimage !== null && this.#digests.get(PRIMARY)!(preimage) !== entry_hash)
      refuse(`The content does not hash to entry_hash (as chain version ${version}).`);
    const unknown = this.#checkDigests(entry_hashes, entry_hash, preimage);
    const { payload } = eventIn(entry);
    const misfit =
      this.#checksEvents && entry.payload
        ? eventMisfit({ event_type, payload, ...(chain_version && { chain_version }) })
        : undefined;
    if (misfit !== undefined) refuse(misfit);
    const otsProof = proof ?? proofOf(entry);
    const warnings: HistoryWarning[] = [];
    const warn = (code: HistoryWarning["code"], message: string) => warnings.push({ leafIndex, id, code, message });
    if (version === 1 && previous.chainVersion === 2)
      warn("v1-after-v2", "A version 1 entry follows a version 2 entry.");
    for (const name of unknown)
      warn("unknown-digest", `The digest algorithm ${JSON.stringify(name)} is not known: not checked.`);
    if (otsProof && !isProofOf(otsProof, Buffer.from(entry_hash, "hex")))
      warn("unreadable-proof", "ots_proof is not a .ots file about this entry; it is kept unchanged.");
    return {
      id,
      micros,
      entryHash: entry_hash,
      chainVersion: version,
      canonicalTimestamp: canonical,
      isEnd: event_type === LOG_FROZEN,
      isCut: preimage === null,
      json,
      event: { id, leafIndex, timestamp: instant, event_type, payload },
      digests: entry_hashes.map(({ digest_hex }) => digest_hex),
      otsProof,
      warnings,
    };
  }

  /** @returns the algorithms whose digests cannot be computed here */
  #checkDigests(digests: readonly EntryDigest[], entryHash: string, preimage: string | null): string[] {
    const primary = digests.filter(({ is_primary }) => is_primary);
    if (primary.length !== 1 || primary[0]!.algorithm !== PRIMARY || primary[0]!.digest_hex !== entryHash)
      refuse("Exactly one of entry_hashes must be primary: sha2-256, equal to entry_hash.");
    if (digests.length > 1 && new Set(digests.map(({ algorithm }) => algorithm)).size !== digests.length)
      refuse("A digest algorithm appears more than once in entry_hashes.");
    const unknown: string[] = [];
    for (const { algorithm, digest_hex } of digests) {
      if (!DIGEST_TEXT.test(digest_hex)) refuse("A digest_hex is not lower-case hexadecimal.");
      if (digest_hex === entryHash && algorithm === PRIMARY) continue;
      const compute = this.#digests.get(algorithm);
      if (!compute) unknown.push(algorithm);
      else if (preimage !== null && compute(preimage) !== digest_hex)
        refuse(`The ${algorithm} digest does not match the content.`);
    }
    return unknown;
  }
}

interface Parsed {
  readonly entry: Entry & { readonly ots_proof?: string | null };
  /** RFC 8785 text of its payload. */
  readonly canonicalPayload: string;
  /** The entry as it will be served: of entries that are spelled so already, the bytes themselves. */
  readonly json: Buffer;
}

function parsed(bytes: Uint8Array): Parsed {
  if (bytes.length > MAX_ENTRY_BYTES)
    throw new CairnlogError("payload-too-large", `The entry is longer than ${MAX_ENTRY_BYTES} bytes.`);
  if (!isUtf8(bytes)) refuse("The entry is not UTF-8.");
  const given = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const text = given.toString("utf8");
  const value = parseJson(text);
  const misfit = ENTRY(value, "");
  const entry = value as Entry;
  const spelled = misfit === undefined ? spelledPlainly(entry, text) : undefined;
  if (spelled !== undefined) return { entry, canonicalPayload: spelled, json: given };
  checkIJson(text, value);
  if (misfit !== undefined) refuse(`This is not a log entry. ${misfit}`);
  if (isCut(entry)) {
    if (!isWithheld(entry)) refuse(withholdingFault(entry, undefined)!);
    // The type is not hashed: an end of the log, for example, cannot be told without its payload.
    const fault = entry.payload ? undefined : withholdableFault(entry.event_type);
    if (fault !== undefined) refuse(fault);
    return { entry, canonicalPayload: "", json: Buffer.from(spellWithheld(entry), "utf8") };
  }
  const canonicalPayload = canonicalJson(entry.payload);
  return { entry, canonicalPayload, json: Buffer.from(spellEntry(entry, canonicalPayload), "utf8") };
}

/**
 * The canonical payload of an entry whose text is as this log spells entries. Such a text is I-JSON, without a look at every
 * character, unless it has escapes, `__proto__` or too many levels: a member that is there twice, or a number that a
 * double does not hold, would be spelled otherwise. Followers read 20,000 of them a second.
 */
function spelledPlainly(entry: Entry, text: string): string | undefined {
  if (text.includes("\\") || text.includes("__proto__") || entry.payload === null) return undefined;
  try {
    const canonicalPayload = canonicalJsonWithin(entry.payload, MAX_DEPTH - 1);
    return spellEntry(entry, canonicalPayload) === text ? canonicalPayload : undefined;
  } catch {
    // The thorough check says why.
    return undefined;
  }
}

function checkOrder(previous: Predecessor, canonical: string | undefined): void {
  if (canonical === undefined)
    refuse("The timestamp of a version 2 entry must be ISO 8601 with an offset and at most six decimals.");
  // docs/spec §2.3. Canonical timestamps sort as text.
  if (previous.canonicalTimestamp !== undefined && canonical! < previous.canonicalTimestamp)
    refuse("The timestamp of this version 2 entry is earlier than that of the entry before.");
}

function proofOf({ ots_proof }: { readonly ots_proof?: string | null }): Uint8Array | null {
  if (ots_proof === undefined || ots_proof === null) return null;
  return decodeBase64(ots_proof) ?? refuse("ots_proof is not base64.");
}

function refuse(message: string): never {
  throw new CairnlogError("invalid-input", message);
}
