/**
 * Reads attestation requests and their answers, and checks every member against the limits of docs/spec §15.3. A requester
 * chooses every value here.
 */
import type * as contract from "../../contract/signing/requests.js";
import type { Body } from "../../contract/types.js";
import type { PlainObject } from "../../log/state/commands.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { isObject } from "../../verify/json/shape.js";
import {
  ATTESTATION_ID,
  ATTESTATION_TYPE,
  DECISIONS,
  type Decision,
  MAX_CLAIMS_BYTES,
  NAMING,
  NONCE,
  REASON,
  STATEMENT,
  type TextLimits,
} from "../../verify/keys/contract.js";
import { requestedTime } from "../../verify/tree/entry.js";
import { boundedText, Faults, members } from "../shared/input.js";

export type RequestInput = Body<typeof contract.CreateRequest>;

export interface CheckedRequest {
  readonly target_fingerprint: string;
  readonly attestation_type: string;
  readonly nonce: string;
  readonly intent_statement: string | null;
  readonly claims: PlainObject;
  /** Canonical form; null if none was given. */
  readonly deadline: string | null;
}

export type ResponseInput = Body<typeof contract.Respond>;

export interface CheckedResponse {
  readonly decision: Decision;
  readonly attestation_id: string | null;
  readonly reason: string | null;
}

/** @throws CairnlogError `invalid-input` with every fault in `details`; `not-i-json` */
export function readRequest(request: RequestInput): CheckedRequest {
  const input = members(request);
  const faults = new Faults();
  const text = (name: string, span: TextLimits) => boundedText(input[name], `/${name}`, span, faults);
  readNamedKey(input.requester_fingerprint, "/requester_fingerprint", faults);
  const target = text("target_fingerprint", NAMING);
  const attestation_type = text("attestation_type", ATTESTATION_TYPE);
  const nonce = text("nonce", NONCE);
  const intent_statement = optionalText(input.intent_statement, "/intent_statement", STATEMENT, faults);
  const claims = readClaims(input.claims, faults);
  const deadline = input.deadline == null ? null : requestedTime(input.deadline);
  if (deadline === undefined) faults.add("/deadline", "It must be an ISO 8601 date and time with an offset.");
  faults.check();
  return {
    target_fingerprint: target!,
    attestation_type: attestation_type!,
    nonce: nonce!,
    intent_statement,
    claims: claims!,
    deadline: deadline!,
  };
}

/** @throws CairnlogError `invalid-input` with every fault in `details` */
export function readResponse(response: ResponseInput): CheckedResponse {
  const input = members(response);
  const faults = new Faults();
  const decision = DECISIONS.find((name) => name === input.decision);
  if (!decision) faults.add("/decision", `It must be ${DECISIONS.join(" or ")}.`);
  readNamedKey(input.responder_fingerprint, "/responder_fingerprint", faults);
  const id = optionalText(input.attestation_id, "/attestation_id", ATTESTATION_ID, faults) || null;
  if (decision === "accept" && (input.attestation_id ?? "") === "")
    faults.add("/attestation_id", "To accept, name the attestation.");
  const reason = optionalText(input.reason, "/reason", REASON, faults);
  faults.check();
  return { decision: decision!, attestation_id: id, reason };
}

/**
 * Checks the length of a fingerprint that repeats the proven key. The caller that verified the proof checks whether it
 * names that key; absent and empty are allowed.
 */
export function readNamedKey(value: unknown, path: string, faults: Faults): void {
  optionalText(value, path, NAMING, faults);
}

function readClaims(value: unknown, faults: Faults): PlainObject | undefined {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) faults.add("/claims", "It must be an object.");
  else if (Buffer.byteLength(canonicalJson(value)) > MAX_CLAIMS_BYTES)
    faults.add("/claims", `It must have at most ${MAX_CLAIMS_BYTES} bytes as canonical JSON.`);
  // A value with a canonical form is plain data.
  else return value as PlainObject;
  return undefined;
}

/** An optional text may be empty, whatever a required one must have. */
function optionalText(value: unknown, path: string, { max }: TextLimits, faults: Faults): string | null {
  return value === undefined || value === null ? null : (boundedText(value, path, { min: 0, max }, faults) ?? null);
}
