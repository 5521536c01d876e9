/**
 * The commands that make and answer requests, publish policies and read notifications. The caller has verified
 * possession of the acting keys.
 */

import { CairnlogError } from "../../base/error.js";
import { formatTimestamp, parseTimestamp } from "../../log/state/clock.js";
import { define, type PlainObject, type Transaction } from "../../log/state/commands.js";
import type { PolicyRow, RequestRow } from "../../store/schema/rows.js";
import { eventOf } from "../../verify/events/kinds.js";
import { DEADLINE_DAYS } from "../../verify/keys/contract.js";
import { confirmedChain, requireActive } from "../events/keys.js";
import { satisfies } from "../events/predicatelanguage.js";
import { isRequestId, MAX_OTHER_RESPONSES, nonceKey, policiesAt, predicatesOf, roomFor } from "../events/requests.js";
import { invalidInput } from "../shared/input.js";
import { takeFromQuota } from "../shared/quota.js";
import type { CheckedRequest, CheckedResponse } from "./input.js";
import { type Notification, notificationView, notify } from "./notifications.js";

const DAY = 86_400_000_000;
const ONE_REQUEST = { amount: 1, hours: 1, unit: " requests" };

interface Asked extends CheckedRequest {
  readonly request_id: string;
  readonly requester_fingerprint: string;
  /** The requester's trust level; null if no policy seemed to need it. */
  readonly requester_trust: number | null;
  readonly operator_fingerprint: string;
  /** Maximum number of requests to one target in an hour; null if there is no limit. */
  readonly quota: number | null;
  /** Maximum number of requests by one requester in an hour; null if there is no limit. */
  readonly requester_quota: number | null;
}

interface Created {
  readonly row: RequestRow;
  /** The policy that is in force; null if there is none. */
  readonly policy_entry_id: number | null;
  /** The immediate answer by the policy, which is the command's second entry. */
  readonly response: (CheckedResponse & { readonly responder_fingerprint: string }) | null;
}

/**
 * Logs a request, and applies the target's policy in force to it.
 * @returns the request; null if the requester's trust level is needed first
 * @throws CairnlogError `key-not-active`; `not-found` if the target is not a key; `already-exists` if the requester has
 *   used the nonce; `invalid-input` for the deadline; `rate-limited`
 */
export const createRequest = define("request.create", (transaction: Transaction, asked: Asked): Created | null => {
  const { timestamp } = transaction;
  const { request_id, requester_fingerprint, target_fingerprint, operator_fingerprint } = asked;
  const { attestation_type, nonce, intent_statement, claims } = asked;
  requireActive(transaction, requester_fingerprint);
  if (!transaction.get("keys", target_fingerprint) && target_fingerprint !== operator_fingerprint)
    throw unknownTarget();
  if (transaction.get("requestNonces", nonceKey(requester_fingerprint, nonce)))
    throw new CairnlogError("already-exists", "This requester has used this nonce before.");
  const deadline = checkedDeadline(asked.deadline, timestamp);
  const { active } = policiesAt(transaction.get("policies", target_fingerprint), timestamp);
  const verdict = active ? judged(active, asked) : "allow";
  if (verdict === "needs-trust") return null;
  takeFromQuota(transaction, ["attestation-request", target_fingerprint], asked.quota);
  takeFromQuota(transaction, ["requester", requester_fingerprint], asked.requester_quota, ONE_REQUEST);

  const policy_entry_id = active?.log_entry_id ?? null;
  const request = { request_id, requester_fingerprint, target_fingerprint };
  const content = { attestation_type, nonce, intent_statement, claims, deadline };
  const status = verdict === "hold" ? ("held" as const) : ("open" as const);
  const payload = { ...request, ...content, status, policy_entry_id };
  const event = transaction.append(eventOf("attestation_request", payload));
  const response =
    verdict === "decline"
      ? ({
          decision: "decline",
          responder_fingerprint: operator_fingerprint,
          attestation_id: null,
          reason: `The request does not satisfy the target's policy, which is entry ${policy_entry_id}.`,
        } as const)
      : null;
  if (response) answer(transaction, { request_id, ...response, policy_entry_id });
  else {
    const kind = status === "held" ? "attestation_request_held" : "attestation_request";
    notify(transaction, target_fingerprint, { id: event.id, kind, request_id });
  }
  return { row: transaction.get("requests", request_id)!, policy_entry_id, response };
});

/**
 * Records an answer. Anybody may answer, but the status follows the target's answer, whenever it comes.
 * @returns the request after it
 * @throws CairnlogError `key-not-active`; `not-found`; `already-exists` if the key has answered it before, or others have as
 *   often as counts; `gone` if its deadline has passed; `invalid-input` if there is no attestation with this id, or for an
 *   acceptance none by the responder, the target or a confirmed successor of either
 */
export const respondToRequest = define(
  "request.respond",
  (
    transaction: Transaction,
    {
      quota,
      attestation_signers,
      ...response
    }: CheckedResponse & {
      readonly request_id: string;
      readonly responder_fingerprint: string;
      /** Requests between others that a key may answer in an hour; null if there is no limit. */
      readonly quota: number | null;
      /** Who signed the attestations with this id. It never changes what an attestation says, so it may be read before. */
      readonly attestation_signers: readonly string[];
    },
  ): RequestRow => {
    const { request_id, responder_fingerprint, attestation_id, decision } = response;
    requireActive(transaction, responder_fingerprint);
    const row = isRequestId(request_id) ? transaction.get("requests", request_id) : undefined;
    if (!row) throw new CairnlogError("not-found", "There is no request with this id.");
    const room = roomFor(row, responder_fingerprint);
    if (room === "full") throw isFull();
    if (room !== "yes")
      throw new CairnlogError("already-exists", `The request was answered in entry ${room.log_entry_id} by this key.`);
    if (row.deadline < transaction.timestamp)
      throw new CairnlogError("gone", `The deadline of the request passed at ${row.deadline}.`);
    if (attestation_id !== null && !attestation_signers.length)
      throw invalidInput("/attestation_id", "The log holds no attestation with this id.");
    if (decision === "accept")
      checkSigner(transaction, [responder_fingerprint, row.target_fingerprint], attestation_signers);
    const isStranger = ![row.target_fingerprint, row.requester_fingerprint].includes(responder_fingerprint);
    if (isStranger) takeFromQuota(transaction, ["strangers-answer", responder_fingerprint], quota);
    answer(transaction, response);
    return transaction.get("requests", row.request_id)!;
  },
);

const isFull = () =>
  new CairnlogError(
    "already-exists",
    `The request has ${MAX_OTHER_RESPONSES} answers by others than its target; only the target may still answer.`,
  );

/** @throws CairnlogError `invalid-input` unless a signer is one of `keys` or a confirmed successor of one */
function checkSigner(transaction: Transaction, keys: readonly string[], signers: readonly string[]): void {
  for (const key of keys)
    for (const fingerprint of confirmedChain(transaction, key)) if (signers.includes(fingerprint)) return;
  const reason =
    "The attestation must be by the responder, by the target, or by a key that has succeeded one of them and has signed that.";
  throw invalidInput("/attestation_id", reason);
}

/**
 * @throws CairnlogError `key-not-active`; `precondition-failed` unless it takes effect later than the active policy;
 *   `rate-limited`
 */
export const publishPolicy = define(
  "policy.publish",
  (
    transaction: Transaction,
    {
      target_fingerprint,
      predicates,
      default_action_on_failure,
      quota,
      ...input
    }: {
      readonly target_fingerprint: string;
      readonly predicates: PlainObject;
      readonly default_action_on_failure: PolicyRow["default_action_on_failure"];
      /** Canonical form; null means now. */
      readonly effective_from: string | null;
      /** Maximum number of publications for one target in an hour; null if there is no limit. */
      readonly quota: number | null;
    },
  ): { readonly effective_from: string; readonly status: "active" | "scheduled" } => {
    const { timestamp } = transaction;
    const effective_from = input.effective_from ?? timestamp;
    requireActive(transaction, target_fingerprint);
    const { active } = policiesAt(transaction.get("policies", target_fingerprint), timestamp);
    if (active && effective_from <= active.effective_from)
      throw new CairnlogError(
        "precondition-failed",
        `It must come into force later than the active policy, which did at ${active.effective_from}.`,
      );
    takeFromQuota(transaction, ["request-policy", target_fingerprint], quota);
    const payload = { target_fingerprint, predicates, default_action_on_failure, effective_from };
    transaction.append(eventOf("request_policy", payload));
    return { effective_from, status: effective_from <= timestamp ? "active" : "scheduled" };
  },
);

/** @throws CairnlogError `not-found` if the key has no such notification */
export const markRead = define(
  "notification.mark-read",
  (
    transaction: Transaction,
    { fingerprint, id }: { readonly fingerprint: string; readonly id: number },
  ): Notification => {
    const row = transaction.get("notifications", [fingerprint, id]);
    if (!row) throw new CairnlogError("not-found", `There is no notification ${id} in this inbox.`);
    const read = { ...row, read: true };
    if (!row.read) transaction.put("notifications", [fingerprint, id], read);
    return notificationView(id, read);
  },
);

export const unknownTarget = () => new CairnlogError("not-found", "The target is no registered key.");

/** Applies a policy in force to a request. */
function judged(policy: PolicyRow, asked: Asked): PolicyRow["default_action_on_failure"] | "needs-trust" {
  const predicates = predicatesOf({ predicates: JSON.parse(policy.predicates) as unknown })!;
  if (predicates.usesTrust && asked.requester_trust === null) return "needs-trust";
  const { holds } = satisfies(predicates, {
    attestation_type: asked.attestation_type,
    requester_fingerprint: asked.requester_fingerprint,
    requester_trust: asked.requester_trust ?? undefined,
    // Keys of another status have been refused before.
    requester_status: "active",
    claims: asked.claims,
  });
  return holds ? "allow" : policy.default_action_on_failure;
}

/** Logs an answer and notifies the requester. */
function answer(
  transaction: Transaction,
  payload: CheckedResponse & {
    readonly request_id: string;
    readonly responder_fingerprint: string;
    /** The policy that gave the answer. */
    readonly policy_entry_id?: number | null;
  },
): void {
  const event = transaction.append(eventOf("attestation_request_response", { ...payload }));
  const { requester_fingerprint, request_id } = transaction.get("requests", payload.request_id)!;
  const kind = payload.decision === "accept" ? "attestation_request_accepted" : "attestation_request_declined";
  const { responder_fingerprint } = payload;
  notify(transaction, requester_fingerprint, { id: event.id, kind, request_id, responder_fingerprint });
}

/** @throws CairnlogError `invalid-input` for a deadline that has passed or is too far ahead */
function checkedDeadline(given: string | null, timestamp: string): string {
  const after = (micros: number) => formatTimestamp(parseTimestamp(timestamp) + micros);
  if (given === null) return after(DEADLINE_DAYS.default * DAY);
  if (given <= timestamp) throw invalidInput("/deadline", "The deadline has passed.");
  if (given > after(DEADLINE_DAYS.max * DAY))
    throw invalidInput("/deadline", `The deadline may be at most ${DEADLINE_DAYS.max} days ahead.`);
  return given;
}
