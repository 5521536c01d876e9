/** The key registry. */
import { PageQuery } from "../../../../engine/contract/common.js";
import {
  KeyDetail,
  KeyPage,
  KeyParams,
  KeyRegistered,
  KeyRevoked,
  KeySearchQuery,
  KeyStatusView,
  KeySucceeded,
  RegisterKey,
  RevokeKey,
  SucceedKey,
} from "../../../../engine/contract/identity/keys.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Gate } from "../../gate.js";
import { belowMember } from "../../route/problems.js";
import { type Route, route } from "../../route/route.js";

export function keyRoutes(
  { keys, keyLifecycle, passwords }: Pick<Served, "keys" | "keyLifecycle" | "passwords">,
  gate: Gate,
): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/keys",
      summary: "Every registered key, in order of registration",
      query: PageQuery,
      answer: KeyPage,
      limit: "general",
      handle: ({ query }) => keys.list(query),
    }),
    route({
      method: "GET",
      path: "/api/v1/keys/search",
      summary: "Keys whose pseudonym contains a text",
      query: KeySearchQuery,
      answer: KeyPage,
      limit: "general",
      handle: ({ query }) => keys.search(query.pseudonym, query),
    }),
    route({
      method: "GET",
      path: "/api/v1/keys/{fingerprint}",
      summary: "One key",
      params: KeyParams,
      answer: KeyDetail,
      refusals: [404],
      limit: "general",
      handle: ({ params }) => keys.detail(params.fingerprint),
    }),
    route({
      method: "GET",
      path: "/api/v1/keys/{fingerprint}/status",
      summary: "The status of one key",
      params: KeyParams,
      answer: KeyStatusView,
      refusals: [404],
      limit: "general",
      handle: ({ params }) => keys.status(params.fingerprint),
    }),
    route({
      method: "POST",
      path: "/api/v1/keys/register",
      summary: "Register a public key",
      proving: "optional",
      // Where not everybody may write, the session of an anchor lets in the key of somebody else.
      authorize: (asking) => gate.shownKey(asking, null),
      body: RegisterKey,
      answer: KeyRegistered,
      refusals: [401, 403, 409],
      limit: "key-registration",
      handle: ({ body, proof, request }) =>
        belowMember("/payload", keys.register(body.payload, request.client, proof?.fingerprint)),
    }),
    route({
      method: "POST",
      path: "/api/v1/keys/succeed",
      summary: "Replace a key by a new one",
      proving: "fresh-session-or-proof",
      async authorize(asking) {
        const proof = await gate.provenKey(asking, asking.body, {
          allowRecovery: true,
          allowEnded: true,
          freshSession: true,
        });
        // Without this check, a thief of the key could get rid of its password by a succession. A session had it
        // checked at login.
        const { auth, password } = asking.body as { readonly auth?: unknown; readonly password?: unknown };
        if (auth !== undefined && auth !== null) await passwords.check(proof.fingerprint, password);
        return proof;
      },
      body: SucceedKey,
      answer: KeySucceeded,
      refusals: [401, 403, 404, 409, 410],
      limit: "general",
      handle({ body: { payload }, proof, request }) {
        const old_fingerprint = gate.own(proof, payload.old_fingerprint);
        return belowMember("/payload", keyLifecycle.succeed({ ...payload, old_fingerprint }, proof, request.client));
      },
    }),
    route({
      method: "POST",
      path: "/api/v1/keys/revoke",
      summary: "Disable a key for ever",
      proving: "fresh-session-or-proof",
      authorize: (asking) => gate.provenKey(asking, asking.body, { allowEnded: true, freshSession: true }),
      body: RevokeKey,
      answer: KeyRevoked,
      refusals: [401, 403, 404, 409, 410],
      limit: "general",
      handle: ({ body, proof, request }) =>
        keyLifecycle.revoke(gate.own(proof, body.payload.fingerprint), request.client),
    }),
  ];
}
