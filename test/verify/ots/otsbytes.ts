/** OpenTimestamps bytes, made from the format's description with node:crypto, without the code under test. */
import { createHash } from "node:crypto";

/** The beginning of every detached file, including the version byte. */
export const HEADER = Buffer.from("004f70656e54696d657374616d7073000050726f6f6600bf89e2e884e8929401", "hex");
export const PENDING = "83dfe30d2ef90c8e";
export const BITCOIN = "0588960d73d71901";

export const hash = (algorithm: string, data: Uint8Array): Buffer => createHash(algorithm).update(data).digest();

export const hex = (...parts: (string | Uint8Array)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part.replace(/\s/g, ""), "hex") : part)));

export function varuint(value: number): Buffer {
  const digits = value.toString(2);
  const groups = Math.max(1, Math.ceil(digits.length / 7));
  const padded = digits.padStart(groups * 7, "0");
  const bytes = Array.from({ length: groups }, (_, i) => Number.parseInt(padded.slice(i * 7, i * 7 + 7), 2)).reverse();
  return Buffer.from(bytes.map((byte, i) => (i < groups - 1 ? byte | 0x80 : byte)));
}

export const varbytes = (data: Uint8Array): Buffer => hex(varuint(data.length), data);

/** An attestation, without the zero byte before it. */
export const attestation = (tag: string, payload: Uint8Array): Buffer => hex(tag, varbytes(payload));
export const pending = (uri: string): Buffer => attestation(PENDING, varbytes(Buffer.from(uri, "latin1")));
export const bitcoin = (height: number): Buffer => attestation(BITCOIN, varuint(height));

export const append = (argument: Uint8Array): Buffer => hex("f0", varbytes(argument));
export const prepend = (argument: Uint8Array): Buffer => hex("f1", varbytes(argument));

/** The content of a node: attestations, and operations with the nodes of their results. */
export interface Tree {
  readonly attestations: readonly Buffer[];
  readonly operations: readonly (readonly [Buffer, Tree])[];
}

/** A timestamp, its items in the order of the tree. */
export function timestamp({ attestations, operations }: Tree): Buffer {
  const items = [
    ...attestations.map((bytes) => hex("00", bytes)),
    ...operations.map(([bytes, next]) => hex(bytes, timestamp(next))),
  ];
  return Buffer.concat(items.map((item, i) => (i < items.length - 1 ? hex("ff", item) : item)));
}

/** A detached file over a SHA-256 digest. */
export const detached = (digest: Uint8Array, bytes: Uint8Array): Buffer => hex(HEADER, "08", digest, bytes);
