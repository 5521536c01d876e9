/** Signatures in a request that prove possession of the key that the request names. */

import { CairnlogError } from "../../base/error.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/verifier.js";
import { decodeSignature, invalidInput } from "../shared/input.js";

/** A signature that a request carries. */
interface ShownPossession {
  /** Returns the bytes to sign. Called only if the signature has the right form. */
  readonly message: () => Uint8Array;
  /** Base64. An attacker may send anything. */
  readonly signature: unknown;
  /** JSON Pointer of the signature in the request. */
  readonly path: string;
  /** Completes the sentence "The signature is not the key's over …". */
  readonly about: string;
}

/**
 * Checks a signature of possession.
 * @returns the signature as it was sent
 * @throws CairnlogError `invalid-input` when it is not strict base64; `invalid-signature` when it does not verify
 */
export async function checkPossession(
  verifier: Pick<SignatureVerifier, "verify">,
  key: ServerKey,
  { message, signature, path, about }: ShownPossession,
): Promise<string> {
  const decoded = decodeSignature(signature);
  if (!decoded) throw invalidInput(path, "The signature must be strict base64, padded and without spaces.");
  if (!(await verifier.verify(key, message(), decoded)))
    throw new CairnlogError("invalid-signature", `The signature is not the key's over ${about}.`);
  return signature as string;
}
