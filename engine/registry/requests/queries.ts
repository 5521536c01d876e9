/**
 * Queries for attestation requests: one request with its answer, or lists of a key's requests in order. Requests are
 * public. The rows find them; the entries have their content.
 */
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/signing/requests.js";
import type { Value } from "../../contract/types.js";
import type { Log } from "../../log/log.js";
import { instantOf } from "../../log/state/clock.js";
import type { RequestAnswer, RequestCountKey, RequestList, RequestRow } from "../../store/schema/rows.js";
import type { Key } from "../../store/schema/schema.js";
import { membersIn } from "../../verify/events/withheld.js";
import { isObject } from "../../verify/json/shape.js";
import { decidingAnswer, isRequestId } from "../events/requests.js";
import { readPaging, skippedBefore } from "../keys/directory.js";
import type { Keys } from "../keys/keys.js";
import { invalidInput } from "../shared/input.js";

/** The members of a request that lists show. */
type RequestSummary = RequestPage["requests"][number];

type RecordedResponse = RequestSummary["responses"][number];

export type AttestationRequest = Value<typeof contract.AttestationRequest>;

type RequestPage = Value<typeof contract.RequestPage>;

/** Selects requests to a key, requests by a key, or if both are given, those that meet both. */
type RequestCriteria = Partial<Value<typeof contract.RequestQuery>>;

export class RequestQueries {
  readonly #log: Log;
  readonly #keys: Keys;

  constructor({ log, keys }: { readonly log: Log; readonly keys: Keys }) {
    this.#log = log;
    this.#keys = keys;
  }

  /** One request in full (`GET /log/attestation-requests/{request_id}`). @throws CairnlogError `not-found` */
  find(requestId: string): AttestationRequest {
    const row = isRequestId(requestId) ? this.#log.row("requests", requestId) : undefined;
    if (!row) throw new CairnlogError("not-found", "There is no request with this id.");
    const { nonce, intent_statement, claims, policy_entry_id } = membersIn(this.#log.entryOfRow(row.log_entry_id));
    const summary = this.#summary(row);
    const deciding = decidingAnswer(row)?.log_entry_id;
    return {
      ...summary,
      nonce: nonce as string,
      intent_statement: textOrNull(intent_statement),
      claims: isObject(claims) ? claims : {},
      policy_entry_id: typeof policy_entry_id === "number" ? policy_entry_id : null,
      response: summary.responses.find(({ log_entry_id }) => log_entry_id === deciding) ?? null,
    };
  }

  /**
   * Requests to a key, by a key, or by the one to the other, oldest first (`GET /log/attestation-requests`).
   * @throws CairnlogError `invalid-input` unless a key is named, and for a page below 1, beyond 100,000 requests, or not 1 to
   *   200 a page; `not-found` if there is no such key
   */
  list({ target, requester, status, ...paging }: RequestCriteria): RequestPage {
    const { page, per_page } = readPaging(paging);
    const to = target === undefined ? undefined : this.#keys.find(target).fingerprint;
    const by = requester === undefined ? undefined : this.#keys.find(requester).fingerprint;
    const list: RequestList = status ?? "all";
    const { table, counts, keys } = place(to, by);
    const total = this.#log.row("requestCounts", counts)?.[list] ?? 0;
    const offset = skippedBefore({ page, per_page }, total, "Give a status, or both keys.");
    if (offset === null) return { requests: [], page, per_page, total };
    const [start, end] = [0, Number.MAX_SAFE_INTEGER].map((id) => [...keys, list, id]) as [Key, Key];
    const rows = this.#log.rows(table, start, end, { offset, limit: per_page });
    const requests = rows.map(({ row: { request_id } }) => this.#summary(this.#log.row("requests", request_id)!));
    return { requests, page, per_page, total };
  }

  #response({ responder_fingerprint, log_entry_id: entryId }: RequestAnswer, target: string): RecordedResponse {
    const entry = this.#log.entryOfRow(entryId);
    const payload = membersIn(entry);
    return {
      decision: payload.decision as RecordedResponse["decision"],
      responder_fingerprint,
      by_target: responder_fingerprint === target,
      attestation_id: textOrNull(payload.attestation_id),
      reason: textOrNull(payload.reason),
      responded_at: instantOf(entry.timestamp) ?? entry.timestamp,
      log_entry_id: entryId,
      leaf_index: this.#log.leafIndexOfRow(entryId),
    };
  }

  #summary({ responses = [], ...row }: RequestRow): RequestSummary {
    const target = row.target_fingerprint;
    return {
      ...row,
      leaf_index: this.#log.leafIndexOfRow(row.log_entry_id),
      responses: responses.map((answer) => this.#response(answer, target)),
    };
  }
}

/**
 * The place of the list of requests to a key, by a key, or both.
 * @throws CairnlogError `invalid-input` without a key
 */
function place(target: string | undefined, requester: string | undefined): RequestIndex {
  if (target !== undefined && requester !== undefined)
    return { table: "requestsByPair", counts: ["pair", target, requester], keys: [target, requester] };
  if (target !== undefined) return { table: "requestsByTarget", counts: ["target", target], keys: [target] };
  if (requester === undefined) throw invalidInput("/target", "Name a target, a requester or both.");
  return { table: "requestsByRequester", counts: ["requester", requester], keys: [requester] };
}

interface RequestIndex {
  readonly table: "requestsByTarget" | "requestsByRequester" | "requestsByPair";
  readonly counts: RequestCountKey;
  /** The beginning of the keys of the rows. */
  readonly keys: readonly string[];
}

/** Imported history may have a value of any type here. */
const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null);
