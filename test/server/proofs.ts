/** Proofs of possession: challenges answered by node:crypto or by the openssl command. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type TestService, temporaryFolder } from "./harness.js";
import { newSigner, registration, type TestSigner } from "./signers.js";

export interface ChallengeOptions {
  readonly recovery?: boolean;
  readonly purpose?: string;
  readonly act?: string;
}

/** The parts of a challenge that a client sees. */
export interface Challenge {
  readonly challenge_id: string;
  readonly nonce: string;
  readonly expires_at: string;
}

/** A registered, active key. */
export async function registeredSigner(service: TestService, more: Record<string, unknown> = {}): Promise<TestSigner> {
  const signer = newSigner();
  const reply = await service.post("/keys/register", registration(signer, "Alice", more));
  expect(reply.status, reply.text).toBe(200);
  return signer;
}

export async function challengeOf(
  service: TestService,
  { fingerprint }: Pick<TestSigner, "fingerprint">,
  options: ChallengeOptions = {},
): Promise<Challenge> {
  const reply = await service.post("/auth/challenge", { fingerprint, ...options });
  expect(reply.status, reply.text).toBe(200);
  return reply.body;
}

/** A new challenge, signed: the `auth` object, which login also accepts. */
export async function proofOf(
  service: TestService,
  signer: Pick<TestSigner, "fingerprint" | "sign">,
  options: ChallengeOptions = {},
) {
  const { challenge_id, nonce } = await challengeOf(service, signer, options);
  return { challenge_id, challenge_signature: signer.sign(nonce) };
}

/** The header of a new session. */
export async function bearerOf(
  service: TestService,
  signer: Pick<TestSigner, "fingerprint" | "sign">,
  options: ChallengeOptions & { readonly password?: string } = {},
): Promise<{ authorization: string }> {
  const { password, ...challenge } = options;
  const reply = await service.post("/auth/login", { ...(await proofOf(service, signer, challenge)), password });
  expect(reply.status, reply.text).toBe(200);
  return { authorization: `Bearer ${reply.body.token}` };
}

/** The same signer, which signs with the openssl command. */
export function byOpenssl(signer: TestSigner): TestSigner {
  const folder = temporaryFolder();
  const file = (name: string) => join(folder, name);
  writeFileSync(file("key"), signer.privateKey, { mode: 0o600 });
  return {
    ...signer,
    sign(message) {
      writeFileSync(file("message"), message);
      const how =
        signer.algorithm === "ed25519"
          ? ["pkeyutl", "-sign", "-rawin", "-inkey", file("key"), "-in", file("message"), "-out", file("signature")]
          : ["dgst", "-sha256", "-sign", file("key"), "-out", file("signature"), file("message")];
      execFileSync("openssl", how, { stdio: ["ignore", "pipe", "pipe"] });
      return readFileSync(file("signature")).toString("base64");
    },
  };
}
