/**
 * Layer 2 of verification: the registry's information about a signer at the time of an attestation (docs/spec §8.2),
 * and the graph of attestations and keys.
 */
import type { VerificationResult } from "../../contract/signing/verification.js";
import type { Value } from "../../contract/types.js";
import type { Attestation, Coverage } from "../../verify/events/manifest.js";
import { requestedTime } from "../../verify/tree/entry.js";
import type { CheckedManifest } from "../attestations/manifest.js";
import { MAX_SUCCESSORS } from "../events/keys.js";
import type { KeyRecord, Keys } from "../keys/keys.js";

type OverallStatus = Value<typeof VerificationResult>["overall_status"];

/** `invalid` beats `withheld`, which beats `warning`, which beats `valid`. */
export const worst = (statuses: readonly string[]): OverallStatus =>
  (["invalid", "withheld", "warning"] as const).find((status) => statuses.includes(status)) ?? "valid";

export type LayerResult = Value<typeof VerificationResult>["layer1"];

/** The facts about a signer that verification needs. */
export interface SignerChain {
  readonly record: KeyRecord;
  /** The keys that succeeded it and have signed that, first successor first. */
  readonly successors: readonly KeyRecord[];
  /**
   * How the chain ends: `whole` at a key that was not succeeded; `unconfirmed` at a key whose named successor has not
   * signed the succession, or has named itself without it; `broken` if a row is missing.
   */
  readonly chain: "whole" | "unconfirmed" | "broken";
}

/**
 * The key with this fingerprint and its succession chain, as far as both keys of each link have signed it; undefined if
 * there is no such key.
 */
export function loadSigner(keys: Keys, fingerprint: string): SignerChain | undefined {
  const record = keys.lookup(fingerprint);
  if (!record) return undefined;
  const successors: KeyRecord[] = [];
  let last = record;
  while (last.successor_fingerprint !== null && successors.length < MAX_SUCCESSORS) {
    const next = keys.lookup(last.successor_fingerprint);
    if (!next) return { record, successors, chain: "broken" };
    if (!keys.confirms(next, last.fingerprint)) return { record, successors, chain: "unconfirmed" };
    successors.push(next);
    last = next;
  }
  return { record, successors, chain: "whole" };
}

/**
 * Whether the signer's key was allowed to sign at `time`.
 * @param claimed time in the attestation, which its own signature does not cover
 * @param logged time that the log recorded for it; undefined if it is not in the log
 */
export function judgeStanding(
  signer: SignerChain | undefined,
  claimed: string,
  logged: string | undefined,
): LayerResult {
  if (!signer) return { status: "invalid", details: "The signer's key was never registered." };
  const time = instant(claimed);
  if (logged !== undefined && instant(logged) !== time)
    return { status: "invalid", details: `It says that it was made at ${claimed}, but the log recorded ${logged}.` };
  const { record } = signer;
  const whose = record.named
    ? " The key has signed its name and expiration."
    : " The key has not signed its name and expiration: anybody may have recorded them.";
  const result = (status: LayerResult["status"], details: string) => ({ status, details: details + whose });
  if (record.registered_at > time)
    return result("invalid", `The key was registered at ${record.registered_at}, after the attestation.`);
  const { expires_at, ended_at, status } = record;
  if (status === "revoked" && ended_at! <= time)
    return result("invalid", `The key was revoked at ${ended_at}, before the attestation.`);
  if (expires_at !== null && expires_at <= time)
    return result("invalid", `The key expired at ${expires_at}, before the attestation.`);
  const word = logged === undefined ? " The time is the presenter's word: the log does not hold the attestation." : "";
  switch (status) {
    case "revoked":
      return result("warning", `The key was revoked at ${ended_at}, after the attestation.${word}`);
    case "expired":
      return result("warning", `The key expired at ${expires_at}, after the attestation.${word}`);
    case "succeeded": {
      const succession = judgeSuccession(signer, time);
      return result(succession.status, succession.details + word);
    }
    case "active":
      return result("valid", `The key is active, and was when the attestation was made.${word}`);
  }
}

function judgeSuccession({ record, successors, chain: end }: SignerChain, time: string): LayerResult {
  if (end === "broken")
    return { status: "invalid", details: "The key was succeeded, but its succession chain is broken." };
  // The signature is good and only the holder could make it, so this is not invalid. But it must not look as if the
  // named successor had confirmed the link, so that is named nowhere: any key can name any other as its successor.
  if (end === "unconfirmed")
    return {
      status: "warning",
      details: "The key was succeeded, but the holder of a key that its succession chain names does not confirm that.",
    };
  const chain = successors.map(({ fingerprint }) => fingerprint).join(", then by ");
  const further = successors.length === MAX_SUCCESSORS ? ", and perhaps further keys" : "";
  // Valid in both cases: the holder of the old key also holds the new one. The details describe the case.
  const when = record.ended_at! <= time ? `at ${record.ended_at}, before the attestation` : "since";
  return { status: "valid", details: `The key was succeeded ${when}, by ${chain}${further}.` };
}

/** Times in canonical form compare as text; only entries of version 1 may have others. */
function instant(timestamp: string): string {
  return requestedTime(timestamp) ?? timestamp;
}

// The attestation graph of a verification result: which key signed which attestation of which document, and which key
// succeeded which.

type AttestationNode = AttestationGraph["nodes"][number];

type AttestationEdge = AttestationGraph["edges"][number];

type AttestationGraph = Value<typeof VerificationResult>["attestation_graph"];

/** One judged attestation, as the graph shows it. */
interface GraphInput {
  readonly attestation: Attestation;
  readonly signer: SignerChain | undefined;
  readonly covers: Coverage | null;
  readonly status: string;
}

/** The graph of the judged attestations of one manifest. Keys that are not registered have the status `unknown`. */
export function attestationGraph(
  { contentHash, title }: CheckedManifest,
  judged: readonly GraphInput[],
): AttestationGraph {
  const nodes = new Map<string, AttestationNode>([[contentHash, { id: contentHash, kind: "document", title }]]);
  const edges = new Map<string, AttestationEdge>();
  const connect = (from: string, to: string, kind: AttestationEdge["kind"]) => {
    edges.set(`${from}\n${to}\n${kind}`, { from, to, kind });
  };
  judged.forEach(({ attestation, signer, covers, status }, i) => {
    const { id, type, signer_key_fingerprint: fingerprint } = attestation;
    nodes.set(id, { id, kind: "attestation", type, status });
    nodes.set(fingerprint, keyNode(fingerprint, signer?.record));
    connect(fingerprint, id, "signed");
    connect(id, contentHash, "attests");
    if (covers === "document-and-prior") connect(id, judged[i - 1]!.attestation.id, "covers_up_to");
    let previous = fingerprint;
    for (const successor of signer?.successors ?? []) {
      nodes.set(successor.fingerprint, keyNode(successor.fingerprint, successor));
      connect(previous, successor.fingerprint, "succeeded_by");
      previous = successor.fingerprint;
    }
  });
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

function keyNode(id: string, record: KeyRecord | undefined): AttestationNode {
  const { pseudonym = null, status = "unknown", named = false } = record ?? {};
  return { id, kind: "key", pseudonym, status, named };
}
