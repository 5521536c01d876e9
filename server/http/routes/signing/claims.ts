/** Encrypted claims: posting, looking up, and revealing one to the service. */
import {
  ClaimPage,
  ClaimParams,
  ClaimPayload,
  ClaimQuery,
  ClaimReceipt,
  PostClaim,
  RevealClaim,
  Revealed,
} from "../../../../engine/contract/signing/claims.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Gate } from "../../gate.js";
import { belowMember } from "../../route/problems.js";
import { type Route, route } from "../../route/route.js";
import { jsonList } from "../../transport/answer.js";

export function claimRoutes({ claims }: Pick<Served, "claims">, gate: Gate): Route[] {
  return [
    route({
      method: "POST",
      path: "/api/v1/claims",
      summary: "Post an encrypted claim",
      proving: "session",
      async authorize(asking) {
        const proof = await gate.sessionKey(asking);
        claims.checkPoster(proof.fingerprint);
        return proof;
      },
      body: PostClaim,
      answer: ClaimReceipt,
      refusals: [401, 403],
      limit: "general",
      handle: ({ body, proof, request }) =>
        belowMember("/payload", claims.post(body.payload, proof.fingerprint, request.client)),
    }),
    route({
      method: "GET",
      path: "/api/v1/claims",
      summary: "The claims with a lookup key",
      query: ClaimQuery,
      answer: ClaimPage,
      limit: "general",
      async handle({ query: { lookup_key, ...paging } }) {
        const { entries, ...rest } = await claims.list(lookup_key, paging);
        return jsonList("entries", entries.length, (i) => entries[i]!, rest);
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/claims/{entry_id}",
      summary: "The opaque payload of one claim",
      params: ClaimParams,
      answer: ClaimPayload,
      refusals: [404, 410],
      limit: "general",
      handle: ({ params }) => claims.payload(params.entry_id),
    }),
    route({
      method: "POST",
      path: "/api/v1/claims/{entry_id}/reveal",
      summary: "Whether a claim commits to a plaintext; checking it offline discloses nothing",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      params: ClaimParams,
      body: RevealClaim,
      answer: Revealed,
      refusals: [401, 403, 404, 409, 410],
      limit: "claim-reveal",
      handle: ({ params, body, proof }) => claims.reveal(params.entry_id, body, proof.fingerprint),
    }),
  ];
}
