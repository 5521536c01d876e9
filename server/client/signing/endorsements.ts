/** Endorsements between keys. Every write has a proof made for it alone, and its entry is verified on arrival. */

import { Entry } from "../../../engine/contract/log/log.js";
import * as wire from "../../../engine/contract/signing/endorsements.js";
import type { PayloadOf } from "../../../engine/verify/events/kinds.js";
import { asLogged, type Members, matching, moment } from "../base/compare.js";
import { pages } from "../base/pages.js";
import type {
  AlertReceipt,
  Endorsement,
  EndorsementQuery,
  EndorsementReceipt,
  IdentifierType,
  OfferEndorsement,
  RevocationAlert,
} from "../base/types.js";
import { Area } from "../log/area.js";
import type { Expected } from "../log/expected.js";
import { bareEntry, type ProvenEntry } from "../log/proven.js";

/** An offer by the signer's key. */
export type Offer = Omit<OfferEndorsement, "endorser_fingerprint" | "auth">;

export type EndorsementFilter = Pick<EndorsementQuery, "status" | "category">;

export class EndorsementsClient extends Area {
  /** Offers an endorsement to another key. @returns the entry of the offer @throws ClientError */
  async offer(offer: Offer): Promise<ProvenEntry> {
    const { fingerprint } = this.auth.key;
    const floor = await this.watch.sizeBefore();
    // What is not of an identifier, the log does not take over.
    const external_identifiers = offer.external_identifiers?.map(({ type, value }) => ({ type, value }));
    const body = { ...offer, external_identifiers, endorser_fingerprint: fingerprint };
    const receipt = await this.auth.postProven(Entry, "/endorsements/offer", body);
    const proven = await this.watch.recorded(receipt.id, null, floor, {
      event_type: "endorsement_offer",
      payload: {
        endorser_key_fingerprint: fingerprint,
        endorsed_key_fingerprint: asLogged(offer.endorsed_fingerprint),
        category: offer.category,
        valid_until: endOf(offer.valid_until),
        institutional_metadata: offer.institutional_metadata ?? null,
        external_identifiers: external_identifiers ?? null,
      },
    });
    await this.watch.agreed(receipt, bareEntry(proven), proven);
    return proven;
  }

  /** Accepts an offer to the signer's key. @throws ClientError */
  accept(offerEntryId: number, note?: string): Promise<EndorsementReceipt> {
    const endorsed_fingerprint = this.auth.key.fingerprint;
    const body = { offer_entry_id: offerEntryId, endorsed_fingerprint, note };
    const parties = { endorsed_key_fingerprint: endorsed_fingerprint };
    return this.#change("accept", body, "endorsement_acceptance", { offerEntryId, parties, note: note ?? null });
  }

  /** Withdraws an offer or an endorsement by the signer's key. @throws ClientError */
  withdraw(offerEntryId: number, endorsedFingerprint: string, note: string): Promise<EndorsementReceipt> {
    const endorser_fingerprint = this.auth.key.fingerprint;
    const names = { endorser_fingerprint, endorsed_fingerprint: endorsedFingerprint };
    const body = { ...names, original_offer_entry_id: offerEntryId, note };
    const parties = {
      endorser_key_fingerprint: endorser_fingerprint,
      endorsed_key_fingerprint: asLogged(endorsedFingerprint),
    };
    return this.#change("withdraw", body, "endorsement_withdrawal", { offerEntryId, parties, note });
  }

  /** Ends an endorsement that the signer's key accepted. @throws ClientError */
  revokeAcceptance(offerEntryId: number, note: string): Promise<EndorsementReceipt> {
    const endorsed_fingerprint = this.auth.key.fingerprint;
    const body = { endorsed_fingerprint, original_offer_entry_id: offerEntryId, note };
    const parties = { endorsed_key_fingerprint: endorsed_fingerprint };
    return this.#change("revoke-acceptance", body, "acceptance_revocation", { offerEntryId, parties, note });
  }

  /**
   * Warns that a key is compromised. It must have endorsed the signer's key, or be endorsed by it.
   * @throws ClientError
   */
  async alert(compromisedFingerprint: string, reason: string, evidence?: string): Promise<AlertReceipt> {
    const { fingerprint } = this.auth.key;
    const compromised_fingerprint = asLogged(compromisedFingerprint);
    const floor = await this.watch.sizeBefore();
    const receipt = await this.auth.postProven(wire.AlertReceipt, "/endorsements/revocation-alert", {
      endorser_fingerprint: fingerprint,
      compromised_fingerprint,
      reason,
      evidence,
    });
    const proven = await this.watch.recorded(receipt.log_entry.id, null, floor, {
      event_type: "endorser_revocation_alert",
      payload: {
        endorser_key_fingerprint: fingerprint,
        compromised_key_fingerprint: compromised_fingerprint,
        reason,
        evidence: evidence ?? null,
      },
    });
    const alert = {
      alert_entry_id: proven.entry.id,
      endorser_fingerprint: fingerprint,
      compromised_fingerprint,
      reason,
      evidence: evidence ?? null,
      filed_at: proven.entry.timestamp,
    };
    await this.watch.agreed(receipt.log_entry, bareEntry(proven), proven);
    await this.watch.agreed(receipt.alert, alert, proven);
    return { alert, log_entry: logged(proven) };
  }

  /** Endorsements that a key received, oldest offer first. @throws ClientError */
  received(fingerprint: string, filter: EndorsementFilter = {}): AsyncGenerator<Endorsement, void, undefined> {
    const path = `/endorsements/${encodeURIComponent(fingerprint)}`;
    return this.#list(path, filter, { endorsed_fingerprint: asLogged(fingerprint) });
  }

  /** Endorsements that a key issued, oldest offer first. @throws ClientError */
  issued(fingerprint: string, filter: EndorsementFilter = {}): AsyncGenerator<Endorsement, void, undefined> {
    const path = `/endorsements/${encodeURIComponent(fingerprint)}/issued`;
    return this.#list(path, filter, { endorser_fingerprint: asLogged(fingerprint) });
  }

  /** Alerts on a key, oldest first. @throws ClientError */
  alerts(fingerprint: string): AsyncGenerator<RevocationAlert, void, undefined> {
    const path = `/endorsements/revocation-alerts/${encodeURIComponent(fingerprint)}`;
    const listing = { schema: wire.AlertPage, path, member: "alerts" } as const;
    const items = pages(this.http, { ...listing, place: (alert) => alert.alert_entry_id });
    return matching(items, { compromised_fingerprint: asLogged(fingerprint) });
  }

  /** The possible types of `external_identifiers` in an offer. @throws ClientError */
  async identifierTypes(): Promise<IdentifierType[]> {
    return (await this.http.get(wire.IdentifierTypes, "/identifier-types")).identifier_types;
  }

  #list(
    path: string,
    filter: EndorsementFilter,
    party: Members<Endorsement>,
  ): AsyncGenerator<Endorsement, void, undefined> {
    const listing = { schema: wire.EndorsementPage, path, member: "endorsements", query: { ...filter } } as const;
    const items = pages(this.http, { ...listing, place: (endorsement) => endorsement.offer_entry_id });
    return matching(items, { ...party, ...given(filter) }, !!filter.status);
  }

  /** Accepts or ends an endorsement. The entry repeats the content of the offer, so the offer is checked, too. */
  async #change(
    path: string,
    body: Readonly<Record<string, unknown>>,
    event_type: keyof typeof BECOMES,
    { offerEntryId, parties, note }: { offerEntryId: number; parties: object; note: string | null },
  ): Promise<EndorsementReceipt> {
    const floor = await this.watch.sizeBefore();
    const receipt = await this.auth.postProven(wire.EndorsementReceipt, `/endorsements/${path}`, body);
    const offer = await this.watch.owed(this.watch.proven(offerEntryId, null, floor), {});
    const offered = offer.entry.payload as PayloadOf<"endorsement_offer">;
    const content = {
      endorser_key_fingerprint: offered.endorser_key_fingerprint,
      endorsed_key_fingerprint: offered.endorsed_key_fingerprint,
      category: offered.category,
      valid_until: endOf(offered.valid_until),
      institutional_metadata: offered.institutional_metadata ?? null,
      external_identifiers: offered.external_identifiers ?? null,
    };
    const expected: Expected = {
      event_type,
      payload: { ...content, ...parties, offer_entry_id: offerEntryId, note },
    };
    const proven = await this.watch.recorded(receipt.log_entry.id, null, floor, expected);
    const { timestamp } = proven.entry;
    const { endorsement, log_entry } = receipt;
    await this.watch.agreed(log_entry, bareEntry(proven), proven);
    const { category, valid_until, institutional_metadata, external_identifiers } = content;
    const truth = {
      offer_entry_id: offerEntryId,
      endorser_fingerprint: content.endorser_key_fingerprint,
      endorsed_fingerprint: content.endorsed_key_fingerprint,
      ...{ category, valid_until, institutional_metadata, external_identifiers },
      offered_at: offer.entry.timestamp,
      ...BECOMES[event_type]({ timestamp, note, activates_at: endorsement.activates_at }),
    };
    await this.watch.agreed(endorsement, truth, proven);
    return { endorsement, log_entry: logged(proven) };
  }
}

/** The entry as it occurs in receipts. */
const logged = ({ entry }: ProvenEntry) => entry as EndorsementReceipt["log_entry"];

/**
 * The status of the endorsement after each event. The service's settings decide when an accepted one becomes active.
 */
const BECOMES = {
  endorsement_acceptance: ({ timestamp, activates_at }: Changed): Members<Endorsement> => ({
    status: activates_at !== null && activates_at <= timestamp ? "active" : "pending_activation",
    accepted_at: timestamp,
    activates_at: activates_at !== null && activates_at > timestamp ? activates_at : timestamp,
    ended_at: null,
    end_note: null,
  }),
  endorsement_withdrawal: ({ timestamp, note }: Changed): Members<Endorsement> => ({
    status: "withdrawn",
    ended_at: timestamp,
    end_note: note,
  }),
  acceptance_revocation: ({ timestamp, note }: Changed): Members<Endorsement> => ({
    status: "acceptance_revoked",
    ended_at: timestamp,
    end_note: note,
  }),
};

interface Changed {
  readonly timestamp: string;
  readonly note: string | null;
  readonly activates_at: string | null;
}

const DATE = /^\d{4}-\d\d-\d\d$/;

/** The end of a validity in the log's form: a date unchanged, a moment in its canonical spelling. */
const endOf = (validUntil: string | null | undefined): string | null =>
  validUntil != null && DATE.test(validUntil) ? validUntil : moment(validUntil);

/** The members of a filter that are set. */
const given = ({ status, category }: EndorsementFilter): Members<Endorsement> => ({
  ...(status === undefined ? {} : { status }),
  ...(category === undefined ? {} : { category }),
});
