/** Keys and encodings that the tests share, made without the code under test. */
import { createHash, createPublicKey } from "node:crypto";

/** L, the order of the Ed25519 base point (RFC 8032 §5.1). */
export const ED25519_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
/** n, the order of the P-256 base point (SP 800-186 §3.2.1.3). */
export const P256_ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** p of P-256's field (SP 800-186 §3.2.1.3). */
export const P256_PRIME = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;

export const bytes = (hex: string): Buffer => Buffer.from(hex.replace(/\s/g, ""), "hex");
export const sha256 = (data: Uint8Array | string): string => createHash("sha256").update(data).digest("hex");

/** DER tag, shortest length, contents. */
export function tlv(tag: number, ...contents: Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  const length =
    body.length < 0x80
      ? [body.length]
      : body.length < 0x100
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

export function pem(der: Uint8Array, label = "PUBLIC KEY"): string {
  const lines = Buffer.from(der)
    .toString("base64")
    .match(/.{1,64}/g)!;
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

export const ED25519_ID = tlv(0x30, bytes("06032b6570"));
export const P256_ID = tlv(0x30, bytes("06072a8648ce3d020106082a8648ce3d030107"));
export const RSA_ID = tlv(0x30, bytes("06092a864886f70d0101010500"));

export function spki(identifier: Uint8Array, key: Uint8Array): Buffer {
  return tlv(0x30, identifier, tlv(0x03, Buffer.from([0]), key));
}

/** A DER INTEGER ≥ 0. */
export function integer(value: bigint): Buffer {
  const hex = value.toString(16);
  const magnitude = bytes(hex.length % 2 === 1 ? `0${hex}` : hex);
  return tlv(0x02, magnitude[0]! > 0x7f ? Buffer.from([0]) : Buffer.alloc(0), magnitude);
}

export const rsaKey = (modulus: bigint, exponent: bigint): Buffer => tlv(0x30, integer(modulus), integer(exponent));

/** An odd number of exactly `bits` bits without small factors, which only looks like a modulus. */
export function oddNumber(bits: number): bigint {
  for (let n = 2n ** BigInt(bits - 1) + 1n; ; n += 2n) if (!hasFactorBelow(n, 5_000)) return n;
}

function hasFactorBelow(n: bigint, end: number): boolean {
  for (let divisor = 3; divisor < end; divisor += 2) if (n % BigInt(divisor) === 0n) return true;
  return false;
}

export function bigEndian(value: bigint, length = 32): Buffer {
  return bytes(value.toString(16).padStart(length * 2, "0"));
}

export function littleEndian(value: bigint, length = 32): Buffer {
  return bigEndian(value, length).reverse();
}

export function fromLittleEndian(data: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(data).reverse().toString("hex")}`);
}

export const opensslKey = (text: string) => createPublicKey({ key: text, format: "pem" });
