/**
 * Keys in the log: what their events hold, and the rows that follow from them.
 */
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { LoggedEvent } from "../../log/write/projection.js";
import type { KeyRow } from "../../store/rows.js";
import { canonicalTimestamp } from "../../verify/entry.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { showsPossession } from "../../verify/keys/possession.js";

export const KEY_REGISTRATION = "key_registration";
const KEY_SUCCESSION = "key_succession";

const FINGERPRINT = /^sha256:[0-9a-f]{64}$/;
const SPELT_FINGERPRINT = /^(?:sha256:)?([0-9a-f]{64})$/i;

/** Whether `value` is a fingerprint as the log writes it. Only such may be looked up: the table's keys are bounded. */
export function isFingerprint(value: unknown): value is string {
  return typeof value === "string" && FINGERPRINT.test(value);
}

/**
 * The fingerprint that a client's `text` means, as the log writes it: bare or with `sha256:`, in either case of hex.
 * Undefined for a text that can be no key's.
 */
export function canonicalFingerprint(text: string): string | undefined {
  const hex = SPELT_FINGERPRINT.exec(text)?.[1];
  return hex && `sha256:${hex.toLowerCase()}`;
}

/** What a `key_registration` or `key_succession` says of the key that it creates. */
export interface CreatedKey {
  readonly key: ServerKey;
  readonly pseudonym: string;
  readonly expiresAt: string | null;
  /** Whether the event carries a signature of the key's own. */
  readonly proven: boolean;
}

/**
 * The key that an event creates, or undefined for an event that creates none. History that was imported may hold
 * anything: a payload in which fingerprint, algorithm and key disagree creates nothing.
 */
export function createdKey(event: {
  readonly event_type: string;
  readonly payload: JsonObject;
}): CreatedKey | undefined {
  if (event.event_type !== KEY_REGISTRATION && event.event_type !== KEY_SUCCESSION) return undefined;
  const { fingerprint, public_key, pseudonym, key_algorithm, expiration_date = null } = event.payload;
  if (typeof public_key !== "string" || typeof pseudonym !== "string") return undefined;
  const expiresAt = expiration_date === null ? null : canonicalTimestamp(expiration_date);
  if (expiresAt === undefined) return undefined;
  let key: ServerKey;
  try {
    key = importPublicKey(public_key);
  } catch {
    return undefined;
  }
  if (key.fingerprint !== fingerprint || key.algorithm !== key_algorithm) return undefined;
  return { key, pseudonym, expiresAt, proven: showsPossession(event) };
}

/**
 * Whether an event may create a key whose row is `row`, which may be there already: what a stranger recorded for a key
 * gives way to the first event that the key itself has signed.
 */
export const givesWay = (row: Pick<KeyRow, "proven"> | undefined, { proven }: Pick<CreatedKey, "proven">): boolean =>
  row === undefined || (proven && !row.proven);

/** The row of a key that `event` creates. */
export function newRow(
  { key, pseudonym, expiresAt, proven }: CreatedKey,
  event: LoggedEvent,
  predecessor: string | null,
): KeyRow {
  return {
    fingerprint: key.fingerprint,
    public_key: key.pem,
    pseudonym,
    algorithm: key.algorithm,
    status: "active",
    registered_at: event.timestamp,
    expires_at: expiresAt,
    log_entry_id: event.id,
    successor_fingerprint: null,
    predecessor_fingerprint: predecessor,
    ended_at: null,
    proven,
  };
}
