/** Checks the signatures of a note (c2sp.org/signed-note, "Signatures"). */
import { utf8 } from "../bytes/encoding.js";
import { verifyMlDsa44 } from "../keys/ml-dsa.js";
import type { PublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";
import { cosignatureMessage, decodeCosignature } from "./cosignature.js";
import type { NoteKey } from "./key.js";
import { type NoteSignature, parseNote, type SignedNote } from "./note.js";

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
