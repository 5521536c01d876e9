/** Checks the signatures of a note (c2sp.org/signed-note, "Signatures"), and cosignatures of witnesses among them. */
import { concatBytes } from "@noble/hashes/utils.js";
import { fromHex, utf8 } from "../bytes/encoding.js";
import { ML_DSA_44_SIGNATURE_BYTES, verifyMlDsa44 } from "../keys/ml-dsa.js";
import type { PublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";
import type { NoteKey } from "./key.js";
import { type NoteSignature, parseCheckpointText, parseNote, type SignedNote } from "./note.js";

// Cosignatures (c2sp.org/tlog-cosignature): a witness says that, at a time, this checkpoint was the largest one of its log that
// it had seen, and consistent with all before. The bytes in the signature line are the time (8 bytes, big-endian) and a
// signature, by Ed25519 or ML-DSA-44. The two sign different messages.

const TIME_BYTES = 8;
/** Of Ed25519 and of ML-DSA-44. */
const SIGNATURE_BYTES = [64, ML_DSA_44_SIGNATURE_BYTES];
/** Of the names in the message for ML-DSA-44: their length is a byte. */
export const MAX_NAME_BYTES = 255;

/** A cosignature taken apart. Nothing about it has been verified. */
export interface Cosignature {
  /** Seconds since 1970. With ML-DSA-44, 0 says nothing about a time, nor that no larger checkpoint was seen. */
  readonly time: number;
  /** 64 bytes of Ed25519, or 2420 of ML-DSA-44. */
  readonly signature: Uint8Array;
}

/**
 * What a key signs for a checkpoint. Ed25519 (`cosignature/v1`): two lines before the whole text. ML-DSA-44 (`subtree/v1`): a
 * structure with the name of the key and the content of the checkpoint, without extension lines.
 * @param time whole seconds since 1970
 * @param text the text of the note, extension lines and last line feed included
 * @returns undefined where ML-DSA-44 can sign nothing: for a text that is no checkpoint, and names of more than 255 bytes
 */
export function cosignatureMessage({ name, type }: NoteKey, time: number, text: string): Uint8Array | undefined {
  if (type !== "subtree/v1") return utf8(`cosignature/v1\ntime ${time}\n${text}`);
  const checkpoint = parseCheckpointText(text);
  const [cosigner, origin] = [name, checkpoint?.origin ?? ""].map(utf8) as [Uint8Array, Uint8Array];
  if (!checkpoint || Math.max(cosigner.length, origin.length) > MAX_NAME_BYTES) return undefined;
  return Uint8Array.of(
    ...utf8("subtree/v1\n\0"),
    cosigner.length,
    ...cosigner,
    ...uint64(time),
    origin.length,
    ...origin,
    // The first leaf of the subtree: a checkpoint is of the whole tree.
    ...uint64(0),
    ...uint64(checkpoint.treeSize),
    ...fromHex(checkpoint.rootHash),
  );
}

/** The bytes of a cosignature, which follow the key id in a signature line. */
export function encodeCosignature({ time, signature }: Cosignature): Uint8Array {
  return concatBytes(uint64(time), signature);
}

/** The parts of a cosignature; undefined for another length, and for times after 2^53 − 1, in 285 million years. */
export function decodeCosignature(bytes: Uint8Array): Cosignature | undefined {
  if (!SIGNATURE_BYTES.includes(bytes.length - TIME_BYTES)) return undefined;
  const time = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0));
  return Number.isSafeInteger(time) ? { time, signature: bytes.subarray(TIME_BYTES) } : undefined;
}

function uint64(value: number): Uint8Array {
  const bytes = new Uint8Array(TIME_BYTES);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}

/** A signature that holds. */
export interface VerifiedSignature {
  readonly key: NoteKey;
  /** The time in a cosignature, in seconds since 1970; null for a signature without time. */
  readonly time: number | null;
  /** The line as it stands in the note, with its line feed. */
  readonly line: string;
}

/** A note of which at least one signature by a known key was verified. */
export interface VerifiedNote {
  readonly text: string;
  /** In the order of the note. A key may have signed more than once, each time with another time. */
  readonly signatures: readonly VerifiedSignature[];
}

/** How one Ed25519 signature is checked. A server gives a faster function than the portable one; both follow the same rules. */
export type SignatureCheck = (key: PublicKey, message: Uint8Array, signature: Uint8Array) => boolean | Promise<boolean>;

/**
 * The text of a note and who signed it. Null if it is not a note, if none of `keys` signed it, or if any line with
 * the name and id of one of them does not hold. Lines of other keys, and of keys of an unknown type, are passed over. A note
 * may be any text and never throws; what throws is a lack of the code of ML-DSA-44, which is loaded for the first such
 * signature. At most 100 signatures are checked, equal lines once.
 */
export async function verifyNote(
  note: unknown,
  keys: readonly NoteKey[],
  check: SignatureCheck = verifySignature,
): Promise<VerifiedNote | null> {
  const parsed = parseNote(note);
  const signatures = parsed && (await verifySignatures(parsed, keys, check));
  return signatures?.length ? { text: parsed!.text, signatures } : null;
}

/** The signatures of a parsed note by any of `keys`: none if no key signed it; null if one of them does not hold. */
export async function verifySignatures(
  { text, signatures }: SignedNote,
  keys: readonly NoteKey[],
  check: SignatureCheck = verifySignature,
): Promise<readonly VerifiedSignature[] | null> {
  const verified = new Map<string, VerifiedSignature>();
  for (const signature of signatures) {
    const key = keys.find(
      ({ name, id, type }) => name === signature.name && id === signature.keyId && type !== "unknown",
    );
    if (!key || verified.has(signature.line)) continue;
    const time = await verifyOne(text, signature, key, check);
    if (time === undefined) return null;
    verified.set(signature.line, { key, time, line: signature.line });
  }
  return [...verified.values()];
}

/** The time in a signature that holds, or null where the type has none; undefined for a signature that does not hold. */
async function verifyOne(
  text: string,
  { signature }: NoteSignature,
  by: NoteKey,
  check: SignatureCheck,
): Promise<number | null | undefined> {
  if (by.type === "ed25519") return (await check(by.key!, utf8(text), signature)) ? null : undefined;
  const cosignature = decodeCosignature(signature);
  const message = cosignature && cosignatureMessage(by, cosignature.time, text);
  if (!message) return undefined;
  const { time, signature: signed } = cosignature;
  const holds = by.key ? check(by.key, message, signed) : verifyMlDsa44(by.material.subarray(1), message, signed);
  return (await holds) ? time : undefined;
}
