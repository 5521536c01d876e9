/**
 * DSSE envelopes (secure-systems-lab/dsse v1) with in-toto statements (in-toto/attestation v1): how build systems say what
 * they made and how. An envelope may be any text from an attacker.
 */
import { concatBytes } from "@noble/hashes/utils.js";
import { type CairnlogError, inputError } from "../../base/error.js";
import { decodeBase64, utf8 } from "../bytes/encoding.js";
import { parseJsonOfUniqueNames } from "../json/ijson.js";
import { isObject } from "../json/shape.js";
import type { PublicKey } from "../keys/publickey.js";
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
