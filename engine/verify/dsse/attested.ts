/**
 * Envelopes on the log: an attestation whose document is the payload of a DSSE envelope, and whose type is the predicate of
 * its statement. The document names the key that signed the envelope, and its signature, so the attester has signed both.
 */

import { inputError } from "../../base/error.js";
import { type BundleTrust, verifyBundle } from "../bundle/bundle.js";
import type { AttestationBundle } from "../bundle/format.js";
import { type BundleCheck, type BundleVerdict, verdictOf } from "../bundle/verdict.js";
import { encodeBase64, toHex } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import type { Manifest } from "../events/manifest.js";
import { isObject } from "../json/shape.js";
import { MAX_TITLE_CHARACTERS } from "../keys/limits.js";
import { type PublicKey, parsePublicKey } from "../keys/publickey.js";
import { dsseSignatureOf, inTotoStatement, parseDsseEnvelope } from "./envelope.js";

/** A document to attest, and the type of the attestation. */
export interface EnvelopeSubject {
  readonly document: Manifest["document"];
  readonly type: string;
}

/**
 * The document of an envelope, after its own signature was verified.
 * @param value the envelope, as `parseIJson` read it
 * @param key the key that must have signed it
 * @param title default: the name of the first subject, cut to the length of a title
 * @throws CairnlogError `invalid-input` for what is no envelope of a statement, or that the key has not signed
 */
export async function envelopeSubject(value: unknown, key: PublicKey, title?: string): Promise<EnvelopeSubject> {
  const envelope = parseDsseEnvelope(value);
  const { predicateType, subjects } = inTotoStatement(envelope);
  const signature = await dsseSignatureOf(envelope, key);
  if (!signature) throw inputError(`The key ${key.fingerprint} has not signed this envelope.`);
  const document = {
    title: title ?? cut(subjects[0] ?? predicateType),
    content_hash: payloadHash(envelope.payload),
    dsse: { payload_type: envelope.payloadType, public_key: key.pem, signature: encodeBase64(signature) },
  };
  return { document, type: predicateType };
}

/**
 * Checks a bundle whose document is the payload of an envelope: what `verifyBundle` checks, and that the envelope is signed by
 * the key that the document names. Never throws.
 * @param value the envelope, as `parseIJson` read it
 * @param trust `envelopeKey`: the key that must have signed the envelope; without it, the attester's word counts
 */
export async function verifyEnvelopeBundle(
  bundle: unknown,
  value: unknown,
  { envelopeKey, ...trust }: Omit<BundleTrust, "fileHash"> & { readonly envelopeKey?: PublicKey | undefined },
): Promise<BundleVerdict> {
  let fileHash = "";
  let payloadFault: string | null = null;
  try {
    fileHash = payloadHash(parseDsseEnvelope(value).payload);
  } catch (error) {
    payloadFault = (error as Error).message;
  }
  const plain = await verifyBundle(bundle, { ...trust, fileHash });
  const { checks, signed, withheld_by } = plain;
  if (checks.length === 1) return plain;
  const envelope = await checkEnvelope(bundle as AttestationBundle, value, envelopeKey);
  const all = [...checks.map((check) => (check.name === "file" ? ofPayload(check, payloadFault) : check)), envelope];
  return verdictOf(all, signed, withheld_by);
}

/** The document's hash is that of the payload, not of the file around it. */
const ofPayload = ({ name, ok }: BundleCheck, fault: string | null): BundleCheck => ({
  name,
  ok,
  detail: ok
    ? "The SHA-256 of the envelope's payload is the manifest's content hash."
    : (fault ?? "The envelope's payload is not the one that was attested."),
});

async function checkEnvelope(
  { manifest, attestation }: AttestationBundle,
  value: unknown,
  pinned: PublicKey | undefined,
): Promise<BundleCheck> {
  const wrong = (detail: string): BundleCheck => ({ name: "envelope", ok: false, detail });
  const { dsse } = manifest.document;
  if (!isObject(dsse)) return wrong("The manifest does not say who signed an envelope: this was attested as a file.");
  try {
    const envelope = parseDsseEnvelope(value);
    const { predicateType } = inTotoStatement(envelope);
    const key = parsePublicKey(String(dsse.public_key));
    if (pinned && pinned.fingerprint !== key.fingerprint)
      return wrong(`The envelope was attested as signed by ${key.fingerprint}, which is not the key that you gave.`);
    if (dsse.payload_type !== envelope.payloadType) return wrong("The payload was attested under another type.");
    if (attestation.type !== predicateType) return wrong("The attestation's type is not the statement's predicate.");
    const signature = await dsseSignatureOf(envelope, key);
    if (!signature) return wrong(`The key ${key.fingerprint} has not signed this envelope.`);
    const who = pinned ? "the key that you gave" : "which the attester says is its key";
    return { name: "envelope", ok: true, detail: `The envelope is signed by ${key.fingerprint}, ${who}.` };
  } catch (error) {
    return wrong((error as Error).message);
  }
}

/** The beginning of a name, of any length, that is no longer than a title. It ends in no half of a surrogate pair. */
const cut = (name: string): string =>
  [...name.slice(0, 2 * MAX_TITLE_CHARACTERS)].slice(0, MAX_TITLE_CHARACTERS).join("");

const payloadHash = (payload: Uint8Array): string => `sha256:${toHex(kernel.sha256(payload))}`;
