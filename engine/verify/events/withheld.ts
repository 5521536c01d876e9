/**
 * Entries whose payload the operator withholds (docs/spec §2.7). Such an entry is served with the payload null, or with another
 * name in it, and names the `payload_withheld` entry by which the operator answers for that. Its hash stays what it was, and so
 * do the chain, the trees, the heads and all proofs.
 */
import type { JsonObject } from "../json/shape.js";
import { type Entry, entryHash, isCut, WITHHELD_NAME } from "../tree/entry.js";
import { canonicalHash } from "./hashed.js";
import { isPredicate, type KindedEvent, type PayloadOf, payloadMisfit } from "./kinds.js";

export { isCut };
export const PAYLOAD_WITHHELD = "payload_withheld";

/**
 * Verdict on an entry. `withheld`: chain, inclusion and head hold, the content is not shown, and an entry by the operator
 * says so. A payload that is missing without such an entry is `invalid`.
 */
export type EntryVerdict = "valid" | "withheld" | "invalid";

/** An entry without its payload, or without the name in it. */
export type WithheldEntry = Entry & { readonly withheld_by: number };

/** What an entry of the operator says of the payload that it withholds. */
export interface Withholding {
  /** The entry whose payload is withheld. */
  readonly entry_id: number;
  readonly entry_hash: string;
  /** SHA-256 of the canonical payload, hex. */
  readonly payload_hash: string;
  readonly reason: string;
  /** What obliges the operator: a law or an order. */
  readonly basis: string | null;
  /** The only thing in the payload that is withheld; all of it if absent. */
  readonly member?: "pseudonym";
  /** The key that had the name; only with `member`. */
  readonly fingerprint?: string;
  /** SHA-256 of what is shown instead, canonical, hex; only with `member`: so the operator answers for one form of it. */
  readonly shown_hash?: string;
}

const NOTHING: JsonObject = Object.freeze({});

/** Whether an entry has the form of one whose payload is withheld. Only `withholdingFault` says whether it rightly has. */
export const isWithheld = (entry: Entry): entry is WithheldEntry =>
  isCut(entry) && typeof entry.withheld_by === "number" && entry.withheld_by > entry.id;

/** An entry as an event: with nothing as its payload if that is withheld. */
export const eventIn = <T extends Pick<Entry, "event_type" | "payload">>(entry: T): T & KindedEvent => ({
  ...entry,
  payload: entry.payload ?? NOTHING,
});

/** The members of an entry's payload; none if that is withheld. */
export const membersIn = ({ payload }: Pick<Entry, "payload">): JsonObject => payload ?? NOTHING;

/**
 * Whether the payload of an event may be withheld: only of attestations and encrypted claims. The rows of keys, endorsements,
 * requests and policies follow from their events, and the operator's own entries say what he answers for.
 */
export const isWithholdable = (eventType: string): boolean => isPredicate(eventType) || eventType === "encrypted_claim";

/** Why a payload that is missing is not withheld, whoever says so; undefined for an event whose payload may be. */
export const withholdableFault = (eventType: string): string | undefined =>
  isWithholdable(eventType)
    ? undefined
    : `The payload of an entry of type ${JSON.stringify(eventType)} cannot be withheld.`;

/** SHA-256 of the canonical form of a payload, hex. @throws CairnlogError `not-i-json` */
export const payloadHash = (payload: JsonObject): string => canonicalHash(payload);

/** What an event withholds; undefined for another event. */
export function withholdingIn(event: Pick<Entry, "event_type" | "payload">): Withholding | undefined {
  if (event.event_type !== PAYLOAD_WITHHELD || event.payload === null) return undefined;
  const { event_type, payload } = event;
  if (payload.event_type !== PAYLOAD_WITHHELD || payloadMisfit({ event_type, payload }) !== undefined) return undefined;
  const { member, fingerprint, shown_hash } = payload as Partial<Withholding>;
  const { entry_id, entry_hash, payload_hash, reason, basis } = payload as PayloadOf<typeof PAYLOAD_WITHHELD>;
  const withholding = { entry_id, entry_hash, payload_hash, reason, basis };
  if (member === undefined) return withholding;
  const isName = member === "pseudonym" && fingerprint && shown_hash;
  return isName ? { ...withholding, member, fingerprint, shown_hash } : undefined;
}

/**
 * The reason why a payload that is missing is not withheld by an entry; undefined if it is. Whether both entries are on the
 * log, and whether the content of `by` has its hash, is checked apart.
 * @param by the entry that `withheld_by` names
 */
export function withholdingFault(entry: Entry, by: Entry | undefined): string | undefined {
  if (!isWithheld(entry)) return "No entry of the operator withholds a payload that is missing.";
  const withholding = by?.id === entry.withheld_by ? withholdingIn(by) : undefined;
  const isIt =
    withholding?.entry_id === entry.id &&
    withholding.entry_hash === entry.entry_hash &&
    isShownAs(entry.payload, withholding);
  if (!isIt) return `The payload is missing, and entry ${entry.withheld_by} does not withhold it.`;
  return entry.payload ? undefined : withholdableFault(entry.event_type);
}

/** A payload without the name in it. */
export const withoutName = (payload: JsonObject | null): JsonObject => ({ ...payload, pseudonym: WITHHELD_NAME });

/** Whether a payload is what is to be shown of one. */
export function isShownAs(payload: JsonObject | null, { shown_hash }: Pick<Withholding, "shown_hash">): boolean {
  try {
    return (payload === null ? undefined : payloadHash(payload)) === shown_hash;
  } catch {
    return false;
  }
}

/** Whether a payload that somebody has kept is the one that the entry had. Needs nothing but the entry hash. */
export function isPayloadOf(entry: Entry, payload: JsonObject): boolean {
  try {
    return entryHash({ ...entry, payload }) === entry.entry_hash;
  } catch {
    return false;
  }
}
