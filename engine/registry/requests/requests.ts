/**
 * Attestation requests: one key asks another for an attestation, and somebody answers (`spec.md`, States, Attestation
 * request). What depends on the state of the log (is the nonce new, is the policy satisfied, was it answered before) is
 * decided within the command, in one step with the entries and the notifications.
 */
import { randomUUID } from "node:crypto";
import type { OperatorKey } from "../../crypto/keys/operator-key.js";
import { CairnlogError } from "../../error.js";
import { formatTimestamp, parseTimestamp } from "../../log/clock.js";
import type { Log } from "../../log/log.js";
import type { Transaction } from "../../log/write/transaction.js";
import type { PolicyRow } from "../../store/schema.js";
import type { RequestStatus } from "../../verify/contract.js";
import { attestationIdTerm } from "../attestations/events.js";
import { invalidInput } from "../input.js";
import { canonicalFingerprint } from "../keys/events.js";
import {
  ATTESTATION_REQUEST,
  ATTESTATION_REQUEST_RESPONSE,
  isRequestId,
  nonceKey,
  policiesAt,
  predicatesOf,
} from "./events.js";
import { notify } from "./inbox.js";
import {
  type CheckedRequest,
  type CheckedResponse,
  checkActive,
  type RequestInput,
  type ResponseInput,
  readRequest,
  readResponse,
} from "./input.js";
import { judge } from "./predicatelanguage.js";
import { type AttestationRequest, RequestQueries } from "./queries.js";
import { takeFromQuota } from "./quota.js";

/** Requests to one target in an hour. */
export const DEFAULT_REQUEST_QUOTA = 50;
const DAY = 86_400_000_000;
const DEFAULT_DEADLINE = 14 * DAY;
const MAX_DEADLINE = 90 * DAY;
const TRUST_STEPS = 1e9;

export interface RequestResponse {
  readonly request_id: string;
  readonly status: Extract<RequestStatus, "accepted" | "declined">;
  readonly decision: "accept" | "decline";
  readonly responder_fingerprint: string;
  readonly attestation_id: string | null;
  readonly reason: string | null;
  readonly log_entry_id: number;
  readonly leaf_index: number;
}

/** How far the service trusts a key, 0 to 1. */
interface TrustLevels {
  level(fingerprint: string): Promise<number>;
}

interface Asked extends CheckedRequest {
  readonly id: string;
  readonly requester: string;
  /** The requester's trust level; undefined when no policy seemed to ask for it. */
  readonly trust: number | undefined;
}

export class Requests extends RequestQueries {
  readonly #log: Log;
  readonly #operator: OperatorKey;
  readonly #trust: TrustLevels;
  readonly #quota: number | null;

  /** Use `openRegistry`. */
  constructor(
    parts: ConstructorParameters<typeof RequestQueries>[0] & {
      readonly operator: OperatorKey;
      readonly trust: TrustLevels;
      /** Requests to one target in an hour; null when they are not limited. */
      readonly quota: number | null;
    },
  ) {
    super(parts);
    this.#log = parts.log;
    this.#operator = parts.operator;
    this.#trust = parts.trust;
    this.#quota = parts.quota;
  }

  /**
   * Asks for an attestation in the name of a key that was proven (`POST /log/attestation-requests`). The target's policy
   * in force may decline or hold the request at once. Only a request that is logged counts against the target's quota,
   * one that the policy declines included.
   * @param requester fingerprint as the registry writes it; it may be the target's, too
   * @throws CairnlogError `invalid-input`, `not-i-json`; `key-not-active`; `not-found` when the target is no registered
   *   key; `already-exists` when the requester has used the nonce; `rate-limited`; and as `Log.append` does
   */
  async create(requester: string, request: RequestInput): Promise<AttestationRequest> {
    const checked = readRequest(request);
    const target = canonicalFingerprint(checked.target);
    if (target === undefined) throw unknownTarget();
    const asked = { ...checked, target, requester, id: randomUUID() };
    const run = async (trust?: number) => {
      const { value } = await this.#log.execute((transaction) => this.#ask(transaction, { ...asked, trust }));
      return value;
    };
    // The level costs a walk through the graph, and few policies ask for it. It is taken before the command, which has
    // to be deterministic and quick.
    if ((await run()) === "needs-trust") await run(rounded(await this.#trust.level(requester)));
    return this.find(asked.id);
  }

  /**
   * Answers a request in the name of a key that was proven, which need not be the target's
   * (`POST /log/attestation-requests/{request_id}/respond`).
   * @throws CairnlogError `invalid-input`, also when there is no attestation of that id; `key-not-active`; `not-found`;
   *   `already-exists` when it was answered before; `gone` when its deadline has passed; and as `Log.append` does
   */
  async respond(responder: string, requestId: string, response: ResponseInput): Promise<RequestResponse> {
    const checked = readResponse(response);
    const { receipts } = await this.#log.execute((transaction) => {
      checkActive(transaction, responder);
      const row = isRequestId(requestId) ? transaction.get("requests", requestId) : undefined;
      if (!row) throw new CairnlogError("not-found", "There is no request with this id.");
      if (row.response_entry_id !== null)
        throw new CairnlogError("already-exists", `The request was answered in entry ${row.response_entry_id}.`);
      if (row.deadline < transaction.timestamp)
        throw new CairnlogError("gone", `The deadline of the request passed at ${row.deadline}.`);
      const { attestation_id: attestation } = checked;
      if (attestation !== null && transaction.first(attestationIdTerm(attestation)) === undefined)
        throw invalidInput("/attestation_id", "The log holds no attestation with this id.");
      answer(transaction, { request_id: requestId, responder_fingerprint: responder, ...checked });
    });
    const { log_entry_id, leaf_index } = receipts[0]!;
    const status = checked.decision === "accept" ? "accepted" : "declined";
    return {
      request_id: requestId,
      status,
      responder_fingerprint: responder,
      ...checked,
      log_entry_id,
      leaf_index,
    };
  }

  /** @returns whether it was done, or the requester's trust level has to be known first */
  #ask(transaction: Transaction, asked: Asked): "done" | "needs-trust" {
    const { timestamp } = transaction;
    const { id, requester, target, attestation_type, nonce, intent_statement, claims } = asked;
    checkActive(transaction, requester);
    if (!transaction.get("keys", target) && target !== this.#operator.fingerprint) throw unknownTarget();
    if (transaction.get("requestNonces", nonceKey(requester, nonce)))
      throw new CairnlogError("already-exists", "This requester has used this nonce before.");
    const deadline = checkedDeadline(asked.deadline, timestamp);
    const { active } = policiesAt(transaction.get("policies", target), timestamp);
    const verdict = active ? judged(active, asked) : "allow";
    if (verdict === "needs-trust") return verdict;
    takeFromQuota(transaction, ["attestation-request", target], this.#quota);

    const policy_entry_id = active?.log_entry_id ?? null;
    const request = { request_id: id, requester_fingerprint: requester, target_fingerprint: target };
    const content = { attestation_type, nonce, intent_statement, claims, deadline };
    const status = verdict === "hold" ? "held" : "open";
    const payload = { ...request, ...content, status, policy_entry_id };
    const event = transaction.append({ event_type: ATTESTATION_REQUEST, payload });
    if (verdict === "decline")
      answer(transaction, {
        request_id: id,
        responder_fingerprint: this.#operator.fingerprint,
        decision: "decline",
        attestation_id: null,
        reason: `The request does not satisfy the target's policy, which is entry ${policy_entry_id}.`,
        policy_entry_id,
      });
    else {
      const kind = status === "held" ? "attestation_request_held" : "attestation_request";
      notify(transaction, target, { id: event.id, kind, request_id: id });
    }
    return "done";
  }
}

const unknownTarget = () => new CairnlogError("not-found", "The target is no registered key.");

/** Levels are products of fractions: 0.1 comes out a little less, and `ge 0.1` has to hold all the same. */
const rounded = (level: number): number => Math.round(level * TRUST_STEPS) / TRUST_STEPS;

/** What a policy in force does with a request. */
function judged(policy: PolicyRow, asked: Asked): PolicyRow["default_action_on_failure"] | "needs-trust" {
  const predicates = predicatesOf({ predicates: JSON.parse(policy.predicates) as unknown })!;
  if (predicates.usesTrust && asked.trust === undefined) return "needs-trust";
  const { holds } = judge(predicates, {
    attestation_type: asked.attestation_type,
    requester_fingerprint: asked.requester,
    requester_trust: asked.trust,
    // No other key gets this far.
    requester_status: "active",
    claims: asked.claims,
  });
  return holds ? "allow" : policy.default_action_on_failure;
}

/** Logs an answer and tells the requester. Part of a command. */
function answer(
  transaction: Transaction,
  payload: CheckedResponse & {
    readonly request_id: string;
    readonly responder_fingerprint: string;
    /** The policy that answered by itself. */
    readonly policy_entry_id?: number | null;
  },
): void {
  const event = transaction.append({ event_type: ATTESTATION_REQUEST_RESPONSE, payload: { ...payload } });
  const { requester_fingerprint, request_id } = transaction.get("requests", payload.request_id)!;
  const kind = payload.decision === "accept" ? "attestation_request_accepted" : "attestation_request_declined";
  notify(transaction, requester_fingerprint, { id: event.id, kind, request_id });
}

/** @throws CairnlogError `invalid-input` for one that has passed or lies too far ahead */
function checkedDeadline(given: string | null, timestamp: string): string {
  const after = (micros: number) => formatTimestamp(parseTimestamp(timestamp) + micros);
  if (given === null) return after(DEFAULT_DEADLINE);
  if (given <= timestamp) throw invalidInput("/deadline", "The deadline has passed.");
  if (given > after(MAX_DEADLINE)) throw invalidInput("/deadline", "The deadline may be at most 90 days ahead.");
  return given;
}
