/** Crowds of signers: each key follows from its number, so a million of them need no memory. */
import { createPrivateKey, hash } from "node:crypto";
import { type Signer, signerOf } from "../load/submissions.js";

/** Signers that take turns: number `first`, the one `step` further, and so on, in a circle of `size`. */
export interface Crowd {
  /** Crowds of different names have no key in common. */
  readonly name: string;
  readonly size: number;
  readonly first: number;
  readonly step: number;
}

/** PKCS #8 of an Ed25519 key before the 32 bytes of its seed (RFC 8410 §7). */
const BEFORE_SEED = Buffer.from("302e020100300506032b657004220420", "hex");

/** Signer number `number` of the crowd `name`: its seed is a hash of both. */
export function signerIn(name: string, number: number): Signer {
  const seed = hash("sha256", `signer ${number} of ${name}`, "buffer");
  return signerOf(createPrivateKey({ key: Buffer.concat([BEFORE_SEED, seed]), format: "der", type: "pkcs8" }));
}

/** The signer of attestation number `n`. */
export const signerAt = ({ name, size, first, step }: Crowd, n: number): Signer =>
  signerIn(name, (first + n * step) % size);
