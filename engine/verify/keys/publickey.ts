/**
 * Public keys: which keys this log accepts, and their only form, which is hashed. A key is sent as PEM (RFC 7468 §13)
 * of a SubjectPublicKeyInfo (RFC 5280 §4.1). Its fingerprint is its identity. The server uses this code too, so no key
 * can be valid for only one side.
 */
import { ed25519 } from "@noble/curves/ed25519.js";
import { p256 } from "@noble/curves/nist.js";
import { concatBytes } from "@noble/hashes/utils.js";
import { CairnlogError } from "../../base/error.js";
import { decodeBase64, encodeBase64, fromHex, toHex } from "../bytes/encoding.js";
import { kernel } from "../bytes/kernel.js";
import { type KeyAlgorithm, MAX_PEM_CHARACTERS } from "./contract.js";
import { factorable } from "./modulus.js";

// A strict reader for the part of DER (ITU-T X.690 §§8, 10) that keys and signatures need. Every value has one encoding
// here, so that no two verifiers can disagree about an encoding that a tolerant parser would accept.

/** Reads DER elements from bytes that may come from an attacker; throws `RangeError` at the first deviation. */
export class DerReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The contents of the next element, which must have the given tag. A view, not a copy. */
  read(tag: number): Uint8Array {
    if (this.#byte() !== tag) throw new RangeError("unexpected DER tag");
    const length = this.#length();
    if (length > this.#bytes.length - this.#at) throw new RangeError("truncated DER element");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /**
   * The next element, an INTEGER ≥ 0 in the fewest possible bytes. Returns its magnitude, big-endian; empty for zero.
   */
  readUnsigned(): Uint8Array {
    const contents = this.read(TAG.integer);
    const [first, second] = contents;
    if (first === undefined || first > 0x7f) throw new RangeError("DER INTEGER is empty or negative");
    if (first !== 0) return contents;
    if (second !== undefined && second <= 0x7f) throw new RangeError("DER INTEGER has a superfluous zero byte");
    return contents.subarray(1);
  }

  /** @throws RangeError unless all bytes have been read. */
  end(): void {
    if (this.#at !== this.#bytes.length) throw new RangeError("bytes after the DER element");
  }

  #length(): number {
    const first = this.#byte();
    if (first < 0x80) return first;
    // Two bytes of length are enough for every accepted key, and 0x80 (indefinite) is not DER.
    const count = first - 0x80;
    if (count < 1 || count > 2) throw new RangeError("DER length out of range");
    let length = 0;
    for (let i = 0; i < count; i++) length = length * 256 + this.#byte();
    if (length < (count === 1 ? 0x80 : 0x100)) throw new RangeError("DER length is not minimal");
    return length;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new RangeError("truncated DER element");
    return byte;
  }
}

/** The universal tags used here. */
export const TAG = { integer: 0x02, bitString: 0x03, sequence: 0x30 } as const;

/** `rsa-2048` is the label of every RSA key of 2048 bits or more. */
export type { KeyAlgorithm };

/** A key that passed every check of `parsePublicKey`. */
export interface PublicKey {
  readonly algorithm: KeyAlgorithm;
  /** `sha256:` and the hex of SHA-256 over `der`. */
  readonly fingerprint: string;
  /** SubjectPublicKeyInfo, encoded again: a P-256 point is uncompressed even if a compressed one was sent. */
  readonly der: Uint8Array;
  /** `der` as PEM in lines of 64 columns, each ended by a line feed. */
  readonly pem: string;
}

const PEM = /^\s*-----BEGIN PUBLIC KEY-----[ \t]*\r?\n((?:[A-Za-z0-9+/=]+[ \t]*\r?\n)+)-----END PUBLIC KEY-----\s*$/;
const PRIVATE_PEM = /BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY/i;

const RSA_MIN_BITS = 2048;
const RSA_MAX_BITS = 8192;

// AlgorithmIdentifier contents: RFC 8410 §3 (no parameters), RFC 5480 §2.1.1 (named curve), RFC 8017 §A.1 (NULL).
const ED25519 = "06032b6570";
const P256 = "06072a8648ce3d020106082a8648ce3d030107";
const RSA = "06092a864886f70d0101010500";
/** SubjectPublicKeyInfo of an Ed25519 key up to its point. */
export const ED25519_SPKI_PREFIX = fromHex(`302a3005${ED25519}032100`);
const P256_SPKI_PREFIX = fromHex(`30593013${P256}034200`);

const ACCEPTED = "Accepted are Ed25519, ECDSA on P-256, and RSA of 2048 to 8192 bits with exponent 65537.";

/** @throws CairnlogError `invalid-key` unless the bytes are the canonical encoding of a point of large order */
type PointCheck = (point: Uint8Array) => void;

/**
 * Parses and checks one PEM block `PUBLIC KEY`. The text may come from an attacker.
 * @param checkPoint checks the point of an Ed25519 key, as `checkEd25519Point` does
 * @throws CairnlogError `private-key` for a private key; `invalid-key` for anything else that is not exactly
 *   one acceptable public key.
 */
export function parsePublicKey(pem: string, checkPoint: PointCheck = checkEd25519Point): PublicKey {
  return parse(pem, { checkPoint, checkModulus: requireStrong });
}

/**
 * Like `parsePublicKey`, for a key on the log: earlier versions accepted RSA moduli that anybody can factor. What they
 * recorded stays readable. Signatures of such a key prove nothing, so nothing is verified with it.
 */
export function parseRecordedKey(pem: string): PublicKey {
  return parse(pem, { checkPoint: checkEd25519Point, checkModulus() {} });
}

/** What is checked of the numbers in a key. */
interface Checks {
  readonly checkPoint: PointCheck;
  checkModulus(modulus: Uint8Array): void;
}

function parse(pem: string, checks: Checks): PublicKey {
  if (typeof pem !== "string") throw invalidKey("The public key must be PEM text.");
  // Limits the work on hostile text. A private RSA key of 5120 bits and more is longer, and is called too long.
  if (pem.length > MAX_PEM_CHARACTERS) throw invalidKey("The text is too long for a public key.");
  if (PRIVATE_PEM.test(pem)) throw privateKey();
  const body = PEM.exec(pem)?.[1];
  if (body === undefined) throw invalidKey('The text must be one PEM block "PUBLIC KEY" and nothing else.');
  const sent = decodeBase64(body.replace(/\s+/g, ""));
  if (sent === undefined) throw invalidKey("The PEM block does not hold strict base64.");
  const { algorithm, der } = readSpki(sent, checks);
  return withForms(algorithm, der);
}

/**
 * The key of an Ed25519 point in its 32 bytes (RFC 8032 §5.1.2). The bytes may come from an attacker.
 * @throws CairnlogError `invalid-key` unless they are the canonical encoding of a point of large order
 */
export function ed25519PublicKey(point: Uint8Array): PublicKey {
  checkEd25519Point(point);
  return withForms("ed25519", concatBytes(ED25519_SPKI_PREFIX, point));
}

function withForms(algorithm: KeyAlgorithm, der: Uint8Array): PublicKey {
  return { algorithm, der, fingerprint: `sha256:${toHex(kernel.sha256(der))}`, pem: toPem(der) };
}

function readSpki(sent: Uint8Array, checks: Checks): { algorithm: KeyAlgorithm; der: Uint8Array } {
  let identifier: string;
  let bits: Uint8Array;
  try {
    const outer = new DerReader(sent);
    const spki = new DerReader(outer.read(TAG.sequence));
    outer.end();
    if (looksLikePkcs8(sent)) throw privateKey();
    identifier = toHex(spki.read(TAG.sequence));
    bits = spki.read(TAG.bitString);
    spki.end();
  } catch (cause) {
    if (cause instanceof CairnlogError) throw cause;
    throw invalidKey("The PEM block does not hold a SubjectPublicKeyInfo in DER.", cause);
  }
  if (bits[0] !== 0) throw invalidKey("The key's bit string must be whole bytes.");
  const key = bits.subarray(1);
  switch (identifier) {
    case ED25519:
      checks.checkPoint(key);
      return { algorithm: "ed25519", der: sent };
    case P256:
      return { algorithm: "ecdsa-p256", der: concatBytes(P256_SPKI_PREFIX, uncompressedPoint(key)) };
    case RSA:
      checks.checkModulus(checkRsa(key));
      return { algorithm: "rsa-2048", der: sent };
    default:
      throw invalidKey(`The key's algorithm, curve or parameters are not accepted. ${ACCEPTED}`);
  }
}

/**
 * RFC 8032 §5.1.3, canonical encodings only. With a point of small order, one signature could fit many messages.
 * @throws CairnlogError `invalid-key`
 */
export function checkEd25519Point(bytes: Uint8Array): void {
  let smallOrder: boolean;
  try {
    smallOrder = ed25519.Point.fromBytes(bytes, false).isSmallOrder();
  } catch (cause) {
    throw invalidKey("The Ed25519 key is not the canonical encoding of a point on the curve.", cause);
  }
  if (smallOrder) throw invalidKey("The Ed25519 key is a point of small order.");
}

/** SEC 1 §2.3.4: compressed or uncompressed, on the curve, not the point at infinity. */
function uncompressedPoint(bytes: Uint8Array): Uint8Array {
  try {
    return p256.Point.fromBytes(bytes).toBytes(false);
  } catch (cause) {
    throw invalidKey("The P-256 key is not the encoding of a point on the curve.", cause);
  }
}

/** RFC 8017 §A.1.1. Returns the modulus, big-endian. */
function checkRsa(bytes: Uint8Array): Uint8Array {
  let modulus: Uint8Array;
  let exponent: Uint8Array;
  try {
    const outer = new DerReader(bytes);
    const key = new DerReader(outer.read(TAG.sequence));
    outer.end();
    modulus = key.readUnsigned();
    exponent = key.readUnsigned();
    key.end();
  } catch (cause) {
    throw invalidKey("The RSA key is not a modulus and an exponent in DER.", cause);
  }
  const bits = modulus.length === 0 ? 0 : modulus.length * 8 - (Math.clz32(modulus[0]!) - 24);
  if (bits < RSA_MIN_BITS || bits > RSA_MAX_BITS) throw invalidKey(`The RSA modulus has ${bits} bits. ${ACCEPTED}`);
  if (modulus.at(-1)! % 2 === 0) throw invalidKey("The RSA modulus is even.");
  if (toHex(exponent) !== "010001") throw invalidKey(`The RSA exponent is not 65537. ${ACCEPTED}`);
  return modulus;
}

function requireStrong(modulus: Uint8Array): void {
  const reason = factorable(BigInt(`0x${toHex(modulus)}`));
  if (reason !== undefined)
    throw invalidKey(`The RSA modulus ${reason}, so anybody can make the private key. Make a new key.`);
}

/** PKCS #8 (RFC 5958) and PKCS #1 private keys begin with a version number where an SPKI has a SEQUENCE. */
function looksLikePkcs8(der: Uint8Array): boolean {
  const first = new DerReader(new DerReader(der).read(TAG.sequence));
  try {
    return first.readUnsigned().length <= 1;
  } catch {
    return false;
  }
}

function toPem(der: Uint8Array): string {
  const lines = encodeBase64(der).match(/.{1,64}/g)!;
  return `-----BEGIN PUBLIC KEY-----\n${lines.join("\n")}\n-----END PUBLIC KEY-----\n`;
}

function invalidKey(message: string, cause?: unknown): CairnlogError {
  return new CairnlogError("invalid-key", message, cause === undefined ? {} : { cause });
}

// The error must not contain the key, because errors are logged.
function privateKey(): CairnlogError {
  return new CairnlogError(
    "private-key",
    "This is a private key, and a public key is needed here. `openssl pkey -pubout` makes the public key of it.",
  );
}
