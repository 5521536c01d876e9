/**
 * One OpenTimestamps calendar over HTTP: it takes a digest now, and has the path to a Bitcoin block later. It is not
 * trusted: every answer is limited in time and size, parsed strictly, and never leads to a request to another address.
 */
import { CairnlogError } from "../../engine/base/error.js";
import {
  OtsTimestamp,
  otsCommitments,
  parseOtsFile,
  parseOtsTimestamp,
  serialiseOtsFile,
} from "../../engine/verify/ots/ots.js";
import { exchange } from "../outgoing/exchange.js";

/** Time limit for a whole answer. */
const CALENDAR_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 10_000;
/**
 * Maximum number of attestations in one answer. A calendar normally gives one; each pending one costs a request in
 * every later round.
 */
const MAX_ATTESTATIONS = 8;
/**
 * What it answers about a message that it does not have, or not in an address: another calendar may have promised in its name, with
 * a message of any length.
 */
const UNKNOWN: readonly number[] = [404, 414, 431];
const MEDIA_TYPE = "application/vnd.opentimestamps.v1";

/** The reason why a calendar could not be used; completes "The calendar …". */
export class CalendarError extends Error {}

export class Calendar {
  /** The configured address, without a slash at its end. */
  readonly uri: string;
  readonly #timeoutMs: number;

  constructor(uri: string, timeoutMs = CALENDAR_TIMEOUT_MS) {
    this.uri = uri;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Submits `digest` to the calendar.
   * @returns a timestamp of the digest that is pending or already confirmed
   * @throws CalendarError if the answer is late, is not a timestamp, or contains no known attestation
   */
  async submit(digest: Uint8Array, signal: AbortSignal): Promise<OtsTimestamp> {
    const { status, body } = await this.#ask("/digest", digest, signal);
    if (status !== 200) throw new CalendarError(`answered with status ${status}`);
    const timestamp = parsed(body, digest);
    if (otsCommitments(timestamp).every(({ kind }) => kind === "unknown"))
      throw new CalendarError("promised nothing that is known here");
    return timestamp;
  }

  /**
   * Asks for the calendar's proof of a `message` that it has taken.
   * @returns a timestamp of the message that names a Bitcoin block, or null if there is none yet
   * @throws CalendarError if the answer is late or is not a timestamp
   */
  async lookUp(message: Uint8Array, signal: AbortSignal): Promise<OtsTimestamp | null> {
    const { status, body } = await this.#ask(`/timestamp/${Buffer.from(message).toString("hex")}`, null, signal);
    if (UNKNOWN.includes(status)) return null;
    if (status !== 200) throw new CalendarError(`answered with status ${status}`);
    const timestamp = parsed(body, message);
    return otsCommitments(timestamp).some(({ kind }) => kind === "bitcoin") ? timestamp : null;
  }

  #ask(path: string, digest: Uint8Array | null, signal: AbortSignal): Promise<{ status: number; body: Buffer }> {
    return exchange(
      {
        url: new URL(this.uri + path),
        headers: { accept: MEDIA_TYPE, ...(digest ? { "content-type": "application/octet-stream" } : {}) },
        body: digest,
      },
      { timeoutMs: this.#timeoutMs, maxBytes: MAX_ANSWER_BYTES, signal },
      (reason, options) => new CalendarError(reason, options),
    );
  }
}

function parsed(body: Uint8Array, message: Uint8Array): OtsTimestamp {
  let timestamp: OtsTimestamp;
  try {
    timestamp = parseOtsTimestamp(body, message);
  } catch (cause) {
    if (cause instanceof CairnlogError)
      throw new CalendarError("answered with something else than a timestamp", { cause });
    throw cause;
  }
  if (otsCommitments(timestamp).length > MAX_ATTESTATIONS)
    throw new CalendarError(`answered with more than ${MAX_ATTESTATIONS} attestations`);
  return timestamp;
}

// The `.ots` file of an anchored entry, and how answers of calendars are added to it. Calendars write most of it, so an
// addition that would exceed a limit is refused and the old content stays.

/** The node whose message is sent to calendars. It reveals nothing about the digest itself. */
export function blinded(root: OtsTimestamp, nonce: Uint8Array): OtsTimestamp {
  return root.branch({ name: "append", argument: nonce }).branch({ name: "sha256" });
}

/**
 * A proof of `digest` that contains `addition` and everything in `proof` (null: nothing yet).
 * @param place the nodes of the proof to which it is added; they have the message of `addition`
 * @throws CairnlogError `invalid-input` if the proof would become too large
 */
export function extended(
  proof: Uint8Array | null,
  digest: Uint8Array,
  addition: OtsTimestamp,
  place: (root: OtsTimestamp) => readonly OtsTimestamp[],
): Uint8Array {
  const root = proof ? parseOtsFile(proof).timestamp : new OtsTimestamp(digest);
  for (const node of place(root)) node.merge(addition);
  return serialiseOtsFile({ hash: "sha256", timestamp: root });
}

/** The nodes of a tree that have this message. */
export function nodesOf(root: OtsTimestamp, message: Uint8Array): OtsTimestamp[] {
  return [...root.nodes()].filter((node) => Buffer.compare(node.message, message) === 0);
}
