/** Keys in the log: the content of their events, and the rows that follow from them. */
import { CairnlogError } from "../../base/error.js";
import { importRecordedKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { Transaction } from "../../log/state/commands.js";
import type { LoggedEvent, StateReader } from "../../log/state/projection.js";
import type { KeyRow } from "../../store/schema/rows.js";
import { isPrefixedHash } from "../../verify/bytes/encoding.js";
import { eventOf } from "../../verify/events/kinds.js";
import { showsPossession } from "../../verify/events/possession.js";
import { fits, type JsonObject } from "../../verify/json/shape.js";
import { PSEUDONYM } from "../../verify/keys/contract.js";
import { canonicalTimestamp } from "../../verify/tree/entry.js";
import type { Faults } from "../shared/input.js";

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

/** The members of a key that a command needs. */
export const plainKey = ({ fingerprint, algorithm, pem }: ServerKey): PlainKey => ({ fingerprint, algorithm, pem });

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

type KeyStatus = KeyRow["status"] | "expired";

/** The status of a key, and whether the key itself has signed the entry that its expiration comes from. */
export interface KeyStanding {
  readonly status: KeyStatus;
  readonly named: boolean;
}

/**
 * The status at `time` (canonical form). No event makes a key expire. A key that was succeeded or revoked keeps that
 * status after its expiration.
 */
export function statusAt(row: Pick<KeyRow, "status" | "expires_at">, time: string): KeyStatus {
  return row.status === "active" && row.expires_at !== null && row.expires_at <= time ? "expired" : row.status;
}

export const standingOf = (row: Pick<KeyRow, "status" | "expires_at" | "named">, time: string): KeyStanding => ({
  status: statusAt(row, time),
  named: row.named === true,
});

/**
 * The status in words, which complete "the key is …". Anybody may register a key that its holder has not registered, with
 * an expiration of their choice, so the words say whose expiration it is. A key is succeeded or revoked by its holder
 * alone.
 */
export const statusWords = ({ status, named }: KeyStanding): string =>
  status === "expired" && !named
    ? "expired, by the word of an entry that the key has not signed. Whoever holds the key can register it again with its signature (possession_signature; cairnlog register)"
    : status;

/**
 * Checks that a key with this fingerprint exists. Only the operator key may have no row. Part of a command.
 * @throws CairnlogError `not-found`
 */
export function requireKnownKey(transaction: Transaction, fingerprint: string, operatorFingerprint: string): void {
  if (fingerprint !== operatorFingerprint && !transaction.get("keys", fingerprint)) throw unknownKey();
}

/** The standing of a key that exists. Only the operator key may have no row; it is always active. */
export function keyStanding(state: Pick<StateReader, "get">, fingerprint: string, time: string): KeyStanding {
  const row = state.get("keys", fingerprint);
  return row ? standingOf(row, time) : { status: "active", named: false };
}

/**
 * Refuses a command on behalf of a key that exists and is not active. Part of a command.
 * @throws CairnlogError `key-not-active`
 */
export function requireActive(transaction: Transaction, fingerprint: string): void {
  const standing = keyStanding(transaction, fingerprint, transaction.timestamp);
  if (standing.status !== "active") throw keyNotActive(fingerprint, standing);
}

export const unknownKey = (): CairnlogError =>
  new CairnlogError("not-found", "No key with this fingerprint is registered.");

/** The error for operations on a key that has to be active, where the code is not `key-not-active`. */
export const wrongKeyStatus = (fingerprint: string, standing: KeyStanding): CairnlogError =>
  new CairnlogError("wrong-key-status", `The key ${fingerprint} is ${statusWords(standing)}.`);

export const keyNotActive = (fingerprint: string, standing: KeyStanding): CairnlogError =>
  new CairnlogError("key-not-active", `The key ${fingerprint} is ${statusWords(standing)}.`);

// Pseudonyms: the display names of keys. They are not unique, and public. The holder of the key chooses its pseudonym.

/** Normalisation composes at most four characters into one, with two code units each. Longer text is not normalised. */
const RAW_LENGTH_PER_CHARACTER = 2 * 4;
const UNPRINTABLE = /[\p{Cc}\p{Surrogate}]/u;
/** Number of characters of the fingerprint that name a key without a pseudonym. */
const DEFAULT_CHARACTERS = 12;

/**
 * `value` in NFC if it is a pseudonym: 1–200 characters in that form, without control characters or halves of surrogate
 * pairs. Otherwise adds a fault and returns undefined.
 */
export function readPseudonym(value: unknown, path: string, faults: Faults): string | undefined {
  return readName(value, path, PSEUDONYM.max, faults);
}

/**
 * `value` in NFC if it is a name of 1 to `limit` characters, by the rules of pseudonyms. Otherwise adds a fault and
 * returns undefined.
 */
export function readName(value: unknown, path: string, limit: number, faults: Faults): string | undefined {
  if (typeof value !== "string") {
    faults.add(path, "It must be a string.");
    return undefined;
  }
  const name = value.length <= RAW_LENGTH_PER_CHARACTER * limit ? value.normalize("NFC") : value;
  if (name === "" || !fits(name, limit)) faults.add(path, `It must have 1 to ${limit} characters.`);
  else if (UNPRINTABLE.test(name)) faults.add(path, "It must not hold control characters or lone surrogates.");
  else return name;
  return undefined;
}

/** The pseudonym of a key without a chosen one. */
export function defaultPseudonym(fingerprint: string): string {
  return fingerprint.slice("sha256:".length, "sha256:".length + DEFAULT_CHARACTERS);
}

/** The form in which pseudonyms are compared: search is a substring match that ignores case. */
export function foldPseudonym(pseudonym: string): string {
  return pseudonym.normalize("NFC").toLowerCase();
}

// Chains of succession that both keys of each link have signed.

/** Maximum number of links of a succession chain that are followed; the holder of a key decides how long it is. */
export const MAX_SUCCESSORS = 64;

/** A key and its confirmed successors, nearest first. An unconfirmed link ends the chain: anybody can make one. */
export function* confirmedChain(state: Pick<StateReader, "get">, fingerprint: string): Iterable<string> {
  let last = fingerprint;
  yield last;
  for (let links = 0; links < MAX_SUCCESSORS; links++) {
    const next = state.get("keys", last)?.successor_fingerprint ?? null;
    if (next === null) return;
    const row = state.get("keys", next);
    // A successor without a row is an operator key. Both keys sign its rotation.
    if (row && !(row.named && row.predecessor_fingerprint === last)) return;
    yield next;
    last = next;
  }
}
