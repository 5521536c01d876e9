/**
 * Private keys of ML-DSA-44 (FIPS 204), as PKCS #8 in PEM (RFC 9881): the seed alone is written, and the seed with the
 * expanded key, which OpenSSL writes by default, is read as well. Node knows the algorithm only with OpenSSL 3.5 and later, so
 * noble computes.
 */
import { randomBytes } from "node:crypto";
import { CairnlogError } from "../../base/error.js";

/** A private key that is held in memory. */
interface MlDsaKey {
  /** 1312 bytes. */
  readonly publicKey: Uint8Array;
  /** A signature of 2420 bytes, with an empty context. It takes some milliseconds. */
  sign(message: Uint8Array): Uint8Array;
}

const SEED_BYTES = 32;
/** The algorithm's object identifier, 2.16.840.1.101.3.4.3.17, in DER. */
const OID = "0609608648016503040311";
const SEED_ONLY = Buffer.from(`3034020100300b${OID}04228020`, "hex");
const SEED_AND_EXPANDED = Buffer.from(`30820a3e020100300b${OID}04820a2a30820a260420`, "hex");
/** Tag and length of the expanded key, which follows the seed. */
const EXPANDED = Buffer.from("04820a00", "hex");

const PEM = /^-----BEGIN PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----\s*$/;

/** Makes a key. @returns PKCS #8 as PEM */
export function generateMlDsaKey(): string {
  const lines = Buffer.concat([SEED_ONLY, randomBytes(SEED_BYTES)])
    .toString("base64")
    .match(/.{1,64}/g)!;
  return `-----BEGIN PRIVATE KEY-----\n${lines.join("\n")}\n-----END PRIVATE KEY-----\n`;
}

/** Whether a PEM private key is of ML-DSA-44. It may still be damaged. */
export function isMlDsaKey(pem: string): boolean {
  return derOf(pem).subarray(0, SEED_AND_EXPANDED.length).includes(Buffer.from(OID, "hex"));
}

/** Parses a PEM private key of ML-DSA-44. @throws CairnlogError `invalid-key` */
export async function mlDsaKey(pem: string): Promise<MlDsaKey> {
  const der = derOf(pem);
  const prefix = [SEED_ONLY, SEED_AND_EXPANDED].find((known) => der.subarray(0, known.length).equals(known));
  const seed = der.subarray(prefix?.length, (prefix?.length ?? 0) + SEED_BYTES);
  const rest = der.subarray((prefix?.length ?? 0) + SEED_BYTES);
  if (!prefix || seed.length !== SEED_BYTES) throw invalid("It must be PKCS #8 with the seed of the key.");
  const { ml_dsa44 } = await import("@noble/post-quantum/ml-dsa.js");
  const { publicKey, secretKey } = ml_dsa44.keygen(new Uint8Array(seed));
  const expanded = prefix === SEED_ONLY ? Buffer.alloc(0) : Buffer.concat([EXPANDED, secretKey]);
  if (!rest.equals(expanded)) throw invalid("Its expanded key does not follow from its seed.");
  return { publicKey, sign: (message) => ml_dsa44.sign(message, secretKey) };
}

const derOf = (pem: string): Buffer => Buffer.from(PEM.exec(pem)?.[1] ?? "", "base64");

// The error must not contain the key, because errors are logged.
function invalid(why: string): CairnlogError {
  return new CairnlogError("invalid-key", `This is not a private key of ML-DSA-44. ${why}`);
}
