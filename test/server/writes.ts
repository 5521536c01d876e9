/** Every write of the API: a request that is granted as it stands. What it needs is made through the registry, which pays for nothing. */
import { randomUUID } from "node:crypto";
import type { Registry } from "#cairnlog/engine/registry/registry.js";
import { PRIVATE_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { accountOf, sealed } from "../contract/signing/claimants.js";
import { HUMAN } from "./endorsements.js";
import type { TestService } from "./harness.js";
import { bearerOf, challengeOf, proofOf } from "./proofs.js";
import { canonical, newManifest, newSigner, registration, submission, type TestSigner } from "./signers.js";

export interface Write {
  readonly path: string;
  readonly method?: "DELETE";
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Makes the request. @param signer a registered key, in whose name it is */
type Maker = (scene: Scene, signer: TestSigner) => Promise<Write>;

class Scene {
  readonly service: TestService;
  readonly registry: Registry;
  /** The other keys that were made for it. */
  readonly others: TestSigner[] = [];

  constructor(service: TestService) {
    this.service = service;
    this.registry = service.server.registry;
  }

  async key(): Promise<TestSigner> {
    const signer = newSigner();
    await register(this.registry, signer);
    this.others.push(signer);
    return signer;
  }

  session = (signer: TestSigner) => bearerOf(this.service, signer);

  proof = (signer: TestSigner) => proofOf(this.service, signer);

  async offer(endorser: TestSigner, endorsed: TestSigner): Promise<number> {
    const parties = { endorser_fingerprint: endorser.fingerprint, endorsed_fingerprint: endorsed.fingerprint };
    return (await this.registry.endorsements.offer({ ...parties, category: HUMAN })).endorsement.offer_entry_id;
  }

  async accepted(endorser: TestSigner, endorsed: TestSigner): Promise<number> {
    const offer_entry_id = await this.offer(endorser, endorsed);
    await this.registry.endorsements.accept({ offer_entry_id, endorsed_fingerprint: endorsed.fingerprint });
    return offer_entry_id;
  }

  /** A request to `target`. @returns its id */
  async request(target: TestSigner): Promise<string> {
    const requester = await this.key();
    return (await this.registry.requests.create(requester.fingerprint, request(target))).request_id;
  }
}

/** Every key has another name, so that none is taken for another's. */
export const nameOf = ({ fingerprint }: TestSigner): string => `Alice ${fingerprint.slice(-12)}`;

export const register = (registry: Registry, signer: TestSigner) =>
  registry.keys.register(registration(signer, nameOf(signer)).payload as never);

const request = (target: TestSigner) => ({
  target_fingerprint: target.fingerprint,
  attestation_type: "peer_review",
  nonce: randomUUID(),
  intent_statement: `Please, for ${randomUUID()}.`,
  claims: {},
});

/** By operation id. */
export const WRITES: Readonly<Record<string, Maker>> = {
  async post_keys_register() {
    const signer = newSigner();
    return { path: "/keys/register", body: registration(signer, nameOf(signer)) };
  },
  async post_keys_succeed(scene, signer) {
    const next = newSigner();
    const payload = {
      old_fingerprint: signer.fingerprint,
      new_public_key: next.publicKey,
      new_algorithm: next.algorithm,
    };
    return { path: "/keys/succeed", body: { payload, auth: await scene.proof(signer) } };
  },
  post_keys_revoke: async (scene, signer) => ({
    path: "/keys/revoke",
    body: { payload: { fingerprint: signer.fingerprint }, auth: await scene.proof(signer) },
  }),
  post_auth_password: async (scene, signer) => ({
    path: "/auth/password",
    body: { ...(await scene.proof(signer)), password: "correct horse battery" },
  }),
  post_users: async (_, signer) => ({ path: "/users", body: accountOf(signer) }),
  async post_users_recover(scene, signer) {
    const opened = await scene.registry.accounts.create(accountOf(signer) as never);
    const { display_name: _, email: __, ...replacement } = accountOf(await scene.key());
    const { display_name: pseudonym } = opened.user;
    return { path: "/users/recover", body: { pseudonym, recovery_key: opened.recovery_key, ...replacement } };
  },
  async post_credentials_enroll(scene, signer) {
    await scene.registry.accounts.create(accountOf(signer) as never);
    const key = await scene.key();
    const { challenge_id, nonce } = await challengeOf(scene.service, key);
    const signed = { challenge_id, issuing_fingerprint: signer.fingerprint, key_fingerprint: key.fingerprint };
    const body = {
      ...signed,
      credential_type: "hardware",
      device_label: "Second",
      challenge_signature: key.sign(nonce),
      chain_signature: signer.sign(canonical({ action: "service.credential.enroll.v1", ...signed })),
    };
    return { path: "/credentials/enroll", body };
  },
  post_attestations: async (_, signer) => ({
    path: "/attestations",
    body: submission(signer, newManifest(randomUUID())),
  }),
  post_attestations_batch: async (_, signer) => ({
    path: "/attestations/batch",
    body: { submissions: [submission(signer, newManifest(randomUUID()))] },
  }),
  async post_documents_sign({ service }, signer) {
    const { document } = newManifest(randomUUID());
    const step = { ...document, public_key_pem: signer.publicKey };
    const { body } = await service.post("/documents/sign", step);
    const signature = signer.sign(Buffer.from(body.signing_payload, "base64"));
    return { path: "/documents/sign", body: { ...step, signature } };
  },
  async post_endorsements_offer(scene, signer) {
    const parties = {
      endorser_fingerprint: signer.fingerprint,
      endorsed_fingerprint: (await scene.key()).fingerprint,
    };
    return {
      path: "/endorsements/offer",
      body: { ...parties, category: HUMAN, auth: await scene.proof(signer) },
    };
  },
  async post_endorsements_accept(scene, signer) {
    const offer_entry_id = await scene.offer(await scene.key(), signer);
    const body = { offer_entry_id, endorsed_fingerprint: signer.fingerprint, auth: await scene.proof(signer) };
    return { path: "/endorsements/accept", body };
  },
  async post_endorsements_withdraw(scene, signer) {
    const endorsed = await scene.key();
    const original_offer_entry_id = await scene.offer(signer, endorsed);
    const parties = { endorser_fingerprint: signer.fingerprint, endorsed_fingerprint: endorsed.fingerprint };
    const auth = await scene.proof(signer);
    return {
      path: "/endorsements/withdraw",
      body: { ...parties, original_offer_entry_id, note: `A mistake: ${randomUUID()}.`, auth },
    };
  },
  async post_endorsements_revoke_acceptance(scene, signer) {
    const original_offer_entry_id = await scene.accepted(await scene.key(), signer);
    const auth = await scene.proof(signer);
    const body = {
      endorsed_fingerprint: signer.fingerprint,
      original_offer_entry_id,
      note: `No: ${randomUUID()}.`,
      auth,
    };
    return { path: "/endorsements/revoke-acceptance", body };
  },
  async post_endorsements_revocation_alert(scene, signer) {
    const endorsed = await scene.key();
    await scene.accepted(signer, endorsed);
    const parties = { endorser_fingerprint: signer.fingerprint, compromised_fingerprint: endorsed.fingerprint };
    const auth = await scene.proof(signer);
    return { path: "/endorsements/revocation-alert", body: { ...parties, reason: `Stolen: ${randomUUID()}.`, auth } };
  },
  post_trust_configs: async (scene, signer) => ({
    path: "/trust-configs",
    body: { fingerprint: signer.fingerprint, minimum_threshold: 0.5 },
    headers: await scene.session(signer),
  }),
  async post_trust_configs_revoke(scene, signer) {
    const { fingerprint } = signer;
    await scene.registry.trustConfigs.create({ fingerprint, minimum_threshold: 0.5 });
    return { path: "/trust-configs/revoke", body: { fingerprint }, headers: await scene.session(signer) };
  },
  async post_claims(scene, signer) {
    await scene.registry.accounts.create(accountOf(signer) as never);
    return { path: "/claims", body: { payload: sealed().payload }, headers: await scene.session(signer) };
  },
  post_log_attestation_requests: async (scene, signer) => ({
    path: "/log/attestation-requests",
    body: request(await scene.key()),
    headers: await scene.session(signer),
  }),
  async post_log_attestation_requests_request_id_respond(scene, signer) {
    const id = await scene.request(signer);
    const headers = await scene.session(signer);
    return { path: `/log/attestation-requests/${id}/respond`, body: { decision: "decline" }, headers };
  },
  post_log_request_policies: async (scene, signer) => ({
    path: "/log/request-policies",
    body: { predicates: { all: [] }, default_action_on_failure: "allow" },
    headers: await scene.session(signer),
  }),
  async post_inbox_id_read(scene, signer) {
    await scene.request(signer);
    const { id } = scene.registry.inbox.list(signer.fingerprint, {}).notifications[0]!;
    return { path: `/inbox/${id}/read`, headers: await scene.session(signer) };
  },
  post_webhooks: async (scene, signer) => ({
    path: "/webhooks",
    body: { url: `https://${randomUUID()}.example/hook` },
    headers: await scene.session(signer),
  }),
};

/** Operations that are no reads, and store nothing for a client. */
export const FREE: ReadonlySet<string> = new Set([
  "post_auth_challenge",
  "post_auth_login",
  "post_auth_renew",
  "post_verify",
  "post_composite_assemble",
  "post_composite_compile",
  "post_claims_entry_id_reveal",
  "post_log_verify",
  // The operator's.
  "post_log_anchor",
  "post_log_sth_sign",
  "post_log_freeze",
  "post_log_entry_id_withhold",
  // Removes a row.
  "delete_webhooks_webhook_id",
]);

/** Everything that a log holds. */
export function content({ server }: TestService): unknown {
  const { log } = server.registry;
  const snapshot = log.snapshot();
  // A challenge is used up by what proves possession, whatever becomes of the rest.
  const tables = PRIVATE_TABLES.filter((table) => table !== "usedChallenges");
  const rows = tables.map((table) => [table, [...snapshot.range(table)]]);
  snapshot.close();
  return [log.size, rows];
}

/** A write that is ready to be sent, whose it is, and the other keys that it is about. */
export interface Prepared {
  readonly write: Write;
  readonly signer: TestSigner;
  readonly others: readonly TestSigner[];
}

/** Makes the write of a new key. */
export async function prepared(service: TestService, id: string): Promise<Prepared> {
  const signer = newSigner();
  await register(service.server.registry, signer);
  const scene = new Scene(service);
  return { write: await WRITES[id]!(scene, signer), signer, others: scene.others };
}

/** Sends a write of a key, from an address. @param signer a new key if absent */
export async function send(service: TestService, id: string, address: string, signer?: TestSigner) {
  const scene = new Scene(service);
  const made = await WRITES[id]!(scene, signer ?? (await scene.key()));
  return () => sendMade(service, made, address);
}

const sendMade = (service: TestService, { path, method, body, headers }: Write, address: string) =>
  service.send(method ?? "POST", `/api/v1${path}`, {
    headers: { ...headers, "x-forwarded-for": address },
    ...(body && { body: JSON.stringify(body) }),
  });
