/**
 * Cosignatures of type `cosignature/v1` (c2sp.org/tlog-cosignature): a witness says that, at a time, this checkpoint was
 * the largest one of its log that it had seen, and consistent with all before. The bytes in the signature line are the
 * time (8 bytes, big-endian) and an Ed25519 signature.
 */
import { utf8 } from "../encoding.js";

const TIME_BYTES = 8;
const SIGNATURE_BYTES = 64;

/** A cosignature taken apart. Nothing about it has been verified. */
export interface Cosignature {
  /** Seconds since 1970. */
  readonly time: number;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/**
 * What a witness signs: two lines before the checkpoint's text.
 * @param time whole seconds since 1970
 * @param text the text of the note, extension lines and last line feed included
 */
export function cosignatureMessage(time: number, text: string): Uint8Array {
  return utf8(`cosignature/v1\ntime ${time}\n${text}`);
}

/** The bytes of a cosignature, which follow the key id in a signature line. */
export function encodeCosignature({ time, signature }: Cosignature): Uint8Array {
  const bytes = new Uint8Array(TIME_BYTES + SIGNATURE_BYTES);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(time));
  bytes.set(signature, TIME_BYTES);
  return bytes;
}

/** The parts of a cosignature; undefined for another length, and for times after 2^53 − 1, in 285 million years. */
export function decodeCosignature(bytes: Uint8Array): Cosignature | undefined {
  if (bytes.length !== TIME_BYTES + SIGNATURE_BYTES) return undefined;
  const time = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0));
  return Number.isSafeInteger(time) ? { time, signature: bytes.subarray(TIME_BYTES) } : undefined;
}
