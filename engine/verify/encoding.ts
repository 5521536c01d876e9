/**
 * Bytes as text, strictly: one spelling for every value, so that no proof or signature can be respelled and still pass.
 */
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";

const HEX_HASH = /^[0-9a-f]{64}$/;
const ENCODER = new TextEncoder();
/** Bytes that become text in one call. */
const ARGUMENTS = 8_192;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** UTF-8 of `text`. Lone surrogates would become U+FFFD: callers hash only text that was checked for them. */
export function utf8(text: string): Uint8Array {
  return ENCODER.encode(text);
}

/** Whether `value` is a hash as this log writes it: exactly 64 lower-case hex characters. */
export function isHexHash(value: unknown): value is string {
  return typeof value === "string" && HEX_HASH.test(value);
}

/** Lower-case hex of `bytes`. */
export function toHex(bytes: Uint8Array): string {
  return bytesToHex(bytes);
}

/** Bytes of lower-case hex that was checked before. */
export function fromHex(hex: string): Uint8Array {
  return hexToBytes(hex);
}

/** Base64 of `bytes` with padding (RFC 4648 §4). */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = "";
  // One by one took 40 ms a megabyte; all at once would be more arguments than a function takes.
  for (let at = 0; at < bytes.length; at += ARGUMENTS)
    binary += String.fromCharCode(...bytes.subarray(at, at + ARGUMENTS));
  return btoa(binary);
}

/**
 * Bytes of base64 in its only canonical spelling (RFC 4648 §§3.5, 4: padded, no white space, unused bits zero);
 * `undefined` for anything else, which an attacker may send.
 */
export function decodeBase64(text: unknown): Uint8Array | undefined {
  if (typeof text !== "string" || !BASE64.test(text)) return undefined;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return text.endsWith("=") && btoa(binary.slice(-(binary.length % 3))) !== text.slice(-4) ? undefined : bytes;
}
