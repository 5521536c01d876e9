/**
 * The commands that offer, accept and end endorsements. The caller must have verified that the client holds the key
 * that acts.
 */

import { CairnlogError } from "../../base/error.js";
import { define, type Transaction } from "../../log/state/commands.js";
import type { EndorsementRow } from "../../store/schema/rows.js";
import { eventOf } from "../../verify/events/kinds.js";
import { ENDORSEMENT_CATEGORIES, type EndorsementStatus } from "../../verify/keys/contract.js";
import { alertRecord, endorsementStatus, hasPassed, type RevocationAlert, timeAt } from "../events/endorsements.js";
import { requireActive, requireKnownKey } from "../events/keys.js";
import { invalidInput } from "../shared/input.js";
import type { OfferContent } from "./input.js";

/** The two keys of an endorsement; fingerprints in the registry's form. */
interface Parties {
  readonly endorser_fingerprint: string;
  readonly endorsed_fingerprint: string;
}

interface Settings {
  readonly operator_fingerprint: string;
  /** Seconds from the acceptance of an endorsement to its effect. */
  readonly activation_delay_seconds: number;
}

/**
 * @returns the endorsement
 * @throws CairnlogError `not-found` and `key-not-active` for either key; `forbidden` without enough trust;
 *   `invalid-input` if the validity is over; `already-exists` while an offer of this category between the two is open
 *   or in force
 */
export const offerEndorsement = define(
  "endorsement.offer",
  (
    transaction: Transaction,
    {
      endorser_fingerprint,
      endorsed_fingerprint,
      content,
      may_endorse,
      operator_fingerprint,
      activation_delay_seconds,
    }: Parties & Settings & { readonly content: OfferContent; readonly may_endorse: boolean },
  ): EndorsementRow => {
    requireKnownKey(transaction, endorser_fingerprint, operator_fingerprint);
    requireKnownKey(transaction, endorsed_fingerprint, operator_fingerprint);
    requireActive(transaction, endorser_fingerprint);
    requireActive(transaction, endorsed_fingerprint);
    if (!may_endorse) throw new CairnlogError("forbidden", "The key has less trust than it takes to endorse others.");
    if (content.valid_until !== null && hasPassed(content.valid_until, transaction.timestamp))
      throw invalidInput("/valid_until", "It must lie in the future.");
    const pair: [string, string, string] = [endorser_fingerprint, endorsed_fingerprint, content.category];
    const earlier = transaction.get("endorsementPairs", pair)?.offer_entry_id;
    if (earlier !== undefined) {
      const status = statusOf(transaction, transaction.get("endorsements", earlier)!, activation_delay_seconds);
      if (LIVE.includes(status))
        throw new CairnlogError("already-exists", `Entry ${earlier} offers the same, and is open or in force.`);
    }
    const { id } = transaction.append(
      eventOf("endorsement_offer", {
        endorser_key_fingerprint: endorser_fingerprint,
        endorsed_key_fingerprint: endorsed_fingerprint,
        ...content,
      }),
    );
    return transaction.get("endorsements", id)!;
  },
);

/**
 * @returns the endorsement
 * @throws CairnlogError `not-found` and `key-not-active` for either key; `forbidden` if the offer is to another key;
 *   `precondition-failed` unless the offer is open
 */
export const acceptEndorsement = define(
  "endorsement.accept",
  (
    transaction: Transaction,
    input: Settings & {
      readonly offer_entry_id: number;
      readonly endorsed_fingerprint: string;
      readonly note: string | null;
    },
  ): EndorsementRow => {
    requireKnownKey(transaction, input.endorsed_fingerprint, input.operator_fingerprint);
    const row = transaction.get("endorsements", input.offer_entry_id)!;
    // A key that is only named by imported history is not registered, so it is not active.
    requireKnownKey(transaction, row.endorser_fingerprint, input.operator_fingerprint);
    requireParty(row, "endorsed", input.endorsed_fingerprint);
    requireActive(transaction, row.endorsed_fingerprint);
    requireActive(transaction, row.endorser_fingerprint);
    return change(transaction, row, ["offered"], "endorsement_acceptance", input);
  },
);

/**
 * The endorsed key may have ended.
 * @returns the endorsement
 * @throws CairnlogError `not-found` for either key; `forbidden` if another key endorsed; `invalid-input` if it endorsed
 *   another key; `key-not-active`; `precondition-failed` if the endorsement has ended
 */
export const withdrawEndorsement = define(
  "endorsement.withdraw",
  (
    transaction: Transaction,
    input: Settings & Parties & { readonly offer_entry_id: number; readonly note: string },
  ): EndorsementRow => {
    requireKnownKey(transaction, input.endorsed_fingerprint, input.operator_fingerprint);
    requireKnownKey(transaction, input.endorser_fingerprint, input.operator_fingerprint);
    const row = transaction.get("endorsements", input.offer_entry_id)!;
    requireParty(row, "endorser", input.endorser_fingerprint);
    if (row.endorsed_fingerprint !== input.endorsed_fingerprint)
      throw invalidInput("/endorsed_fingerprint", "The offer was made to another key.");
    requireActive(transaction, row.endorser_fingerprint);
    return change(transaction, row, LIVE, "endorsement_withdrawal", input);
  },
);

/**
 * The endorser's key may have ended.
 * @returns the endorsement
 * @throws CairnlogError `not-found`; `forbidden` if another key was endorsed; `key-not-active`; `precondition-failed`
 *   unless the endorsement was accepted and has not ended
 */
export const revokeAcceptance = define(
  "endorsement.revoke-acceptance",
  (
    transaction: Transaction,
    input: Settings & { readonly offer_entry_id: number; readonly endorsed_fingerprint: string; readonly note: string },
  ): EndorsementRow => {
    requireKnownKey(transaction, input.endorsed_fingerprint, input.operator_fingerprint);
    const row = transaction.get("endorsements", input.offer_entry_id)!;
    requireParty(row, "endorsed", input.endorsed_fingerprint);
    requireActive(transaction, row.endorsed_fingerprint);
    return change(transaction, row, ACCEPTED, "acceptance_revocation", input);
  },
);

/**
 * @throws CairnlogError `not-found` for either key; `key-not-active` if the filing key is not active; `forbidden` if no
 *   endorsement between the two was ever accepted
 */
export const fileAlert = define(
  "endorsement.alert",
  (
    transaction: Transaction,
    {
      endorser_fingerprint,
      compromised_fingerprint,
      reason,
      evidence,
      operator_fingerprint,
    }: Pick<Settings, "operator_fingerprint"> & {
      /** Fingerprint of the key that files it. */
      readonly endorser_fingerprint: string;
      readonly compromised_fingerprint: string;
      readonly reason: string;
      readonly evidence: string | null;
    },
  ): RevocationAlert => {
    requireKnownKey(transaction, endorser_fingerprint, operator_fingerprint);
    requireKnownKey(transaction, compromised_fingerprint, operator_fingerprint);
    requireActive(transaction, endorser_fingerprint);
    if (
      !isRelated(transaction, endorser_fingerprint, compromised_fingerprint) &&
      !isRelated(transaction, compromised_fingerprint, endorser_fingerprint)
    )
      throw new CairnlogError("forbidden", "Only keys that endorsed it, or that it endorsed, may file an alert on it.");
    const { id } = transaction.append(
      eventOf("endorser_revocation_alert", {
        endorser_key_fingerprint: endorser_fingerprint,
        compromised_key_fingerprint: compromised_fingerprint,
        reason,
        evidence,
      }),
    );
    const place: [string, number] = [compromised_fingerprint, id];
    return alertRecord(place, transaction.get("revocationAlerts", place)!);
  },
);

const LIVE: readonly EndorsementStatus[] = ["offered", "pending_activation", "active"];
const ACCEPTED: readonly EndorsementStatus[] = ["pending_activation", "active"];

/** @throws CairnlogError `forbidden` if this party of the endorsement is another key */
function requireParty(row: EndorsementRow, party: "endorser" | "endorsed", fingerprint: string): void {
  if (row[`${party}_fingerprint`] !== fingerprint)
    throw new CairnlogError("forbidden", `The key is not the ${party} of the offer ${row.offer_entry_id}.`);
}

/** Appends an event about an endorsement that has one of the statuses `from`. @returns the endorsement after it */
function change(
  transaction: Transaction,
  row: EndorsementRow,
  from: readonly EndorsementStatus[],
  event_type: "endorsement_acceptance" | "endorsement_withdrawal" | "acceptance_revocation",
  { note, activation_delay_seconds }: Settings & { readonly note: string | null },
): EndorsementRow {
  const status = statusOf(transaction, row, activation_delay_seconds);
  if (!from.includes(status))
    throw new CairnlogError("precondition-failed", `The endorsement is ${status}; it must be ${from.join(" or ")}.`);
  const { offer_entry_id, institutional_metadata, external_identifiers } = row;
  transaction.append(
    eventOf(event_type, {
      endorser_key_fingerprint: row.endorser_fingerprint,
      endorsed_key_fingerprint: row.endorsed_fingerprint,
      category: row.category,
      valid_until: row.valid_until,
      institutional_metadata: institutional_metadata && JSON.parse(institutional_metadata),
      external_identifiers: external_identifiers && JSON.parse(external_identifiers),
      offer_entry_id,
      note,
    }),
  );
  return transaction.get("endorsements", offer_entry_id)!;
}

const statusOf = ({ timestamp }: Transaction, row: EndorsementRow, delaySeconds: number): EndorsementStatus =>
  endorsementStatus(row, timeAt(timestamp, delaySeconds));

/** Whether an endorsement from one key to the other was ever accepted. */
const isRelated = (transaction: Transaction, endorser: string, endorsed: string): boolean =>
  ENDORSEMENT_CATEGORIES.some(
    (category) => transaction.get("endorsementPairs", [endorser, endorsed, category])?.accepted,
  );
