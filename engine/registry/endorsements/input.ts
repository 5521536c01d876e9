/**
 * Reads and limits the input of endorsements. Every value may come from an attacker, and all of it stays in the log for
 * ever.
 */

import type * as contract from "../../contract/signing/endorsements.js";
import type { Body } from "../../contract/types.js";
import type { PlainObject } from "../../log/state/commands.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { isObject, type JsonObject } from "../../verify/json/shape.js";
import {
  ENDORSEMENT_CATEGORIES,
  type EndorsementCategory,
  MAX_METADATA_BYTES,
  NOTE,
} from "../../verify/keys/contract.js";
import { requestedTime } from "../../verify/tree/entry.js";
import { readValidUntil } from "../events/endorsements.js";
import { boundedText, Faults } from "../shared/input.js";
import { checkIdentifiers, type ExternalIdentifier } from "./identifiers.js";

/** Maximum nesting of arrays and objects, so that readers of I-JSON can parse an entry and a page of entries. */
const MAX_METADATA_DEPTH = 16;

export type OfferBody = Body<typeof contract.OfferEndorsement>;

export type Acceptance = Body<typeof contract.AcceptEndorsement>;

export type Withdrawal = Body<typeof contract.WithdrawEndorsement>;

export type AcceptanceRevocation = Body<typeof contract.RevokeAcceptance>;

export type Alert = Body<typeof contract.FileAlert>;

/** The content of an offer besides the two keys, as it is logged. */
export interface OfferContent {
  readonly category: EndorsementCategory;
  readonly valid_until: string | null;
  readonly institutional_metadata: PlainObject | null;
  readonly external_identifiers: readonly ExternalIdentifier[] | null;
}

/**
 * The content of an offer. The command checks that its validity ends in the future, because only the command knows its
 * time.
 * @throws CairnlogError `invalid-input` with every fault; `not-i-json` for values that JSON cannot represent exactly
 */
export function readOffer(input: JsonObject): OfferContent {
  const faults = new Faults();
  const category = ENDORSEMENT_CATEGORIES.find((name) => name === input.category);
  if (!category) faults.add("/category", `It must be one of ${ENDORSEMENT_CATEGORIES.join(", ")}.`);
  const validUntil = input.valid_until == null ? null : readValidUntil(input.valid_until, requestedTime);
  if (validUntil === undefined)
    faults.add("/valid_until", "It must be an ISO 8601 date, or a date and time with an offset.");
  const metadata = readMetadata(input.institutional_metadata, faults);
  const identifiers = readIdentifiers(input.external_identifiers, faults);
  faults.check();
  return {
    category: category!,
    valid_until: validUntil!,
    institutional_metadata: metadata,
    external_identifiers: identifiers,
  };
}

/** The id of a log entry; otherwise adds a fault. */
export function readEntryId(value: unknown, path: string, faults: Faults): number {
  if (!Number.isSafeInteger(value) || (value as number) < 1) faults.add(path, "It must be the id of a log entry.");
  return value as number;
}

/** The note that comes with a change; otherwise adds a fault. */
export function readNote(value: unknown, path: string, faults: Faults): string {
  return boundedText(value, path, NOTE, faults)!;
}

function readMetadata(value: unknown, faults: Faults): PlainObject | null {
  const path = "/institutional_metadata";
  if (value === undefined || value === null) return null;
  if (!isObject(value)) faults.add(path, "It must be an object.");
  else if (nestsDeeper(value, MAX_METADATA_DEPTH))
    faults.add(path, `It must not nest deeper than ${MAX_METADATA_DEPTH} levels.`);
  else if (isLarge(value)) faults.add(path, `It must have at most ${MAX_METADATA_BYTES} bytes as canonical JSON.`);
  // A value with a canonical form is plain data.
  else return value as PlainObject;
  return null;
}

function readIdentifiers(value: unknown, faults: Faults): readonly ExternalIdentifier[] | null {
  const path = "/external_identifiers";
  const identifiers = checkIdentifiers(value, path, faults) ?? null;
  if (identifiers && isLarge(identifiers))
    faults.add(path, `They must have at most ${MAX_METADATA_BYTES} bytes as canonical JSON.`);
  return identifiers;
}

const isLarge = (value: unknown): boolean => Buffer.byteLength(canonicalJson(value)) > MAX_METADATA_BYTES;

/** Whether containers nest deeper than `levels`; does not look deeper than that. */
function nestsDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => nestsDeeper(item, levels - 1));
}
