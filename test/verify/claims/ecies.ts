/** A second implementation of encrypted claims, made from their description and with node:crypto only. */
import {
  createCipheriv,
  createDecipheriv,
  createECDH,
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
} from "node:crypto";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { ClaimPayload } from "#cairnlog/engine/verify/claims/claims.js";
import { sha256 } from "../keys/keys.js";

export interface Recipient {
  /** PEM. */
  readonly publicKey: string;
  /** PEM. */
  readonly privateKey: string;
  readonly fingerprint: string;
  /** 32 bytes. */
  readonly scalar: Buffer;
  /** SEC 1, uncompressed. */
  readonly point: Buffer;
}

export function newRecipient(): Recipient {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    ...pointAndScalar(privateKey.export({ format: "jwk" }).d!),
  };
}

function pointAndScalar(d: string) {
  const scalar = Buffer.from(d, "base64url");
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(scalar);
  const point = ecdh.getPublicKey();
  const x = point.subarray(1, 33).toString("base64url");
  const y = point.subarray(33).toString("base64url");
  const key = createPublicKey({ format: "jwk", key: { kty: "EC", crv: "P-256", x, y } });
  return { scalar, point, fingerprint: `sha256:${sha256(key.export({ type: "spki", format: "der" }))}` };
}

/** RFC 8785 of any JSON value: JavaScript writes numbers and strings as the RFC requires. */
export function jcs(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(jcs).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const names = Object.keys(value).sort((a, b) => (a < b ? -1 : 1));
  return `{${names.map((name) => `${JSON.stringify(name)}:${jcs((value as Record<string, unknown>)[name])}`).join(",")}}`;
}

interface Derived {
  readonly encryption: Buffer;
  readonly commitment: Buffer;
}

function derive(z: Buffer, ephemeral: Buffer, recipient: Buffer): Derived {
  const salt = Buffer.concat([ephemeral, recipient]);
  const key = (label: string) => Buffer.from(hkdfSync("sha256", z, salt, label, 32));
  return { encryption: key("service.claim.v1 encryption"), commitment: key("service.claim.v1 commitment") };
}

const additional = ({
  nonce: _,
  ciphertext: __,
  ...open
}: Omit<ClaimPayload, "nonce" | "ciphertext"> & { nonce?: string; ciphertext?: string }) => Buffer.from(jcs(open));

export const hmacOf = (key: Buffer, value: unknown): string =>
  createHmac("sha256", key).update(jcs(value)).digest("hex");

export interface SealOptions {
  readonly lookupKey?: string;
  /** The member of the payload. */
  readonly recipientFingerprint?: string;
  /** The plaintext bytes to encrypt, instead of canonical JSON. */
  readonly text?: Buffer;
  /** The commitment in the payload, instead of the right one. */
  readonly commitment?: string;
  readonly ephemeralScalar?: Buffer;
  readonly nonce?: Buffer;
}

/** A payload, and its commitment key in hex. */
export function seal(plaintext: unknown, recipient: Buffer, options: SealOptions = {}) {
  const { lookupKey = "ab".repeat(16), ephemeralScalar, nonce = randomBytes(12), recipientFingerprint } = options;
  const ecdh = createECDH("prime256v1");
  if (ephemeralScalar) ecdh.setPrivateKey(ephemeralScalar);
  else ecdh.generateKeys();
  const ephemeral = ecdh.getPublicKey();
  const keys = derive(ecdh.computeSecret(recipient), ephemeral, recipient);
  const open = {
    commitment_alg: "hmac-sha256-ecdh-v1",
    ephemeral_public_key: ephemeral.toString("base64"),
    commitment: options.commitment ?? hmacOf(keys.commitment, plaintext),
    lookup_key: lookupKey,
    ...(recipientFingerprint === undefined ? {} : { recipient_fingerprint: recipientFingerprint }),
  } as const;
  const cipher = createCipheriv("aes-256-gcm", keys.encryption, nonce).setAAD(additional(open));
  const body = Buffer.concat([cipher.update(options.text ?? Buffer.from(jcs(plaintext))), cipher.final()]);
  const ciphertext = Buffer.concat([body, cipher.getAuthTag()]);
  const payload: ClaimPayload = {
    ...open,
    nonce: nonce.toString("base64"),
    ciphertext: ciphertext.toString("base64"),
  };
  return { payload, commitmentKey: keys.commitment.toString("hex") };
}

/** The content of a payload, and its commitment key in hex; throws if node:crypto does. */
export function open(payload: ClaimPayload, { scalar, point }: Recipient) {
  const ephemeral = Buffer.from(payload.ephemeral_public_key, "base64");
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(scalar);
  const keys = derive(ecdh.computeSecret(ephemeral), ephemeral, point);
  const sealed = Buffer.from(payload.ciphertext, "base64");
  const decipher = createDecipheriv("aes-256-gcm", keys.encryption, Buffer.from(payload.nonce, "base64"));
  decipher.setAAD(additional(payload)).setAuthTag(sealed.subarray(-16));
  const text = Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]).toString("utf8");
  const plaintext: unknown = JSON.parse(text);
  if (hmacOf(keys.commitment, plaintext) !== payload.commitment) throw new Error("commitment");
  return { plaintext, text, commitmentKey: keys.commitment.toString("hex") };
}

export const base64 = (data: Uint8Array) => Buffer.from(data).toString("base64");
export const decoded = (text: string) => Buffer.from(text, "base64");

/** The error code of `action`. Any error except a CairnlogError fails the test. */
export function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof CairnlogError) return error.code;
    throw error;
  }
  return "accepted";
}
