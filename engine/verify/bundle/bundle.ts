/**
 * Checks an `.attestation.json` file. It contains one attestation with everything that is needed to check it offline
 * against a file and a pinned operator key. An attacker may choose everything in the bundle.
 *
 * Nothing in a bundle stays unverified: unknown members are refused, and every known member is tied to a signature or
 * to the tree. The log's format sets these limits. No hash covers the entry's `id`, so it only has to be possible. No
 * hash covers `event_type`. It has to fit the attestation type, and with `predicateBase` it has to be exactly the
 * predicate. Digests other than the primary one are checked if they are present, but nothing says how many there were.
 * No hash of the log covers an anchoring proof. If there is one, it has to be a proof for this entry. Its statement
 * about Bitcoin is reported, but not checked.
 */

import { decodeBase64, toHex } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import { isPredicateOf } from "../events/eventcheck.js";
import {
  attestationPayloads,
  type Manifest,
  manifestHash,
  normaliseContentHash,
  type SignedMembers,
  signedMembers,
  signedTerms,
  signedWords,
} from "../events/manifest.js";
import { canonicalJson } from "../json/canonical.js";
import { fits } from "../json/shape.js";
import { type PublicKey, parsePublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";
import { checkOtsProof } from "../ots/anchor.js";
import { canonicalTimestamp, checkEntry, type Entry } from "../tree/entry.js";
import { leafHash, verifyInclusion } from "../tree/merkle.js";
import { OperatorKeys } from "../tree/operators.js";
import { verifyTreeHead } from "../tree/treehead.js";
import { type AttestationBundle, type AttestationEvent, BUNDLE, BUNDLE_FORMAT } from "./format.js";

/** The values that the verifier provides. */
export interface BundleTrust {
  /** SHA-256 of the file in hex, bare or with `sha256:`. */
  readonly fileHash: string;
  /**
   * The operator key, got from elsewhere than the bundle. If the log was handed over since, the bundle's chain has to lead
   * from this key to the one that signed the head.
   */
  readonly operatorKey: PublicKey;
  /**
   * URL prefix of the four canonical predicates. If given, the entry's event type must be exactly the predicate under
   * it.
   */
  readonly predicateBase?: string;
  /** Who may have signed. If absent, anybody may: then compare the signer yourself. */
  readonly signers?: readonly AllowedSigner[] | undefined;
}

/** Somebody who may have signed. The moments are canonical timestamps, compared with the entry's. */
export interface AllowedSigner {
  readonly fingerprint: string;
  readonly name?: string;
  readonly validAfter?: string | null;
  readonly validBefore?: string | null;
}

/** The result of one check. `detail` says in sentences what was verified, or lists everything that is wrong. */
export interface BundleCheck {
  readonly name:
    | "format"
    | "file"
    | "manifest"
    | "signature"
    | "attestation"
    | "entry"
    | "inclusion"
    | "tree-head"
    | "anchor"
    | "envelope"
    | "signer"
    | "witnesses"
    | "key"
    | "trust";
  readonly ok: boolean;
  readonly detail: string;
}

/** `valid` only if every check is `ok`. A bundle of the wrong form has only the check `format`. */
export interface BundleVerdict {
  readonly valid: boolean;
  readonly checks: readonly BundleCheck[];
  /**
   * Whether the signer has signed type and statement; otherwise only the log says them. Null if the signature is not
   * valid or the bundle has another form.
   */
  readonly signed: SignedMembers | null;
}

/** Maximum number of tags, and of characters in a tag, that the log takes over from a manifest. */
const MAX_TAGS = 32;
const MAX_TAG_CHARACTERS = 64;

/**
 * Checks a bundle, as `parseIJson` read it, against the file's hash and the pinned operator key. It proves that the key
 * in the bundle signed the manifest of this file, and that the operator's log contains the attestation. It does not
 * prove who holds the key, that the key was never revoked, or that earlier attestations in the manifest have valid
 * signatures. Never throws.
 */
export async function verifyBundle(bundle: unknown, trust: BundleTrust): Promise<BundleVerdict> {
  try {
    const misfit = BUNDLE(bundle, "");
    if (misfit !== undefined) return verdict([{ name: "format", ok: false, detail: misfit }]);
    const checked = bundle as AttestationBundle;
    const signature = await checkSignature(checked);
    const checks = [
      judge("format", `The file is a complete ${BUNDLE_FORMAT} bundle.`, []),
      checkFile(checked, trust.fileHash),
      checkManifest(checked),
      signature,
      checkAttestation(checked),
      checkLogEntry(checked, trust.predicateBase),
      checkInclusion(checked),
      await checkTreeHead(checked, trust.operatorKey),
      ...checkAnchor(checked),
      ...checkSigner(checked, trust.signers),
    ];
    return verdict(checks, signature.ok ? signedMembers(checked.manifest) : null);
  } catch (error) {
    return verdict([
      { name: "format", ok: false, detail: `The bundle cannot be evaluated: ${(error as Error).message}` },
    ]);
  }
}

function checkFile({ manifest }: AttestationBundle, fileHash: string): BundleCheck {
  const actual = normaliseContentHash(fileHash);
  const stated = normaliseContentHash(manifest.document.content_hash);
  return judge("file", "The file's SHA-256 is the manifest's content hash.", [
    [actual !== undefined, "The hash of the file at hand is not a SHA-256 in hexadecimal."],
    [stated !== undefined, "The manifest's content hash is not a SHA-256 in hexadecimal."],
    [
      actual === stated,
      "The file is not the one that was attested: its SHA-256 differs from the manifest's content hash.",
    ],
  ]);
}

function checkManifest({ manifest, entry }: AttestationBundle): BundleCheck {
  const event = logged(entry);
  return judge("manifest", "The manifest is the one whose hash, title and tags the log recorded.", [
    [
      normaliseContentHash(event.manifest_hash) === `sha256:${manifestHash(manifest)}`,
      "The manifest's hash is not the one in the log entry.",
    ],
    [
      event.document_hash === normaliseContentHash(manifest.document.content_hash),
      "The document hash in the log entry is not the manifest's content hash.",
    ],
    [event.document_title === manifest.document.title, "The title in the log entry is not the manifest's."],
    [same(event.tags ?? [], recordedTags(manifest)), "The tags in the log entry are not the manifest's."],
  ]);
}

async function checkSignature({ manifest, attestation, public_key, entry }: AttestationBundle): Promise<BundleCheck> {
  let key: PublicKey;
  try {
    key = parsePublicKey(public_key);
  } catch (error) {
    return judge("signature", "", [[false, (error as Error).message]]);
  }
  const signature = decodeBase64(attestation.signature);
  const prior = manifest.attestations.length;
  let covers: string | undefined;
  let payloadHash: string | undefined;
  for (const payload of signature === undefined ? [] : attestationPayloads(manifest, prior)) {
    if (await verifySignature(key, payload.bytes, signature!)) {
      covers = payload.covers;
      payloadHash = toHex(kernel.sha256(payload.bytes));
      break;
    }
  }
  const { signed_payload_hash: recorded } = logged(entry);
  const extent =
    covers === "document-and-prior"
      ? `the manifest with the ${prior} attestation(s) before it, whose own signatures are not checked here`
      : `the manifest${prior === 0 ? "" : ` without the ${prior} attestation(s) in it, whose own signatures are not checked here`}`;
  const told = `The signature of ${key.fingerprint} (${key.algorithm}) covers ${extent}. ${signedWords(signedMembers(manifest))}`;
  return judge("signature", told, [
    [public_key === key.pem, "The public key is not in its normal PEM spelling."],
    [attestation.signer_key_fingerprint === key.fingerprint, "The signer's fingerprint is not that of the public key."],
    [attestation.signature_algorithm === key.algorithm, "The signature algorithm is not that of the public key."],
    [signature !== undefined, "The signature is not strict base64."],
    [covers !== undefined, "The signature does not verify over the manifest with this public key."],
    [
      covers === undefined || recorded === undefined || recorded === payloadHash,
      "The hash in the log entry is not that of what was signed.",
    ],
  ]);
}

function checkAttestation({ manifest, attestation, entry }: AttestationBundle): BundleCheck {
  const event = logged(entry);
  const terms = signedTerms(manifest);
  const differs = (what: string) => `The attestation's ${what} is not the one in the log entry.`;
  const signedOther = (what: string) => `The attestation's ${what} is not the one that the signer signed.`;
  return judge("attestation", "The attestation is, field by field, the one that the log recorded.", [
    [attestation.id === event.attestation_id, differs("id")],
    [attestation.type === event.attestation_type, differs("type")],
    [
      attestation.scope.content_hash === normaliseContentHash(manifest.document.content_hash),
      "The attestation's scope is not the manifest's content hash.",
    ],
    [attestation.signer_key_fingerprint === event.signer_key_fingerprint, differs("signer")],
    [attestation.signature_algorithm === event.signature_algorithm, differs("signature algorithm")],
    [attestation.signature === event.signature, differs("signature")],
    [attestation.timestamp === event.timestamp, differs("timestamp")],
    [(attestation.intent_statement ?? null) === (event.intent_statement ?? null), differs("intent statement")],
    [terms.attestation_type === undefined || terms.attestation_type === attestation.type, signedOther("type")],
    [
      terms.intent_statement === undefined || terms.intent_statement === (attestation.intent_statement ?? null),
      signedOther("statement"),
    ],
  ]);
}

function checkLogEntry({ entry, proof }: AttestationBundle, predicateBase: string | undefined): BundleCheck {
  return judge("entry", "The log entry's hashes are those of its content, and its event type fits the attestation.", [
    ...checkEntry(entry).map((problem): Condition => [false, problem.message]),
    [
      canonicalTimestamp(entry.timestamp) === entry.timestamp,
      "The entry's timestamp is not in its canonical spelling.",
    ],
    [
      isPredicateOf(entry.event_type, logged(entry).attestation_type, predicateBase),
      "The entry's event type is not the predicate of the attestation's type.",
    ],
    // Ids ascend from 1, and imported histories may skip some. Nothing more is known about an id.
    [entry.id > proof.leaf_index, "The entry's id is lower than its place in the tree allows."],
    [
      (entry.previous_hash === null) === (proof.leaf_index === 0),
      "Only the first entry of a log, and always that one, has no previous hash.",
    ],
  ]);
}

function checkInclusion({ entry, proof }: AttestationBundle): BundleCheck {
  const { leaf_index, tree_size, tree_version } = proof;
  const included = verifyInclusion({
    leaf: entry.entry_hash,
    leafIndex: leaf_index,
    treeSize: tree_size,
    auditPath: proof.audit_path,
    rootHash: proof.root_hash,
    treeVersion: tree_version,
  });
  return judge("inclusion", `The entry is leaf ${leaf_index} of the tree of ${tree_size} leaves.`, [
    [proof.entry_hash === entry.entry_hash, "The proof is for an entry with another hash."],
    [proof.leaf_hash === leafHash(entry.entry_hash, tree_version), "The proof's leaf hash is not that of the entry."],
    [leaf_index < tree_size, "The leaf index lies outside the tree."],
    [included, "The audit path does not lead from the entry to the root hash."],
  ]);
}

async function checkTreeHead(
  { entry, proof, tree_head, operators }: AttestationBundle,
  pinned: PublicKey,
): Promise<BundleCheck> {
  const headTime = canonicalTimestamp(tree_head.timestamp) ?? "";
  let keys = OperatorKeys.of(pinned);
  let fault = "";
  try {
    if (operators) keys = await OperatorKeys.verify(operators, pinned);
  } catch (error) {
    fault = (error as Error).message;
  }
  const operatorKey = keys.keyAt(tree_head.tree_size);
  const isHandedOver = operatorKey.fingerprint !== pinned.fingerprint;
  const how = isHandedOver ? `, to which the log was handed over by the pinned key ${pinned.fingerprint}` : "";
  return judge("tree-head", `The tree head is signed by the operator key ${operatorKey.fingerprint}${how}.`, [
    [fault === "", `The chain of operator keys does not hold: ${fault}`],
    // Offline, nothing shows that such a head is the beginning of the log that the pinned key took over.
    [
      keys.indexAt(tree_head.tree_size) >= keys.indexOf(pinned.fingerprint),
      "The tree head is of an operator key that was retired before the pinned one began.",
    ],
    [same(proof.sth, tree_head), "The tree head in the proof is not the bundle's tree head."],
    [proof.tree_size === tree_head.tree_size, "The proof is for another tree size than the tree head."],
    [proof.root_hash === tree_head.root_hash, "The proof leads to another root hash than the tree head's."],
    [proof.tree_version === tree_head.tree_version, "The proof and the tree head name different tree versions."],
    [tree_head.key_id === operatorKey.fingerprint, "The tree head names another key than the pinned operator key."],
    [await verifyTreeHead(tree_head, keys), "The tree head's signature does not verify with the pinned operator key."],
    // Canonical timestamps sort as text.
    [headTime >= (canonicalTimestamp(entry.timestamp) ?? ""), "The tree head is older than the entry it covers."],
  ]);
}

/** Checks the anchoring proof, if the entry has one. */
function checkAnchor({ entry }: AttestationBundle): BundleCheck[] {
  const { ots_proof, entry_hash } = entry;
  return ots_proof === undefined ? [] : [{ name: "anchor", ...checkOtsProof(ots_proof, entry_hash) }];
}

/** Compares the signer, whose fingerprint the check of the signature compares with the key. */
function checkSigner({ entry }: AttestationBundle, allowed: BundleTrust["signers"]): BundleCheck[] {
  const found = allowed?.filter(({ fingerprint }) => fingerprint === logged(entry).signer_key_fingerprint);
  const at = entry.timestamp;
  const valid = found?.find((one) => (one.validAfter ?? "") <= at && at < (one.validBefore ?? "~"));
  return !found
    ? []
    : [
        judge("signer", `The signer is ${valid?.name ?? "one that you named"}.`, [
          [found.length > 0, "The signer is none of those that you named."],
          [!found.length || !!valid, "The signer was not allowed to sign at the entry's time."],
        ]),
      ];
}

/** A condition, and the sentence that reports its failure. */
type Condition = readonly [holds: boolean, otherwise: string];

function judge(name: BundleCheck["name"], success: string, conditions: readonly Condition[]): BundleCheck {
  const failures = conditions.filter(([holds]) => !holds).map(([, otherwise]) => otherwise);
  return { name, ok: failures.length === 0, detail: failures.length === 0 ? success : failures.join(" ") };
}

function verdict(checks: readonly BundleCheck[], signed: SignedMembers | null = null): BundleVerdict {
  return { valid: checks.every((check) => check.ok), checks, signed };
}

/** The shape check has checked every member. */
function logged(entry: Entry): AttestationEvent {
  return entry.payload as unknown as AttestationEvent;
}

function same(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}

/** The tags that the log takes over from a manifest: all of them or none. */
function recordedTags({ document }: Manifest): readonly string[] {
  const tags = document.tags;
  const taken =
    Array.isArray(tags) &&
    tags.length <= MAX_TAGS &&
    tags.every((tag) => typeof tag === "string" && fits(tag, MAX_TAG_CHARACTERS));
  return taken ? tags : [];
}
