/** The key with which a witness cosigns, by one of the two algorithms of c2sp.org/tlog-cosignature. */

import { CairnlogError } from "../../engine/base/error.js";
import { generateMlDsaKey, isMlDsaKey, mlDsaKey } from "../../engine/crypto/keys/ml-dsa.js";
import { generatePrivateKey } from "../../engine/crypto/keys/signatures.js";
import { operatorKey, readOrMakeKey } from "../../engine/crypto/signer/operator-key.js";
import { parsePublicKey } from "../../engine/verify/keys/publickey.js";
import { type NoteKey, noteKey, noteKeyOf } from "../../engine/verify/note/key.js";
import { MAX_NAME_BYTES } from "../../engine/verify/note/verify.js";

export const WITNESS_ALGORITHMS = ["ed25519", "ml-dsa-44"] as const;
export type WitnessAlgorithm = (typeof WITNESS_ALGORITHMS)[number];

export interface WitnessSigner {
  /** What verifies the cosignatures. */
  readonly key: NoteKey;
  sign(message: Uint8Array): Promise<Uint8Array>;
}

/** The byte that stands for such cosignatures (c2sp.org/signed-note, "Signature types"). */
const ML_DSA_TYPE = 0x06;

/**
 * Reads the key of a witness from a PEM file. If the file does not exist, makes a key there, mode 0600.
 * @param name of the witness in its cosignatures: one that `isNoteName` accepts
 * @throws CairnlogError `invalid-key`, also for a key of another algorithm; `invalid-input` for a name that is too long;
 *   `storage-failed`
 */
export async function openWitnessSigner(
  path: string,
  algorithm: WitnessAlgorithm,
  name: string,
): Promise<WitnessSigner> {
  if (algorithm === "ml-dsa-44" && Buffer.byteLength(name) > MAX_NAME_BYTES)
    throw new CairnlogError(
      "invalid-input",
      `With ML-DSA-44, the name of a witness has at most ${MAX_NAME_BYTES} bytes.`,
    );
  const pem = readOrMakeKey(path, algorithm === "ed25519" ? () => generatePrivateKey("ed25519") : generateMlDsaKey);
  const found = isMlDsaKey(pem) ? "ml-dsa-44" : operatorKey(pem).public.algorithm;
  if (found !== algorithm)
    throw new CairnlogError(
      "invalid-key",
      `The key in ${path} is of the algorithm ${found}, and the witness was to sign with ${algorithm}. Say --algorithm ${found}, or name another file with --key: a key of another algorithm is another key, which those who rely on the witness must be given.`,
    );
  if (algorithm === "ml-dsa-44") {
    const { publicKey, sign } = await mlDsaKey(pem);
    return { key: noteKeyOf(name, Uint8Array.of(ML_DSA_TYPE, ...publicKey)), sign: async (message) => sign(message) };
  }
  const key = operatorKey(pem);
  return {
    key: noteKey(name, parsePublicKey(key.public.pem), "cosignature/v1"),
    sign: async (message) => (await key.sign([message]))[0]!,
  };
}
