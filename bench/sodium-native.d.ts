/** Types for the part of `sodium-native` that is used here; the package has none. */
declare module "sodium-native" {
  const sodium: {
    readonly crypto_sign_BYTES: 64;
    readonly crypto_sign_PUBLICKEYBYTES: 32;
    readonly crypto_sign_SECRETKEYBYTES: 64;
    /** Asserts on lengths; returns `undefined` for memory that is shared between threads. */
    crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean | undefined;
    crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void;
    crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void;
  };
  export default sodium;
}
