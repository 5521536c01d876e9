/**
 * Checks signatures of the three algorithms without Node: `@noble/curves` for the curves, WebCrypto for RSA. The server
 * checks with faster libraries. Both must agree on every input, including hostile ones.
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import { bytesToNumberBE, bytesToNumberLE } from "@noble/curves/utils.js";
import { sha512 } from "@noble/hashes/sha2.js";
import { toHex } from "../bytes/encoding.js";
import { DerReader, type PublicKey, TAG } from "./publickey.js";

/** Length of an Ed25519 signature, and of a P-256 signature in IEEE P1363 form. */
const CURVE_SIGNATURE_BYTES = 64;
const COORDINATE_BYTES = 32;

/**
 * Whether `signature` is a signature by the key over exactly these bytes. Message and signature may come from an
 * attacker. A malformed signature gives `false`, never an exception.
 * - Ed25519: RFC 8032 §5.1.7 by the equation without cofactor, S and R canonical, R not of small order.
 * - P-256: ECDSA with SHA-256 (FIPS 186-5 §6.4); 64 bytes are IEEE P1363, anything else must be DER. S may be high.
 * - RSA: RSASSA-PKCS1-v1_5 with SHA-256 (RFC 8017 §8.2.2).
 */
export async function verifySignature(key: PublicKey, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  try {
    switch (key.algorithm) {
      case "ed25519":
        return verifyEd25519(key.der.subarray(-COORDINATE_BYTES), message, signature);
      case "ecdsa-p256":
        return verifyP256(key.der.subarray(-(2 * COORDINATE_BYTES + 1)), message, signature);
      case "rsa-2048":
        return await verifyRsa(key.der, message, signature);
    }
  } catch {
    return false;
  }
}

/**
 * A P-256 signature as 64 bytes `r ‖ s` (IEEE P1363). 64 bytes are returned unchanged; anything else must be strict DER
 * (RFC 3279 §2.2.3). `undefined` if it is neither. The curve arithmetic checks the ranges of r and s.
 */
export function ecdsaCompact(signature: Uint8Array): Uint8Array | undefined {
  if (signature.length === CURVE_SIGNATURE_BYTES) return signature;
  try {
    const outer = new DerReader(signature);
    const pair = new DerReader(outer.read(TAG.sequence));
    outer.end();
    const r = pair.readUnsigned();
    const s = pair.readUnsigned();
    pair.end();
    if (r.length > COORDINATE_BYTES || s.length > COORDINATE_BYTES) return undefined;
    const compact = new Uint8Array(CURVE_SIGNATURE_BYTES);
    compact.set(r, COORDINATE_BYTES - r.length);
    compact.set(s, CURVE_SIGNATURE_BYTES - s.length);
    return compact;
  } catch {
    return undefined;
  }
}

/**
 * The same text for all forms of one P-256 signature; undefined for bytes that are not a signature. Anybody can turn a
 * signature (r, s) into (r, n − s), which is also valid, and can encode either as DER or as IEEE P1363.
 */
export function ecdsaIdentity(signature: Uint8Array): string | undefined {
  const compact = ecdsaCompact(signature);
  if (!compact) return undefined;
  const s = bytesToNumberBE(compact.subarray(COORDINATE_BYTES));
  const negated = p256.Point.Fn.ORDER - s;
  return `${toHex(compact.subarray(0, COORDINATE_BYTES))}:${(s < negated ? s : negated).toString(16)}`;
}

/**
 * The equation without cofactor: R must be, byte for byte, the canonical encoding of [S]B − [k]A. libsodium and OpenSSL
 * do the same. noble itself uses the equation with cofactor, which accepts signatures that they refuse.
 */
function verifyEd25519(point: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  if (signature.length !== CURVE_SIGNATURE_BYTES) return false;
  const { Point } = ed25519;
  const r = signature.subarray(0, COORDINATE_BYTES);
  const s = bytesToNumberLE(signature.subarray(COORDINATE_BYTES));
  if (s >= Point.Fn.ORDER) return false;
  const k = bytesToNumberLE(sha512.create().update(r).update(point).update(message).digest()) % Point.Fn.ORDER;
  const expected = Point.BASE.multiplyUnsafe(s).subtract(Point.fromBytes(point).multiplyUnsafe(k));
  // Only libsodium also refuses an R of small order. An honest signer meets one with probability 2^-250.
  return toHex(expected.toBytes()) === toHex(r) && !expected.isSmallOrder();
}

function verifyP256(point: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  const compact = ecdsaCompact(signature);
  return compact !== undefined && p256.verify(compact, message, point, { lowS: false });
}

async function verifyRsa(der: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean> {
  const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("spki", new Uint8Array(der), algorithm, false, ["verify"]);
  return await crypto.subtle.verify(algorithm, key, new Uint8Array(signature), new Uint8Array(message));
}
