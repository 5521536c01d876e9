/**
 * DSSE envelopes (secure-systems-lab/dsse v1) with in-toto statements (in-toto/attestation v1): how build systems say what
 * they made and how. An envelope may be any text from an attacker.
 */
import { concatBytes } from "@noble/hashes/utils.js";
import { type CairnlogError, inputError } from "../../base/error.js";
import { type BundleTrust, verifyBundle } from "../bundle/bundle.js";
import { type AttestationBundle, type BundleCheck, type BundleVerdict, verdictOf } from "../bundle/format.js";
import { decodeBase64, encodeBase64, toHex, utf8 } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import type { Manifest } from "../events/manifest.js";
import { parseJsonOfUniqueNames } from "../json/canonical.js";
import { isObject } from "../json/shape.js";
import { MAX_TITLE_CHARACTERS } from "../keys/contract.js";
import { type PublicKey, parsePublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";

/** The payload type of in-toto statements. */
const IN_TOTO = "application/vnd.in-toto+json";

/** A signed payload. Nothing about it has been verified. */
export interface DsseEnvelope {
  readonly payloadType: string;
  readonly payload: Uint8Array;
  /** At least one, each over `preAuthEncoding`. Which key made it, nothing here says. */
  readonly signatures: readonly Uint8Array[];
}

/** What an in-toto statement says about what. */
export interface Statement {
  readonly predicateType: string;
  /** The names of its subjects, those that have one. The name `_` says that there is none (in-toto, ResourceDescriptor). */
  readonly subjects: readonly string[];
}

const STATEMENT_TYPES = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/** Each costs a verification. */
const MAX_SIGNATURES = 100;

/**
 * Reads an envelope from the value of its JSON.
 * @throws CairnlogError `invalid-input` with a sentence about what is wrong
 */
export function parseDsseEnvelope(value: unknown): DsseEnvelope {
  if (!isObject(value)) throw invalid("It must be an object.");
  const { payloadType, signatures } = value;
  const payload = bytesOf(value.payload);
  if (typeof payloadType !== "string") throw invalid("Its payloadType must be a string.");
  if (!payload) throw invalid("Its payload must be base64.");
  if (!Array.isArray(signatures) || !signatures.length || signatures.length > MAX_SIGNATURES)
    throw invalid(`It must have 1 to ${MAX_SIGNATURES} signatures.`);
  // One that is empty or of an unknown form is nobody's, and says nothing about the others.
  const readable = signatures.flatMap((one: unknown) => {
    const sig = isObject(one) ? bytesOf(one.sig) : undefined;
    return sig?.length ? [sig] : [];
  });
  if (!readable.length) throw invalid("A signature must be an object with a sig in base64.");
  return { payloadType, payload, signatures: readable };
}

/** The bytes that are signed: type and payload, each with its length before it, so that neither can be taken for the other. */
export function preAuthEncoding({ payloadType, payload }: Pick<DsseEnvelope, "payloadType" | "payload">): Uint8Array {
  return concatBytes(utf8(`DSSEv1 ${utf8(payloadType).length} ${payloadType} ${payload.length} `), payload);
}

/** The signature of the envelope that the key has made; undefined if none of them holds. */
export async function dsseSignatureOf(envelope: DsseEnvelope, key: PublicKey): Promise<Uint8Array | undefined> {
  const message = preAuthEncoding(envelope);
  for (const signature of envelope.signatures) if (await verifySignature(key, message, signature)) return signature;
  return undefined;
}

/**
 * The in-toto statement in an envelope.
 * @throws CairnlogError `invalid-input` for another payload type, and for what is no statement
 */
export function inTotoStatement({ payloadType, payload }: DsseEnvelope): Statement {
  if (payloadType !== IN_TOTO) throw invalid(`Its payload must be of the type ${IN_TOTO}.`);
  let statement: unknown;
  try {
    // Nothing is computed from its numbers, and build systems write some that no double holds.
    statement = parseJsonOfUniqueNames(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload));
  } catch (cause) {
    throw invalid("Its payload is not JSON with unique names in UTF-8.", cause);
  }
  if (!isObject(statement) || !STATEMENT_TYPES.some((type) => type === statement._type))
    throw invalid(`Its payload must be a statement: an object whose _type is ${STATEMENT_TYPES[0]}.`);
  const { predicateType, subject } = statement;
  if (typeof predicateType !== "string" || !Array.isArray(subject))
    throw invalid("Its statement must have a predicateType and a list of subjects.");
  const names = subject.map((one: unknown) => (isObject(one) ? one.name : undefined));
  return {
    predicateType,
    subjects: names.filter((name) => typeof name === "string" && name !== "" && name !== "_") as string[],
  };
}

/** Base64 of either alphabet, with padding or without: the specification allows both alphabets, and Go writes no padding. */
const bytesOf = (text: unknown): Uint8Array | undefined =>
  typeof text === "string"
    ? decodeBase64(
        text.replaceAll("-", "+").replaceAll("_", "/") + "=".repeat(text.endsWith("=") ? 0 : -text.length & 3),
      )
    : undefined;

const invalid = (why: string, cause?: unknown): CairnlogError =>
  inputError(`This is not a DSSE envelope of an in-toto statement. ${why}`, { cause });

// Envelopes on the log: an attestation whose document is the payload of a DSSE envelope, and whose type is the predicate of
// its statement. The document names the key that signed the envelope, and its signature, so the attester has signed both.

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
