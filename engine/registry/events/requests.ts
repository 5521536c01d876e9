/**
 * Attestation requests, their answers and request policies in the log: the content of their events, and the rows
 * derived from them. Imported history may contain anything; an invalid event changes nothing and never throws.
 */
import { hash } from "node:crypto";
import type { DerivedWriter, LoggedEvent } from "../../log/state/projection.js";
import type {
  PolicyRow,
  RequestAnswer,
  RequestCountKey,
  RequestList,
  RequestRow,
  TargetPolicies,
} from "../../store/schema/rows.js";
import { fits, type JsonObject } from "../../verify/json/shape.js";
import { ATTESTATION_TYPE, NONCE, POLICY_ACTIONS } from "../../verify/keys/contract.js";
import { canonicalTimestamp } from "../../verify/tree/entry.js";
import { Faults } from "../shared/input.js";
import { isFingerprint } from "./keys.js";
import { type Predicates, readPredicates } from "./predicatelanguage.js";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const EMPTY_COUNTS: Readonly<Record<RequestList, number>> = { all: 0, open: 0, held: 0, accepted: 0, declined: 0 };

/**
 * Whether `value` can be a request's id. Other values must not be looked up, because the table's keys have a limited
 * length.
 */
export function isRequestId(value: unknown): value is string {
  return typeof value === "string" && UUID.test(value);
}

/** The key under which a used nonce is stored; the client chooses the nonce. */
export function nonceKey(requester: string, nonce: string): [string, string] {
  return [requester, hash("sha256", nonce, "hex")];
}

/** Applies `attestation_request`. */
export function applyRequest(event: LoggedEvent, state: DerivedWriter): void {
  const row = requestRow(event);
  const { nonce } = event.payload;
  if (!row || !isText(nonce, NONCE.max) || state.get("requests", row.request_id)) return;
  const { request_id, requester_fingerprint } = row;
  if (state.get("requestNonces", nonceKey(requester_fingerprint, nonce))) return;
  state.put("requestNonces", nonceKey(requester_fingerprint, nonce), { request_id });
  state.put("requests", request_id, row);
  for (const list of ["all", row.status] as const) file(state, row, list, 1);
}

function requestRow(event: LoggedEvent): RequestRow | undefined {
  const { request_id, requester_fingerprint, target_fingerprint, attestation_type, status } = event.payload;
  const deadline = canonicalTimestamp(event.payload.deadline);
  if (!isRequestId(request_id) || !isFingerprint(requester_fingerprint) || !isFingerprint(target_fingerprint))
    return undefined;
  if (deadline === undefined || !isText(attestation_type, ATTESTATION_TYPE.max)) return undefined;
  if (status !== "open" && status !== "held") return undefined;
  return {
    request_id,
    requester_fingerprint,
    target_fingerprint,
    attestation_type,
    status,
    deadline,
    created_at: event.timestamp,
    log_entry_id: event.id,
  };
}

/** Maximum number of answers to a request by others than its target; anybody may answer. */
export const MAX_OTHER_RESPONSES = 8;

/**
 * Whether a key may still answer a request: each key once, and the target whoever has answered before. `full` if others
 * have given as many answers as count; else the key's earlier answer.
 */
export function roomFor(row: RequestRow, responder: string): "yes" | "full" | RequestAnswer {
  const { target_fingerprint: target, responses = [] } = row;
  const earlier = responses.find(({ responder_fingerprint }) => responder_fingerprint === responder);
  if (earlier) return earlier;
  const others = responses.filter(({ responder_fingerprint }) => responder_fingerprint !== target).length;
  return responder !== target && others >= MAX_OTHER_RESPONSES ? "full" : "yes";
}

/** The answer that the status follows: the target's where there is one, else the first. Undefined before there is one. */
export const decidingAnswer = ({ target_fingerprint: target, responses }: RequestRow): RequestAnswer | undefined =>
  responses?.find(({ responder_fingerprint }) => responder_fingerprint === target) ?? responses?.[0];

/** Applies `attestation_request_response`. */
export function applyResponse(event: LoggedEvent, state: DerivedWriter): void {
  const { request_id, responder_fingerprint, decision, attestation_id } = event.payload;
  const row = isRequestId(request_id) ? state.get("requests", request_id) : undefined;
  if (!row || !isFingerprint(responder_fingerprint) || roomFor(row, responder_fingerprint) !== "yes") return;
  if (decision !== "decline" && !(decision === "accept" && typeof attestation_id === "string")) return;
  const responses = [...(row.responses ?? []), { responder_fingerprint, log_entry_id: event.id }];
  const decides = decidingAnswer({ ...row, responses })?.log_entry_id === event.id;
  const status = !decides ? row.status : decision === "accept" ? "accepted" : "declined";
  state.put("requests", row.request_id, { ...row, status, responses });
  if (status === row.status) return;
  file(state, row, row.status, -1);
  file(state, row, status, 1);
}

/** Adds a request to one of the lists of each of its keys and of both together, or removes it. */
function file(state: DerivedWriter, row: RequestRow, list: RequestList, change: 1 | -1): void {
  const { request_id, target_fingerprint: target, requester_fingerprint: requester, log_entry_id: id } = row;
  const listed = change > 0 ? { request_id } : undefined;
  state.put("requestsByTarget", [target, list, id], listed);
  state.put("requestsByRequester", [requester, list, id], listed);
  state.put("requestsByPair", [target, requester, list, id], listed);
  const keys: RequestCountKey[] = [
    ["target", target],
    ["requester", requester],
    ["pair", target, requester],
  ];
  for (const key of keys) {
    const counts = state.get("requestCounts", key) ?? EMPTY_COUNTS;
    state.put("requestCounts", key, { ...counts, [list]: counts[list] + change });
  }
}

/** Applies `request_policy`. */
export function applyPolicy(event: LoggedEvent, state: DerivedWriter): void {
  const { target_fingerprint: target, default_action_on_failure } = event.payload;
  const predicates = predicatesOf(event.payload);
  const action = POLICY_ACTIONS.find((name) => name === default_action_on_failure);
  const from = canonicalTimestamp(event.payload.effective_from);
  if (!isFingerprint(target) || !predicates || !action || from === undefined) return;
  const now = event.timestamp;
  const { active } = policiesAt(state.get("policies", target), now);
  if (active && from <= active.effective_from) return;
  const policy: PolicyRow = {
    predicates: predicates.canonical,
    default_action_on_failure: action,
    effective_from: from,
    published_at: now,
    log_entry_id: event.id,
  };
  // In both cases it replaces a scheduled policy: there is no other way to withdraw one.
  state.put("policies", target, from <= now ? { active: policy, scheduled: null } : { active, scheduled: policy });
}

/** The policies of a target at `time` (canonical form): a scheduled policy may have taken effect. */
export function policiesAt(row: TargetPolicies | undefined, time: string): TargetPolicies {
  if (!row) return { active: null, scheduled: null };
  return row.scheduled && row.scheduled.effective_from <= time ? { active: row.scheduled, scheduled: null } : row;
}

/** The predicates of a stored policy; undefined if the payload has none. */
export function predicatesOf({ predicates }: JsonObject): Predicates | undefined {
  return readPredicates(predicates, "/predicates", new Faults());
}

/** Whether `value` is a text of 1 to `limit` characters. */
function isText(value: unknown, limit: number): value is string {
  return typeof value === "string" && value !== "" && fits(value, limit);
}
