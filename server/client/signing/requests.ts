/** Attestation requests, their answers, and the inbox with notifications about them. */
import * as wire from "../../../engine/contract/signing/requests.js";
import type { PayloadOf } from "../../../engine/verify/events/kinds.js";
import type { PolicyAction } from "../../../engine/verify/keys/contract.js";
import { asLogged, confirmed, matching, moment } from "../base/compare.js";
import { pages } from "../base/pages.js";
import type {
  AttestationRequest,
  CreateRequest,
  Notification,
  PolicyPublished,
  PolicyView,
  PublishPolicy,
  RequestPage,
  RequestQuery,
  RequestResponse,
  Respond,
} from "../base/types.js";
import { Area } from "../log/area.js";
import { CHOSEN, OF_ENTRY } from "../log/expected.js";
import { type ProvenEntry, receiptPlace } from "../log/proven.js";

/** A request by the client's key. A nonce is generated if it is absent. */
export type NewRequest = Omit<CreateRequest, "requester_fingerprint" | "auth" | "nonce"> & { readonly nonce?: string };

/** An answer by the client's key. */
export type Answer = Omit<Respond, "responder_fingerprint" | "auth">;

export type RequestFilter = Pick<RequestQuery, "target" | "requester" | "status">;

export class RequestsClient extends Area {
  /** Asks a key, which may be the client's own, for an attestation. @throws ClientError */
  async create(request: NewRequest): Promise<AttestationRequest> {
    const requester_fingerprint = this.auth.fingerprint;
    const { nonce = crypto.randomUUID(), ...rest } = request;
    const floor = await this.watch.sizeBefore();
    const body = { ...rest, nonce, requester_fingerprint };
    const path = "/log/attestation-requests";
    const receipt = await this.auth.postAuthorised(wire.AttestationRequest, path, body);
    const content = {
      request_id: receipt.request_id,
      requester_fingerprint,
      target_fingerprint: asLogged(request.target_fingerprint),
      attestation_type: request.attestation_type,
      nonce,
      intent_statement: request.intent_statement ?? null,
      claims: request.claims ?? {},
    };
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "attestation_request",
      // The target's policy decides about the status. The service chooses the deadline if none was given.
      payload: { ...content, deadline: moment(request.deadline) ?? CHOSEN, status: CHOSEN, policy_entry_id: CHOSEN },
    });
    const { deadline, status, policy_entry_id } = proven.entry.payload as PayloadOf<"attestation_request">;
    const { entry_hash: _, ...place } = receiptPlace(proven);
    const truth = { ...content, deadline, policy_entry_id, created_at: proven.entry.timestamp, ...place };
    const answers = {
      status: receipt.response ? ("declined" as const) : status,
      responses: receipt.response ? [receipt.response] : [],
    };
    await this.watch.agreed(receipt, { ...truth, ...answers }, proven);
    if (receipt.response) await this.#checkDecline(receipt, receipt.response, floor);
    return receipt;
  }

  /** Accepts or declines a request. @throws ClientError */
  async respond(requestId: string, answer: Answer): Promise<RequestResponse> {
    const responder_fingerprint = this.auth.fingerprint;
    const floor = await this.watch.sizeBefore();
    const path = `/log/attestation-requests/${encodeURIComponent(requestId)}/respond`;
    const body = { ...answer, responder_fingerprint };
    const receipt = await this.auth.postAuthorised(wire.RequestResponse, path, body);
    const { decision } = answer;
    const content = {
      request_id: requestId,
      responder_fingerprint,
      decision,
      attestation_id: answer.attestation_id || null,
      reason: answer.reason ?? null,
    };
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "attestation_request_response",
      payload: content,
    });
    const { entry_hash: _, ...place } = receiptPlace(proven);
    // The status may follow an answer by somebody else, whose entry is not known here.
    return this.watch.agreed(receipt, { ...content, ...place }, proven);
  }

  /** One request, with its answer. @throws ClientError */
  async find(requestId: string): Promise<AttestationRequest> {
    const path = `/log/attestation-requests/${encodeURIComponent(requestId)}`;
    const request = await this.http.get(wire.AttestationRequest, path);
    return confirmed(request, { request_id: requestId }, "The request");
  }

  /** Requests to a key or by a key, oldest first. @throws ClientError */
  list(filter: RequestFilter): AsyncGenerator<RequestPage["requests"][number], void, undefined> {
    const path = "/log/attestation-requests";
    const listing = { schema: wire.RequestPage, path, member: "requests", query: { ...filter } } as const;
    const items = pages(this.http, { ...listing, place: (request) => request.log_entry_id });
    const { target, requester, status } = filter;
    return matching(
      items,
      {
        ...(target === undefined ? {} : { target_fingerprint: asLogged(target) }),
        ...(requester === undefined ? {} : { requester_fingerprint: asLogged(requester) }),
        ...(status === undefined ? {} : { status }),
      },
      !!status,
    );
  }

  /** Checks the immediate answer by the target's policy: a decline by the operator, with its own entry. */
  async #checkDecline(
    { request_id, target_fingerprint }: AttestationRequest,
    response: Response,
    floor: number,
  ): Promise<void> {
    const operators = await this.watch.operators();
    const content = {
      decision: "decline",
      // Whose head it is, the entry is by.
      responder_fingerprint: operators.keyAt(response.leaf_index + 1).fingerprint,
      attestation_id: null,
      reason: response.reason,
    } as const;
    const proven: ProvenEntry = await this.watch.recorded(response.log_entry_id, response.leaf_index, floor, {
      event_type: "attestation_request_response",
      payload: { request_id, ...content },
    });
    const { entry_hash: _, ...place } = receiptPlace(proven);
    const by_target = content.responder_fingerprint === target_fingerprint;
    await this.watch.agreed(
      response,
      { ...content, by_target, responded_at: proven.entry.timestamp, ...place },
      proven,
    );
  }
}

type Response = NonNullable<AttestationRequest["response"]>;

export class InboxClient extends Area {
  /** Notifications of the session's key, newest first. @throws ClientError */
  list({ unread }: { readonly unread?: boolean } = {}): AsyncGenerator<Notification, void, undefined> {
    const items = pages(this.http, {
      schema: wire.NotificationPage,
      path: "/inbox",
      member: "notifications",
      query: { unread: unread === undefined ? undefined : `${unread}` },
      auth: this.auth,
      place: (notification) => notification.id,
      newestFirst: true,
    });
    return unread === undefined ? items : matching(items, { read: !unread }, true);
  }

  /** @throws ClientError */
  async markRead(id: number): Promise<Notification> {
    const notification = await this.auth.withSession((headers) =>
      this.http.post(wire.Notification, `/inbox/${id}/read`, {}, headers),
    );
    return confirmed(notification, { id, read: true }, "The notification");
  }
}

// Request policies: the attestation requests that a key wants to receive.

/** A policy of the client's key; `docs/policies.md` describes the language of its predicates. */
export type NewPolicy = Omit<PublishPolicy, "target_fingerprint" | "auth">;

export class PoliciesClient extends Area {
  /** Publishes a policy in place of the key's active one. @throws ClientError */
  async publish(policy: NewPolicy): Promise<PolicyPublished> {
    const target_fingerprint = this.auth.fingerprint;
    const floor = await this.watch.sizeBefore();
    const body = { ...policy, target_fingerprint };
    const receipt = await this.auth.postAuthorised(wire.PolicyPublished, "/log/request-policies", body);
    const { predicates, default_action_on_failure } = policy;
    const content = { target_fingerprint, predicates, default_action_on_failure };
    const proven = await this.watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "request_policy",
      payload: { ...content, effective_from: moment(policy.effective_from) ?? OF_ENTRY },
    });
    const { effective_from } = proven.entry.payload as PayloadOf<"request_policy">;
    const published_at = proven.entry.timestamp;
    const status = effective_from <= published_at ? ("active" as const) : ("scheduled" as const);
    const { entry_hash: _, ...place } = receiptPlace(proven);
    return this.watch.agreed(
      receipt,
      {
        target_fingerprint,
        predicates,
        default_action_on_failure: default_action_on_failure as PolicyAction,
        effective_from,
        published_at,
        status,
        ...place,
      },
      proven,
    );
  }

  /** A key's policy in force, and the scheduled one. @throws ClientError */
  async find(fingerprint: string): Promise<PolicyView> {
    const view = await this.http.get(wire.PolicyView, `/log/request-policies/${encodeURIComponent(fingerprint)}`);
    const own = { target_fingerprint: asLogged(fingerprint) };
    for (const policy of [view.active, view.scheduled]) if (policy) confirmed(policy, own, "The policy");
    return confirmed(view, own, "The policy");
  }
}
