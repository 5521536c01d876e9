/** Clients for tests: signers made with node:crypto, and helpers for the client's errors. */
import { sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import {
  type ClientError,
  type ClientOptions,
  createClient,
  type Evidence,
  type Signer,
} from "#cairnlog/server/client/index.js";
import { type Algorithm, newSigner, type TestSigner } from "../server/signers.js";
import { failureOf } from "../thrown.js";
import { behind } from "./proxy.js";

/** A test signer in the client's form. */
export function asSigner({ publicKey, algorithm, privateKey }: TestSigner): Signer {
  const digest = algorithm === "ed25519" ? null : "sha256";
  return {
    publicKeyPem: publicKey,
    algorithm,
    sign: async (bytes) => new Uint8Array(sign(digest, bytes, privateKey)),
  };
}

/** The operator of the service with this data directory. */
export function operatorSigner(dataDir: string): Signer {
  const read = (name: string) => readFileSync(join(dataDir, name), "utf8");
  const signs = async (bytes: Uint8Array) => new Uint8Array(sign(null, bytes, read("operator.pem")));
  return { publicKeyPem: read("operator.pub.pem"), algorithm: "ed25519", sign: signs };
}

/** A client with a new key, not registered yet. Before a proxy it knows the address of the service behind. */
export function newClient(server: string, options: Partial<ClientOptions> = {}, algorithm: Algorithm = "ed25519") {
  const signer = newSigner(algorithm);
  const client = createClient({ server, publicOrigin: behind(server), signer: asSigner(signer), ...options });
  return { client, signer, fingerprint: signer.fingerprint };
}

/** The error with which `work` must fail. */
export async function failure(work: Promise<unknown>): Promise<ClientError> {
  const { thrown: error } = await failureOf(work);
  expect(error).toMatchObject({ name: "ClientError" });
  return error as ClientError;
}

/** The evidence in the error with which `work` must fail. */
export async function conviction(work: Promise<unknown>, as = "log-misbehaved"): Promise<Evidence> {
  const { code, evidence, message } = await failure(work);
  expect({ code, message }).toEqual({ code: as, message: expect.stringMatching(/^.{8,}\.$/s) });
  expect(evidence!.operatorKey).toContain("BEGIN PUBLIC KEY");
  return evidence!;
}

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}
