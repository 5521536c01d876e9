/**
 * A program of somebody who has nothing but the document: types that openapi-typescript made of it (`api.d.ts`), and
 * openapi-fetch. It fills every object that may hold anything, and prints what came back.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Proof = components["schemas"]["AuthProof"];

const client = createClient<paths>({ baseUrl: process.argv[2]! });

/** The answer of a request. @throws Error with the problem document of a refusal */
async function granted<T>(answer: Promise<{ data?: T; error?: components["schemas"]["Problem"] }>): Promise<T> {
  const { data, error } = await answer;
  if (error) throw new Error(`${error.status} ${error.code}: ${error.detail}`);
  return data as T;
}

class Holder {
  readonly #key: KeyObject;
  readonly publicKey: string;
  fingerprint = "";

  constructor() {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    this.#key = privateKey;
    this.publicKey = publicKey.export({ type: "spki", format: "pem" }).toString();
  }

  sign(text: string): string {
    return sign(null, Buffer.from(text), this.#key).toString("base64");
  }

  async register(pseudonym: string): Promise<this> {
    const payload = { public_key: this.publicKey, pseudonym, key_algorithm: "ed25519" } as const;
    this.fingerprint = (await granted(client.POST("/api/v1/keys/register", { body: { payload } }))).fingerprint;
    return this;
  }

  async proof(): Promise<Proof> {
    const body = { fingerprint: this.fingerprint };
    const { challenge_id, nonce } = await granted(client.POST("/api/v1/auth/challenge", { body }));
    return { challenge_id, challenge_signature: this.sign(nonce) };
  }

  /** The header of a session. */
  async session(): Promise<{ authorization: string }> {
    const { token } = await granted(client.POST("/api/v1/auth/login", { body: await this.proof() }));
    return { authorization: `Bearer ${token}` };
  }
}

const [ada, grace] = [await new Holder().register("Ada"), await new Holder().register("Grace")];

async function requests() {
  const body = {
    target_fingerprint: grace.fingerprint,
    attestation_type: "peer_review",
    nonce: "request-1",
    claims: { pages: [1, 2], reviewer: { name: "Grace" }, urgent: true },
    auth: await ada.proof(),
  };
  const { request_id, claims } = await granted(client.POST("/api/v1/log/attestation-requests", { body }));
  const predicates = { all: [{ field: "claims.urgent", op: "eq", value: true }] };
  const policy = { predicates, default_action_on_failure: "hold" as const, auth: await grace.proof() };
  const { status } = await granted(client.POST("/api/v1/log/request-policies", { body: policy }));
  const headers = await grace.session();
  const inbox = await granted(client.GET("/api/v1/inbox", { headers, params: { query: { unread: "true" } } }));
  const path = { id: inbox.notifications[0]!.id };
  const { read } = await granted(client.POST("/api/v1/inbox/{id}/read", { headers, params: { path } }));
  const again = await granted(client.POST("/api/v1/inbox/{id}/read", { headers, params: { path }, body: {} }));
  const answered = await granted(
    client.POST("/api/v1/log/attestation-requests/{request_id}/respond", {
      params: { path: { request_id } },
      body: { decision: "decline", auth: await grace.proof() },
    }),
  );
  return { claims, policy: status, read: [read, again.read], answered: answered.status };
}

async function attestations() {
  const document = { title: "Report", content_hash: `sha256:${"ab".repeat(32)}`, tags: ["report"] };
  const step = { ...document, public_key_pem: ada.publicKey };
  const prepared = await granted(client.POST("/api/v1/documents/sign", { body: step }));
  if (!("signing_payload" in prepared)) throw new Error("there is nothing to sign");
  const text = Buffer.from(prepared.signing_payload, "base64").toString();
  const body = { manifest: prepared.manifest, public_key_pem: ada.publicKey, signature: ada.sign(text) };
  const { attestation, log_entry_id } = await granted(client.POST("/api/v1/attestations", { body }));
  const manifest = { ...prepared.manifest, attestations: [attestation] };
  const verified = await granted(
    client.POST("/api/v1/verify", { body: { manifest, source_hash: document.content_hash } }),
  );
  const path = { entry_id: log_entry_id };
  const { payload } = await granted(client.GET("/api/v1/log/{entry_id}", { params: { path } }));
  return { verified: verified.overall_status, tags: payload?.tags };
}

async function encryptedClaims() {
  const account = {
    display_name: "Ada Lovelace",
    email: "ada@example.org",
    credential_type: "hardware",
    key_fingerprint: ada.fingerprint,
    device_label: "Security key",
  } as const;
  await granted(client.POST("/api/v1/users", { body: account }));
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const payload = {
    commitment_alg: "hmac-sha256-ecdh-v1",
    ephemeral_public_key: publicKey.export({ type: "spki", format: "der" }).subarray(-65).toString("base64"),
    nonce: randomBytes(12).toString("base64"),
    ciphertext: randomBytes(40).toString("base64"),
    commitment: randomBytes(32).toString("hex"),
    lookup_key: randomBytes(32).toString("hex"),
  } as const;
  const headers = await ada.session();
  const { entry_id } = await granted(client.POST("/api/v1/claims", { headers, body: { payload } }));
  const path = { entry_id };
  const stored = await granted(client.GET("/api/v1/claims/{entry_id}", { params: { path } }));
  const body = { plaintext: { any: ["thing"], n: 1 }, commitment_key: "0".repeat(64) };
  const { valid } = await granted(client.POST("/api/v1/claims/{entry_id}/reveal", { headers, params: { path }, body }));
  return { lookup: stored.lookup_key === payload.lookup_key, revealed: valid };
}

async function methods() {
  const [plain, withBody] = [
    await granted(client.POST("/api/v1/log/verify")),
    await granted(client.POST("/api/v1/log/verify", { body: { anything: true } })),
  ];
  const head = await client.HEAD("/api/v1/log/sth");
  const unknown = { params: { path: { fingerprint: `sha256:${"0".repeat(64)}` } } };
  const [missing, missingHead] = [
    await client.GET("/api/v1/keys/{fingerprint}", unknown),
    await client.HEAD("/api/v1/keys/{fingerprint}", unknown),
  ];
  return {
    valid: plain.valid && withBody.valid,
    head: [head.response.status, head.response.headers.has("etag")],
    missing: [missing.error?.code, missingHead.response.status],
  };
}

console.log(
  JSON.stringify({
    ...(await requests()),
    ...(await attestations()),
    ...(await encryptedClaims()),
    ...(await methods()),
  }),
);
