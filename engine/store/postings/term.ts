/**
 * Terms: the keys by which an entry can be found. A term is a string of 17 Latin-1 characters: the posting kind and a
 * 16-byte key. Byte for byte, it is the sort key in memory (`termtable.ts`) and on disk.
 */

import { hash } from "node:crypto";
import { Recent } from "../../base/recent.js";
import { isPrefixedHash } from "../../verify/bytes/encoding.js";
import { POSTING, type PostingKind } from "../schema/schema.js";

export const TERM_BYTES = 17;
const KEY_BYTES = 16;
const PREFIX = "sha256:";

const KIND_CHAR: readonly string[] = Array.from({ length: 256 }, (_, kind) => String.fromCharCode(kind));

/** Clients choose the texts, so length and number are both limited: about 2 MB in all. */
const KEPT_TERMS = 1024;
const MAX_KEPT_CHARACTERS = 256;

/** Cached terms by text, for kinds where many entries share a term. */
const kept = new Map<PostingKind, Recent<string, string>>(
  [POSTING.eventType, POSTING.tag, POSTING.fingerprint].map((kind) => [kind, new Recent(KEPT_TERMS)]),
);

/**
 * A term that can only be compared for equality: the first 16 bytes of the text's SHA-256. Frequent terms (types, tags,
 * signers) are cached, because a look-up costs a third of a hash.
 */
export function hashedTerm(kind: PostingKind, text: string): string {
  return keptTerm(kind, text, asIs);
}

/**
 * A `hashedTerm` for a text that usually is a lower-case hex SHA-256, with or without `sha256:`: both forms give one
 * term. It is hashed again, because clients choose these texts and could make many with the same beginning.
 */
export function hashTerm(kind: PostingKind, text: string): string {
  return keptTerm(kind, text, withoutPrefix);
}

const asIs = (text: string): string => text;
const withoutPrefix = (text: string): string => (isPrefixedHash(text) ? text.slice(PREFIX.length) : text);

/** @param normal returns the part of the text that is hashed; must be the same function for all texts of a kind */
function keptTerm(kind: PostingKind, text: string, normal: (text: string) => string): string {
  const recent = kept.get(kind);
  const make = () => KIND_CHAR[kind] + hash("sha256", normal(text), "binary").slice(0, KEY_BYTES);
  return recent && text.length <= MAX_KEPT_CHARACTERS ? recent.made(text, make) : make();
}

/** Of these characters each is one byte. */
const ASCII = /^[\0-\x7f]*$/;

const DIGITS = Int8Array.from({ length: 128 }, (_, code) => Number.parseInt(String.fromCharCode(code), 16) || 0);
const scratch = Buffer.allocUnsafeSlow(TERM_BYTES);

/** A term of a prefix kind over lower-case hex digits, filled with zeros on the right. It sorts like the hex text. */
export function hexPrefixTerm(kind: PostingKind, hex: string): string {
  // `Buffer.from(hex, "hex")`, cut and filled beforehand, took three times as long.
  scratch[0] = kind;
  for (let i = 1, at = 0; i < TERM_BYTES; i++, at += 2) scratch[i] = (digitAt(hex, at) << 4) | digitAt(hex, at + 1);
  return scratch.toString("latin1");
}

const digitAt = (hex: string, at: number): number => (at < hex.length ? DIGITS[hex.charCodeAt(at)]! : 0);

/** A term of a prefix kind over text: its first 16 UTF-8 bytes, filled with zeros. */
export function textPrefixTerm(kind: PostingKind, text: string): string {
  // Most words of titles: four times as fast as through a buffer.
  if (ASCII.test(text)) return KIND_CHAR[kind] + text.slice(0, KEY_BYTES).padEnd(KEY_BYTES, "\0");
  return KIND_CHAR[kind] + Buffer.from(text, "utf8").toString("latin1", 0, KEY_BYTES).padEnd(KEY_BYTES, "\0");
}

/** Terms for every substring of one, two or three characters of a case-folded text, each once. */
export function gramTerms(folded: string): Set<string> {
  const terms = new Set<string>();
  if (ASCII.test(folded)) {
    // A default pseudonym has 33 of them, and most pseudonyms are ASCII: an eighth of the time of the general way.
    for (let length = 1; length <= 3; length++)
      for (let i = 0; i + length <= folded.length; i++)
        terms.add(GRAM_CHAR + folded.slice(i, i + length) + GRAM_PADDING[length]);
    return terms;
  }
  const characters = [...folded];
  for (let length = 1; length <= 3; length++)
    for (let i = 0; i + length <= characters.length; i++)
      terms.add(textPrefixTerm(POSTING.pseudonymGram, characters.slice(i, i + length).join("")));
  return terms;
}

const GRAM_CHAR = KIND_CHAR[POSTING.pseudonymGram]!;
const GRAM_PADDING = [0, 1, 2, 3].map((length) => "\0".repeat(KEY_BYTES - length));
