/** Helpers that post and reveal claims over HTTP. */
import { randomUUID } from "node:crypto";
import { newSigner, registration, sha256, type TestSigner } from "../../server/signers.js";
import { jcs, newRecipient, seal } from "../../verify/claims/ecies.js";

export const recipient = newRecipient();
export const plaintext = { salary: 52000, name: "Zoë 🪨" };
export const newLookupKey = (): string => sha256(randomUUID());
export const sealed = (lookupKey = newLookupKey(), value: unknown = plaintext) =>
  seal(value, recipient.point, { lookupKey });

/** A claim's entry from before keyed commitments. */
export const preUpgrade = (lookup_key = newLookupKey()) => ({
  event_type: "encrypted_claim",
  payload: { ciphertext: "AAAA", commitment: sha256(jcs(plaintext)), lookup_key },
});

/** POSTs below `/api/v1` of a service. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export type Post = (path: string, body: unknown, headers?: Record<string, string>) => Promise<{ body: any }>;

export const accountOf = (signer: TestSigner, credential_type: "hardware" | "software" = "hardware") => ({
  display_name: `Holder ${randomUUID()}`,
  email: "holder@example.org",
  credential_type,
  key_fingerprint: signer.fingerprint,
  device_label: `a token of ${signer.fingerprint.slice(-12)}`,
});

/** A registered key on an account. */
export async function holder(post: Post, credential_type: "hardware" | "software"): Promise<TestSigner> {
  const signer = newSigner();
  await post("/keys/register", registration(signer));
  await post("/users", accountOf(signer, credential_type));
  return signer;
}

/** The header of a new session. */
export async function signIn(post: Post, signer: TestSigner): Promise<{ authorization: string }> {
  const { body } = await post("/auth/challenge", { fingerprint: signer.fingerprint, purpose: "login" });
  const { challenge_id, nonce } = body;
  const login = await post("/auth/login", { challenge_id, challenge_signature: signer.sign(nonce) });
  return { authorization: `Bearer ${login.body.token}` };
}
