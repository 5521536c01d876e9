/**
 * Signers: an interface that a file, a token or a browser's key store can implement, and an implementation for
 * WebCrypto.
 */
import { encodeBase64, type KeyAlgorithm, parsePublicKey } from "../../../engine/verify/index.js";

/** Holds a private key, which the client never sees. */
export interface Signer {
  /** PEM block PUBLIC KEY. */
  readonly publicKeyPem: string;
  readonly algorithm: KeyAlgorithm;
  /** Ed25519 (RFC 8032), ECDSA with SHA-256 (64 bytes, IEEE P1363, or DER), or RSASSA-PKCS1-v1_5 with SHA-256. */
  sign(bytes: Uint8Array): Promise<Uint8Array>;
}

/**
 * A key of WebCrypto. Written out, because a project without the types of the DOM has no `CryptoKey`, although Node has such
 * keys.
 */
export interface WebCryptoKey {
  readonly type: string;
  readonly extractable: boolean;
  readonly algorithm: { readonly name: string };
  readonly usages: readonly string[];
}

/** A `CryptoKeyPair` of a browser or of Node. */
export interface WebCryptoKeyPair {
  readonly publicKey: WebCryptoKey;
  readonly privateKey: WebCryptoKey;
}

/** The parameters of WebCrypto for a signature. */
const SIGNING: Readonly<Record<KeyAlgorithm, AlgorithmIdentifier | EcdsaParams>> = {
  ed25519: { name: "Ed25519" },
  "ecdsa-p256": { name: "ECDSA", hash: "SHA-256" },
  "rsa-2048": { name: "RSASSA-PKCS1-v1_5" },
};

/**
 * A signer by WebCrypto, for keys that need not be extractable: Ed25519, ECDSA on P-256, or RSASSA-PKCS1-v1_5 with
 * SHA-256 and 2048 bits or more.
 * @throws CairnlogError `invalid-key` for any other key; TypeError for an RSA key that is bound to another hash
 */
export async function webCryptoSigner(pair: WebCryptoKeyPair): Promise<Signer> {
  const { publicKey, privateKey } = pair as CryptoKeyPair;
  const spki = new Uint8Array(await crypto.subtle.exportKey("spki", publicKey));
  const lines = encodeBase64(spki).match(/.{1,64}/g)!;
  const key = parsePublicKey(`-----BEGIN PUBLIC KEY-----\n${lines.join("\n")}\n-----END PUBLIC KEY-----\n`);
  if (key.algorithm === "rsa-2048" && !signsPkcs1WithSha256(privateKey))
    throw new TypeError("An RSA key must be one for RSASSA-PKCS1-v1_5 with SHA-256.");
  const how = SIGNING[key.algorithm];
  return {
    publicKeyPem: key.pem,
    algorithm: key.algorithm,
    sign: async (bytes) => new Uint8Array(await crypto.subtle.sign(how, privateKey, new Uint8Array(bytes))),
  };
}

/** WebCrypto binds the hash to an RSA key. With the wrong hash, it would make signatures that nobody accepts. */
function signsPkcs1WithSha256({ algorithm }: CryptoKey): boolean {
  return algorithm.name === "RSASSA-PKCS1-v1_5" && (algorithm as RsaHashedKeyAlgorithm).hash.name === "SHA-256";
}
