/** Endorsements between keys, alerts on keys, and the types of external identifiers. */
import { CairnlogError } from "../../../../engine/base/error.js";
import { PageQuery } from "../../../../engine/contract/common.js";
import { KeyParams } from "../../../../engine/contract/identity/keys.js";
import { Entry } from "../../../../engine/contract/log/log.js";
import {
  AcceptEndorsement,
  AlertPage,
  AlertReceipt,
  EndorsementPage,
  EndorsementQuery,
  EndorsementReceipt,
  FileAlert,
  IdentifierTypes,
  OfferEndorsement,
  RevokeAcceptance,
  WithdrawEndorsement,
} from "../../../../engine/contract/signing/endorsements.js";
import { IDENTIFIER_TYPES } from "../../../../engine/registry/endorsements/identifiers.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Asking, Gate, Proof } from "../../gate.js";
import { type Route, route } from "../../route/route.js";
import { Answer, jsonEnding } from "../../transport/answer.js";

const WRITE_REFUSALS = [401, 403, 404, 409, 410];

type Parts = Pick<Served, "endorsements" | "endorsementQueries">;

export function endorsementRoutes(parts: Parts, gate: Gate): Route[] {
  return [...writeRoutes(parts, gate), ...readRoutes(parts)];
}

function writeRoutes({ endorsements }: Parts, gate: Gate): Route[] {
  /**
   * These writes require a proof made for them alone. A session is not enough, because a stolen token gives a session.
   */
  const authorize = async (asking: Asking & { readonly body: unknown }): Promise<Proof> => {
    const { auth } = asking.body as { readonly auth?: unknown };
    if (auth === undefined || auth === null)
      throw new CairnlogError("unauthenticated", "The member `auth`, a signed challenge, is missing.");
    return gate.provenKey(asking, asking.body);
  };
  return [
    route({
      method: "POST",
      path: "/api/v1/endorsements/offer",
      summary: "Offer an endorsement to another key",
      proving: "proof",
      authorize,
      body: OfferEndorsement,
      answer: Entry,
      refusals: WRITE_REFUSALS,
      limit: "endorsement-offer",
      async handle({ body, proof, request }) {
        const endorser_fingerprint = gate.own(proof, body.endorser_fingerprint);
        return new Answer((await endorsements.offer({ ...body, endorser_fingerprint }, request.client)).log_entry);
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/endorsements/accept",
      summary: "Accept an offer; it takes effect after the activation delay",
      proving: "proof",
      authorize,
      body: AcceptEndorsement,
      answer: EndorsementReceipt,
      refusals: WRITE_REFUSALS,
      limit: "general",
      async handle({ body, proof, request }) {
        const endorsed_fingerprint = gate.own(proof, body.endorsed_fingerprint);
        const { endorsement, log_entry } = await endorsements.accept({ ...body, endorsed_fingerprint }, request.client);
        return jsonEnding({ endorsement }, "log_entry", log_entry);
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/endorsements/withdraw",
      summary: "Take an offer or an endorsement back",
      proving: "proof",
      authorize,
      body: WithdrawEndorsement,
      answer: EndorsementReceipt,
      refusals: WRITE_REFUSALS,
      limit: "general",
      async handle({ body, proof, request }) {
        const endorser_fingerprint = gate.own(proof, body.endorser_fingerprint);
        const { endorsement, log_entry } = await endorsements.withdraw(
          { ...body, endorser_fingerprint },
          request.client,
        );
        return jsonEnding({ endorsement }, "log_entry", log_entry);
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/endorsements/revoke-acceptance",
      summary: "End an endorsement that the key accepted",
      proving: "proof",
      authorize,
      body: RevokeAcceptance,
      answer: EndorsementReceipt,
      refusals: WRITE_REFUSALS,
      limit: "general",
      async handle({ body, proof, request }) {
        const endorsed_fingerprint = gate.own(proof, body.endorsed_fingerprint);
        const { endorsement, log_entry } = await endorsements.revokeAcceptance(
          { ...body, endorsed_fingerprint },
          request.client,
        );
        return jsonEnding({ endorsement }, "log_entry", log_entry);
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/endorsements/revocation-alert",
      summary: "Warn that a key, which one endorsed or was endorsed by, is compromised",
      proving: "proof",
      authorize,
      body: FileAlert,
      answer: AlertReceipt,
      refusals: WRITE_REFUSALS,
      limit: "general",
      async handle({ body, proof, request }) {
        const endorser_fingerprint = gate.own(proof, body.endorser_fingerprint);
        const { alert, log_entry } = await endorsements.alert({ ...body, endorser_fingerprint }, request.client);
        return jsonEnding({ alert }, "log_entry", log_entry);
      },
    }),
  ];
}

function readRoutes({ endorsementQueries }: Parts): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/endorsements/{fingerprint}",
      summary: "Endorsements that a key received, oldest offer first",
      params: KeyParams,
      query: EndorsementQuery,
      answer: EndorsementPage,
      refusals: [404],
      limit: "general",
      handle: ({ params, query }) => endorsementQueries.received(params.fingerprint, query),
    }),
    route({
      method: "GET",
      path: "/api/v1/endorsements/{fingerprint}/issued",
      summary: "Endorsements that a key issued, oldest offer first",
      params: KeyParams,
      query: EndorsementQuery,
      answer: EndorsementPage,
      refusals: [404],
      limit: "general",
      handle: ({ params, query }) => endorsementQueries.issued(params.fingerprint, query),
    }),
    route({
      method: "GET",
      path: "/api/v1/endorsements/revocation-alerts/{fingerprint}",
      summary: "Alerts that a key is compromised, oldest first",
      params: KeyParams,
      query: PageQuery,
      answer: AlertPage,
      refusals: [404],
      limit: "general",
      handle: ({ params, query }) => endorsementQueries.alerts(params.fingerprint, query),
    }),
    route({
      method: "GET",
      path: "/api/v1/identifier-types",
      summary: "Types of identifiers that an endorsement may name",
      answer: IdentifierTypes,
      limit: "general",
      handle: () => ({ identifier_types: IDENTIFIER_TYPES }),
    }),
  ];
}
