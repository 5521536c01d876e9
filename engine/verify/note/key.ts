/**
 * Keys of signed notes, and their text form, the verifier key or vkey (c2sp.org/signed-note, "Verifier keys"):
 * `name+id+base64(type ‖ key)`. Three types are known here.
 */
import { concatBytes } from "@noble/hashes/utils.js";
import { CairnlogError, inputError } from "../../base/error.js";
import { decodeBase64, encodeBase64, fromHex, toHex, utf8 } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import { ML_DSA_44_KEY_BYTES } from "../keys/ml-dsa.js";
import { ed25519PublicKey, type PublicKey } from "../keys/publickey.js";
import { isNoteName } from "./note.js";

/**
 * What a signature of the key covers. `ed25519`: the text of the note. As witnesses sign (c2sp.org/tlog-cosignature),
 * `cosignature/v1`: the text and a time, by Ed25519; `subtree/v1`: a checkpoint without its extension lines, and a time, by
 * ML-DSA-44. `unknown`: none of these, so that nothing can be verified with the key.
 */
export type NoteKeyType = "ed25519" | "cosignature/v1" | "subtree/v1" | "unknown";

/** A key that signs notes. */
export interface NoteKey {
  /** Name and id are what signature lines say. */
  readonly name: string;
  /** 8 lower-case hexadecimal digits. Not a strong hash: anybody can make another key with the same id. */
  readonly id: string;
  readonly type: NoteKeyType;
  /** A byte for the type, and the key as its algorithm encodes it. */
  readonly material: Uint8Array;
  /** The key, if it is Ed25519; null otherwise. */
  readonly key: PublicKey | null;
}

/** What each first byte of `material` stands for (signed-note, "Signature types"). */
const TYPES: Readonly<Record<number, NoteKeyType | undefined>> = {
  1: "ed25519",
  4: "cosignature/v1",
  6: "subtree/v1",
};

const KEY_ID_BYTES = 4;
const ED25519_BYTES = 32;
/** Names and keys have no bound in the specification. This one is far above every name and key in use. */
const MAX_CHARACTERS = 8_192;
const KEY_ID = /^[0-9a-f]{8}$/;

/**
 * The four bytes that identify an Ed25519 key in a signature line: the beginning of SHA-256(name ‖ 0x0A ‖ type ‖ key).
 * @throws CairnlogError as `noteKey` does
 */
export function noteKeyId(...named: Parameters<typeof noteKey>): Uint8Array {
  return fromHex(noteKey(...named).id);
}

/**
 * An Ed25519 key under the name with which it signs notes.
 * @throws CairnlogError `invalid-key` unless the key is Ed25519: no other algorithm of operator keys has a note type;
 *   `invalid-input` for a name that notes cannot hold
 */
export function noteKey(name: string, key: PublicKey, type: "ed25519" | "cosignature/v1" = "ed25519"): NoteKey {
  if (key.algorithm !== "ed25519") throw new CairnlogError("invalid-key", "Only an Ed25519 key can sign a checkpoint.");
  return noteKeyOf(name, Uint8Array.of(type === "ed25519" ? 0x01 : 0x04, ...key.der.subarray(-ED25519_BYTES)));
}

/**
 * A key under the name with which it signs notes, its id computed as recommended.
 * @param material as in `NoteKey`
 * @throws CairnlogError `invalid-key` for an ML-DSA-44 key of another length, and an Ed25519 key that is not a canonical point
 *   of large order; `invalid-input` for a name that notes cannot hold
 */
export function noteKeyOf(name: string, material: Uint8Array): NoteKey {
  if (!isNoteName(name)) throw inputError("The name of a note's key has no spaces, control characters and plus signs.");
  const type = TYPES[material[0]!] ?? "unknown";
  const bytes = material.subarray(1);
  if (type === "subtree/v1" && bytes.length !== ML_DSA_44_KEY_BYTES) throw invalid("An ML-DSA-44 key has 1312 bytes.");
  const key = type === "ed25519" || type === "cosignature/v1" ? ed25519PublicKey(bytes) : null;
  const id = toHex(kernel.sha256(concatBytes(utf8(`${name}\n`), material))).slice(0, 2 * KEY_ID_BYTES);
  return { name, id, type, material, key };
}

/** The text form of a key. */
export function formatVkey({ name, id, material }: NoteKey): string {
  return `${name}+${id}+${encodeBase64(material)}`;
}

/**
 * Reads a verifier key. The text may come from an attacker.
 * @throws CairnlogError `invalid-key` for anything but the one spelling of a key whose id is computed as recommended;
 *   for a type that is not known here; for a key that is not a canonical Ed25519 point of large order
 */
export function parseVkey(text: string): NoteKey {
  const key = parseAnyVkey(text);
  if (key.type === "unknown")
    throw invalid(
      `Keys of type 0x${toHex(key.material.subarray(0, 1))} are not supported; known are 0x01, 0x04 and 0x06.`,
    );
  return key;
}

/** Like `parseVkey`, but a key of a type that is not known here is read, too. Its id is taken as it is written. */
export function parseAnyVkey(text: string): NoteKey {
  if (typeof text !== "string" || text.length > MAX_CHARACTERS) throw invalid("The text is too long.");
  // A name has no plus sign, but base64 may.
  const [name = "", id = "", ...rest] = text.split("+");
  if (!isNoteName(name) || !KEY_ID.test(id) || rest.length === 0)
    throw invalid("It is a name, 8 hexadecimal digits and base64, joined by plus signs.");
  const material = decodeBase64(rest.join("+"));
  if (!material || material.length < 1) throw invalid("Its last part is not strict base64.");
  const parsed = noteKeyOf(name, material);
  if (parsed.type === "unknown") return { ...parsed, id };
  if (parsed.id !== id) throw invalid(`Its id should be ${parsed.id}: one of its three parts is misspelt.`);
  return parsed;
}

function invalid(why: string): CairnlogError {
  return new CairnlogError("invalid-key", `This is not a verifier key (vkey). ${why}`);
}
