/**
 * Strict conversion between bytes and text. Every value has one spelling, so nobody can respell a proof or signature.
 */
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";

const ENCODER = new TextEncoder();
/** Number of bytes that become text in one call. */
const ARGUMENTS = 8_192;
/**
 * The length is compared apart. A repeated group `(?:…{4})*` needs memory for each repetition, and throws RangeError at 4.47
 * million characters.
 */
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** UTF-8 of `text`. Lone surrogates would become U+FFFD, so callers check text for them before they hash it. */
export function utf8(text: string): Uint8Array {
  return ENCODER.encode(text);
}

/** Whether `text` has no half of a surrogate pair. Browsers of 2022 lack the method. */
export const isWellFormed = (text: string): boolean => text.isWellFormed?.() ?? !/\p{Cs}/u.test(text);

/** Hex characters of a SHA-256. */
const HASH_CHARACTERS = 64;
const PREFIX = "sha256:";

/** By character code. */
const IS_HEX_DIGIT = Uint8Array.from({ length: 128 }, (_, code) =>
  /[0-9a-f]/.test(String.fromCharCode(code)) ? 1 : 0,
);

/**
 * Whether from `from` on there are exactly so many lower-case hex characters, and then the text ends. It takes 0.05 µs for a
 * hash, and a regular expression 0.3; every attestation asks seven times.
 */
export function isHexFrom(text: string, from: number, characters: number): boolean {
  if (text.length !== from + characters) return false;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 127 || !IS_HEX_DIGIT[code]) return false;
  }
  return true;
}

/** Whether `value` is a hash in the log's form: exactly 64 lower-case hex characters. */
export function isHexHash(value: unknown): value is string {
  return typeof value === "string" && isHexFrom(value, 0, HASH_CHARACTERS);
}

/** Whether `value` is `sha256:` and a hash in the log's form, as fingerprints are. */
export function isPrefixedHash(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(PREFIX) && isHexFrom(value, PREFIX.length, HASH_CHARACTERS);
}

/** Lower-case hex of `bytes`. */
export function toHex(bytes: Uint8Array): string {
  return bytesToHex(bytes);
}

/** The bytes of lower-case hex that has been checked. */
export function fromHex(hex: string): Uint8Array {
  return hexToBytes(hex);
}

/** Base64 of `bytes` with padding (RFC 4648 §4). */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = "";
  // One at a time took 40 ms a megabyte, and all at once would exceed the number of arguments of a function.
  for (let at = 0; at < bytes.length; at += ARGUMENTS)
    binary += String.fromCharCode(...bytes.subarray(at, at + ARGUMENTS));
  return btoa(binary);
}

/**
 * The bytes of base64 in its only canonical spelling (RFC 4648 §§3.5, 4: padded, no white space, unused bits zero);
 * `undefined` for anything else. The text may come from an attacker.
 */
export function decodeBase64(text: unknown): Uint8Array | undefined {
  if (typeof text !== "string" || text.length % 4 !== 0 || !BASE64.test(text)) return undefined;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return text.endsWith("=") && btoa(binary.slice(-(binary.length % 3))) !== text.slice(-4) ? undefined : bytes;
}

/** Whether `value` is the size of a tree, or the number of a leaf: an integer from 0 to 2^53 − 1. */
export function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
