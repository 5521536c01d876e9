/**
 * The attestations of a document in the log. Each is rebuilt as the `.attestation.json` file that its signer got, and
 * checked as `cairnlog verify` checks that file.
 */
import {
  type AttestationBundle,
  type AttestationEvent,
  BUNDLE_FORMAT,
  type BundleCheck,
  type Entry,
  type Manifest,
  manifestHash,
  normaliseContentHash,
  type SignedMembers,
  verifyBundle,
} from "../../../../engine/verify/index.js";
import { ClientError, type KeyDetail } from "../../../client/index.js";
import { KeyDetail as KeySchema } from "../../../wire/identity/keys.js";
import { EntryPage } from "../../../wire/log/log.js";
import { client, http } from "../../state/service.js";

/** Number of attestations shown and verified at a time: each takes three requests. */
export const PER_PAGE = 5;

/** An entry that claims to attest the document; not checked yet. */
export interface Claim {
  readonly entry: Entry;
  readonly event: AttestationEvent;
}

export interface CheckedRecord {
  /** The event in the verified entry. */
  readonly event: AttestationEvent;
  readonly key: KeyDetail;
  readonly checks: readonly BundleCheck[];
  /** Whether the signer signed type and statement; null if that is unknown without the whole manifest. */
  readonly signed: SignedMembers | null;
  /** `open`: everything is verified except the signature, which cannot be checked without the whole manifest. */
  readonly standing: "holds" | "open" | "wrong";
  /** Null if the log does not contain the whole manifest. */
  readonly bundle: AttestationBundle | null;
}

/**
 * A page of the attestations of a document, oldest first, and the number of entries that name it.
 * @throws ClientError
 */
export async function claimsAbout(documentHash: string, page: number): Promise<{ claims: Claim[]; total: number }> {
  const query = { document_hash: documentHash, page, per_page: PER_PAGE };
  const { entries, total } = await http.get(EntryPage, "/log/audit-trail", query);
  const claims = (entries as Entry[]).flatMap((entry) => {
    const event = entry.payload as Partial<AttestationEvent>;
    return isAttestation(event) ? [{ entry, event }] : [];
  });
  return { claims, total };
}

/**
 * Fetches the entry again, with its proof. The list is not trusted, not even that the entry is about this document.
 * @throws ClientError `log-misbehaved` for an entry that is not in the log; others if something cannot be fetched
 */
export async function checkClaim({ entry: { id } }: Claim, documentHash: string): Promise<CheckedRecord> {
  const { entry, proof, head } = await client.log.entry(id);
  const event = entry.payload as Partial<AttestationEvent>;
  if (!isAttestation(event))
    throw new ClientError("malformed-answer", `Entry ${id} is not the entry that the service lists.`);
  const [key, operatorKey] = await Promise.all([
    http.get(KeySchema, `/keys/${encodeURIComponent(event.signer_key_fingerprint)}`),
    client.log.operatorKey(),
  ]);
  const attested = normaliseContentHash(event.document_hash) ?? event.document_hash;
  const manifest = rebuiltManifest(event, attested);
  const { ots_proof: _, ...bare } = entry;
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
    entry: bare,
    proof,
    tree_head: head,
  };
  const { chain } = await client.log.knownOperators();
  const handed = chain.length > 1 ? { ...bundle, operators: chain } : bundle;
  const { checks, valid, signed } = await verifyBundle(handed, { fileHash: documentHash, operatorKey });
  if (manifest) return { event, key, checks, signed, standing: valid ? "holds" : "wrong", bundle: handed };
  const isOpen = checks.every(({ name, ok }) => ok || NEED_MANIFEST.has(name));
  const standing = isOpen ? "open" : "wrong";
  return { event, key, checks: checks.map(withoutManifest), signed: null, standing, bundle: null };
}

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

const MEMBERS = [
  "attestation_id",
  "attestation_type",
  "signer_key_fingerprint",
  "document_hash",
  "manifest_hash",
  "document_title",
  "signature_algorithm",
  "signature",
  "timestamp",
] as const;

function isAttestation(event: Partial<AttestationEvent>): event is AttestationEvent {
  return MEMBERS.every((member) => typeof event[member] === "string");
}
