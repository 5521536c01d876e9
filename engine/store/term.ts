/**
 * Terms: what an entry can be found by. A term is a string of 17 Latin-1 characters, the posting kind and a 16-byte
 * key, so that it serves as a Map key in memory and, byte for byte, as the sort key on disk.
 */
import { hash } from "node:crypto";
import { Recent } from "../recent.js";
import { POSTING, type PostingKind } from "./schema.js";

export const TERM_BYTES = 17;
const KEY_BYTES = 16;
const HASH_TEXT = /^(?:sha256:)?([0-9a-f]{64})$/;

const KIND_CHAR: readonly string[] = Array.from({ length: 256 }, (_, kind) => String.fromCharCode(kind));

/** Texts are the clients', so both are bounded: at most some 500 KB in all. */
const KEPT_TERMS = 1024;
const MAX_KEPT_CHARACTERS = 256;

/** By kind and text. */
const kept = new Recent<string, string>(KEPT_TERMS);

/**
 * A term known only to be equal or not: the first 16 bytes of the text's SHA-256. Of ten that an attestation needs, four
 * came lately (its type, its signer, a tag, its own identity a moment ago), and a look-up costs a third of a hash.
 */
export function hashedTerm(kind: PostingKind, text: string): string {
  const kindCharacter = KIND_CHAR[kind]!;
  const make = () => kindCharacter + hash("sha256", text, "binary").slice(0, KEY_BYTES);
  return text.length > MAX_KEPT_CHARACTERS ? make() : kept.get(kindCharacter + text, make);
}

/**
 * The same for a text that usually is a SHA-256 in hex, bare or with `sha256:`, in lower case: both forms are one term.
 * Hashed again, because clients choose these texts and could make many that begin alike.
 */
export function hashTerm(kind: PostingKind, text: string): string {
  return hashedTerm(kind, HASH_TEXT.exec(text)?.[1] ?? text);
}

/** A term of a prefix kind over hex digits, zero-filled on the right: sorts as the hex does. */
export function hexPrefixTerm(kind: PostingKind, hex: string): string {
  return (
    KIND_CHAR[kind] + Buffer.from(hex.slice(0, 2 * KEY_BYTES).padEnd(2 * KEY_BYTES, "0"), "hex").toString("latin1")
  );
}

/** A term of a prefix kind over text: its first 16 UTF-8 bytes, zero-filled. */
export function textPrefixTerm(kind: PostingKind, text: string): string {
  return KIND_CHAR[kind] + Buffer.from(text, "utf8").toString("latin1", 0, KEY_BYTES).padEnd(KEY_BYTES, "\0");
}

/** Terms for every run of one, two and three characters of a case-folded text, each once. */
export function gramTerms(folded: string): Set<string> {
  const characters = [...folded];
  const terms = new Set<string>();
  for (let length = 1; length <= 3; length++)
    for (let i = 0; i + length <= characters.length; i++)
      terms.add(textPrefixTerm(POSTING.pseudonymGram, characters.slice(i, i + length).join("")));
  return terms;
}
