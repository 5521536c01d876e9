/** Attestation requests, their answers, and the policies that filter them. */
import { CairnlogError } from "../../../../engine/base/error.js";
import { KeyParams } from "../../../../engine/contract/identity/keys.js";
import {
  AttestationRequest,
  CreateRequest,
  InboxQuery,
  Notification,
  NotificationPage,
  NotificationParams,
  PolicyPublished,
  PolicyView,
  PublishPolicy,
  RequestPage,
  RequestParams,
  RequestQuery,
  RequestResponse,
  Respond,
} from "../../../../engine/contract/signing/requests.js";
import { canonicalFingerprint } from "../../../../engine/registry/events/keys.js";
import type { Served } from "../../../../engine/registry/registry.js";
import { fits } from "../../../../engine/verify/json/shape.js";
import { NAMING } from "../../../../engine/verify/keys/contract.js";
import type { Asking, Gate, Proof } from "../../gate.js";
import { type Route, route } from "../../route/route.js";

type Parts = Pick<Served, "requests" | "requestQueries" | "policies">;

const WRITE_REFUSALS = [401, 403, 404, 409, 410];

export function requestRoutes(parts: Parts, gate: Gate): Route[] {
  return [...readRoutes(parts), ...writeRoutes(parts, gate)];
}

function writeRoutes({ requests, policies }: Parts, gate: Gate): Route[] {
  /** Authenticates the client. If the body's `member` names a key, it must be the proven key. */
  const provenAs = (member: string) => async (asking: Asking & { readonly body: unknown }) => {
    const proof = await gate.provenKey(asking, asking.body);
    checkNamed(proof, (asking.body as Readonly<Record<string, unknown>>)[member], member);
    return proof;
  };
  return [
    route({
      method: "POST",
      path: "/api/v1/log/attestation-requests",
      summary: "Ask another key, or one's own, for an attestation",
      proving: "session-or-proof",
      authorize: provenAs("requester_fingerprint"),
      body: CreateRequest,
      answer: AttestationRequest,
      refusals: WRITE_REFUSALS,
      limit: "general",
      handle: ({ body, proof, request }) => requests.create(proof.fingerprint, body, request.client),
    }),
    route({
      method: "POST",
      path: "/api/v1/log/attestation-requests/{request_id}/respond",
      summary: "Accept or decline a request",
      proving: "session-or-proof",
      authorize: provenAs("responder_fingerprint"),
      params: RequestParams,
      body: Respond,
      answer: RequestResponse,
      refusals: WRITE_REFUSALS,
      limit: "general",
      handle: ({ params, body, proof, request }) =>
        requests.respond(proof.fingerprint, params.request_id, body, request.client),
    }),
    route({
      method: "POST",
      path: "/api/v1/log/request-policies",
      summary: "Publish the policy by which requests to one's key are filtered",
      proving: "session-or-proof",
      authorize: provenAs("target_fingerprint"),
      body: PublishPolicy,
      answer: PolicyPublished,
      refusals: WRITE_REFUSALS,
      limit: "general",
      handle: ({ body, proof, request }) => policies.publish(proof.fingerprint, body, request.client),
    }),
  ];
}

function readRoutes({ requestQueries, policies }: Parts): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/log/attestation-requests",
      summary: "Requests to a key, by a key, or by one to the other, oldest first",
      query: RequestQuery,
      answer: RequestPage,
      refusals: [404],
      limit: "general",
      handle: ({ query }) => requestQueries.list(query),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/attestation-requests/{request_id}",
      summary: "One request, with its answer",
      params: RequestParams,
      answer: AttestationRequest,
      refusals: [404],
      limit: "general",
      handle: ({ params }) => requestQueries.find(params.request_id),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/request-policies/{fingerprint}",
      summary: "The policy of a key that is in force, and the one that is scheduled",
      params: KeyParams,
      answer: PolicyView,
      refusals: [404],
      limit: "general",
      handle: ({ params }) => policies.view(params.fingerprint),
    }),
  ];
}

/**
 * Refuses a body that names another key than the proven one. Nothing is looked up: a text that names no key at all is
 * refused, too. A value that is not a text or is too long is left to the checks of form, which name the member.
 * @throws CairnlogError `forbidden`
 */
function checkNamed({ fingerprint }: Proof, named: unknown, member: string): void {
  if (typeof named !== "string" || named === "" || !fits(named, NAMING.max)) return;
  if (canonicalFingerprint(named) !== fingerprint)
    throw new CairnlogError("forbidden", `The proof is of the key ${fingerprint}, not of the one in ${member}.`);
}

/** The inbox of the session's key. Nobody else can read it: notifications are private. */
export function inboxRoutes({ inbox }: Pick<Served, "inbox">, gate: Gate): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/inbox",
      summary: "Notifications of the session's key, newest first",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      query: InboxQuery,
      answer: NotificationPage,
      refusals: [401, 403],
      limit: "general",
      handle: ({ query: { unread, ...paging }, proof }) =>
        inbox.list(proof.fingerprint, { ...paging, ...(unread === undefined ? {} : { unread: unread === "true" }) }),
    }),
    route({
      method: "POST",
      path: "/api/v1/inbox/{id}/read",
      summary: "Mark a notification as read",
      proving: "session",
      authorize: (asking) => gate.sessionKey(asking),
      params: NotificationParams,
      answer: Notification,
      refusals: [401, 403, 404],
      limit: "general",
      handle: ({ params, proof, request }) => inbox.markRead(proof.fingerprint, params.id, request.client),
    }),
  ];
}
