/** Keys in the log: the content of their events, and the rows that follow from them. */

import { importRecordedKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { LoggedEvent } from "../../log/state/projection.js";
import type { KeyRow } from "../../store/schema/rows.js";
import { isPrefixedHash } from "../../verify/bytes/encoding.js";
import { eventOf } from "../../verify/events/kinds.js";
import { showsPossession } from "../../verify/events/possession.js";
import type { JsonObject } from "../../verify/json/shape.js";
import { canonicalTimestamp } from "../../verify/tree/entry.js";

const KEY_REGISTRATION = "key_registration";
const KEY_SUCCESSION = "key_succession";

const SPELT_FINGERPRINT = /^(?:sha256:)?([0-9a-f]{64})$/i;

/**
 * Whether `value` is a fingerprint in the log's form. Other values must not be looked up, because the table's keys have
 * a limited length.
 */
export function isFingerprint(value: unknown): value is string {
  return isPrefixedHash(value);
}

/**
 * The fingerprint in the log's form. `text` comes from a client: bare or with `sha256:`, in either case of hex.
 * Undefined if `text` cannot be a fingerprint.
 */
export function canonicalFingerprint(text: string): string | undefined {
  const hex = SPELT_FINGERPRINT.exec(text)?.[1];
  return hex && `sha256:${hex.toLowerCase()}`;
}

/** A checked public key as commands take it. */
export type PlainKey = Pick<ServerKey, "fingerprint" | "algorithm" | "pem">;

export interface NewKey {
  readonly key: PlainKey;
  readonly pseudonym: string;
  /** Canonical form. */
  readonly expiration_date: string | null;
  /** Base64 signature by the key itself, as it was sent and verified. Null if nobody has proven to hold the key. */
  readonly possession_signature: string | null;
}

/** The values in a `key_registration` or `key_succession` that describe the key that it creates. */
interface CreatedKey {
  readonly key: PlainKey;
  readonly pseudonym: string;
  readonly expiresAt: string | null;
  /** Whether the key itself has signed the event, and so the name, the expiration and the predecessor in it. */
  readonly named: boolean;
}

interface CreatingEvent {
  readonly event_type: string;
  readonly payload: JsonObject;
}

/** The newest result. An event is asked for its key when its rows are written, and again for its terms. */
let newest: { readonly of: CreatingEvent; readonly created: CreatedKey | undefined } | undefined;

/**
 * The key that an event creates, or undefined for an event that creates none. Imported history may contain anything: if
 * fingerprint, algorithm and key in a payload disagree, the event creates nothing.
 */
export function createdKey(event: CreatingEvent): CreatedKey | undefined {
  const { event_type, payload } = event;
  if (event_type !== KEY_REGISTRATION && event_type !== KEY_SUCCESSION) return undefined;
  if (newest?.of.payload !== payload || newest.of.event_type !== event_type)
    newest = { of: { event_type, payload }, created: readKey(event) };
  return newest.created;
}

/** The event of a registration. Its key was checked before the command, so it is not read from the payload and checked again. */
export function registrationOf({ key, pseudonym, expiration_date, possession_signature }: NewKey) {
  const event = eventOf(KEY_REGISTRATION, {
    fingerprint: key.fingerprint,
    public_key: key.pem,
    pseudonym,
    key_algorithm: key.algorithm,
    expiration_date,
    possession_signature,
  });
  newest = { of: event, created: { key, pseudonym, expiresAt: expiration_date, named: showsPossession(event) } };
  return event;
}

function readKey(event: CreatingEvent): CreatedKey | undefined {
  const { fingerprint, public_key, pseudonym, key_algorithm, expiration_date = null } = event.payload;
  if (typeof public_key !== "string" || typeof pseudonym !== "string") return undefined;
  const expiresAt = expiration_date === null ? null : canonicalTimestamp(expiration_date);
  if (expiresAt === undefined) return undefined;
  let key: ServerKey;
  try {
    key = importRecordedKey(public_key);
  } catch {
    return undefined;
  }
  if (key.fingerprint !== fingerprint || key.algorithm !== key_algorithm) return undefined;
  return { key, pseudonym, expiresAt, named: showsPossession(event) };
}

/**
 * Whether an event may create a key whose row is `row`, which may exist already. What strangers recorded for a key is
 * replaced by the first event that the key itself has signed, even if the key has acted before. A key that was revoked or
 * succeeded signs nothing new, and only its holder can have ended it.
 */
export const givesWay = (
  row: Pick<KeyRow, "named" | "status"> | undefined,
  { named }: Pick<CreatedKey, "named">,
): boolean => row === undefined || (named && !row.named && row.status === "active");

/**
 * The row of a key that `event` creates.
 * @param before its row until now, if there is one
 */
export function newRow(
  { key, pseudonym, expiresAt, named }: CreatedKey,
  event: LoggedEvent,
  predecessor: string | null,
  before: KeyRow | undefined,
): KeyRow {
  const row = {
    fingerprint: key.fingerprint,
    public_key: key.pem,
    pseudonym,
    algorithm: key.algorithm,
    status: "active",
    // What the key signed before it named itself stays valid.
    registered_at: before?.proven ? before.registered_at : event.timestamp,
    expires_at: expiresAt,
    log_entry_id: event.id,
    successor_fingerprint: null,
    predecessor_fingerprint: predecessor,
    ended_at: null,
    proven: named || before?.proven === true,
  } as const;
  return named ? { ...row, named } : row;
}
