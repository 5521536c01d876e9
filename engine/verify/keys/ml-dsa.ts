/**
 * ML-DSA-44 (FIPS 204), which is thought to withstand quantum computers. Its code is loaded with the first signature: hardly
 * anybody who verifies has such a key.
 */

/** Bytes of a public key. */
export const ML_DSA_44_KEY_BYTES = 1312;
export const ML_DSA_44_SIGNATURE_BYTES = 2420;

/**
 * Whether `signature` is one by the key over exactly these bytes, with an empty context.
 * @param key 1312 bytes
 * @throws if the code cannot be loaded
 */
export async function verifyMlDsa44(key: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const { ml_dsa44 } = await import("@noble/post-quantum/ml-dsa.js");
  return ml_dsa44.verify(signature, message, key);
}
