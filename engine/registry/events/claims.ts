/** Encrypted claims in the log: their event, and the term by which holders of the lookup key find it. */

import { hashedTerm } from "../../store/postings/term.js";
import { POSTING } from "../../store/schema/schema.js";
import type { JsonObject } from "../../verify/json/shape.js";

export const ENCRYPTED_CLAIM = "encrypted_claim";

/** The term of every claim with this lookup key, in either case of hex. */
export function claimLookupTerm(lookupKey: string): string {
  return hashedTerm(POSTING.claimLookup, lookupKey.toLowerCase());
}

/** The lookup key of a claim; undefined for any other event, and for a claim of imported history that has none. */
export function claimLookupKey(event: {
  readonly event_type: string;
  readonly payload: JsonObject;
}): string | undefined {
  const { lookup_key } = event.payload;
  return event.event_type === ENCRYPTED_CLAIM && typeof lookup_key === "string" ? lookup_key : undefined;
}
