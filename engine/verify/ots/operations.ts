/**
 * The parts of an OpenTimestamps proof, and how they are read and written. Operations turn one message into another.
 * Attestations say that a message existed. Formats and limits are those of the reference client.
 */

import { ripemd160, sha1 } from "@noble/hashes/legacy.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { keccak_256 } from "@noble/hashes/sha3.js";
import { concatBytes } from "@noble/hashes/utils.js";
import { type CairnlogError, inputError } from "../../base/error.js";
import { fromHex, toHex, utf8 } from "../bytes/encoding.js";

/** Maximum bytes of a message, and of the result of an operation. */
export const MAX_MESSAGE = 4096;
const MAX_PAYLOAD = 8192;
const MAX_URI = 1000;
const URI = /^[A-Za-z0-9\-._/:]*$/;
const TAG_BYTES = 8;
/** Bytes of a varuint up to 2^53 − 1. */
const MAX_VARUINT_BYTES = 8;

const PENDING = "83dfe30d2ef90c8e";
const BITCOIN = "0588960d73d71901";

const OPERATION_TAGS = {
  sha1: 0x02,
  ripemd160: 0x03,
  sha256: 0x08,
  keccak256: 0x67,
  append: 0xf0,
  prepend: 0xf1,
  reverse: 0xf2,
  hexlify: 0xf3,
} as const;
type OperationName = keyof typeof OPERATION_TAGS;
const OPERATIONS = new Map<number, OperationName>(
  Object.entries(OPERATION_TAGS).map(([name, tag]) => [tag, name as OperationName]),
);

/** Turns one message into another. `argument`: 1 to 4096 bytes. */
export type OtsOperation =
  | { readonly name: "append" | "prepend"; readonly argument: Uint8Array }
  | { readonly name: Exclude<OperationName, "append" | "prepend"> };

/** States that a message existed. */
export type OtsAttestation =
  /** The calendar at `uri` has promised a Bitcoin attestation. */
  | { readonly kind: "pending"; readonly uri: string }
  /** The message is the Merkle root of the block at `height`. */
  | { readonly kind: "bitcoin"; readonly height: number }
  /** An unknown kind, kept unchanged; `tag` is 16 hex characters. */
  | { readonly kind: "unknown"; readonly tag: string; readonly payload: Uint8Array };

/** The error for an invalid proof. The code blames the author of the bytes. */
export const otsError = (sentence: string): CairnlogError => inputError(sentence);

/** Reads bytes in order. An attacker may choose everything in them, above all lengths. */
export class OtsReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    // A plain Uint8Array, because `slice` of a Node Buffer would not copy.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** The next `count` bytes, as a copy. @throws CairnlogError `invalid-input` if there are fewer */
  take(count: number): Uint8Array {
    if (count > this.#bytes.length - this.#at) throw otsError("The OpenTimestamps proof ends too early.");
    this.#at += count;
    return this.#bytes.slice(this.#at - count, this.#at);
  }

  byte(): number {
    return this.take(1)[0]!;
  }

  /** Unsigned LEB128. @throws CairnlogError `invalid-input` for a number that is not exact in JavaScript */
  varuint(): number {
    let value = 0;
    for (let i = 0; i < MAX_VARUINT_BYTES; i++) {
      const byte = this.byte();
      // Shifting would end at 32 bits.
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80 && value <= Number.MAX_SAFE_INTEGER) return value;
    }
    throw otsError("A number in the OpenTimestamps proof is too large.");
  }

  /** A length, and then that number of bytes. */
  varbytes(min: number, max: number): Uint8Array {
    const length = this.varuint();
    if (length < min || length > max)
      throw otsError(`A field of the OpenTimestamps proof has ${length} bytes, not ${min} to ${max}.`);
    return this.take(length);
  }

  /** @throws CairnlogError `invalid-input` if bytes are left */
  end(): void {
    if (this.#at !== this.#bytes.length) throw otsError("Bytes follow where a part of the OpenTimestamps proof ends.");
  }
}

/** `value` as unsigned LEB128. */
function varuint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Uint8Array.from([...bytes, rest]);
}

/**
 * The result of `operation` on `message`, which must not be empty.
 * @throws CairnlogError `invalid-input` if the result is longer than 4096 bytes
 */
export function applyOperation(operation: OtsOperation, message: Uint8Array): Uint8Array {
  const result = rawResult(operation, message);
  if (result.length > MAX_MESSAGE) throw otsError("An operation of the OpenTimestamps proof makes a message too long.");
  return result;
}

function rawResult(operation: OtsOperation, message: Uint8Array): Uint8Array {
  switch (operation.name) {
    case "append":
      return concatBytes(message, operation.argument);
    case "prepend":
      return concatBytes(operation.argument, message);
    case "sha256":
      return sha256(message);
    case "sha1":
      return sha1(message);
    case "ripemd160":
      return ripemd160(message);
    case "keccak256":
      return keccak_256(message);
    case "reverse":
      return Uint8Array.from(message).reverse();
    case "hexlify":
      return utf8(toHex(message));
  }
}

/** Reads the rest of an operation after its `tag`. @throws CairnlogError `invalid-input` for an unknown operation */
export function readOperation(reader: OtsReader, tag: number): OtsOperation {
  const name = OPERATIONS.get(tag);
  if (name === undefined)
    throw otsError(`The OpenTimestamps proof has an unknown operation (0x${tag.toString(16).padStart(2, "0")}).`);
  return name === "append" || name === "prepend" ? { name, argument: reader.varbytes(1, MAX_MESSAGE) } : { name };
}

/** The encoding of an operation. */
export function operationBytes(operation: OtsOperation): Uint8Array {
  const tag = Uint8Array.of(OPERATION_TAGS[operation.name]);
  return "argument" in operation ? concatBytes(tag, varuint(operation.argument.length), operation.argument) : tag;
}

/** Canonical order: by tag, then by argument. */
export function compareOperations(a: OtsOperation, b: OtsOperation): number {
  const byTag = OPERATION_TAGS[a.name] - OPERATION_TAGS[b.name];
  return byTag || ("argument" in a && "argument" in b ? compareBytes(a.argument, b.argument) : 0);
}

/** @throws CairnlogError `invalid-input` for a known kind whose payload does not have exactly the right form */
export function readAttestation(reader: OtsReader): OtsAttestation {
  const tag = toHex(reader.take(TAG_BYTES));
  const payload = reader.varbytes(0, MAX_PAYLOAD);
  if (tag !== PENDING && tag !== BITCOIN) return { kind: "unknown", tag, payload };
  const inner = new OtsReader(payload);
  const attestation: OtsAttestation =
    tag === PENDING ? { kind: "pending", uri: readUri(inner) } : { kind: "bitcoin", height: inner.varuint() };
  inner.end();
  return attestation;
}

function readUri(reader: OtsReader): string {
  const uri = String.fromCharCode(...reader.varbytes(0, MAX_URI));
  // The alphabet excludes queries, credentials and control characters, which could harm anything that shows or opens
  // the address.
  if (!URI.test(uri))
    throw otsError("A calendar's address in the OpenTimestamps proof has a character that none may have.");
  return uri;
}

/** The encoding of an attestation, without the zero byte before it. */
export function attestationBytes(attestation: OtsAttestation): Uint8Array {
  const [tag, payload] = tagAndPayload(attestation);
  return concatBytes(fromHex(tag), varuint(payload.length), payload);
}

function tagAndPayload(attestation: OtsAttestation): [tag: string, payload: Uint8Array] {
  switch (attestation.kind) {
    case "pending": {
      const uri = utf8(attestation.uri);
      return [PENDING, concatBytes(varuint(uri.length), uri)];
    }
    case "bitcoin":
      return [BITCOIN, varuint(attestation.height)];
    case "unknown":
      return [attestation.tag, attestation.payload];
  }
}

/** Canonical order: by tag, then by address, height or payload. */
export function compareAttestations(a: OtsAttestation, b: OtsAttestation): number {
  if (a.kind === "bitcoin" && b.kind === "bitcoin") return a.height - b.height;
  if (a.kind === "pending" && b.kind === "pending") return a.uri < b.uri ? -1 : Number(a.uri > b.uri);
  const [[tagA, payloadA], [tagB, payloadB]] = [tagAndPayload(a), tagAndPayload(b)];
  if (tagA !== tagB) return tagA < tagB ? -1 : 1;
  return compareBytes(payloadA, payloadB);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}
