/**
 * Private keys encrypted with a passphrase: PKCS#8 EncryptedPrivateKeyInfo (RFC 5958) by PBES2 (RFC 8018) with scrypt
 * (RFC 7914) and AES-256-CBC, which OpenSSL can read. Node's own export derives the key by PBKDF2 with 2048 rounds,
 * which is too few against an attacker who guesses passphrases.
 */
import { createCipheriv, createPrivateKey, randomBytes, scryptSync } from "node:crypto";

/** 16 MiB and about 200 ms for each attempt. OpenSSL does not read keys that need more than 32 MiB. */
const COST = { N: 1 << 14, r: 8, p: 5 } as const;
const MAX_MEMORY = 64 << 20;
const SALT_BYTES = 16;
const BLOCK_BYTES = 16;
const KEY_BYTES = 32;

/** Object identifiers, in DER. */
const PBES2 = Buffer.from("06092a864886f70d01050d", "hex");
const SCRYPT = Buffer.from("06092b06010401da47040b", "hex");
const AES_256_CBC = Buffer.from("060960864801650304012a", "hex");

/** DER tags (X.690). */
const INTEGER = 0x02;
const OCTET_STRING = 0x04;
const SEQUENCE = 0x30;

/** Whether reading a PEM private key needs a passphrase. */
export function isEncryptedKey(pem: string): boolean {
  return /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(pem);
}

/** Encrypts the PKCS#8 key `pem` with `passphrase`. @returns PEM */
export function encryptPrivateKey(pem: string, passphrase: string): string {
  const key = createPrivateKey(pem).export({ type: "pkcs8", format: "der" });
  const [salt, iv] = [randomBytes(SALT_BYTES), randomBytes(BLOCK_BYTES)];
  const { N, r, p } = COST;
  const cipher = createCipheriv(
    "aes-256-cbc",
    scryptSync(passphrase, salt, KEY_BYTES, { N, r, p, maxmem: MAX_MEMORY }),
    iv,
  );
  const encrypted = Buffer.concat([cipher.update(key), cipher.final()]);
  const derivation = sequence(SCRYPT, sequence(element(OCTET_STRING, salt), integer(N), integer(r), integer(p)));
  const scheme = sequence(PBES2, sequence(derivation, sequence(AES_256_CBC, element(OCTET_STRING, iv))));
  const lines = sequence(scheme, element(OCTET_STRING, encrypted))
    .toString("base64")
    .match(/.{1,64}/g)!;
  return `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${lines.join("\n")}\n-----END ENCRYPTED PRIVATE KEY-----\n`;
}

function element(tag: number, content: Uint8Array): Buffer {
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...elements: Uint8Array[]): Buffer => element(SEQUENCE, Buffer.concat(elements));

/** An INTEGER from 0 to 32767; larger ones are not needed here. */
const integer = (value: number): Buffer =>
  element(INTEGER, Buffer.from(value < 0x80 ? [value] : [value >> 8, value & 0xff]));
