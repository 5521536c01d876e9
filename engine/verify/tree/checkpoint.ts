/**
 * Checkpoints: a tree head as a signed note (c2sp.org/tlog-checkpoint, c2sp.org/signed-note), the form that witnesses
 * and mirrors read. The root is that of tree version 2, which has its own hashing and not that of RFC 6962.
 */
import { kernel } from "../../../wasm/index.js";
import { CairnlogError } from "../../error.js";
import { decodeBase64, encodeBase64, fromHex, toHex, utf8 } from "../encoding.js";
import type { PublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";
import { OperatorKeys } from "./operators.js";

/** The content of a checkpoint. */
export interface Checkpoint {
  /** The log's name. */
  readonly origin: string;
  readonly treeSize: number;
  /** Lower-case hex. */
  readonly rootHash: string;
}

interface NoteSignature {
  readonly name: string;
  /** Key id and signature. */
  readonly bytes: Uint8Array;
}

/** signed-note, "Signature types": Ed25519 over the note text. */
const ED25519_TYPE = 0x01;
const NEWLINE = 0x0a;
const KEY_ID_BYTES = 4;
const ED25519_BYTES = 32;
const ROOT_BYTES = 32;

/** Verifiers must accept 16 signatures, each of up to 5 kB. These limits bound the work on hostile text. */
const MAX_SIGNATURES = 100;
const MAX_CHARACTERS = 1 << 20;

const NAME = /^[^\s\p{Z}\p{Cc}\p{Cs}+]+$/u;
const LONE_SURROGATE = /\p{Cs}/u;
const TREE_SIZE = /^(?:0|[1-9]\d{0,15})$/;
const DASH = "\u2014 ";

/** Whether `name` may occur in a note: not empty, no white space or control character, no plus sign. */
export function isNoteName(name: string): boolean {
  return NAME.test(name);
}

/** The note text, which a checkpoint's signatures cover. `rootHash` is lower-case hex that has been checked. */
export function checkpointText({ origin, treeSize, rootHash }: Checkpoint): string {
  return `${origin}\n${treeSize}\n${encodeBase64(fromHex(rootHash))}\n`;
}

/**
 * The four bytes that identify a key in a signature line.
 * @throws CairnlogError `invalid-key` unless the key is Ed25519: no other algorithm of operator keys has a note type
 */
export function noteKeyId(name: string, key: PublicKey): Uint8Array {
  if (key.algorithm !== "ed25519")
    throw new CairnlogError("invalid-key", "Only an Ed25519 key can sign a checkpoint; notes know no other.");
  const point = key.der.subarray(-ED25519_BYTES);
  return kernel.sha256(Uint8Array.of(...utf8(name), NEWLINE, ED25519_TYPE, ...point)).slice(0, KEY_ID_BYTES);
}

/** The whole note: `text` (from `checkpointText`), followed by one signature line. */
export function signedNote(text: string, name: string, keyId: Uint8Array, signature: Uint8Array): string {
  return `${text}\n\u2014 ${name} ${encodeBase64(Uint8Array.of(...keyId, ...signature))}\n`;
}

/**
 * What a checkpoint says, if it is one of the log `name`, signed by its operator (of several keys
 * of a log, the one whose term the size is in); null otherwise. Lines of other keys
 * (witnesses) are passed over, and every line of the operator's must hold. Extension lines are taken and not told. Never
 * throws: the note may be any text.
 */
export async function verifyCheckpoint(
  note: string,
  operator: PublicKey | OperatorKeys,
  name: string,
): Promise<Checkpoint | null> {
  const parts = splitNote(note);
  const checkpoint = parts && readText(parts.text);
  if (!checkpoint || checkpoint.origin !== name) return null;
  const operatorKey = operator instanceof OperatorKeys ? operator.keyAt(checkpoint.treeSize) : operator;
  if (operatorKey.algorithm !== "ed25519") return null;
  const keyId = toHex(noteKeyId(name, operatorKey));
  const own = parts.signatures.filter(
    (line) => line.name === name && toHex(line.bytes.subarray(0, KEY_ID_BYTES)) === keyId,
  );
  const text = utf8(parts.text);
  for (const { bytes } of own)
    if (!(await verifySignature(operatorKey, text, bytes.subarray(KEY_ID_BYTES)))) return null;
  return own.length ? checkpoint : null;
}

/**
 * The text and the signature lines, which the last empty line separates. Anybody may add a line, so a line with an
 * invalid name or base64 is skipped: it says nothing about the others.
 */
function splitNote(note: unknown): { text: string; signatures: NoteSignature[] } | undefined {
  if (typeof note !== "string" || note.length > MAX_CHARACTERS || LONE_SURROGATE.test(note)) return undefined;
  for (const character of note) if (character < " " && character !== "\n") return undefined;
  const end = note.lastIndexOf("\n\n");
  if (end < 0 || !note.endsWith("\n")) return undefined;
  const lines = note.slice(end + 2, -1).split("\n");
  if (lines.length > MAX_SIGNATURES) return undefined;
  const signatures: NoteSignature[] = [];
  for (const line of lines) {
    if (!line.startsWith(DASH)) return undefined;
    const end = line.lastIndexOf(" ");
    const name = line.slice(DASH.length, end);
    const bytes = decodeBase64(line.slice(end + 1));
    if (isNoteName(name) && bytes && bytes.length > KEY_ID_BYTES) signatures.push({ name, bytes });
  }
  return { text: note.slice(0, end + 1), signatures };
}

function readText(text: string): Checkpoint | undefined {
  const [origin, size, root, ...extensions] = text.slice(0, -1).split("\n");
  const treeSize = TREE_SIZE.test(size ?? "") ? Number(size) : Number.NaN;
  const rootHash = decodeBase64(root);
  if (!origin || !Number.isSafeInteger(treeSize) || rootHash?.length !== ROOT_BYTES) return undefined;
  if (extensions.includes("")) return undefined;
  return { origin, treeSize, rootHash: toHex(rootHash) };
}
