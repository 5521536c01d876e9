/**
 * Entries in fewer bytes. Most of an attestation is text that all of them have, hashes as hex, and hashes that its batch has
 * anyway: an entry of 1,068 bytes takes 300. Every entry can be expanded without the others of its batch.
 *
 * JSON has no control characters, so bytes below 32 are codes. What no code stands for stays as it is. An entry that does
 * not begin with the first phrase is stored as it is; one that begins with a code is in shorthand. Whatever bytes an entry has,
 * `expand` gives back the same ones.
 *
 * The codes are on disk. Never change one.
 */
import { HASH } from "./schema.js";

/** The digest of the entry, as hex. */
const OWN_DIGEST = 0;
/** The digest of the entry before it in its batch, as hex. */
const PREVIOUS_DIGEST = 1;
/** 64 digits of lower-case hex; 32 bytes follow. */
const HEX = 2;
/** Base64 of 64 bytes, which follow. */
const SIGNATURE = 3;
/** A UUID; 16 bytes follow. */
const UUID = 4;
/** A timestamp in canonical form; 10 bytes with its 20 digits follow. */
const TIME = 5;
/** The timestamp that was last before it in this entry. */
const SAME_TIME = 6;
/** The first of the codes of `PHRASES`. */
const FIRST_PHRASE = 7;
/** The byte that follows stands for itself. */
const LITERAL = 31;

/** Of phrases with the same beginning, the longest comes first. */
const PHRASES = [
  '{"id":',
  ',"timestamp":"',
  '","event_type":"https://x-service.example/predicates/authorship/v1","payload":{"attestation_id":"',
  '","event_type":"',
  '","payload":{"attestation_id":"',
  '","payload":{"',
  '","attestation_type":"authorship","document_hash":"sha256:',
  '","attestation_type":"',
  '","document_hash":"sha256:',
  '","document_title":"',
  '","intent_statement":null,"manifest_hash":"',
  '","manifest_hash":"',
  '","signature":"',
  '","signature_algorithm":"ed25519","signer_key_fingerprint":"sha256:',
  '","signer_key_fingerprint":"sha256:',
  '","tags":["',
  '"],"timestamp":"',
  '","timestamp":"',
  '"},"previous_hash":"',
  '},"previous_hash":"',
  '","entry_hash":"',
  '","chain_version":2,"entry_hashes":[{"algorithm":"sha2-256","digest_hex":"',
  '","is_primary":true}]}',
  '"sha256:',
].map((text) => Buffer.from(text));

const QUOTE = 0x22;
const COMMA = 0x2c;
const DASH = 0x2d;
const ZERO = 0x30;
const EQUALS = 0x3d;
const BRACE = 0x7d;
const CONTROL = 0x20;
/** Any phrase tells by this byte which one it can be. */
const TELLING = 3;
const HEX_DIGITS = 2 * HASH;
const UUID_BYTES = 16;
const UUID_DIGITS = 36;
const SIGNATURE_BYTES = 64;
const SIGNATURE_DIGITS = 88;
const TIME_BYTES = 10;
const TIME_FORM = Buffer.from("0000-00-00T00:00:00.000000Z");
/** No code stands for more. */
const LONGEST = 128;

/** Numbers of phrases by their telling byte. */
const byTelling: readonly (readonly number[])[] = Array.from({ length: 256 }, (_, byte) =>
  PHRASES.flatMap((phrase, number) => (phrase[TELLING] === byte ? [number] : [])),
);

/** The value of a digit, for bytes; others have a bit that no digit has. */
const NO_DIGIT = 0x80;
const digitsOf = (alphabet: string): Uint8Array => {
  const digits = new Uint8Array(256).fill(NO_DIGIT);
  for (let i = 0; i < alphabet.length; i++) digits[alphabet.charCodeAt(i)] = i;
  return digits;
};
const HEX_ALPHABET = "0123456789abcdef";
const BASE64_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const HEX_VALUES = digitsOf(HEX_ALPHABET);
const BASE64_VALUES = digitsOf(BASE64_ALPHABET);
const HEX_CHARS = Buffer.from(HEX_ALPHABET);
const BASE64_CHARS = Buffer.from(BASE64_ALPHABET);

/** Where the entry that is worked on gets its result. It grows, and is used again. */
let out = Buffer.allocUnsafeSlow(2 ** 16);

function makeRoom(bytes: number): void {
  const larger = Buffer.allocUnsafeSlow(2 * Math.max(out.length, bytes));
  larger.set(out);
  out = larger;
}

/** Number of the phrase at `at`; −1 if there is none. */
function phraseAt(bytes: Uint8Array, at: number, end: number): number {
  if (at + TELLING >= end) return -1;
  for (const number of byTelling[bytes[at + TELLING]!]!) {
    const phrase = PHRASES[number]!;
    let i = 0;
    while (i < phrase.length && bytes[at + i] === phrase[i]) i++;
    if (i === phrase.length && at + i <= end) return number;
  }
  return -1;
}

/** Writes `count` bytes of hex at `from` to `to`. @returns whether all of it is hex */
function packHex(bytes: Uint8Array, from: number, count: number, to: number): boolean {
  const target = out;
  let wrong = 0;
  for (let i = 0, at = from; i < count; i++, at += 2) {
    const high = HEX_VALUES[bytes[at]!]!;
    const low = HEX_VALUES[bytes[at + 1]!]!;
    wrong |= high | low;
    target[to + i] = (high << 4) | low;
  }
  return (wrong & NO_DIGIT) === 0;
}

/** Whether the hash at `at` of `out` is the one at `digest` of `digests`. */
function isDigest(at: number, digests: Uint8Array, digest: number): boolean {
  const target = out;
  let i = 0;
  while (i < HASH && target[at + i] === digests[digest + i]) i++;
  return i === HASH;
}

/** Writes the hash whose hex begins at `from` as a code. @returns where the next code goes; `to` if it is no hash */
function packHash(bytes: Uint8Array, from: number, to: number, digests: Uint8Array, own: number): number {
  if (!packHex(bytes, from, HASH, to + 1)) return to;
  const code = isDigest(to + 1, digests, own)
    ? OWN_DIGEST
    : own && isDigest(to + 1, digests, own - HASH)
      ? PREVIOUS_DIGEST
      : HEX;
  out[to] = code;
  return to + 1 + (code === HEX ? HASH : 0);
}

function packUuid(bytes: Uint8Array, from: number, to: number): number {
  for (const dash of [8, 13, 18, 23]) if (bytes[from + dash] !== DASH) return to;
  const isUuid =
    packHex(bytes, from, 4, to + 1) &&
    packHex(bytes, from + 9, 2, to + 5) &&
    packHex(bytes, from + 14, 2, to + 7) &&
    packHex(bytes, from + 19, 2, to + 9) &&
    packHex(bytes, from + 24, 6, to + 11);
  if (!isUuid) return to;
  out[to] = UUID;
  return to + 1 + UUID_BYTES;
}

function packSignature(bytes: Uint8Array, from: number, to: number): number {
  const target = out;
  let wrong = 0;
  let at = to + 1;
  // 21 groups of three bytes, and one byte: its second character has four bits that base64 leaves at zero.
  const last = from + SIGNATURE_DIGITS - 4;
  for (let i = from; i < last; i += 4) {
    const a = BASE64_VALUES[bytes[i]!]!;
    const b = BASE64_VALUES[bytes[i + 1]!]!;
    const c = BASE64_VALUES[bytes[i + 2]!]!;
    const d = BASE64_VALUES[bytes[i + 3]!]!;
    wrong |= a | b | c | d;
    target[at++] = (a << 2) | (b >> 4);
    target[at++] = (b << 4) | (c >> 2);
    target[at++] = (c << 6) | d;
  }
  const [a, b] = [BASE64_VALUES[bytes[last]!]!, BASE64_VALUES[bytes[last + 1]!]!];
  target[at++] = (a << 2) | (b >> 4);
  if ((wrong | a | b) & NO_DIGIT || b & 15 || bytes[last + 2] !== EQUALS || bytes[last + 3] !== EQUALS) return to;
  out[to] = SIGNATURE;
  return at;
}

function isRepeated(bytes: Uint8Array, a: number, b: number): boolean {
  let i = 0;
  while (i < TIME_FORM.length && bytes[a + i] === bytes[b + i]) i++;
  return i === TIME_FORM.length;
}

/** @param same where the timestamp before it is, or −1 */
function packTime(bytes: Uint8Array, from: number, same: number, to: number): number {
  if (same >= 0 && isRepeated(bytes, same, from)) {
    out[to] = SAME_TIME;
    return to + 1;
  }
  const target = out;
  let digits = 0;
  let at = to + 1;
  for (let i = 0; i < TIME_FORM.length; i++) {
    const byte = bytes[from + i]!;
    if (TIME_FORM[i] !== ZERO) {
      if (byte !== TIME_FORM[i]) return to;
      continue;
    }
    const digit = byte - ZERO;
    if (digit < 0 || digit > 9) return to;
    if (digits++ & 1) target[at++]! |= digit;
    else target[at] = digit << 4;
  }
  target[to] = TIME;
  return at;
}

/**
 * Writes the entry in `bytes` from `from` to `end` at `to` of `out`.
 * @param own where its digest is in `digests`, which begin with that of the first entry of the batch
 * @returns where it ends in `out`
 */
function shortenInto(
  bytes: Uint8Array,
  from: number,
  end: number,
  digests: Uint8Array,
  own: number,
  to: number,
): number {
  if (phraseAt(bytes, from, end) !== 0) {
    if (to + end - from > out.length) makeRoom(to + end - from);
    out.set(bytes.subarray(from, end), to);
    return to + end - from;
  }
  let [at, time] = [from, -1];
  while (at < end) {
    if (to + LONGEST > out.length) makeRoom(to + LONGEST);
    const byte = bytes[at]!;
    let isValue = byte === QUOTE;
    const number = at === from || byte === QUOTE || byte === COMMA || byte === BRACE ? phraseAt(bytes, at, end) : -1;
    if (number >= 0) {
      out[to++] = FIRST_PHRASE + number;
      at += PHRASES[number]!.length;
      isValue = true;
    } else {
      if (byte < CONTROL) out[to++] = LITERAL;
      out[to++] = byte;
      at++;
    }
    if (!isValue) continue;
    const before = to;
    if (bytes[at + HEX_DIGITS] === QUOTE && at + HEX_DIGITS < end) {
      to = packHash(bytes, at, to, digests, own);
      if (to > before) at += HEX_DIGITS;
    } else if (bytes[at + UUID_DIGITS] === QUOTE && at + UUID_DIGITS < end) {
      to = packUuid(bytes, at, to);
      if (to > before) at += UUID_DIGITS;
    } else if (bytes[at + SIGNATURE_DIGITS] === QUOTE && at + SIGNATURE_DIGITS < end) {
      to = packSignature(bytes, at, to);
      if (to > before) at += SIGNATURE_DIGITS;
    } else if (bytes[at + TIME_FORM.length] === QUOTE && at + TIME_FORM.length < end) {
      to = packTime(bytes, at, time, to);
      if (to > before) {
        time = at;
        at += TIME_FORM.length;
      }
    }
  }
  return to;
}

/** Entries in shorthand, one behind the other, and where each of them ends. */
interface Shortened {
  readonly bytes: Buffer;
  readonly ends: Uint32Array;
}

/**
 * Shortens the entries of a batch.
 * @param bytes the entries, one behind the other
 * @param ends where each of them ends
 * @param digests of all of them, 32 bytes each
 * @returns views of memory that the next call uses
 */
export function shorten(bytes: Uint8Array, ends: Uint32Array, digests: Uint8Array): Shortened {
  const shortEnds = new Uint32Array(ends.length);
  let [from, to] = [0, 0];
  for (let i = 0; i < ends.length; i++) {
    to = shortenInto(bytes, from, ends[i]!, digests, HASH * i, to);
    shortEnds[i] = to;
    from = ends[i]!;
  }
  return { bytes: out.subarray(0, to), ends: shortEnds };
}

function expandHex(bytes: Uint8Array, from: number, count: number, to: number): number {
  const target = out;
  let at = to;
  for (let i = from; i < from + count; i++) {
    const byte = bytes[i]!;
    target[at++] = HEX_CHARS[byte >> 4]!;
    target[at++] = HEX_CHARS[byte & 15]!;
  }
  return at;
}

function expandUuid(bytes: Uint8Array, from: number, to: number): number {
  let at = expandHex(bytes, from, 4, to);
  for (const pair of [4, 6, 8]) {
    out[at++] = DASH;
    at = expandHex(bytes, from + pair, 2, at);
  }
  out[at++] = DASH;
  return expandHex(bytes, from + 10, 6, at);
}

function expandSignature(bytes: Uint8Array, from: number, to: number): number {
  const target = out;
  let at = to;
  const last = from + SIGNATURE_BYTES - 1;
  for (let i = from; i < last; i += 3) {
    const three = (bytes[i]! << 16) | (bytes[i + 1]! << 8) | bytes[i + 2]!;
    target[at++] = BASE64_CHARS[three >> 18]!;
    target[at++] = BASE64_CHARS[(three >> 12) & 63]!;
    target[at++] = BASE64_CHARS[(three >> 6) & 63]!;
    target[at++] = BASE64_CHARS[three & 63]!;
  }
  target[at++] = BASE64_CHARS[bytes[last]! >> 2]!;
  target[at++] = BASE64_CHARS[(bytes[last]! << 4) & 63]!;
  target[at++] = EQUALS;
  target[at++] = EQUALS;
  return at;
}

function expandTime(bytes: Uint8Array, from: number, to: number): void {
  let digits = 0;
  for (let i = 0; i < TIME_FORM.length; i++) {
    if (TIME_FORM[i] !== ZERO) out[to + i] = TIME_FORM[i]!;
    else {
      const pair = bytes[from + (digits >> 1)]!;
      out[to + i] = ZERO + (digits++ % 2 ? pair & 15 : pair >> 4);
    }
  }
}

/** Whether the stored bytes of an entry are shorthand. */
export const isShort = (stored: Uint8Array): boolean => stored.length > 0 && stored[0]! < CONTROL;

/**
 * The bytes of an entry that was stored in shorthand, or as it is. They may be damaged: then so is the result.
 * @param digests the digest of the entry before it in its batch, if there is one, and then its own
 * @returns a view of memory that the next call uses, or `bytes`
 */
export function expanded(bytes: Uint8Array, digests: Uint8Array): Uint8Array {
  if (!isShort(bytes)) return bytes;
  const [own, end] = [digests.length - HASH, bytes.length];
  let [to, time] = [0, 0];
  for (let at = 0; at < end; ) {
    if (to + LONGEST > out.length) makeRoom(to + LONGEST);
    const code = bytes[at++]!;
    if (code >= CONTROL) out[to++] = code;
    else if (code === LITERAL) out[to++] = bytes[at++]!;
    else if (code >= FIRST_PHRASE) {
      const phrase = PHRASES[code - FIRST_PHRASE]!;
      // Copied by hand: for so few bytes, a call of `set` would take longer.
      const target = out;
      for (let i = 0; i < phrase.length; i++) target[to++] = phrase[i]!;
    } else if (code === OWN_DIGEST) to = expandHex(digests, own, HASH, to);
    else if (code === PREVIOUS_DIGEST) to = expandHex(digests, own - HASH, HASH, to);
    else if (code === HEX) {
      to = expandHex(bytes, at, HASH, to);
      at += HASH;
    } else if (code === SIGNATURE) {
      to = expandSignature(bytes, at, to);
      at += SIGNATURE_BYTES;
    } else if (code === UUID) {
      to = expandUuid(bytes, at, to);
      at += UUID_BYTES;
    } else if (code === TIME) {
      expandTime(bytes, at, to);
      at += TIME_BYTES;
      time = to;
      to += TIME_FORM.length;
    } else {
      out.copyWithin(to, time, time + TIME_FORM.length);
      to += TIME_FORM.length;
    }
  }
  return out.subarray(0, to);
}
