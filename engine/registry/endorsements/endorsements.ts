/**
 * Endorsements: one key vouches for another, which has to accept (`spec.md`, States, Endorsement). Who may act for a key
 * has been proven before; everything that depends on the state of the log is checked within the command, so that of two
 * commands at one moment one succeeds.
 */

import { CairnlogError } from "../../error.js";
import type { Log } from "../../log/log.js";
import type { Committed } from "../../log/write/sequencer.js";
import type { Transaction } from "../../log/write/transaction.js";
import type { EndorsementRow } from "../../store/schema.js";
import { ENDORSEMENT_CATEGORIES, type EndorsementStatus } from "../../verify/contract.js";
import type { Entry } from "../../verify/entry.js";
import { boundedText, Faults, invalidInput, members } from "../input.js";
import { statusAt } from "../keys/events.js";
import type { Keys } from "../keys/keys.js";
import {
  ACCEPTANCE_REVOCATION,
  ENDORSEMENT_ACCEPTANCE,
  ENDORSEMENT_OFFER,
  ENDORSEMENT_WITHDRAWAL,
  endorsementStatus,
  hasPassed,
  REVOCATION_ALERT,
  timeAt,
} from "./events.js";
import {
  type Acceptance,
  type AcceptanceRevocation,
  type Alert,
  MAX_EVIDENCE_CHARACTERS,
  MAX_REASON_CHARACTERS,
  type Offer,
  readEntryId,
  readNote,
  readOffer,
  readText,
  type Withdrawal,
} from "./input.js";
import {
  alertRecord,
  type Endorsement,
  type EndorsementQueries,
  type EndorserStanding,
  type EndorserTrust,
  type RevocationAlert,
} from "./queries.js";

/** An endorsement as a command left it, and the entry that did so. */
export interface EndorsementReceipt {
  readonly endorsement: Endorsement;
  readonly log_entry: Entry;
}

/** A change of a live endorsement: who makes it, from where, and what it is called. */
interface Change {
  readonly offerId: number;
  readonly party: "endorser" | "endorsed";
  /** As the registry writes it. */
  readonly fingerprint: string;
  /** Whether the other key must be active, too: it must to begin something, not to end it. */
  readonly needsBoth: boolean;
  readonly from: readonly EndorsementStatus[];
  readonly eventType: string;
  readonly note: string | null;
}

export class Endorsements {
  readonly #log: Log;
  readonly #keys: Keys;
  readonly #queries: EndorsementQueries;
  readonly #trust: EndorserTrust;

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly keys: Keys;
    readonly queries: EndorsementQueries;
    readonly trust: EndorserTrust;
  }) {
    this.#log = parts.log;
    this.#keys = parts.keys;
    this.#queries = parts.queries;
    this.#trust = parts.trust;
  }

  /**
   * Offers an endorsement (`POST /endorsements/offer`). The caller has proven that it holds the endorser's key.
   * @throws CairnlogError `invalid-input`, `not-i-json`; `not-found` when either key is unknown; `key-not-active` for
   *   either; `forbidden` when the endorser has too little trust; `already-exists` while an offer in this category
   *   between the two is open or in force; and as `Log.append` does
   */
  async offer(offer: Offer): Promise<EndorsementReceipt> {
    const input = members(offer);
    const content = readOffer(input);
    const endorser = this.#fingerprint(input.endorser_fingerprint);
    const endorsed = this.#fingerprint(input.endorsed_fingerprint);
    if (endorser === endorsed) throw invalidInput("/endorsed_fingerprint", "A key cannot endorse itself.");
    const standing = await this.#standing(endorser);
    const committed = await this.#log.execute((transaction) => {
      requireActive(transaction, endorser);
      requireActive(transaction, endorsed);
      if (!standing.may_endorse)
        throw new CairnlogError("forbidden", "The key has less trust than it takes to endorse others.");
      if (content.valid_until !== null && hasPassed(content.valid_until, transaction.timestamp))
        throw invalidInput("/valid_until", "It must lie in the future.");
      const earlier = transaction.get("endorsementPairs", [endorser, endorsed, content.category]);
      if (earlier && isLive(this.#status(transaction, transaction.get("endorsements", earlier.offer_entry_id)!)))
        throw new CairnlogError(
          "already-exists",
          `Entry ${earlier.offer_entry_id} offers the same, and is open or in force.`,
        );
      const { id } = transaction.append({
        event_type: ENDORSEMENT_OFFER,
        payload: { endorser_key_fingerprint: endorser, endorsed_key_fingerprint: endorsed, ...content },
      });
      return transaction.get("endorsements", id)!;
    });
    return this.#receipt(committed, standing);
  }

  /**
   * Accepts an offer (`POST /endorsements/accept`). The caller has proven that it holds the endorsed key.
   * @throws CairnlogError `invalid-input`; `not-found` for an unknown key or offer; `forbidden` when the offer is to
   *   another key; `key-not-active` for either key; `precondition-failed` unless the offer is open; and as `Log.append`
   */
  async accept(acceptance: Acceptance): Promise<EndorsementReceipt> {
    const input = members(acceptance);
    const faults = new Faults();
    const offerId = readEntryId(input.offer_entry_id, "/offer_entry_id", faults);
    const note = input.note == null ? null : readNote(input.note, faults);
    faults.check();
    return this.#change({
      offerId,
      party: "endorsed",
      fingerprint: this.#fingerprint(input.endorsed_fingerprint),
      needsBoth: true,
      from: ["offered"],
      eventType: ENDORSEMENT_ACCEPTANCE,
      note,
    });
  }

  /**
   * Takes an offer or an accepted endorsement back (`POST /endorsements/withdraw`). The caller has proven that it holds
   * the endorser's key.
   * @throws CairnlogError as `accept` does, but the endorsed key may have ended; `forbidden` when another key endorsed
   */
  async withdraw(withdrawal: Withdrawal): Promise<EndorsementReceipt> {
    const input = members(withdrawal);
    const faults = new Faults();
    const offerId = readEntryId(input.original_offer_entry_id, "/original_offer_entry_id", faults);
    const note = readNote(input.note, faults);
    faults.check();
    const endorsed = this.#fingerprint(input.endorsed_fingerprint);
    const change: Change = {
      offerId,
      party: "endorser",
      fingerprint: this.#fingerprint(input.endorser_fingerprint),
      needsBoth: false,
      from: ["offered", "pending_activation", "active"],
      eventType: ENDORSEMENT_WITHDRAWAL,
      note,
    };
    return this.#change(change, (row) => {
      if (row.endorsed_fingerprint !== endorsed)
        throw invalidInput("/endorsed_fingerprint", "The offer was made to another key.");
    });
  }

  /**
   * Ends an endorsement that the key accepted (`POST /endorsements/revoke-acceptance`). The caller has proven that it
   * holds the endorsed key.
   * @throws CairnlogError as `accept` does, but the endorser's key may have ended
   */
  async revokeAcceptance(revocation: AcceptanceRevocation): Promise<EndorsementReceipt> {
    const input = members(revocation);
    const faults = new Faults();
    const offerId = readEntryId(input.original_offer_entry_id, "/original_offer_entry_id", faults);
    const note = readNote(input.note, faults);
    faults.check();
    return this.#change({
      offerId,
      party: "endorsed",
      fingerprint: this.#fingerprint(input.endorsed_fingerprint),
      needsBoth: false,
      from: ["pending_activation", "active"],
      eventType: ACCEPTANCE_REVOCATION,
      note,
    });
  }

  /**
   * Files an alert that a key is compromised (`POST /endorsements/revocation-alert`). The caller has proven that it
   * holds the key that files it. Having endorsed it, or been endorsed by it, once is enough: who stole a key could end
   * what it accepted, and must not silence its endorsers by that.
   * @throws CairnlogError `invalid-input`; `not-found` for an unknown key; `key-not-active` when that which files it is
   *   not; `forbidden` when no endorsement between the two was ever accepted; and as `Log.append` does
   */
  async alert(alert: Alert): Promise<{ readonly alert: RevocationAlert; readonly log_entry: Entry }> {
    const input = members(alert);
    const faults = new Faults();
    const reason = readText(input.reason, "/reason", MAX_REASON_CHARACTERS, faults);
    const limits = { min: 0, max: MAX_EVIDENCE_CHARACTERS };
    const evidence = input.evidence == null ? null : boundedText(input.evidence, "/evidence", limits, faults);
    faults.check();
    const endorser = this.#fingerprint(input.endorser_fingerprint);
    const compromised = this.#fingerprint(input.compromised_fingerprint);
    const { value, receipts } = await this.#log.execute((transaction) => {
      requireActive(transaction, endorser);
      if (!isRelated(transaction, endorser, compromised) && !isRelated(transaction, compromised, endorser))
        throw new CairnlogError(
          "forbidden",
          "Only keys that endorsed it, or that it endorsed, may file an alert on it.",
        );
      const { id } = transaction.append({
        event_type: REVOCATION_ALERT,
        payload: {
          endorser_key_fingerprint: endorser,
          compromised_key_fingerprint: compromised,
          reason,
          evidence: evidence!,
        },
      });
      return alertRecord([compromised, id], transaction.get("revocationAlerts", [compromised, id])!);
    });
    return { alert: value, log_entry: this.#log.entry(receipts[0]!.log_entry_id)! };
  }

  /** @param check of the offer, once it is known to be the party's */
  async #change(change: Change, check: (row: EndorsementRow) => void = () => {}): Promise<EndorsementReceipt> {
    const { offerId, party, fingerprint, needsBoth, from, eventType, note } = change;
    // Nobody has been told of an offer that is not on disk yet.
    const offer = this.#log.row("endorsements", offerId);
    if (!offer) throw new CairnlogError("not-found", `Entry ${offerId} is no offer of an endorsement.`);
    // A key that imported history alone names cannot be said to be active.
    if (needsBoth) this.#fingerprint(offer.endorser_fingerprint);
    const standing = await this.#standing(offer.endorser_fingerprint);
    const committed = await this.#log.execute((transaction) => {
      const row = transaction.get("endorsements", offerId)!;
      if (row[`${party}_fingerprint`] !== fingerprint)
        throw new CairnlogError("forbidden", `The key is not the ${party} of the offer ${offerId}.`);
      check(row);
      requireActive(transaction, fingerprint);
      if (needsBoth) requireActive(transaction, row.endorser_fingerprint);
      const status = this.#status(transaction, row);
      if (!from.includes(status))
        throw new CairnlogError(
          "precondition-failed",
          `The endorsement is ${status}; it must be ${from.join(" or ")}.`,
        );
      const { institutional_metadata, external_identifiers } = row;
      transaction.append({
        event_type: eventType,
        payload: {
          endorser_key_fingerprint: row.endorser_fingerprint,
          endorsed_key_fingerprint: row.endorsed_fingerprint,
          category: row.category,
          valid_until: row.valid_until,
          institutional_metadata: institutional_metadata && JSON.parse(institutional_metadata),
          external_identifiers: external_identifiers && JSON.parse(external_identifiers),
          offer_entry_id: offerId,
          note,
        },
      });
      return transaction.get("endorsements", offerId)!;
    });
    return this.#receipt(committed, standing);
  }

  /** Asked before the command: when trust cannot be told, nothing has been written. */
  async #standing(endorser: string): Promise<EndorserStanding> {
    return (await this.#trust.standings([endorser])).get(endorser)!;
  }

  #status(transaction: Transaction, row: EndorsementRow): EndorsementStatus {
    return endorsementStatus(row, timeAt(transaction.timestamp, this.#queries.activationDelay));
  }

  #receipt({ value, receipts }: Committed<EndorsementRow>, { discount }: EndorserStanding): EndorsementReceipt {
    const { log_entry_id, timestamp } = receipts[0]!;
    const endorsement = this.#queries.record(value, timeAt(timestamp, this.#queries.activationDelay), discount);
    return { endorsement, log_entry: this.#log.entry(log_entry_id)! };
  }

  /** The registry's spelling. @throws CairnlogError `not-found` when there is no such key */
  #fingerprint(named: unknown): string {
    return this.#keys.find(named as string).fingerprint;
  }
}

/** @param fingerprint of a key that exists: the operator key alone may have no row, and is always active */
function requireActive(transaction: Transaction, fingerprint: string): void {
  const row = transaction.get("keys", fingerprint);
  const status = row ? statusAt(row, transaction.timestamp) : "active";
  if (status !== "active") throw new CairnlogError("key-not-active", `The key ${fingerprint} is ${status}.`);
}

const isLive = (status: EndorsementStatus): boolean =>
  status === "offered" || status === "pending_activation" || status === "active";

/** Whether an endorsement from one key to the other was ever accepted. */
const isRelated = (transaction: Transaction, endorser: string, endorsed: string): boolean =>
  ENDORSEMENT_CATEGORIES.some(
    (category) => transaction.get("endorsementPairs", [endorser, endorsed, category])?.accepted,
  );
