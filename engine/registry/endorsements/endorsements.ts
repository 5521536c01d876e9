/**
 * Endorsements: one key vouches for another, which has to accept (docs/spec §9.1). The caller has
 * verified possession of the acting key. Everything that depends on the state of the log is checked inside the command,
 * so that exactly one of two simultaneous commands succeeds.
 */

import { CairnlogError } from "../../base/error.js";
import type { Log } from "../../log/log.js";
import type { Committed } from "../../log/state/executor.js";
import type { EndorsementRow } from "../../store/schema/rows.js";
import { EVIDENCE } from "../../verify/keys/contract.js";
import { type RevocationAlert, timeAt } from "../events/endorsements.js";
import { canonicalFingerprint, unknownKey } from "../events/keys.js";
import { boundedText, Faults, invalidInput, members } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { acceptEndorsement, fileAlert, offerEndorsement, revokeAcceptance, withdrawEndorsement } from "./commands.js";
import {
  type Acceptance,
  type AcceptanceRevocation,
  type Alert,
  type OfferBody,
  readEntryId,
  readNote,
  readOffer,
  type Withdrawal,
} from "./input.js";
import type { Endorsement, EndorsementQueries, EndorserStanding, EndorserTrust } from "./queries.js";

/** An endorsement after a command, and the entry that the command appended. */
interface EndorsementReceipt {
  readonly endorsement: Endorsement;
  /** JSON as it is served. Do not write to it. */
  readonly log_entry: Buffer;
}

/** An alert after a command, and its entry. */
interface AlertReceipt {
  readonly alert: RevocationAlert;
  /** JSON as it is served. Do not write to it. */
  readonly log_entry: Buffer;
}

interface Parts {
  readonly log: Log;
  readonly writes: Writes;
  /** Fingerprint of the key that needs no registration. */
  readonly operator: string;
  readonly queries: EndorsementQueries;
  readonly trust: EndorserTrust;
}

export class Endorsements {
  readonly #parts: Parts;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Offers an endorsement (`POST /endorsements/offer`). The caller has proven that it holds the endorser's key.
   * @throws CairnlogError `invalid-input`, `not-i-json`; `not-found` if either key is unknown; `key-not-active` for
   *   either; `forbidden` if the endorser has too little trust; `already-exists` while an offer in this category
   *   between the two is open or in force; and as `Log.append` does
   */
  async offer(offer: OfferBody, client: Caller | null = null): Promise<EndorsementReceipt> {
    const input = members(offer);
    const content = readOffer(input);
    const endorser_fingerprint = readFingerprint(input.endorser_fingerprint);
    const endorsed_fingerprint = readFingerprint(input.endorsed_fingerprint);
    if (endorser_fingerprint === endorsed_fingerprint)
      throw invalidInput("/endorsed_fingerprint", "A key cannot endorse itself.");
    const standing = await this.#standing(endorser_fingerprint);
    const committed = await this.#parts.writes.execute(
      offerEndorsement,
      {
        endorser_fingerprint,
        endorsed_fingerprint,
        content,
        may_endorse: standing.may_endorse,
        ...this.#settings,
      },
      client,
      endorser_fingerprint,
    );
    return this.#receipt(committed, standing);
  }

  /**
   * Accepts an offer (`POST /endorsements/accept`). The caller has proven that it holds the endorsed key.
   * @throws CairnlogError `invalid-input`; `not-found` for an unknown key; `forbidden` if the offer is to another key;
   *   `key-not-active` for either key; `precondition-failed` unless the entry is an open offer; and as `Log.append`
   *   does
   */
  async accept(acceptance: Acceptance, client: Caller | null = null): Promise<EndorsementReceipt> {
    const input = members(acceptance);
    const faults = new Faults();
    const offer_entry_id = readEntryId(input.offer_entry_id, "/offer_entry_id", faults);
    const note = input.note == null ? null : readNote(input.note, "/note", faults);
    faults.check();
    const endorsed_fingerprint = readFingerprint(input.endorsed_fingerprint);
    const offer = this.#offer(offer_entry_id, "precondition-failed");
    const standing = await this.#standing(offer.endorser_fingerprint);
    const change = { offer_entry_id, endorsed_fingerprint, note, ...this.#settings };
    const writer = this.#parts.writes.answering(offer.endorser_fingerprint, endorsed_fingerprint);
    return this.#receipt(
      await this.#parts.writes.execute(acceptEndorsement, change, client, endorsed_fingerprint, writer),
      standing,
    );
  }

  /**
   * Withdraws an offer or an accepted endorsement (`POST /endorsements/withdraw`). The caller has proven that it holds
   * the endorser's key.
   * @throws CairnlogError as `accept` does, but the endorsed key may have ended; `not-found` for an entry that is no
   *   offer; `forbidden` if another key endorsed
   */
  async withdraw(withdrawal: Withdrawal, client: Caller | null = null): Promise<EndorsementReceipt> {
    const input = members(withdrawal);
    const faults = new Faults();
    const offer_entry_id = readEntryId(input.original_offer_entry_id, "/original_offer_entry_id", faults);
    const note = readNote(input.note, "/note", faults);
    faults.check();
    const endorsed_fingerprint = readFingerprint(input.endorsed_fingerprint);
    const endorser_fingerprint = readFingerprint(input.endorser_fingerprint);
    const standing = await this.#standing(this.#offer(offer_entry_id).endorser_fingerprint);
    const change = { offer_entry_id, endorser_fingerprint, endorsed_fingerprint, note, ...this.#settings };
    return this.#receipt(
      await this.#parts.writes.execute(withdrawEndorsement, change, client, endorser_fingerprint),
      standing,
    );
  }

  /**
   * Ends an endorsement that the key accepted (`POST /endorsements/revoke-acceptance`). The caller has proven that it
   * holds the endorsed key.
   * @throws CairnlogError as `accept` does, but the endorser's key may have ended; `not-found` for an entry that is no
   *   offer
   */
  async revokeAcceptance(revocation: AcceptanceRevocation, client: Caller | null = null): Promise<EndorsementReceipt> {
    const input = members(revocation);
    const faults = new Faults();
    const offer_entry_id = readEntryId(input.original_offer_entry_id, "/original_offer_entry_id", faults);
    const note = readNote(input.note, "/note", faults);
    faults.check();
    const endorsed_fingerprint = readFingerprint(input.endorsed_fingerprint);
    const standing = await this.#standing(this.#offer(offer_entry_id).endorser_fingerprint);
    const change = { offer_entry_id, endorsed_fingerprint, note, ...this.#settings };
    return this.#receipt(
      await this.#parts.writes.execute(revokeAcceptance, change, client, endorsed_fingerprint),
      standing,
    );
  }

  /**
   * Files an alert that a key is compromised (`POST /endorsements/revocation-alert`). The caller has proven that it
   * holds the filing key. One accepted endorsement between the two keys at any time is enough: a thief of the key could
   * end the endorsements that it accepted, and must not silence its endorsers in this way.
   * @throws CairnlogError `invalid-input`; `not-found` for an unknown key; `key-not-active` if the filing key is not
   *   active; `forbidden` if no endorsement between the two was ever accepted; and as `Log.append` does
   */
  async alert(alert: Alert, client: Caller | null = null): Promise<AlertReceipt> {
    const input = members(alert);
    const faults = new Faults();
    const reason = readNote(input.reason, "/reason", faults);
    const evidence = input.evidence == null ? null : boundedText(input.evidence, "/evidence", EVIDENCE, faults);
    faults.check();
    const endorser_fingerprint = readFingerprint(input.endorser_fingerprint);
    const { value, receipts } = await this.#parts.writes.execute(
      fileAlert,
      {
        endorser_fingerprint,
        compromised_fingerprint: readFingerprint(input.compromised_fingerprint),
        reason,
        evidence: evidence!,
        operator_fingerprint: this.#parts.operator,
      },
      client,
      endorser_fingerprint,
    );
    return { alert: value, log_entry: receipts[0]!.json };
  }

  /** @throws CairnlogError `not-found` */
  #offer(entryId: number, code: "not-found" | "precondition-failed" = "not-found"): EndorsementRow {
    // An offer that is not on disk yet has not been acknowledged to anybody.
    const offer = this.#parts.log.row("endorsements", entryId);
    if (!offer) throw new CairnlogError(code, `Entry ${entryId} is no offer of an endorsement.`);
    return offer;
  }

  /** Computed before the command, so that nothing has been written if trust cannot be computed. */
  async #standing(endorser: string): Promise<EndorserStanding> {
    return (await this.#parts.trust.standings([endorser])).get(endorser)!;
  }

  get #settings() {
    return {
      operator_fingerprint: this.#parts.operator,
      activation_delay_seconds: this.#parts.queries.activationDelay,
    };
  }

  #receipt({ value, receipts }: Committed<EndorsementRow>, { discount }: EndorserStanding): EndorsementReceipt {
    const { timestamp, json } = receipts[0]!;
    const endorsement = this.#parts.queries.record(
      value,
      timeAt(timestamp, this.#parts.queries.activationDelay),
      discount,
    );
    return { endorsement, log_entry: json };
  }
}

/**
 * A fingerprint in the registry's form. The command checks whether the key exists.
 * @throws CairnlogError `not-found`
 */
function readFingerprint(named: unknown): string {
  const fingerprint = canonicalFingerprint(named as string);
  if (fingerprint === undefined) throw unknownKey();
  return fingerprint;
}
