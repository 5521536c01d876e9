/**
 * Attestation requests: one key asks another for an attestation, and somebody answers (docs/spec §10.1). Everything that
 * depends on the state of the log (is the nonce new, is the policy satisfied, was it answered before) is decided inside the
 * command, together with the entries and the notifications.
 */

import { randomUUID } from "node:crypto";
import { CairnlogError } from "../../base/error.js";
import type * as contract from "../../contract/signing/requests.js";
import type { Value } from "../../contract/types.js";
import type { OperatorKey } from "../../crypto/signer/operator-key.js";
import type { Log } from "../../log/log.js";
import { instantOf } from "../../log/state/clock.js";
import type { RequestAnswer, RequestCountKey, RequestList, RequestRow } from "../../store/schema/rows.js";
import type { Key } from "../../store/schema/schema.js";
import { eventIn, membersIn } from "../../verify/events/withheld.js";
import { isObject } from "../../verify/json/shape.js";
import { attestationIdTerm, namedAttestation } from "../events/attestations.js";
import { canonicalFingerprint } from "../events/keys.js";
import { decidingAnswer, isRequestId } from "../events/requests.js";
import { readPaging, skippedBefore } from "../keys/directory.js";
import type { Keys } from "../keys/keys.js";
import { invalidInput } from "../shared/input.js";
import type { Caller, Writes } from "../writes/writes.js";
import { createRequest, respondToRequest, unknownTarget } from "./commands.js";
import { type RequestInput, type ResponseInput, readRequest, readResponse } from "./input.js";

// Queries for attestation requests: one request with its answer, or lists of a key's requests in order. Requests are
// public. The rows find them; the entries have their content.

/** The members of a request that lists show. */
type RequestSummary = RequestPage["requests"][number];

type RecordedResponse = RequestSummary["responses"][number];

type AttestationRequest = Value<typeof contract.AttestationRequest>;

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

/** Default maximum of requests to one target in an hour. */
export const DEFAULT_REQUEST_QUOTA = 50;
/** Requests between other keys that a key may answer in an hour. */
const STRANGERS_ANSWERS = 10;
/** Requests by one requester in an hour, to whichever targets. */
const REQUESTS_OF_ONE = 200;
/** Attestations that are looked at for one id. */
const MAX_NAMED_ALIKE = 16;
const TRUST_STEPS = 1e9;

type RequestResponse = Value<typeof contract.RequestResponse>;

/** How much the service trusts a key, 0 to 1. */
interface TrustLevels {
  level(fingerprint: string): Promise<number>;
}

interface Parts {
  readonly log: Log;
  readonly writes: Writes;
  readonly operator: OperatorKey;
  readonly trust: TrustLevels;
  /** Maximum number of requests to one target in an hour; null if there is no limit. */
  readonly quota: number | null;
}

export class Requests {
  readonly #parts: Parts;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Asks for an attestation on behalf of a key whose possession was proven (`POST /log/attestation-requests`). The
   * target's policy in force may decline or hold the request at once. Only a logged request counts against the target's
   * quota, including one that the policy declines.
   * @param requester_fingerprint in the registry's form; it may be the target's, too
   * @throws CairnlogError `invalid-input`, `not-i-json`; `key-not-active`; `not-found` if the target is not a
   *   registered key; `already-exists` if the requester has used the nonce; `rate-limited`; and as `Log.append` does
   */
  async create(
    requester_fingerprint: string,
    request: RequestInput,
    client: Caller | null = null,
  ): Promise<AttestationRequest> {
    const checked = readRequest(request);
    const target_fingerprint = canonicalFingerprint(checked.target_fingerprint);
    if (target_fingerprint === undefined) throw unknownTarget();
    const request_id = randomUUID();
    const run = (requester_trust: number | null) =>
      this.#parts.writes.execute(
        createRequest,
        {
          ...checked,
          target_fingerprint,
          request_id,
          requester_fingerprint,
          requester_trust,
          operator_fingerprint: this.#parts.operator.fingerprint,
          quota: this.#parts.quota,
          requester_quota: this.#parts.quota === null ? null : REQUESTS_OF_ONE,
        },
        client,
        requester_fingerprint,
      );
    // The level costs a walk through the graph, and few policies need it. It is computed before the command, which has
    // to be deterministic and quick.
    let { value, receipts } = await run(null);
    if (!value) ({ value, receipts } = await run(rounded(await this.#parts.trust.level(requester_fingerprint))));
    const { row, policy_entry_id, response } = value!;
    const [asked, answered] = receipts;
    const { responses: _, ...shown } = row;
    const declined = response && {
      ...response,
      by_target: response.responder_fingerprint === target_fingerprint,
      responded_at: answered!.timestamp,
      log_entry_id: answered!.log_entry_id,
      leaf_index: answered!.leaf_index,
    };
    return {
      ...shown,
      leaf_index: asked!.leaf_index,
      nonce: checked.nonce,
      intent_statement: checked.intent_statement,
      claims: checked.claims,
      policy_entry_id,
      response: declined,
      responses: declined ? [declined] : [],
    };
  }

  /**
   * Answers a request on behalf of a key whose possession was proven, which need not be the target's (`POST
   * /log/attestation-requests/{request_id}/respond`).
   * @throws CairnlogError `invalid-input`, also if there is no attestation with that id, or it is not by a key that may be
   *   named; `key-not-active`; `not-found`; `already-exists` if the key has answered before, or there are too
   *   many; `gone` if its deadline has passed; `rate-limited` if a key that is neither the target's nor the requester's has answered ten in an hour; and as `Log.append` does
   */
  async respond(
    responder_fingerprint: string,
    request_id: string,
    response: ResponseInput,
    client: Caller | null = null,
  ): Promise<RequestResponse> {
    const checked = readResponse(response);
    const quota = this.#parts.quota === null ? null : STRANGERS_ANSWERS;
    const attestation_signers = this.#signers(checked.attestation_id);
    const input = { ...checked, request_id, responder_fingerprint, quota, attestation_signers };
    const { value, receipts } = await this.#parts.writes.execute(
      respondToRequest,
      input,
      client,
      responder_fingerprint,
    );
    const { log_entry_id, leaf_index } = receipts[0]!;
    const status = value.status as RequestResponse["status"];
    return { request_id, status, responder_fingerprint, ...checked, log_entry_id, leaf_index };
  }

  /**
   * Who signed the attestations with an id, and for an operator key those that it has followed. Only imported history may have
   * several; the first ones count.
   */
  #signers(attestationId: string | null): string[] {
    if (attestationId === null) return [];
    const list = this.#parts.log.postings(attestationIdTerm(attestationId));
    const events = Array.from({ length: Math.min(list.length, MAX_NAMED_ALIKE) }, (_, rank) =>
      namedAttestation(eventIn(this.#parts.log.entryAt(list.at(rank))!)),
    );
    const { rotations } = this.#parts.log.operators;
    return events.flatMap((event) => {
      if (event?.attestation_id !== attestationId) return [];
      const { signer_key_fingerprint: signer } = event;
      const before = rotations.slice(0, rotations.findIndex(({ fingerprint }) => fingerprint === signer) + 1);
      return [signer, ...before.map(({ old_fingerprint }) => old_fingerprint)];
    });
  }
}

/** Levels are products of fractions: 0.1 may come out slightly smaller, but `ge 0.1` must still hold. */
const rounded = (level: number): number => Math.round(level * TRUST_STEPS) / TRUST_STEPS;
