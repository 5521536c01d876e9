/**
 * The attestation graph of a verification result: which key signed which attestation of which document, and which key
 * succeeded which.
 */
import type { VerificationResult } from "../../contract/signing/verification.js";
import type { Value } from "../../contract/types.js";
import type { Attestation, Coverage } from "../../verify/events/manifest.js";
import type { CheckedManifest } from "../attestations/manifest.js";
import type { KeyRecord } from "../keys/keys.js";
import type { SignerChain } from "./standing.js";

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
