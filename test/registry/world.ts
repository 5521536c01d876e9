/**
 * A real registry in a temporary directory, with a clock that the test sets, and signers made without the code under
 * test: by node:crypto or by the openssl command.
 */
import { execFileSync } from "node:child_process";
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CairnlogError, type ErrorCode } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { EventInput } from "#cairnlog/engine/log/state/projection.js";
import { openRegistry, type RegistryOptions } from "#cairnlog/engine/registry/registry.js";

/** Of a log that this process writes. */
export type WrittenRegistry = Awaited<ReturnType<typeof openRegistry>>;

export type Registration = Parameters<World["registry"]["keys"]["register"]>[0];

export const BASE = "https://x-service.example/predicates";
export type Algorithm = "ed25519" | "ecdsa-p256" | "rsa-2048";
export const ALGORITHMS: readonly Algorithm[] = ["ed25519", "ecdsa-p256", "rsa-2048"];

export interface TestSigner {
  readonly algorithm: Algorithm;
  readonly pem: string;
  readonly fingerprint: string;
  sign(message: Uint8Array | string): string;
}

export const sha256 = (data: Uint8Array | string): string => createHash("sha256").update(data).digest("hex");

export function fingerprintOf(pem: string): string {
  return `sha256:${sha256(createPublicKey(pem).export({ type: "spki", format: "der" }))}`;
}

/** A signer by node:crypto. P-256 signatures are DER, or IEEE P1363 on request. */
export function nodeSigner(algorithm: Algorithm = "ed25519", dsaEncoding: "der" | "ieee-p1363" = "der"): TestSigner {
  const { publicKey, privateKey } =
    algorithm === "ed25519"
      ? generateKeyPairSync("ed25519")
      : algorithm === "ecdsa-p256"
        ? generateKeyPairSync("ec", { namedCurve: "P-256" })
        : generateKeyPairSync("rsa", { modulusLength: 2048 });
  return signerOf(algorithm, publicKey, privateKey, dsaEncoding);
}

function signerOf(
  algorithm: Algorithm,
  publicKey: KeyObject,
  key: KeyObject,
  dsaEncoding: "der" | "ieee-p1363",
): TestSigner {
  const pem = publicKey.export({ type: "spki", format: "pem" }).toString();
  const digest = algorithm === "ed25519" ? null : "sha256";
  return {
    algorithm,
    pem,
    fingerprint: fingerprintOf(pem),
    sign: (message) => sign(digest, Buffer.from(message), { key, dsaEncoding }).toString("base64"),
  };
}

/** A signer whose key and signatures come from the openssl command. */
export function opensslSigner(algorithm: Algorithm): TestSigner {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-openssl-"));
  folders.push(folder);
  const file = (name: string) => join(folder, name);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: ["ignore", "pipe", "pipe"] });
  const kind = {
    ed25519: ["-algorithm", "ed25519"],
    "ecdsa-p256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa-2048": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
  }[algorithm];
  openssl("genpkey", ...kind, "-out", file("key"));
  const pem = openssl("pkey", "-in", file("key"), "-pubout").toString();
  const der = openssl("pkey", "-in", file("key"), "-pubout", "-outform", "DER");
  return {
    algorithm,
    pem,
    fingerprint: `sha256:${sha256(der)}`,
    sign(message) {
      writeFileSync(file("message"), message);
      const signing =
        algorithm === "ed25519"
          ? ["pkeyutl", "-sign", "-rawin", "-inkey", file("key"), "-in", file("message"), "-out", file("signature")]
          : ["dgst", "-sha256", "-sign", file("key"), "-out", file("signature"), file("message")];
      openssl(...signing);
      return readFileSync(file("signature")).toString("base64");
    },
  };
}

/** JSON with sorted keys and compact separators: the signing payload as the contract describes it. */
export function compact(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(compact).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${compact(member)}`).join(",")}}`;
}

export const SOURCE = "the text that is attested";
export const HASH = sha256(SOURCE);

export interface TestManifest {
  readonly document: Readonly<Record<string, unknown>>;
  readonly attestations: readonly unknown[];
  readonly [member: string]: unknown;
}

export function manifestOf(title = "A title", attestations: readonly unknown[] = []): TestManifest {
  return { document: { title, content_hash: `sha256:${HASH}` }, attestations };
}

/** A submission of `manifest` by `signer`, signed unchanged. */
export function submission(signer: TestSigner, manifest: TestManifest, more: Record<string, unknown> = {}) {
  return { manifest, public_key_pem: signer.pem, signature: signer.sign(compact(manifest)), ...more };
}

/** The payload that registers `signer`. */
export const registration = (
  signer: TestSigner,
  pseudonym = "someone",
  expiration_date?: string | null,
): Registration => ({
  public_key: signer.pem,
  pseudonym,
  key_algorithm: signer.algorithm,
  ...(expiration_date === undefined ? {} : { expiration_date }),
});

/** The payload with the signature of a holder, over exactly the sent values. */
export function heldRegistration(signer: TestSigner, pseudonym = "holder", expiration?: string | null): Registration {
  const { fingerprint } = signer;
  const content = { expiration_date: expiration ?? null, fingerprint, pseudonym };
  const possession_signature = signer.sign(compact({ action: "service.key.register.v1", ...content }));
  return { ...registration(signer, pseudonym, expiration), possession_signature };
}

export interface World {
  readonly operator: TestSigner;
  registry: WrittenRegistry;
  /** Microseconds since the epoch. */
  now: number;
  /** Closes the registry and opens it again. */
  reopen(): Promise<void>;
  /** Appends unchecked events, as an import would. */
  append(...events: EventInput[]): Promise<void>;
}

/** The signer whose Ed25519 key is in a PEM. */
export function pemSigner(pem: string): TestSigner {
  const privateKey = createPrivateKey(pem);
  return signerOf("ed25519", createPublicKey(privateKey), privateKey, "der");
}

const folders: string[] = [];
const cleanups: (() => Promise<void>)[] = [];
const pool = createPool(1);

export async function openWorld(
  path = newFolder(),
  pem = generatePrivateKey("ed25519"),
  options: Partial<RegistryOptions> = {},
): Promise<World> {
  const operator = operatorKey(pem);
  const open = () => openRegistry({ path, operator, pool, predicateBase: BASE, clock: () => world.now, ...options });
  const world: World = {
    operator: pemSigner(pem),
    registry: undefined as unknown as WrittenRegistry,
    now: Date.parse("2025-01-01T00:00:00Z") * 1000,
    async reopen() {
      await world.registry.close();
      world.registry = await open();
    },
    async append(...events) {
      await world.registry.log.append(events);
    },
  };
  world.registry = await open();
  cleanups.push(() => world.registry.close());
  return world;
}

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-registry-"));
  folders.push(folder);
  return folder;
}

/** Closes every registry of this file and removes its files; for `afterAll`. */
export async function closeWorlds(): Promise<void> {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await pool.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** The error of `action`, which must be a CairnlogError. */
export async function failure(action: () => unknown): Promise<{ code: ErrorCode; paths: string[]; message: string }> {
  let result: unknown;
  try {
    result = await action();
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return { code: error.code, paths: (error.details ?? []).map(({ path }) => path), message: error.message };
  }
  throw new Error(`it was accepted: ${JSON.stringify(result)}`);
}

export const SECOND = 1_000_000;
export const DAY = 86_400 * SECOND;
/** Canonical text of a time in microseconds. */
export const at = (micros: number): string =>
  `${new Date(Math.floor(micros / 1000)).toISOString().slice(0, -1)}${String(micros % 1000).padStart(3, "0")}Z`;
