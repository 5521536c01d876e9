import { verifySync } from "../../crypto/keys/signatures.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { isSignedHere } from "../../crypto/signer/operator-key.js";

/** Whoever signs the tree heads. The log knows nothing else of keys. */
export interface Signer {
  /** `sha256:` + hex of SHA-256 over the key's SPKI; the `key_id` of every head. */
  readonly fingerprint: string;
  /**
   * Signs each message, in order; called with the heads of one batch at a time.
   * Rejecting fails the batch and leaves the log as it is on disk; the next batch asks again.
   */
  sign(messages: readonly Uint8Array[]): Promise<readonly Uint8Array[]>;
}

/**
 * Asks for a signature of each message, at least one. What a signer answers goes on disk for ever, and it may be a token
 * behind a driver. So the last signature is verified, for 50 µs, and of the others the length: an answer of another key
 * or for another call cannot pass. A key in this process cannot answer so, and its signatures are not verified.
 * @param key the signer's public key
 * @returns all signatures, one after the other, in a copy: the signer may use its memory again
 * @throws RangeError for another answer than one signature for each message; what the signer throws
 */
export async function signatures(
  signer: Pick<Signer, "sign">,
  key: ServerKey,
  messages: readonly Uint8Array[],
): Promise<Buffer> {
  const answer = await signer.sign(messages);
  const count = messages.length;
  const last = answer[count - 1];
  const isSigned = last !== undefined && (isSignedHere(signer, key) || verifySync(key, messages[count - 1]!, last));
  if (answer.length !== count || !isSigned) throw misfit();
  const { length } = last;
  const joined = Buffer.allocUnsafeSlow(length * count);
  for (let i = 0; i < count; i++) {
    const signature: unknown = answer[i];
    if (!(signature instanceof Uint8Array) || signature.length !== length) throw misfit();
    joined.set(signature, length * i);
  }
  return joined;
}

const misfit = (): RangeError => new RangeError("The signer did not answer with its signature of each message.");
