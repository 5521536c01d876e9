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
import { attestedPayload, recordedTags } from "../events/attested.js";
import { isPredicateOf } from "../events/eventcheck.js";
import { hiddenTitle } from "../events/hashed.js";
import {
  attestationPayloads,
  manifestHash,
  normaliseContentHash,
  signedMembers,
  signedTerms,
  signedWords,
} from "../events/manifest.js";
import { canonicalJson } from "../json/canonical.js";
import { type PublicKey, parsePublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";
import { checkOtsProof } from "../ots/ots.js";
import { canonicalTimestamp, checkEntry, type Entry } from "../tree/entry.js";
import { OperatorKeys } from "../tree/operators.js";
import { verifyTreeHead } from "../tree/treehead.js";
import {
  type AttestationBundle,
  type AttestationEvent,
  BUNDLE,
  BUNDLE_FORMAT,
  type BundleCheck,
  type BundleVerdict,
  bundleCheck,
  type Condition,
  verdictOf,
} from "./format.js";
import { checkInclusion, checkWithheld, withPayload } from "./inclusion.js";

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

/** Whether somebody may sign at a moment. The first and the last one belong to the period, as they do for ssh. */
export const maySignAt = ({ validAfter, validBefore }: AllowedSigner, at: string): boolean =>
  (validAfter ?? "") <= at && at <= (validBefore ?? "~");

/**
 * Checks a bundle, as `parseIJson` read it, against the file's hash and the pinned operator key. It proves that the key
 * in the bundle signed the manifest of this file, and that the operator's log contains the attestation. It does not
 * prove who holds the key, that the key was never revoked, or that earlier attestations in the manifest have valid
 * signatures. Never throws.
 */
export async function verifyBundle(bundle: unknown, trust: BundleTrust): Promise<BundleVerdict> {
  try {
    const misfit = BUNDLE(bundle, "");
    if (misfit !== undefined) return verdictOf([{ name: "format", ok: false, detail: misfit }]);
    const given = bundle as AttestationBundle;
    const checked = withPayload(given);
    const signature = await checkSignature(checked);
    const checks = [
      bundleCheck("format", `The file is a complete ${BUNDLE_FORMAT} bundle.`, []),
      checkFile(checked, trust.fileHash),
      checkManifest(checked),
      signature,
      checkAttestation(checked),
      checkLogEntry(checked, trust.predicateBase),
      checkInclusion(checked),
      await checkTreeHead(checked, trust.operatorKey),
      ...checkAnchor(checked),
      ...checkSigner(checked, trust.signers),
      ...checkWithheld(given),
    ];
    return verdictOf(checks, signature.ok ? signedMembers(checked.manifest) : null, given.entry.withheld_by);
  } catch (error) {
    return verdictOf([
      { name: "format", ok: false, detail: `The bundle cannot be evaluated: ${(error as Error).message}` },
    ]);
  }
}

function checkFile({ manifest }: AttestationBundle, fileHash: string): BundleCheck {
  const actual = normaliseContentHash(fileHash);
  const stated = normaliseContentHash(manifest.document.content_hash);
  return bundleCheck("file", "The file's SHA-256 is the manifest's content hash.", [
    [actual !== undefined, "The hash of the file at hand is not a SHA-256 in hexadecimal."],
    [stated !== undefined, "The manifest's content hash is not a SHA-256 in hexadecimal."],
    [actual === stated, "The file is not the one that was attested."],
  ]);
}

function checkManifest(bundle: AttestationBundle): BundleCheck {
  const { manifest, entry, private_title } = bundle;
  const event = logged(entry);
  return bundleCheck("manifest", "The manifest is the one whose hash, title and tags the log recorded.", [
    [
      normaliseContentHash(event.manifest_hash) === `sha256:${manifestHash(manifest)}`,
      "The manifest's hash is not the one in the log entry.",
    ],
    [
      event.document_hash === normaliseContentHash(manifest.document.content_hash),
      "The document hash in the log entry is not the manifest's content hash.",
    ],
    ...recorded(bundle, "document_title"),
    [!private_title || hiddenTitle(private_title) === manifest.document.title, "The private title is another one."],
    [same(event.tags ?? [], recordedTags(manifest)), "The tags in the log entry are not the manifest's."],
  ]);
}

async function checkSignature({ manifest, attestation, public_key, entry }: AttestationBundle): Promise<BundleCheck> {
  let key: PublicKey;
  try {
    key = parsePublicKey(public_key);
  } catch (error) {
    return bundleCheck("signature", "", [[false, (error as Error).message]]);
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
  const how = covers === "document-and-prior" ? "with" : "without";
  const others = ` ${how} the ${prior} attestation(s) in it, whose own signatures are not checked here`;
  const told = `The signature of ${key.fingerprint} (${key.algorithm}) covers the manifest${prior ? others : ""}. ${signedWords(signedMembers(manifest))}`;
  return bundleCheck("signature", told, [
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

function checkAttestation(bundle: AttestationBundle): BundleCheck {
  const { manifest, attestation } = bundle;
  const expected = attestedPayload(manifest, attestation, "");
  return bundleCheck("attestation", "The attestation is, field by field, the one that the log recorded.", [
    ...recorded(
      bundle,
      "attestation_id",
      "attestation_type",
      "signer_key_fingerprint",
      "signature_algorithm",
      "signature",
      "timestamp",
      "intent_statement",
    ),
    [
      attestation.scope.content_hash === normaliseContentHash(manifest.document.content_hash),
      "The attestation's scope is not the manifest's content hash.",
    ],
    ...Object.entries(signedTerms(manifest)).map(
      ([name, signed]): Condition => [
        signed === undefined || signed === expected[name as keyof ReturnType<typeof signedTerms>],
        `The ${spelt(name)} is not the one that the signer signed.`,
      ],
    ),
  ]);
}

/** Whether members of the payload are those that follow from manifest and attestation. */
function recorded(
  { manifest, attestation, entry }: AttestationBundle,
  ...names: readonly (keyof AttestationEvent)[]
): readonly Condition[] {
  const expected = attestedPayload(manifest, attestation, "");
  return names.map((name) => [
    same(logged(entry)[name] ?? null, expected[name]),
    `The ${spelt(name)} is not the one in the log entry.`,
  ]);
}

const spelt = (name: string): string => name.replaceAll("_", " ");

function checkLogEntry({ entry, proof }: AttestationBundle, predicateBase: string | undefined): BundleCheck {
  return bundleCheck(
    "entry",
    "The log entry's hashes are those of its content, and its event type fits the attestation.",
    [
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
        "The first entry of a log alone has no previous hash.",
      ],
    ],
  );
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
  return bundleCheck("tree-head", `The tree head is signed by the operator key ${operatorKey.fingerprint}${how}.`, [
    [fault === "", `The chain of operator keys does not hold: ${fault}`],
    // Offline, nothing shows that such a head is the beginning of the log that the pinned key took over.
    [
      keys.indexAt(tree_head.tree_size) >= keys.indexOf(pinned.fingerprint),
      "The tree head is of an operator key that was retired before the pinned one began.",
    ],
    [same(proof.sth, tree_head), "The tree head in the proof is not the bundle's tree head."],
    ...(["tree_size", "root_hash", "tree_version"] as const).map(
      (name): Condition => [proof[name] === tree_head[name], `The proof is for another ${name} than the tree head.`],
    ),
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
  const valid = found?.find((one) => maySignAt(one, at));
  return !found
    ? []
    : [
        bundleCheck("signer", `The signer is ${valid?.name ?? "one that you named"}.`, [
          [found.length > 0, "The signer is none of those that you named."],
          [!found.length || !!valid, "The signer was not allowed to sign at the entry's time."],
        ]),
      ];
}

/** The shape check has checked every member. */
function logged(entry: Entry): AttestationEvent {
  return entry.payload as unknown as AttestationEvent;
}

function same(a: unknown, b: unknown): boolean {
  return canonicalJson(a) === canonicalJson(b);
}
