/** Types for the part of `sodium-native` that is used here; the package has none. */
declare module "sodium-native" {
  const sodium: {
    readonly crypto_sign_BYTES: 64;
    readonly crypto_sign_PUBLICKEYBYTES: 32;
    readonly crypto_sign_SECRETKEYBYTES: 64;
    crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void;
    /** Asserts on lengths; returns `undefined` for memory that is shared between threads. */
    crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean | undefined;
    crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void;
    /** Sets `sum`. Throws if one of the two is not on the curve. */
    crypto_core_ed25519_add(sum: Uint8Array, a: Uint8Array, b: Uint8Array): void;
    /** SipHash-2-4: 8 bytes. Takes no memory that is shared between threads. */
    crypto_shorthash(hash: Uint8Array, bytes: Uint8Array, key: Uint8Array): void;
  };
  export default sodium;
}
