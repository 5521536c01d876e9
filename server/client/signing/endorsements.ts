/** Endorsements between keys. Every write carries a proof made for it alone and its entry is checked on arrival. */

import { Entry } from "../../wire/log/log.js";
import * as wire from "../../wire/signing/endorsements.js";
import type { Http } from "../http.js";
import { asLogged, type Expected, type ProvenEntry, type Watch } from "../log/watch.js";
import { pages } from "../pages.js";
import type { Authority } from "../session.js";
import type {
  AlertReceipt,
  Endorsement,
  EndorsementQuery,
  EndorsementReceipt,
  IdentifierType,
  OfferEndorsement,
  RevocationAlert,
} from "../types.js";

/** An offer by the signer's key. */
export type Offer = Omit<OfferEndorsement, "endorser_fingerprint" | "auth">;

export type EndorsementFilter = Pick<EndorsementQuery, "status" | "category">;

export class EndorsementsClient {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  constructor(http: Http, watch: Watch, authority: Authority) {
    this.#http = http;
    this.#watch = watch;
    this.#authority = authority;
  }

  /** Offers an endorsement to another key. @returns the entry of the offer @throws ClientError */
  async offer(offer: Offer): Promise<ProvenEntry> {
    const { fingerprint } = this.#authority.key;
    const endorsed_fingerprint = asLogged(offer.endorsed_fingerprint);
    const floor = await this.#watch.floor();
    const auth = await this.#authority.proof();
    const body = { ...offer, endorser_fingerprint: fingerprint, endorsed_fingerprint, auth };
    const { id } = await this.#http.post(Entry, "/endorsements/offer", body);
    return this.#watch.recorded(id, null, floor, {
      event_type: "endorsement_offer",
      payload: {
        endorser_key_fingerprint: fingerprint,
        endorsed_key_fingerprint: endorsed_fingerprint,
        category: offer.category,
      },
    });
  }

  /** Accepts an offer to the signer's key. @throws ClientError */
  accept(offerEntryId: number, note?: string): Promise<EndorsementReceipt> {
    const endorsed_fingerprint = this.#authority.key.fingerprint;
    const body = { offer_entry_id: offerEntryId, endorsed_fingerprint, ...(note === undefined ? {} : { note }) };
    return this.#change("accept", body, {
      event_type: "endorsement_acceptance",
      payload: {
        endorsed_key_fingerprint: endorsed_fingerprint,
        offer_entry_id: offerEntryId,
      },
    });
  }

  /** Takes an offer or an endorsement by the signer's key back. @throws ClientError */
  withdraw(offerEntryId: number, endorsedFingerprint: string, note: string): Promise<EndorsementReceipt> {
    const endorser_fingerprint = this.#authority.key.fingerprint;
    const names = { endorser_fingerprint, endorsed_fingerprint: endorsedFingerprint };
    return this.#change(
      "withdraw",
      { ...names, original_offer_entry_id: offerEntryId, note },
      {
        event_type: "endorsement_withdrawal",
        payload: { endorser_key_fingerprint: endorser_fingerprint, offer_entry_id: offerEntryId, note },
      },
    );
  }

  /** Ends an endorsement that the signer's key accepted. @throws ClientError */
  revokeAcceptance(offerEntryId: number, note: string): Promise<EndorsementReceipt> {
    const endorsed_fingerprint = this.#authority.key.fingerprint;
    return this.#change(
      "revoke-acceptance",
      { endorsed_fingerprint, original_offer_entry_id: offerEntryId, note },
      {
        event_type: "acceptance_revocation",
        payload: { endorsed_key_fingerprint: endorsed_fingerprint, offer_entry_id: offerEntryId, note },
      },
    );
  }

  /** Warns that a key, which the signer's endorsed or was endorsed by, is compromised. @throws ClientError */
  async alert(compromisedFingerprint: string, reason: string, evidence?: string): Promise<AlertReceipt> {
    const { fingerprint } = this.#authority.key;
    const floor = await this.#watch.floor();
    const receipt = await this.#http.post(wire.AlertReceipt, "/endorsements/revocation-alert", {
      endorser_fingerprint: fingerprint,
      compromised_fingerprint: compromisedFingerprint,
      reason,
      ...(evidence === undefined ? {} : { evidence }),
      auth: await this.#authority.proof(),
    });
    const { id } = receipt.log_entry;
    await this.#watch.recorded(id, null, floor, {
      event_type: "endorser_revocation_alert",
      payload: {
        endorser_key_fingerprint: fingerprint,
        compromised_key_fingerprint: asLogged(compromisedFingerprint),
        reason,
      },
    });
    return receipt;
  }

  /** Endorsements that a key received, oldest offer first. @throws ClientError */
  received(fingerprint: string, filter: EndorsementFilter = {}): AsyncGenerator<Endorsement, void, undefined> {
    return this.#list(`/endorsements/${encodeURIComponent(fingerprint)}`, filter);
  }

  /** Endorsements that a key issued, oldest offer first. @throws ClientError */
  issued(fingerprint: string, filter: EndorsementFilter = {}): AsyncGenerator<Endorsement, void, undefined> {
    return this.#list(`/endorsements/${encodeURIComponent(fingerprint)}/issued`, filter);
  }

  /** Alerts on a key, oldest first. @throws ClientError */
  alerts(fingerprint: string): AsyncGenerator<RevocationAlert, void, undefined> {
    const path = `/endorsements/revocation-alerts/${encodeURIComponent(fingerprint)}`;
    return pages(this.#http, { schema: wire.AlertPage, path, member: "alerts" });
  }

  /** What `external_identifiers` of an offer can be. @throws ClientError */
  async identifierTypes(): Promise<IdentifierType[]> {
    return (await this.#http.get(wire.IdentifierTypes, "/identifier-types")).identifier_types;
  }

  #list(path: string, filter: EndorsementFilter): AsyncGenerator<Endorsement, void, undefined> {
    return pages(this.#http, { schema: wire.EndorsementPage, path, member: "endorsements", query: { ...filter } });
  }

  async #change(path: string, body: object, expected: Expected): Promise<EndorsementReceipt> {
    const floor = await this.#watch.floor();
    const auth = await this.#authority.proof();
    const receipt = await this.#http.post(wire.EndorsementReceipt, `/endorsements/${path}`, { ...body, auth });
    const { id } = receipt.log_entry;
    await this.#watch.recorded(id, null, floor, expected);
    return receipt;
  }
}
