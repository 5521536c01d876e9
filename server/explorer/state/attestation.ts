/**
 * The signature of an attestation in the log. The attestation is rebuilt as the `.attestation.json` file that its signer got,
 * and checked as `cairnlog verify` checks that file.
 */
import { ATTESTED_MEMBERS } from "../../../engine/verify/events/attested.js";
import {
  type AttestationBundle,
  type AttestationEvent,
  BUNDLE_FORMAT,
  type BundleCheck,
  type Manifest,
  manifestHash,
  normaliseContentHash,
  type SignedMembers,
  verifyBundle,
} from "../../../engine/verify/index.js";
import type { KeyDetail } from "../../client/index.js";
import { hasService, type Proven, source } from "./source.js";

export interface CheckedAttestation {
  /** The event in the verified entry. */
  readonly event: AttestationEvent;
  readonly key: KeyDetail;
  readonly checks: readonly BundleCheck[];
  /** Whether the signer signed type and statement; null if that is unknown without the whole manifest. */
  readonly signed: SignedMembers | null;
  /** `open`: everything is verified except the signature, which cannot be checked without the whole manifest. */
  readonly standing: "holds" | "open" | "wrong";
  /** Null if no file can have it: the log lacks a part of the manifest, the entry is old, or published files have no proof for it. */
  readonly bundle: AttestationBundle | null;
}

/**
 * Checks an attestation whose entry is proven.
 * @param fileHash of the file that it should be about; by default of the one that it names
 * @throws ClientError if the signer's key cannot be fetched
 */
export async function checkAttestation(
  proven: Proven,
  event: AttestationEvent,
  fileHash: string = event.document_hash,
): Promise<CheckedAttestation> {
  const [key, operatorKey, evidence] = await Promise.all([
    source().key(event.signer_key_fingerprint),
    source().operatorKey(),
    source().evidence(proven),
  ]);
  const attested = normaliseContentHash(event.document_hash) ?? event.document_hash;
  const manifest = rebuiltManifest(event, attested);
  const { ots_proof: _, ...bare } = proven.entry;
  const isOld = bare.chain_version !== 2;
  const bundle: AttestationBundle = {
    format: BUNDLE_FORMAT,
    // Without the real manifest, everything else can still be checked.
    manifest: manifest ?? plainManifest(event, attested),
    attestation: {
      id: event.attestation_id,
      type: event.attestation_type,
      scope: { content_hash: attested },
      signer_key_fingerprint: event.signer_key_fingerprint,
      signature_algorithm: event.signature_algorithm,
      signature: event.signature,
      timestamp: event.timestamp,
      ...(event.intent_statement ? { intent_statement: event.intent_statement } : {}),
    },
    public_key: key.public_key,
    // Only the form of the file wants this version. That an older entry has its hash, this page has checked before.
    entry: { ...bare, chain_version: 2 },
    ...evidence,
  };
  const verdict = await verifyBundle(bundle, { fileHash, operatorKey });
  const checks = verdict.checks.map((check) =>
    source().judged(isOld && check.name === "entry" ? OF_OLD_ENTRY : check, proven),
  );
  // Histories of others have members that no file has. That is not wrong.
  const isForeign = isOld && checks.some(({ name, ok }) => name === "format" && !ok);
  const standing = isForeign ? "open" : checks.every(({ ok }) => ok) ? "holds" : "wrong";
  const { signed } = verdict;
  if (manifest) return { event, key, checks, signed, standing, bundle: hasService() && !isOld ? bundle : null };
  const isOpen = isForeign || checks.every(({ name, ok }) => ok || NEED_MANIFEST.has(name));
  const rest = { signed: null, standing: isOpen ? "open" : "wrong", bundle: null } as const;
  return { event, key, checks: checks.map(withoutManifest), ...rest };
}

/** In place of the check of an entry of version 2. */
const OF_OLD_ENTRY: BundleCheck = {
  name: "entry",
  ok: true,
  detail: "The log entry's hash is that of its content. It covers no time.",
};

const NEED_MANIFEST: ReadonlySet<BundleCheck["name"]> = new Set(["manifest", "signature"]);

/**
 * Rebuilds the manifest. The log contains only its hash. Most manifests contain only data that the log also records, so
 * one of a few forms has exactly that hash.
 */
function rebuiltManifest(event: AttestationEvent, documentHash: string): Manifest | undefined {
  const wanted = normaliseContentHash(event.manifest_hash);
  const { attestation_type, intent_statement = null } = event;
  // Forms of the document with and without type and statement, because signers may have signed any of them.
  const terms = [{ attestation_type, intent_statement }, { attestation_type }, { intent_statement }, {}];
  const tags = event.tags?.length ? [{}, { tags: event.tags }] : [{}, { tags: [] }];
  const spellings = [documentHash, documentHash.replace("sha256:", "")];
  return spellings
    .flatMap((hash) =>
      tags.flatMap((tagged) => terms.map((more) => plainManifest(event, hash, { ...tagged, ...more }))),
    )
    .find((manifest) => `sha256:${manifestHash(manifest)}` === wanted);
}

const plainManifest = (
  { document_title: title }: AttestationEvent,
  content_hash: string,
  more: object = {},
): Manifest => ({
  document: { title, content_hash, ...more },
  attestations: [],
});

function withoutManifest(check: BundleCheck): BundleCheck {
  if (!NEED_MANIFEST.has(check.name)) return check;
  const detail =
    check.name === "manifest"
      ? "The log has only the manifest's hash, and the manifest contains more than the log records."
      : "The signed manifest is not in the log: the signature can only be verified with the signer's .attestation.json.";
  return { ...check, ok: false, detail };
}

const MEMBERS = Object.keys(ATTESTED_MEMBERS) as (keyof typeof ATTESTED_MEMBERS)[];

/** Whether a payload has the members of an attestation; an entry of imported history may lack some. */
export function isAttestation(event: Partial<AttestationEvent>): event is AttestationEvent {
  return MEMBERS.every((member) => typeof event[member] === "string");
}
