/** Files that hold a private key, told by their content: nobody means to make those known. */
import { createPrivateKey } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { onDisk } from "./disk-names.js";

/** Keys are in small files, or behind the certificates of their owner. */
export const KEY_SEARCH_BYTES = 1 << 20;

/** PEM of every kind, OpenSSH and PGP keys included; text that only mentions the line has no base64 behind it. */
const PEM = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const PEM_BYTES = 2_000;
/** PuTTY, age, and the recovery keys that the command writes. */
const OTHERS =
  /^PuTTY-User-Key-File-\d|^AGE-SECRET-KEY-1[0-9A-Z]{50}|^(?:[0-9A-HJKMNP-TV-Z]{5}-){7}[0-9A-HJKMNP-TV-Z]{5}\s*$/m;
/** A JSON Web Key of a kind that has a private part. */
const JWK = /"d"\s*:\s*"[\w-]{40,}"/;

/** A PKCS#12 file: SEQUENCE, version 3, and the type `data` or `signedData`. */
const PKCS12 = /^30(?:[0-7].|8[0-4](?:..){1,4})02010330(?:[0-7].|8[0-4](?:..){1,4})06092a864886f70d01070[12]/;

/** Whether this beginning of a file, of at most `KEY_SEARCH_BYTES`, holds a private key. */
export function holdsPrivateKey(content: Buffer): boolean {
  if (content[0] === 0x30 && isDerKey(content)) return true;
  const isUtf16 = content[0] === 0xff && content[1] === 0xfe;
  const text = content.toString(isUtf16 ? "utf16le" : "latin1");
  if (OTHERS.test(text) || (text.includes('"kty"') && JWK.test(text))) return true;
  for (const { index } of text.matchAll(PEM)) {
    const [block = ""] = text.slice(index + "-----BEGIN".length, index + PEM_BYTES).split("-----END");
    if (/[A-Za-z0-9+/]{40}/.test(block)) return true;
  }
  return false;
}

function isDerKey(content: Buffer): boolean {
  if (PKCS12.test(content.subarray(0, 40).toString("hex"))) return true;
  return (["pkcs8", "pkcs1", "sec1"] as const).some((type) => {
    try {
      createPrivateKey({ key: content, format: "der", type });
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "ERR_MISSING_PASSPHRASE";
    }
  });
}

/** Whether a file holds a private key; false for one that cannot be read, which is reported when it is hashed. */
export function isPrivateKeyFile(path: string): boolean {
  try {
    const file = openSync(onDisk(path), "r");
    try {
      const content = Buffer.alloc(Math.min(KEY_SEARCH_BYTES, fstatSync(file).size));
      return holdsPrivateKey(content.subarray(0, readSync(file, content)));
    } finally {
      closeSync(file);
    }
  } catch {
    return false;
  }
}
