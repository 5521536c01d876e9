/**
 * Keys of signed notes, and their text form, the verifier key or vkey (c2sp.org/signed-note, "Verifier keys"):
 * `name+id+base64(type ‖ key)`. Two types are known here. With each, the key itself is Ed25519.
 */
import { kernel } from "../../../wasm/index.js";
import { CairnlogError, inputError } from "../../error.js";
import { decodeBase64, encodeBase64, toHex, utf8 } from "../encoding.js";
import { ed25519PublicKey, type PublicKey } from "../keys/publickey.js";
import { isNoteName } from "./note.js";

/**
 * What a signature of the key covers: `ed25519` the text of the note, `cosignature/v1` the text and a time, as witnesses
 * sign it (c2sp.org/tlog-cosignature).
 */
export type NoteKeyType = "ed25519" | "cosignature/v1";

/** A key that signs notes. */
export interface NoteKey {
  /** Name and id are what signature lines say. */
  readonly name: string;
  /** 8 lower-case hexadecimal digits. Not a strong hash: anybody can make another key with the same id. */
  readonly id: string;
  readonly type: NoteKeyType;
  /** Always Ed25519. */
  readonly key: PublicKey;
}

/** The byte that stands for each type (signed-note, "Signature types"). */
const TYPE_BYTES: Readonly<Record<NoteKeyType, number>> = { ed25519: 0x01, "cosignature/v1": 0x04 };
const NEWLINE = 0x0a;
const KEY_ID_BYTES = 4;
const ED25519_BYTES = 32;
/** A name has no bound in the specification. This one is far above every name in use. */
const MAX_CHARACTERS = 1_024;
const KEY_ID = /^[0-9a-f]{8}$/;

/**
 * The four bytes that identify a key in a signature line: the beginning of SHA-256(name ‖ 0x0A ‖ type ‖ key).
 * @throws CairnlogError `invalid-key` unless the key is Ed25519: no other algorithm of operator keys has a note type
 */
export function noteKeyId(name: string, key: PublicKey, type: NoteKeyType = "ed25519"): Uint8Array {
  if (key.algorithm !== "ed25519")
    throw new CairnlogError("invalid-key", "Only an Ed25519 key can sign a checkpoint; notes know no other.");
  return kernel.sha256(Uint8Array.of(...utf8(name), NEWLINE, ...material(key, type))).slice(0, KEY_ID_BYTES);
}

/**
 * An Ed25519 key under the name with which it signs notes.
 * @throws CairnlogError `invalid-key` unless the key is Ed25519; `invalid-input` for a name that notes cannot hold
 */
export function noteKey(name: string, key: PublicKey, type: NoteKeyType = "ed25519"): NoteKey {
  if (!isNoteName(name)) throw inputError("The name of a note's key has no spaces, control characters and plus signs.");
  return { name, id: toHex(noteKeyId(name, key, type)), type, key };
}

/** The text form of a key. */
export function formatVkey({ name, id, type, key }: NoteKey): string {
  return `${name}+${id}+${encodeBase64(material(key, type))}`;
}

/**
 * Reads a verifier key. The text may come from an attacker.
 * @throws CairnlogError `invalid-key` for anything but the one spelling of a key whose id is computed as recommended;
 *   for a type that is not known here; for a key that is not a canonical Ed25519 point of large order
 */
export function parseVkey(text: string): NoteKey {
  if (typeof text !== "string" || text.length > MAX_CHARACTERS) throw invalid("The text is too long.");
  // A name has no plus sign, but base64 may.
  const [name = "", id = "", ...rest] = text.split("+");
  if (!isNoteName(name) || !KEY_ID.test(id) || rest.length === 0)
    throw invalid("It is a name, 8 hexadecimal digits and base64, joined by plus signs.");
  const bytes = decodeBase64(rest.join("+"));
  if (!bytes || bytes.length < 1) throw invalid("Its last part is not strict base64.");
  const type = (Object.keys(TYPE_BYTES) as NoteKeyType[]).find((known) => TYPE_BYTES[known] === bytes[0]);
  if (!type)
    throw invalid(
      `Keys of type 0x${toHex(bytes.subarray(0, 1))} are not supported; known are 0x01 and 0x04 (Ed25519).`,
    );
  if (bytes.length !== 1 + ED25519_BYTES) throw invalid("An Ed25519 key has 32 bytes.");
  const parsed = noteKey(name, ed25519PublicKey(bytes.subarray(1)), type);
  if (parsed.id !== id) throw invalid(`Its id should be ${parsed.id}: one of its three parts is misspelt.`);
  return parsed;
}

/** Type and key, as they are hashed and written. */
function material(key: PublicKey, type: NoteKeyType): Uint8Array {
  return Uint8Array.of(TYPE_BYTES[type], ...key.der.subarray(-ED25519_BYTES));
}

function invalid(why: string): CairnlogError {
  return new CairnlogError("invalid-key", `This is not a verifier key (vkey). ${why}`);
}
