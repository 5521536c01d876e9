/** A private key that the reader lends to the page for one signature: it is read here, never sent and never stored. */
import { decodeBase64 } from "../../../../engine/verify/index.js";
import { type Signer, webCryptoSigner } from "../../../client/index.js";

const PEM = /^\s*-----BEGIN PRIVATE KEY-----\s([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----\s*$/;
/** Larger than every accepted key. */
const MAX_BYTES = 16_384;

/** Algorithms that the file may contain; a key can be imported as exactly one of them. */
const ALGORITHMS = [
  { name: "Ed25519" },
  { name: "ECDSA", namedCurve: "P-256" },
  { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
] as const;

/** @throws Error with a sentence if the file is not a private key with which the browser can sign */
export async function readKeyFile(file: File): Promise<Signer> {
  const text = file.size <= MAX_BYTES ? await file.text() : "";
  if (text.includes("BEGIN ENCRYPTED PRIVATE KEY"))
    throw new Error("The key is encrypted. Browsers cannot decrypt it: choose a decrypted copy.");
  const body = PEM.exec(text)?.[1];
  const der = body === undefined ? undefined : decodeBase64(body.replace(/\s+/g, ""));
  if (der === undefined) throw new Error("The file is not one PEM block PRIVATE KEY (PKCS #8).");
  for (const algorithm of ALGORITHMS) {
    const pair = await importPair(new Uint8Array(der), algorithm);
    if (pair) return await webCryptoSigner(pair);
  }
  throw new Error("The file contains no key that this browser can sign with: Ed25519, P-256 or RSA.");
}

/** Undefined for a key of another algorithm. The resulting pair cannot be exported. */
async function importPair(
  der: Uint8Array<ArrayBuffer>,
  algorithm: (typeof ALGORITHMS)[number],
): Promise<CryptoKeyPair | undefined> {
  const { subtle } = crypto;
  let readable: CryptoKey;
  try {
    // A private key reveals its public key only if it is exportable.
    readable = await subtle.importKey("pkcs8", der, algorithm, true, ["sign"]);
  } catch {
    return undefined;
  }
  const { kty, crv, x, y, n, e } = await subtle.exportKey("jwk", readable);
  const members = Object.entries({ kty, crv, x, y, n, e }).filter(([, value]) => value !== undefined);
  const [publicKey, privateKey] = await Promise.all([
    subtle.importKey("jwk", Object.fromEntries(members) as JsonWebKey, algorithm, true, ["verify"]),
    subtle.importKey("pkcs8", der, algorithm, false, ["sign"]),
  ]);
  return { publicKey, privateKey };
}
