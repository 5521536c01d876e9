/** Requests for attestations, their answers, and the inbox in which one finds them. */
import type { JsonObject } from "../../../engine/verify/json/shape.js";
import * as inboxWire from "../../wire/signing/inbox.js";
import * as wire from "../../wire/signing/requests.js";
import type { Http } from "../http.js";
import { asLogged, type Watch } from "../log/watch.js";
import { pages } from "../pages.js";
import type { Authority } from "../session.js";
import type {
  AttestationRequest,
  CreateRequest,
  Notification,
  RequestPage,
  RequestQuery,
  RequestResponse,
  Respond,
} from "../types.js";

/** A request by one's own key; the nonce is made where none is given. */
export type NewRequest = Omit<CreateRequest, "requester_fingerprint" | "auth" | "nonce"> & { readonly nonce?: string };

/** An answer by one's own key. */
export type Answer = Omit<Respond, "responder_fingerprint" | "auth">;

export type RequestFilter = Pick<RequestQuery, "target" | "requester" | "status">;

export class RequestsClient {
  readonly #http: Http;
  readonly #watch: Watch;
  readonly #authority: Authority;

  constructor(http: Http, watch: Watch, authority: Authority) {
    this.#http = http;
    this.#watch = watch;
    this.#authority = authority;
  }

  /** Asks another key, or one's own, for an attestation. @throws ClientError */
  async create(request: NewRequest): Promise<AttestationRequest> {
    const requester_fingerprint = this.#authority.fingerprint;
    const { nonce = crypto.randomUUID(), ...rest } = request;
    const floor = await this.#watch.floor();
    const { auth, headers } = await this.#authority.forWrite();
    const body = { ...rest, nonce, requester_fingerprint, ...auth };
    const receipt = await this.#http.post(wire.AttestationRequest, "/log/attestation-requests", body, headers);
    await this.#watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "attestation_request",
      payload: {
        request_id: receipt.request_id,
        requester_fingerprint,
        target_fingerprint: asLogged(request.target_fingerprint),
        attestation_type: request.attestation_type,
        nonce,
        intent_statement: request.intent_statement ?? null,
        claims: (request.claims ?? {}) as JsonObject,
      },
    });
    return receipt;
  }

  /** Accepts or declines a request. @throws ClientError */
  async respond(requestId: string, answer: Answer): Promise<RequestResponse> {
    const responder_fingerprint = this.#authority.fingerprint;
    const floor = await this.#watch.floor();
    const { auth, headers } = await this.#authority.forWrite();
    const path = `/log/attestation-requests/${encodeURIComponent(requestId)}/respond`;
    const body = { ...answer, responder_fingerprint, ...auth };
    const receipt = await this.#http.post(wire.RequestResponse, path, body, headers);
    await this.#watch.recorded(receipt.log_entry_id, receipt.leaf_index, floor, {
      event_type: "attestation_request_response",
      payload: {
        request_id: requestId,
        responder_fingerprint,
        decision: answer.decision,
        attestation_id: answer.attestation_id ?? null,
        reason: answer.reason ?? null,
      },
    });
    return receipt;
  }

  /** One request, with its answer. @throws ClientError */
  find(requestId: string): Promise<AttestationRequest> {
    return this.#http.get(wire.AttestationRequest, `/log/attestation-requests/${encodeURIComponent(requestId)}`);
  }

  /** Requests to a key or by a key, oldest first. @throws ClientError */
  list(filter: RequestFilter): AsyncGenerator<RequestPage["requests"][number], void, undefined> {
    const path = "/log/attestation-requests";
    return pages(this.#http, { schema: wire.RequestPage, path, member: "requests", query: { ...filter } });
  }
}

export class InboxClient {
  readonly #http: Http;
  readonly #authority: Authority;

  constructor(http: Http, authority: Authority) {
    this.#http = http;
    this.#authority = authority;
  }

  /** Notifications of the session's key, newest first. @throws ClientError */
  list({ unread }: { readonly unread?: boolean } = {}): AsyncGenerator<Notification, void, undefined> {
    return pages(this.#http, {
      schema: inboxWire.NotificationPage,
      path: "/inbox",
      member: "notifications",
      query: { unread: unread === undefined ? undefined : `${unread}` },
      headers: () => this.#authority.bearer(),
    });
  }

  /** @throws ClientError */
  markRead(id: number): Promise<Notification> {
    return this.#authority.withSession((headers) =>
      this.#http.post(inboxWire.Notification, `/inbox/${id}/read`, {}, headers),
    );
  }
}
