/** Crowds of signers: each key follows from its number, so a million of them need no memory. */
import { hash } from "node:crypto";
import sodium from "sodium-native";
import type { Signer } from "../load/submissions.js";

/** Signers that take turns: number `first`, the one `step` further, and so on, in a circle of `size`. */
export interface Crowd {
  /** Crowds of different names have no key in common. */
  readonly name: string;
  readonly size: number;
  readonly first: number;
  readonly step: number;
}

/** SubjectPublicKeyInfo of an Ed25519 key before the 32 bytes of its point (RFC 8410 §4). */
const BEFORE_POINT = Buffer.from("302a300506032b6570032100", "hex");

/** Signer number `number` of the crowd `name`: its seed is a hash of both. By libsodium, which takes a sixth of Node's time. */
export function signerIn(name: string, number: number): Signer {
  const point = Buffer.allocUnsafe(sodium.crypto_sign_PUBLICKEYBYTES);
  const secret = Buffer.allocUnsafe(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(point, secret, hash("sha256", `signer ${number} of ${name}`, "buffer"));
  const spki = Buffer.concat([BEFORE_POINT, point]).toString("base64");
  return {
    public_key_pem: `-----BEGIN PUBLIC KEY-----\n${spki}\n-----END PUBLIC KEY-----\n`,
    sign(message) {
      const signature = Buffer.allocUnsafe(sodium.crypto_sign_BYTES);
      sodium.crypto_sign_detached(signature, Buffer.from(message), secret);
      return signature.toString("base64");
    },
  };
}

/** The signer of attestation number `n`. */
export const signerAt = ({ name, size, first, step }: Crowd, n: number): Signer =>
  signerIn(name, (first + n * step) % size);
