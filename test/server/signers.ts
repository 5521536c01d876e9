/** Signers and signed data, made with node:crypto and without the code under test. */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export const sha256 = (data: Uint8Array | string): string => createHash("sha256").update(data).digest("hex");

export type Algorithm = "ed25519" | "ecdsa-p256" | "rsa-2048";

export interface TestSigner {
  readonly algorithm: Algorithm;
  /** PEM. */
  readonly publicKey: string;
  /** PEM. */
  readonly privateKey: string;
  readonly fingerprint: string;
  /** Base64. */
  sign(message: string | Uint8Array): string;
}

export function newSigner(algorithm: Algorithm = "ed25519"): TestSigner {
  const { publicKey, privateKey } = keyPair(algorithm);
  const spki = publicKey.export({ type: "spki", format: "der" });
  return {
    algorithm,
    publicKey: publicKey.export({ type: "spki", format: "pem" }) as string,
    privateKey: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    fingerprint: `sha256:${sha256(spki)}`,
    sign: (message) =>
      sign(algorithm === "ed25519" ? null : "sha256", Buffer.from(message as string), privateKey).toString("base64"),
  };
}

function keyPair(algorithm: Algorithm): { publicKey: KeyObject; privateKey: KeyObject } {
  if (algorithm === "ed25519") return generateKeyPairSync("ed25519");
  if (algorithm === "ecdsa-p256") return generateKeyPairSync("ec", { namedCurve: "P-256" });
  return generateKeyPairSync("rsa", { modulusLength: 2048 });
}

/** JSON with sorted members and no spaces. For ASCII names and whole numbers this is RFC 8785. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
}

export interface TestManifest {
  document: { title: string; content_hash: string; [member: string]: unknown };
  attestations: unknown[];
}

/** A manifest of a new document. */
export function newManifest(title = "A report"): TestManifest {
  return { document: { title, content_hash: `sha256:${sha256(randomBytes(16))}` }, attestations: [] };
}

export const registration = (signer: TestSigner, pseudonym = "Alice", more: Record<string, unknown> = {}) => ({
  payload: { public_key: signer.publicKey, pseudonym, key_algorithm: signer.algorithm, ...more },
});

export const submission = (signer: TestSigner, manifest = newManifest(), more: Record<string, unknown> = {}) => ({
  manifest,
  public_key_pem: signer.publicKey,
  signature: signer.sign(canonical(manifest)),
  ...more,
});
