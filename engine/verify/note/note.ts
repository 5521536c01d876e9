/**
 * Signed notes (c2sp.org/signed-note): a text, an empty line, and lines with signatures over the text. Here they are
 * read and written, and so is the text of a checkpoint; `verify.ts` checks signatures. A note may be any text from an attacker.
 */
import { concatBytes } from "@noble/hashes/utils.js";
import { decodeBase64, encodeBase64, fromHex, toHex } from "../bytes/encoding.js";

/** One signature line. Nothing about it has been verified. */
export interface NoteSignature {
  /** The name of the key, as the line says it. */
  readonly name: string;
  /** The id of the key, as the line says it: 8 lower-case hexadecimal digits. */
  readonly keyId: string;
  /** The bytes after the key id: at least one. What they are depends on the type of the key. */
  readonly signature: Uint8Array;
  /** The line as it stands in the note, with its line feed. */
  readonly line: string;
}

/** A note taken apart. */
export interface SignedNote {
  /** What the signatures cover: everything before the separating empty line, with the last line feed. */
  readonly text: string;
  readonly signatures: readonly NoteSignature[];
}

const KEY_ID_BYTES = 4;

/** Verifiers must accept 16 signatures, each of up to 5 kB. These limits bound the work on hostile text. */
const MAX_SIGNATURES = 100;
const MAX_CHARACTERS = 1 << 20;

const NAME = /^[^\s\p{Z}\p{Cc}\p{Cs}+]+$/u;
const LONE_SURROGATE = /\p{Cs}/u;
const DASH = "\u2014 ";

/** Whether `name` may occur in a note: not empty, no white space or control character, no plus sign. */
export function isNoteName(name: string): boolean {
  return NAME.test(name);
}

/** A signature line with its line feed. `keyId` is 4 bytes, `name` one that `isNoteName` accepts. */
export function signatureLine(name: string, keyId: Uint8Array, signature: Uint8Array): string {
  return `${DASH}${name} ${encodeBase64(concatBytes(keyId, signature))}\n`;
}

/** The whole note: `text`, which ends with a line feed, and one signature line. */
export function signedNote(text: string, name: string, keyId: Uint8Array, signature: Uint8Array): string {
  return formatNote(text, [signatureLine(name, keyId, signature)]);
}

/** The whole note: `text`, which ends with a line feed, and signature lines from `signatureLine`, at least one. */
export function formatNote(text: string, lines: readonly string[]): string {
  return `${text}\n${lines.join("")}`;
}

/**
 * Takes a note apart at its last empty line; undefined for anything that is not a note of at most 2^20 characters and
 * 100 signature lines. Anybody may add a line, so a line with an invalid name or base64 is skipped: it says nothing
 * about the others. Never throws.
 */
export function parseNote(note: unknown): SignedNote | undefined {
  if (!isNoteText(note)) return undefined;
  const end = note.lastIndexOf("\n\n");
  if (end < 0) return undefined;
  const signatures = parseSignatureLines(note.slice(end + 2));
  return signatures && { text: note.slice(0, end + 1), signatures };
}

/**
 * The signature lines of `text`, which is nothing but such lines, each with its line feed (a witness answers so);
 * undefined if there is another line, none, or more than 100. Lines with an invalid name or base64 are skipped. Never
 * throws.
 */
export function parseSignatureLines(text: unknown): readonly NoteSignature[] | undefined {
  if (!isNoteText(text)) return undefined;
  const lines = text.slice(0, -1).split("\n");
  if (lines.length > MAX_SIGNATURES || !lines.every((line) => line.startsWith(DASH))) return undefined;
  return lines.flatMap((line) => {
    const end = line.lastIndexOf(" ");
    const name = line.slice(DASH.length, end);
    const bytes = decodeBase64(line.slice(end + 1));
    if (!isNoteName(name) || !bytes || bytes.length <= KEY_ID_BYTES) return [];
    const keyId = toHex(bytes.subarray(0, KEY_ID_BYTES));
    return { name, keyId, signature: bytes.subarray(KEY_ID_BYTES), line: `${line}\n` };
  });
}

/**
 * Whether `text` is one of at most 2^20 characters that ends with a line feed, can be written as UTF-8, and has no other ASCII
 * control character.
 */
function isNoteText(text: unknown): text is string {
  if (typeof text !== "string" || text.length > MAX_CHARACTERS || !text.endsWith("\n")) return false;
  if (LONE_SURROGATE.test(text)) return false;
  for (let at = 0; at < text.length; at++) if (text[at]! < " " && text[at] !== "\n") return false;
  return true;
}

// The text of a checkpoint (c2sp.org/tlog-checkpoint, "Note text"): origin, size and root of a tree, a line each.

/** The content of a checkpoint. Extension lines are not part of it. */
export interface Checkpoint {
  /** The log's name. */
  readonly origin: string;
  readonly treeSize: number;
  /** Lower-case hex. */
  readonly rootHash: string;
}

const ROOT_BYTES = 32;
const TREE_SIZE = /^(?:0|[1-9]\d{0,15})$/;

/** The note text, which a checkpoint's signatures cover. `rootHash` is lower-case hex that has been checked. */
export function checkpointText({ origin, treeSize, rootHash }: Checkpoint): string {
  return `${origin}\n${treeSize}\n${encodeBase64(fromHex(rootHash))}\n`;
}

/**
 * A tree size as checkpoints and witnesses write it: decimal, without leading zeroes, at most 2^53 − 1; undefined for
 * anything else.
 */
export function parseTreeSize(text: unknown): number | undefined {
  const size = typeof text === "string" && TREE_SIZE.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(size) ? size : undefined;
}

/**
 * What the text of a note says as a checkpoint; undefined if it is none. Extension lines are accepted and not returned.
 * Nothing is verified here: the text may come from an attacker.
 */
export function parseCheckpointText(text: string): Checkpoint | undefined {
  const [origin, size, root, ...extensions] = text.slice(0, -1).split("\n");
  const treeSize = parseTreeSize(size);
  const rootHash = decodeBase64(root);
  if (!text.endsWith("\n") || !origin || treeSize === undefined || rootHash?.length !== ROOT_BYTES) return undefined;
  if (extensions.includes("")) return undefined;
  return { origin, treeSize, rootHash: toHex(rootHash) };
}
