/**
 * Verification of a manifest against the hash of a source (`POST /verify`). Layer 1: the signatures, and what the log
 * recorded about them. Layer 2: the standing of the keys (`standing.ts`). Layer 3: a verifier's trust (`layer3.ts`).
 */

import { CairnlogError } from "../../base/error.js";
import { Pieces, turn } from "../../base/turns.js";
import type * as contract from "../../contract/signing/verification.js";
import type { Value } from "../../contract/types.js";
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { Log } from "../../log/log.js";
import { toHex } from "../../verify/bytes/encoding.js";
import { kernel } from "../../verify/bytes/kernel.js";
import { attestedPayload } from "../../verify/events/attested.js";
import {
  type Attestation,
  type Coverage,
  normaliseContentHash,
  type SignedMembers,
  signedMembers,
  signedTerms,
  signedWords,
} from "../../verify/events/manifest.js";
import { eventIn } from "../../verify/events/withheld.js";
import { type CheckedManifest, ManifestPayloads, readManifest } from "../attestations/manifest.js";
import { attestationIdTerm, namedAttestation } from "../events/attestations.js";
import type { Keys } from "../keys/keys.js";
import { decodeSignature, invalidInput, members } from "../shared/input.js";
import { readTrustPolicy, type TrustPolicy } from "../trust/config.js";
import type { TrustConfigs } from "../trust/configs.js";
import type { Visits } from "../trust/score.js";
import type { TrustService } from "../trust/service.js";
import { assessTrust, visitsOfRequest } from "./layer3.js";
import { attestationGraph, judgeStanding, type LayerResult, loadSigner, type SignerChain, worst } from "./standing.js";

/** The body of `POST /verify`; its manifest may be anything. */
export type VerificationRequest = Omit<Value<typeof contract.VerifyManifest>, "manifest"> & {
  readonly manifest: unknown;
};

type AttestationVerdict = VerificationResult["attestations"][number];

export type VerificationResult = Value<typeof contract.VerificationResult>;

/**
 * Limit for the bytes under all signatures of a manifest together. Each signature covers the earlier ones, so the sum
 * grows with the square of their number.
 */
const MAX_SIGNED_BYTES = 64 * 1024 * 1024;
/** Attestations whose signatures are checked at the same time, so that not all payloads are in memory at once. */
const GROUP = 32;

/** The log's information about an attestation's id. */
interface Recorded {
  readonly logged: AttestationVerdict["logged"];
  /** Time of the entry that is this attestation. */
  readonly time?: string;
  /** The reason why an entry with this id is not this attestation. */
  readonly relabelled?: string;
}

interface Judged extends AttestationVerdict {
  readonly attestation: Attestation;
  readonly signer: SignerChain | undefined;
}

interface Parts {
  readonly log: Log;
  readonly keys: Keys;
  readonly verifier: SignatureVerifier;
  readonly trust: TrustService;
  readonly trustConfigs: TrustConfigs;
}

export class Verification {
  readonly #parts: Parts;

  /** Use `openRegistry`. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Verifies layers 1 and 2, and layer 3 by the trust that the request names (docs/spec §8). An invalid
   * manifest is a result, not an error.
   * @param budget what layer 3 may follow, if other documents are verified for the same request
   * @throws CairnlogError `invalid-input` for a manifest, hash or trust configuration of the wrong form, with
   *   `details`; `not-i-json`; `not-found` for a verifier that is not a key; `payload-too-large` if its signatures
   *   cover more than 64 MiB together; `overloaded`, `closed`
   */
  async verify(request: VerificationRequest, budget: Visits = visitsOfRequest()): Promise<VerificationResult> {
    const { manifest, source_hash } = members(request);
    await turn();
    const sourceHash = normaliseContentHash(source_hash);
    if (sourceHash === undefined)
      throw invalidInput("/source_hash", "It must be a SHA-256 in hexadecimal, bare or with sha256: before it.");
    const checked = readManifest(manifest, "/manifest");
    const policy = this.#policy(request);
    const judged = await this.#judge(checked);
    const layer1 = summariseSignatures(judged, sourceHash === checked.contentHash);
    const layer2 = summariseStanding(judged);
    const graphed = judged.map((one) => ({ ...one, status: worst([one.layer1.status, one.layer2.status]) }));
    const attestations = judged.map(({ attestation: _attestation, signer: _signer, ...verdict }) => verdict);
    const attestation_graph = attestationGraph(checked, graphed);
    if (policy === undefined) {
      const overall_status = worst([layer1.status, layer2.status]);
      return { layer1, layer2, overall_status, attestations, attestation_graph };
    }
    const signers = judged.map(({ signer, signer_key_fingerprint: named }) => signer?.record.fingerprint ?? named);
    const { summary: layer3, of } = await assessTrust(this.#parts.trust, policy, signers, budget);
    return {
      layer1,
      layer2,
      layer3,
      overall_status: worst([layer1.status, layer2.status, layer3.status]),
      attestations: attestations.map((verdict, i) => ({ ...verdict, layer3: of(signers[i]!) })),
      attestation_graph,
    };
  }

  /** The policy for layer 3: undefined if it is not requested, null if the verifier has no active configuration. */
  #policy({
    verifier_fingerprint: verifier,
    trust_config: inline,
  }: VerificationRequest): TrustPolicy | null | undefined {
    const isInline = inline !== undefined && inline !== null;
    if (verifier === undefined || verifier === null)
      return isInline ? readTrustPolicy(members(inline), "/trust_config") : undefined;
    if (isInline)
      throw invalidInput("/trust_config", "Name a verifier or give a trust configuration; both would be two answers.");
    return this.#parts.trustConfigs.active(verifier) ?? null;
  }

  async #judge(checked: CheckedManifest): Promise<Judged[]> {
    const { manifest, contentHash } = checked;
    const { attestations } = manifest;
    const terms = signedTerms(manifest);
    const signed = signedMembers(manifest);
    const payloads = new ManifestPayloads(manifest);
    if (payloads.size * attestations.length > MAX_SIGNED_BYTES)
      throw new CairnlogError("payload-too-large", "The manifest is too large for so many attestations.");
    const pieces = new Pieces();
    const signers = new Map<string, SignerChain | undefined>();
    for (const { signer_key_fingerprint: fingerprint } of attestations) {
      await pieces.rest();
      if (!signers.has(fingerprint)) signers.set(fingerprint, loadSigner(this.#parts.keys, fingerprint));
    }

    const judged: Judged[] = [];
    for (let from = 0; from < attestations.length; from += GROUP) {
      const judge = async (attestation: Attestation, i: number): Promise<Judged> => {
        const { id, signer_key_fingerprint, timestamp } = attestation;
        const signer = signers.get(signer_key_fingerprint);
        const { covers, ...layer1 } = await this.#signature(attestation, signer, payloads.of(from + i), signed);
        const shown = this.#recorded(attestation, contentHash);
        const isUnknown = covers && !shown.logged && shown.relabelled === undefined;
        const recorded = (isUnknown && this.#withheld(attestation, checked, payloads.of(from + i))) || shown;
        return {
          id,
          signer_key_fingerprint,
          layer1: judgeRecord(layer1, attestation, { contentHash, recorded, terms }),
          layer2: judgeStanding(signer, timestamp, recorded.time),
          covers,
          signed,
          logged: recorded.logged,
          attestation,
          signer,
        };
      };
      const group: Promise<Judged>[] = [];
      for (const [i, attestation] of attestations.slice(from, from + GROUP).entries()) {
        // The payloads of one group may have 32 MiB, so other work gets a turn in between.
        await pieces.rest();
        const one = judge(attestation, i);
        // If it fails before all others have begun, nothing awaits it yet. This avoids an unhandled rejection.
        one.catch(() => {});
        group.push(one);
      }
      judged.push(...(await Promise.all(group)));
    }
    return judged;
  }

  /** The entry that recorded this attestation, and whose payload is not shown: it has the payload that follows from it. */
  #withheld(
    { id, type, signer_key_fingerprint, signature_algorithm, signature, timestamp, intent_statement }: Attestation,
    { manifest, contentHash }: CheckedManifest,
    payloads: ReturnType<ManifestPayloads["of"]>,
  ): Recorded | undefined {
    const attestation = {
      ...{ id, type, scope: { content_hash: contentHash }, intent_statement: intent_statement ?? null },
      ...{ signer_key_fingerprint, signature_algorithm, signature, timestamp },
    };
    function* possible() {
      const [whole, alone] = [...payloads].map(({ bytes }) => toHex(kernel.sha256(bytes)));
      yield attestedPayload(manifest, attestation, whole!);
      if (alone === undefined) return;
      yield attestedPayload(manifest, attestation, whole!, alone);
      yield attestedPayload(manifest, attestation, alone);
    }
    const leaf_index = this.#parts.log.withheldLike(possible());
    if (leaf_index === undefined) return undefined;
    const { id: entry_id, withheld_by } = this.#parts.log.entryAt(leaf_index)!;
    return { logged: { entry_id, leaf_index, withheld_by: withheld_by! }, time: timestamp };
  }

  /** Whether the signature is by the stated key, and what it covers. */
  async #signature(
    attestation: Attestation,
    signer: SignerChain | undefined,
    payloads: ReturnType<ManifestPayloads["of"]>,
    signed: SignedMembers,
  ): Promise<LayerResult & { covers: Coverage | null }> {
    const invalid = (details: string) => ({ status: "invalid" as const, details, covers: null });
    if (!signer) return invalid("The signer's key is not registered, so the signature cannot be checked.");
    const key = verifiableKey(signer.record.public_key);
    if (!key) return invalid("Anybody can make the signer's private key, so the signature proves nothing.");
    if (attestation.signature_algorithm !== key.algorithm)
      return invalid(`It names the algorithm ${attestation.signature_algorithm}, but the key is ${key.algorithm}.`);
    const signature = decodeSignature(attestation.signature);
    if (!signature) return invalid("The signature is not strict base64.");
    for (const { covers, bytes } of payloads)
      if (await this.#parts.verifier.verify(key, bytes, signature)) {
        const extent = covers === "document" ? "the document" : "the document and the attestations before it";
        const details = `The signature verifies; it covers ${extent}. ${signedWords(signed)}`;
        return { status: "valid", details, covers };
      }
    return invalid("The signature does not verify over the manifest with the signer's key.");
  }

  /**
   * The entry that recorded this attestation. In a manifest, only the signature of an attestation is certainly the
   * signer's. The sender of the manifest could have changed id, type, time and statement, so these are compared with
   * the log.
   */
  #recorded(attestation: Attestation, contentHash: string): Recorded {
    const list = this.#parts.log.postings(attestationIdTerm(attestation.id));
    let relabelled: string | undefined;
    for (let rank = 0; rank < list.length; rank++) {
      const leafIndex = list.at(rank);
      const entry = this.#parts.log.entryAt(leafIndex)!;
      const event = namedAttestation(eventIn(entry));
      if (event?.attestation_id !== attestation.id) continue;
      const differences = [
        ["type", event.attestation_type !== attestation.type],
        ["signer", event.signer_key_fingerprint !== attestation.signer_key_fingerprint],
        ["signature", event.signature !== attestation.signature],
        ["document", normaliseContentHash(event.document_hash) !== contentHash],
        ["intent statement", (event.intent_statement ?? null) !== (attestation.intent_statement ?? null)],
      ].filter(([, differs]) => differs);
      if (!differences.length) {
        const { timestamp } = event;
        const time = typeof timestamp === "string" ? timestamp : entry.timestamp;
        return { logged: { entry_id: entry.id, leaf_index: leafIndex }, time };
      }
      const names = differences.map(([name]) => name).join(", ");
      relabelled ??= `It was relabelled: entry ${entry.id} holds an attestation with this id and another ${names}.`;
    }
    return relabelled === undefined ? { logged: null } : { logged: null, relabelled };
  }
}

function judgeRecord(
  signature: LayerResult,
  { scope, type, intent_statement = null }: Attestation,
  {
    contentHash,
    recorded: { logged, relabelled },
    terms,
  }: {
    readonly contentHash: string;
    readonly recorded: Recorded;
    readonly terms: ReturnType<typeof signedTerms>;
  },
): LayerResult {
  const faults = signature.status === "valid" ? [] : [signature.details];
  if (normaliseContentHash(scope.content_hash) !== contentHash) faults.push("Its scope is another document.");
  if (terms.attestation_type !== undefined && terms.attestation_type !== type)
    faults.push("Its type is not the one that was signed.");
  if (terms.intent_statement !== undefined && terms.intent_statement !== intent_statement)
    faults.push("Its statement is not the one that was signed.");
  if (relabelled !== undefined) faults.push(relabelled);
  if (faults.length) return { status: "invalid", details: faults.join(" ") };
  const by = logged?.withheld_by;
  if (by === undefined) return signature;
  const details = `${signature.details} The operator withholds what the log recorded of it, as entry ${by} says.`;
  return { status: "withheld", details };
}

function summariseSignatures(judged: readonly Judged[], isSource: boolean): LayerResult {
  const invalid = judged.filter(({ layer1 }) => layer1.status === "invalid").length;
  const faults: string[] = [];
  if (!isSource) faults.push("The source is not the attested document: its hash is not the manifest's content hash.");
  if (!judged.length) faults.push("The manifest carries no attestation.");
  if (invalid) faults.push(`${invalid} of ${judged.length} attestation(s) do not hold.`);
  if (faults.length) return { status: "invalid", details: faults.join(" ") };
  const withheld = judged.filter(({ layer1 }) => layer1.status === "withheld").length;
  if (withheld)
    return {
      status: "withheld",
      details: `All ${judged.length} attestation(s) hold. What the log recorded of ${withheld} of them, the operator withholds.`,
    };
  return {
    status: "valid",
    details: `The source is the attested document, and all ${judged.length} attestation(s) hold.`,
  };
}

function summariseStanding(judged: readonly Judged[]): LayerResult {
  if (!judged.length) return { status: "not_evaluated", details: "There is no signer to judge." };
  const count = (status: string) => judged.filter(({ layer2 }) => layer2.status === status).length;
  const [invalid, warning] = [count("invalid"), count("warning")];
  const faults: string[] = [];
  if (invalid) faults.push(`${invalid} of ${judged.length} attestation(s) have a signer who was not fit to sign them.`);
  if (warning)
    faults.push(
      `${warning} of ${judged.length} attestation(s) have a signer whose key has ended since, or ended by another's word.`,
    );
  if (faults.length) return { status: invalid ? "invalid" : "warning", details: faults.join(" ") };
  return { status: "valid", details: `Every signer's key was registered and active when it signed.` };
}

/** Undefined for a key that an earlier version accepted, and that proves nothing (`parseRecordedKey`). */
function verifiableKey(pem: string): ServerKey | undefined {
  try {
    return importPublicKey(pem);
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "invalid-key") return undefined;
    throw error;
  }
}
