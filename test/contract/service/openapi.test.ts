/**
 * The OpenAPI document against the service: the tests provoke every documented answer of every operation, and the
 * harness rejects every undocumented one.
 */
import { createPublicKey, randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "#cairnlog/server/http/limits/limits.js";
import { startCalendar } from "../../anchoring/calendar.js";
import { newRoot, removeChains } from "../../crypto/chains.js";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { NO_FRONT_ENDS, startTestService, temporaryFolder } from "../../server/harness.js";
import { bearerOf, challengeOf, proofOf, registeredSigner } from "../../server/proofs.js";
import {
  canonical,
  newManifest,
  newSigner,
  registration,
  sha256,
  submission,
  type TestSigner,
} from "../../server/signers.js";
import { plaintext, preUpgrade, recipient, sealed } from "../signing/claimants.js";
import { type Operation, Tour } from "../tour.js";
import { writeExamples } from "../writeexamples.js";

const MINUTE = 60_000_000;
const DAY = 24 * 60 * MINUTE;
const CATEGORY = "x-service:institutional_endorsement";
/** Values by parameter that name nothing that exists. */
const NOTHING: Readonly<Record<string, string | number>> = {
  fingerprint: `sha256:${"0".repeat(64)}`,
  request_id: "6d8f1c86-3f1f-4f0e-9b7e-1d0a2c9f5e11",
  version: 2,
  level: 0,
  index: 99_999,
  index_p: "99999.p",
  width: 7,
};
const nothing = ({ path }: Operation) =>
  Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name!, NOTHING[name!] ?? 99_999]));

/** Answers that need a fault or another method, and the tests that cause them. */
const NEEDS_A_FAULT: Readonly<Record<number, string>> = {
  405: "another method (openapi-tools.test.ts)",
  408: "a body that does not arrive in time (test/server/http/bounds.long.test.ts)",
  500: "damage to the log (test/log/write/faults.long.test.ts)",
  503: "a shutdown, a full queue or an operator key that is away (test/server/life/shutdown.long.test.ts, anchoring.test.ts)",
};

let world: Controlled;
let tour: Tour;
let operator: Pick<TestSigner, "fingerprint" | "sign">;
let ada: TestSigner;
let grace: TestSigner;
beforeAll(async () => {
  const calendar = await startCalendar();
  calendar.calledAs = "https://calendar.example.org";
  world = await startControlled("ed25519", { calendars: [calendar.url] });
  tour = await Tour.of(world.service);
  operator = {
    fingerprint: world.operatorFingerprint,
    sign: (message) => world.operatorSign(Buffer.from(message as string)).toString("base64"),
  };
});
afterAll(() => {
  removeChains();
  if (process.env.UPDATE_EXAMPLES) writeExamples(tour);
});

const ask = (...parts: Parameters<Tour["ask"]>) => tour.ask(...parts);
const session = (signer: Pick<TestSigner, "fingerprint" | "sign"> = ada) => bearerOf(world.service, signer);
const proof = (signer: TestSigner) => proofOf(world.service, signer);
const newKey = () => registeredSigner(world.service);

/** A signer and the header of a recovery session: its key has expired. */
async function recovered(): Promise<{ readonly signer: TestSigner; readonly headers: Record<string, string> }> {
  const signer = await registeredSigner(world.service, { expiration_date: new Date((world.now + MINUTE) / 1000) });
  world.now += 2 * MINUTE;
  return { signer, headers: await bearerOf(world.service, signer, { recovery: true }) };
}

const account = (signer: TestSigner, more: object = {}) => ({
  display_name: `Holder ${randomUUID()}`,
  email: "ada@example.org",
  credential_type: "hardware",
  key_fingerprint: signer.fingerprint,
  device_label: "Security key",
  ...more,
});

async function enrolment(issuing: TestSigner, key: TestSigner) {
  const { challenge_id, nonce } = await challengeOf(world.service, key);
  const signed = { challenge_id, issuing_fingerprint: issuing.fingerprint, key_fingerprint: key.fingerprint };
  return {
    ...signed,
    credential_type: "hardware",
    device_label: "Second security key",
    challenge_signature: key.sign(nonce),
    chain_signature: issuing.sign(canonical({ action: "service.credential.enroll.v1", ...signed })),
  };
}

describe("an empty log", () => {
  test("has no head, nothing to sign and nothing to anchor", async () => {
    for (const id of ["get_log_sth", "get_log_checkpoint"]) await ask(id, 404);
    for (const id of ["post_log_anchor", "post_log_sth_sign"]) await ask(id, 409, { headers: await session(operator) });
  });
});

describe("every operation answers as it should", () => {
  test("service", async () => {
    for (const id of ["get_health", "get_writers", "get_livez", "get_readyz", "get_metrics", "get_openapi_json"])
      await ask(id, 200);
    await ask("get_leader", 200);
    await ask("get_follower", 503);
    await ask("get_identifier_types", 200);
  });

  test("keys and sessions", async () => {
    [ada, grace] = [newSigner(), newSigner("ecdsa-p256")];
    await ask("post_keys_register", 200, { body: registration(ada, "Ada") });
    await ask("post_keys_register", 409, { body: registration(ada, "Ada") });
    await ask("post_keys_register", 200, { body: registration(grace, "Grace") });
    const params = { fingerprint: ada.fingerprint };
    await ask("get_keys", 200, { query: { per_page: 2 } });
    await ask("get_keys_search", 200, { query: { pseudonym: "ad" } });
    await ask("get_keys_fingerprint", 200, { params });
    await ask("get_keys_fingerprint_status", 200, { params });

    const challenge = { fingerprint: ada.fingerprint, purpose: "login" };
    const { challenge_id, nonce } = (await ask("post_auth_challenge", 200, { body: challenge })).body;
    await ask("post_auth_challenge", 404, { body: { fingerprint: NOTHING.fingerprint } });
    await ask("post_auth_challenge", 409, { body: { ...params, recovery: true } });
    const login = { challenge_id, challenge_signature: ada.sign(nonce) };
    const { token } = (await ask("post_auth_login", 200, { body: login })).body;
    await ask("post_auth_login", 409, { body: login });
    await ask("post_auth_renew", 200, { headers: { authorization: `Bearer ${token}` } });
    await ask("post_auth_renew", 401);

    const guarded = await newKey();
    await ask("post_auth_password", 200, { body: { ...(await proof(guarded)), password: "correct horse battery" } });

    const [old, next] = [await newKey(), newSigner()];
    const payload = { old_fingerprint: old.fingerprint, new_public_key: next.publicKey, new_algorithm: "ed25519" };
    await ask("post_keys_succeed", 200, { body: { payload, auth: await proof(old) } });
    const revocation = { payload: { fingerprint: next.fingerprint }, auth: await proof(next) };
    await ask("post_keys_revoke", 200, { body: revocation });
    await ask("post_attestations", 403, { body: submission(next) });
    await ask("post_auth_challenge", 403, { body: { fingerprint: next.fingerprint } });

    const { public_key } = (await ask("get_log_operator_key", 200)).body;
    const key_algorithm = createPublicKey(public_key).asymmetricKeyType;
    const expiring = { public_key, key_algorithm, pseudonym: "Operator", expiration_date: "2099-01-01T00:00:00Z" };
    await ask("post_keys_register", 403, { body: { payload: expiring } });
  });

  test("accounts", async () => {
    const { recovery_key } = (await ask("post_users", 201, { body: account(ada, { display_name: "Ada Lovelace" }) }))
      .body;
    await ask("post_users", 404, { body: account(newSigner()) });
    await ask("post_users", 409, { body: account(ada) });
    const second = await newKey();
    const enrolled = await enrolment(ada, second);
    await ask("post_credentials_enroll", 200, { body: enrolled });
    const again = await enrolment(ada, second);
    await ask("post_credentials_enroll", 401, { body: { ...again, chain_signature: second.sign("x") } });
    await ask("post_credentials_enroll", 404, { body: { ...again, issuing_fingerprint: NOTHING.fingerprint } });
    await ask("post_credentials_enroll", 409, { body: again });
    const stale = await enrolment(ada, await newKey());
    world.now += 6 * MINUTE;
    await ask("post_credentials_enroll", 410, { body: stale });
    const soft = await newKey();
    await ask("post_users", 201, { body: account(soft, { credential_type: "software" }) });
    await ask("post_credentials_enroll", 403, { body: await enrolment(soft, await newKey()) });

    const { display_name: _, email: __, ...replacement } = account(await newKey());
    const recovery = { pseudonym: "Ada Lovelace", recovery_key, ...replacement };
    await ask("post_users_recover", 401, { body: { ...recovery, recovery_key: "00000-00000" } });
    await ask("post_users_recover", 404, { body: { ...recovery, key_fingerprint: NOTHING.fingerprint } });
    await ask("post_users_recover", 409, { body: { ...recovery, key_fingerprint: soft.fingerprint } });
    await ask("post_users_recover", 200, { body: recovery });
  });

  test("accounts whose hardware is attested to by somebody else than they say", async () => {
    const root = newRoot("Trusted");
    const path = join(temporaryFolder(), "roots.pem");
    writeFileSync(path, root.certificate);
    const attested = await startTestService({ SERVICE_HARDWARE_ROOTS: path, ...NO_FRONT_ENDS });
    await tour.follow(attested);
    const [key, other] = [await registeredSigner(attested), await registeredSigner(attested)];
    const of = (signer: TestSigner) => ({ hardware_attestation: root.certify(signer.publicKey) });
    await ask("post_users", 403, { body: account(key, of(other)) }, attested);
    const { user, recovery_key } = (await attested.post("/users", account(key, of(key)))).body;
    const { display_name: _, email: __, ...replacement } = account(other, of(key));
    const recovery = { pseudonym: user.display_name, recovery_key, ...replacement };
    await ask("post_users_recover", 403, { body: recovery }, attested);
  });

  test("signing and verification", async () => {
    const document = { title: "Annual report", content_hash: `sha256:${sha256("The report\n")}`, tags: ["report"] };
    const step = { ...document, public_key_pem: grace.publicKey, attestation_type: "editorial_review" };
    const prepared = await ask("post_documents_sign", 200, { body: step });
    const payload = Buffer.from(prepared.body.signing_payload, "base64");
    expect(prepared.body.manifest_hash).toBe(sha256(payload));
    await ask("post_documents_sign", 200, { body: { ...step, signature: grace.sign(payload) } });

    const manifest = { document, attestations: [] };
    const { attestation } = (
      await ask("post_attestations", 200, { body: { ...submission(ada, manifest), intent_statement: "I wrote it." } })
    ).body;
    const reserved = "https://x-service.example/predicates/vault-publication/v1";
    await ask("post_attestations", 403, { body: { ...submission(ada), attestation_type: reserved } });
    await ask("post_attestations", 403, { body: { ...submission(ada, manifest), attestation_type: "publication" } });
    await ask("post_documents_sign", 403, { body: { ...step, attestation_type: reserved } });
    const minutes = { title: "Minutes", content_hash: `sha256:${sha256("The minutes\n")}` };
    const another = submission(ada, { document: minutes, attestations: [] });
    const submissions = [another, { ...another, signature: ada.sign("another text") }];
    const { results } = (await ask("post_attestations_batch", 200, { body: { submissions } })).body;
    expect(results).toMatchObject([{ status: 201 }, { status: 422 }]);

    const signed = { manifest: { ...manifest, attestations: [attestation] }, source_hash: sha256("The report\n") };
    await ask("post_verify", 200, { body: signed });
    await ask("post_verify", 404, { body: { ...signed, verifier_fingerprint: NOTHING.fingerprint } });
    const trust_config = {
      direct_signer_anchors: [{ fingerprint: ada.fingerprint, weight: 1 }],
      minimum_threshold: 0.5,
    };
    await ask("post_verify", 200, { body: { ...signed, trust_config } });

    const parts = [
      { title: "Report", content_hash: document.content_hash, role: "chapter", manifest: signed.manifest },
      { title: "Appendix", content_hash: sha256("appendix") },
    ];
    const { body } = await ask("post_composite_assemble", 200, { body: { title: "Report and appendix", parts } });
    const compiled = (await ask("post_composite_compile", 200, { body })).body;
    const bound = (await ask("post_attestations", 200, { body: submission(ada, compiled.manifest) })).body;
    const whole = { ...compiled.manifest, attestations: [bound.attestation] };
    await ask("post_verify", 200, { body: { manifest: whole, source_hash: body.composite.composite_hash } });
  });

  test("the log", async () => {
    for (const id of ["get_log_head", "get_log_sth", "get_log_checkpoint", "post_log_verify"]) await ask(id, 200);
    await ask("get_log", 200, { query: { per_page: 1, event_type: "key_registration" } });
    await ask("get_log_entry_id", 200, { params: { entry_id: 1 } });
    await ask("get_log_sth_tree_size", 200, { params: { tree_size: 3 } });
    await ask("get_log_heads", 200, { query: { from: 3, limit: 1 } });
    await ask("get_log_proof_leaf_index", 200, { params: { leaf_index: 2 }, query: { tree_size: 5 } });
    await ask("get_log_entry_id_proof", 200, { params: { entry_id: 3 }, query: { tree_size: 5 } });
    await ask("get_log_consistency", 200, { query: { from: 3, to: 6 } });
    const params = { fingerprint: ada.fingerprint };
    await ask("get_log_by_fingerprint_fingerprint", 200, { params, query: { per_page: 1 } });
    await ask("get_log_audit_trail", 200, { query: { ...params, start_date: "2025-01-01", per_page: 1 } });
    await ask("get_audit_export", 200, { query: { scope: "attestations", page_size: 1 } });
    await ask("get_audit_export", 200, { query: { format: "csv" } });

    await ask("get_log_anchor_status", 200);
    const headers = await session(operator);
    await ask("post_log_anchor", 200, { headers });
    await ask("get_log_anchor_status", 200);
    await ask("post_log_sth_sign", 200, { headers });
    await ask("get_log_shards", 200);
    for (const id of ["post_log_anchor", "post_log_sth_sign", "post_log_freeze"]) {
      const body = {};
      await ask(id, 401, { body });
      await ask(id, 403, { body, headers: await session() });
    }
    const bare = await startControlled();
    await tour.follow(bare.service);
    await registeredSigner(bare.service);
    const elsewhere = {
      fingerprint: bare.operatorFingerprint,
      sign: (message: string | Uint8Array) => bare.operatorSign(Buffer.from(message)).toString("base64"),
    };
    await ask("post_log_anchor", 502, { headers: await bearerOf(bare.service, elsewhere) }, bare.service);
  });

  test("tiles", async () => {
    const { log } = world.registry;
    const events = Array.from({ length: 260 }, (_, i) => ({ event_type: "test.event", payload: { i } }));
    await log.append(events);
    await ask("get_log_tile_version_level_index", 200, { params: { version: 2, level: 0, index: 0 } });
    const params = { version: 2, level: 0, index_p: "1.p", width: 4 };
    await ask("get_log_tile_version_level_index_p_width", 200, { params });
  });

  test("the log as a C2SP log", async () => {
    await ask("get_tlog_vkey", 200);
    await expect
      .poll(async () => (await ask("get_tlog_checkpoint", 200)).text)
      .toContain(`\n${world.registry.log.size}\n`);
    await ask("get_tlog_tile_level_n1", 200, { params: { level: "entries", n1: "000" } });
    await ask("get_tlog_tile_level_n1_n2", 200, { params: { level: "1", n1: "000.p", n2: "1" } });
    const former = await startTestService(NO_FRONT_ENDS);
    const { dataDir } = former.server;
    await former.close();
    for (const name of ["tlog-checkpoint.txt", "tlog.vkey"]) rmSync(join(dataDir, name), { force: true });
    const mirror = await startTestService({ SERVICE_DATA_DIR: dataDir, SERVICE_READ_ONLY: "on" });
    await tour.follow(mirror);
    for (const id of ["get_tlog_vkey", "get_tlog_checkpoint"]) await ask(id, 404, {}, mirror);
  });

  test("endorsements and trust", async () => {
    const endorser_fingerprint = ada.fingerprint;
    const endorsed_fingerprint = grace.fingerprint;
    const offer = {
      endorser_fingerprint,
      endorsed_fingerprint,
      category: CATEGORY,
      valid_until: "2027-01-01",
      institutional_metadata: { name: "University of Example" },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
    };
    const { id } = (await ask("post_endorsements_offer", 200, { body: { ...offer, auth: await proof(ada) } })).body;
    const acceptance = { offer_entry_id: id, endorsed_fingerprint };
    await ask("post_endorsements_accept", 200, { body: { ...acceptance, auth: await proof(grace) } });
    world.now += DAY + MINUTE;
    for (const operation of ["get_endorsements_fingerprint", "get_endorsements_fingerprint_status"])
      await ask(operation, 200, { params: { fingerprint: endorsed_fingerprint } });
    const params = { fingerprint: endorser_fingerprint };
    await ask("get_endorsements_fingerprint_issued", 200, { params, query: { status: "active" } });
    await ask("get_graph_fingerprint", 200, { params, query: { max_depth: 2 } });

    const config = {
      fingerprint: endorser_fingerprint,
      direct_signer_anchors: [{ fingerprint: endorser_fingerprint, weight: 1 }],
      endorser_anchors: [{ fingerprint: endorser_fingerprint, weight: 0.9 }],
      minimum_threshold: 0.4,
      category_weights: { [CATEGORY]: 0.8 },
    };
    await ask("post_trust_configs", 200, { body: config, headers: await session() });
    await ask("get_trust_configs", 200);
    await ask("get_trust_configs_fingerprint", 200, { params });
    const attested = (await world.service.post("/attestations", submission(grace))).body;
    const manifest = { document: newManifest().document, attestations: [attested.attestation] };
    const asked = { manifest, source_hash: sha256("other"), verifier_fingerprint: endorser_fingerprint };
    await ask("post_verify", 200, { body: asked });
    const revocation = { fingerprint: endorser_fingerprint };
    await ask("post_trust_configs_revoke", 200, { body: revocation, headers: await session() });

    const alert = {
      endorser_fingerprint,
      compromised_fingerprint: endorsed_fingerprint,
      reason: "The laptop with the key was stolen.",
      auth: await proof(ada),
    };
    await ask("post_endorsements_revocation_alert", 200, { body: alert });
    await ask("get_endorsements_revocation_alerts_fingerprint", 200, { params: { fingerprint: endorsed_fingerprint } });
    const end = { endorsed_fingerprint, original_offer_entry_id: id, note: "We no longer work together." };
    await ask("post_endorsements_revoke_acceptance", 200, { body: { ...end, auth: await proof(grace) } });
    const human = { ...offer, category: "x-service:human_attestation", auth: await proof(ada) };
    const other = (await ask("post_endorsements_offer", 200, { body: human })).body;
    const back = { endorser_fingerprint, endorsed_fingerprint, original_offer_entry_id: other.id, note: "A mistake." };
    await ask("post_endorsements_withdraw", 200, { body: { ...back, auth: await proof(ada) } });
  });

  test("attestation requests", async () => {
    const policy = {
      target_fingerprint: grace.fingerprint,
      predicates: { all: [{ field: "attestation_type", op: "in", value: ["peer_review", "editorial_review"] }] },
      default_action_on_failure: "decline",
    };
    await ask("post_log_request_policies", 200, { body: policy, headers: await session(grace) });
    await ask("get_log_request_policies_fingerprint", 200, { params: { fingerprint: grace.fingerprint } });
    const request = {
      target_fingerprint: grace.fingerprint,
      attestation_type: "peer_review",
      nonce: "request-2025-0001",
      intent_statement: "Please review the annual report.",
      claims: { document_hash: `sha256:${sha256("The report\n")}` },
    };
    const { request_id } = (
      await ask("post_log_attestation_requests", 200, { body: request, headers: await session() })
    ).body;
    const query = { target: grace.fingerprint, status: "open" };
    await ask("get_log_attestation_requests", 200, { query });
    await ask("get_log_attestation_requests", 404, { query: { target: NOTHING.fingerprint! } });
    const headers = await session(grace);
    const { notifications } = (await ask("get_inbox", 200, { query: { unread: "true" }, headers })).body;
    await ask("post_inbox_id_read", 200, { params: { id: notifications[0].id }, headers });
    const params = { request_id };
    const answer = { decision: "decline", reason: "No time before summer." };
    await ask("post_log_attestation_requests_request_id_respond", 200, { params, body: answer, headers });
    await ask("get_log_attestation_requests_request_id", 200, { params });
  });

  test("encrypted claims", async () => {
    const hardware = await newKey();
    await world.service.post("/users", account(hardware));
    const headers = await session(hardware);
    const { payload, commitmentKey } = sealed();
    const body = { payload: { ...payload, recipient_fingerprint: recipient.fingerprint } };
    const { entry_id } = (await ask("post_claims", 200, { body, headers })).body;
    await ask("post_claims", 403, { body, headers: await session(grace) });
    await ask("get_claims", 200, { query: { lookup_key: payload.lookup_key } });
    await ask("get_claims_entry_id", 200, { params: { entry_id } });
    const reveal = { plaintext, commitment_key: commitmentKey };
    await ask("post_claims_entry_id_reveal", 200, { params: { entry_id }, body: reveal, headers });
    await ask("post_claims_entry_id_reveal", 400, { params: { entry_id }, body: { plaintext }, headers });
    await world.registry.log.append([preUpgrade()]);
    const old = { entry_id: await world.service.entryCount() };
    await ask("get_claims_entry_id", 200, { params: old });
    await ask("post_claims_entry_id_reveal", 409, { params: old, body: reveal, headers });

    const operators = { headers: await session(operator), body: { reason: "An order.", basis: "Case 12/26" } };
    await ask("post_log_entry_id_withhold", 200, { params: { entry_id }, ...operators });
    await ask("post_log_entry_id_withhold", 409, { params: { entry_id }, ...operators });
    await ask("post_log_entry_id_withhold", 404, { params: { entry_id: 99_999 }, ...operators });
    await ask("post_log_entry_id_withhold", 403, { ...operators, params: { entry_id }, headers });
    await ask("get_claims_entry_id", 410, { params: { entry_id } });
    await ask("post_claims_entry_id_reveal", 410, { params: { entry_id }, body: reveal, headers });
  });

  test("webhooks", async () => {
    const headers = await session();
    const body = { url: "https://receiver.example/hook", events: ["key.revoked"], secret: "a-secret-of-24-characters" };
    const { id: webhook_id } = (await ask("post_webhooks", 200, { body, headers })).body;
    await ask("get_webhooks", 200, { headers });
    await ask("delete_webhooks_webhook_id", 200, { params: { webhook_id }, headers });
    await Promise.all(Array.from({ length: 100 }, () => world.service.post("/webhooks", { url: body.url }, headers)));
    await ask("post_webhooks", 409, { body, headers });
  });
});

describe("every operation refuses as it should", () => {
  const hasBody = ({ definition }: Operation) => definition.requestBody?.required === true;
  const takesSession = ({ definition }: Operation) => definition.security.some((scheme: object) => "session" in scheme);
  const membersOf = ({ definition }: Operation) => {
    const { $ref } = definition.requestBody?.content["application/json"].schema ?? {};
    return Object.keys(schemas[$ref?.split("/").at(-1) as string]?.properties ?? {});
  };
  const takesProof = (operation: Operation) => membersOf(operation).includes("auth");
  // biome-ignore lint/suspicious/noExplicitAny: schemas are walked as they come
  let schemas: Record<string, any>;
  beforeAll(async () => {
    ({ schemas } = (await world.service.openApi()).components);
  });

  /** The parts of a request that authentication needs. Everything else in it is wrong. */
  async function pass(operation: Operation) {
    if (operation.id === "post_auth_password") return { body: await proof(ada) };
    if (["post_log_freeze", "post_log_entry_id_withhold"].includes(operation.id))
      return { headers: await session(operator), body: {} };
    if (takesProof(operation)) return { body: { auth: await proof(ada) } };
    if (!takesSession(operation)) return { body: {} };
    const hardware = operation.id === "post_claims";
    const signer = hardware ? await newKey() : ada;
    if (hardware) await world.service.post("/users", account(signer));
    return { headers: await session(signer), body: {} };
  }
  const bodyOf = (operation: Operation, body: unknown) => (hasBody(operation) ? { body } : {});

  test("400 and 413: bodies that are none, and too large ones", async () => {
    for (const operation of tour.which(hasBody)) {
      await ask(operation.id, 400, { params: nothing(operation), body: "{" });
      const largest = operation.id === "post_attestations_batch" ? 3 << 20 : 1 << 20;
      await ask(operation.id, 413, { params: nothing(operation), body: " ".repeat(largest + 1) });
    }
  });

  test("401: no session and no proof", async () => {
    for (const operation of tour.which((one) => takesSession(one) || takesProof(one))) {
      // If only some cases need a proof, an invalid proof is refused.
      const isOptional = Object.keys(operation.definition.security[0] ?? { session: [] }).length === 0;
      const headers = isOptional ? { authorization: "Bearer a.b.c" } : {};
      await ask(operation.id, 401, { params: nothing(operation), headers, ...bodyOf(operation, {}) });
    }
  });

  test("422: bodies, queries and paths that do not fit", async () => {
    for (const operation of tour.which(({ definition }) => "422" in definition.responses)) {
      const { headers = {}, body } = await pass(operation);
      const query: Record<string, string> = {};
      const params = nothing(operation);
      if (!hasBody(operation))
        for (const { name, in: where, schema } of operation.definition.parameters)
          if (where === "path") params[name] = schema.type === "integer" || schema.pattern ? "x" : params[name]!;
          else if (where === "query" && schema.type === "integer") query[name] = "x";
      await ask(operation.id, 422, { params, query, headers, ...bodyOf(operation, body) });
    }
  });

  test("404: paths that name nothing", async () => {
    const named = ({ path, definition }: Operation) => path.includes("{") && "404" in definition.responses;
    for (const operation of tour.which((one) => named(one) && !hasBody(one)))
      await ask(operation.id, 404, { params: nothing(operation), headers: (await pass(operation)).headers ?? {} });
    const headers = await session();
    const decline = { decision: "decline" };
    const params = { entry_id: 99_999, request_id: NOTHING.request_id! };
    await ask("post_log_attestation_requests_request_id_respond", 404, { params, body: decline, headers });
    const reveal = { plaintext: {}, commitment_key: "0".repeat(64) };
    await ask("post_claims_entry_id_reveal", 404, { params, body: reveal, headers });
  });

  test("403, 404, 409 and 410: proofs by another key, unknown, used and expired ones", async () => {
    const login = (signed: object) => ({ body: signed });
    const password = (signed: object) => ({ body: { ...signed, password: "correct horse battery" } });
    const detached = (auth: object) => ({ body: { auth } });
    const ways = [
      { operation: tour.operations.get("post_auth_login")!, way: login },
      { operation: tour.operations.get("post_auth_password")!, way: password },
      ...tour.which(takesProof).map((operation) => ({ operation, way: detached })),
    ];
    for (const { operation, way } of ways) {
      const params = nothing(operation);
      const signer = await newKey();
      const good = await proof(signer);
      await ask(operation.id, 403, { params, ...way({ ...good, challenge_signature: ada.sign("another nonce") }) });
      await ask(operation.id, 404, { params, ...way({ ...good, challenge_id: randomUUID() }) });
      await world.service.send(operation.method, operation.path.replace(/\{\w+\}/, "x"), {
        body: JSON.stringify(way(good).body),
      });
      await ask(operation.id, 409, { params, ...way(good) });
      const stale = await proof(signer);
      world.now += 6 * MINUTE;
      await ask(operation.id, 410, { params, ...way(stale) });
    }
  });

  test("403: a recovery session where it does not serve", async () => {
    for (const operation of tour.which((one) => takesSession(one) && one.id !== "post_keys_succeed")) {
      const { headers } = await recovered();
      await ask(operation.id, 403, { params: nothing(operation), headers, ...bodyOf(operation, {}) });
    }
    const { signer } = await recovered();
    await ask("post_auth_challenge", 403, { body: { fingerprint: signer.fingerprint } });
  });

  test("403, 415 and 421: pages of another origin, their bodies, and names of other services", async () => {
    const own = world.service.url;
    for (const operation of tour.which(({ method }) => method === "POST" || method === "DELETE")) {
      const params = nothing(operation);
      await ask(operation.id, 403, { params, headers: { origin: "https://evil.example" } });
      // `fetch` sends no `Host` of the caller's.
      const head = `${operation.method} ${operation.path.replace(/\{(\w+)\}/g, (_, name) => `${params[name]}`)} HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n`;
      expect(await world.service.raw(head)).toMatch(/^HTTP\/1\.1 421 /);
      tour.seen.add(`${operation.id} 421`);
      if (operation.method === "POST") await ask(operation.id, 415, { params, headers: { origin: own }, body: "{}" });
    }
  });

  test("429: more than the limits allow", async () => {
    const one = Object.fromEntries(
      Object.keys(LIMITS).map((name) => [`SERVICE_RATE_LIMIT_${name.replaceAll("-", "_").toUpperCase()}`, "1"]),
    );
    const limited = await startTestService({ ...one, SERVICE_RATE_LIMITS: "on" });
    await tour.follow(limited);
    for (const { id: operation, method, path } of tour.which(({ definition }) => "429" in definition.responses)) {
      const body = method === "POST" ? { body: "{}" } : {};
      const target = path.replace(/\{\w+\}/g, "1");
      await limited.send(method, target, body);
      expect((await limited.send(method, target, body)).status, operation).toBe(429);
    }
  });

  test("304: the client has the answer", async () => {
    for (const { id: operation } of tour.which(({ definition }) => "304" in definition.responses)) {
      const { reply: _, ...asked } = tour.granted.get(operation)!;
      await ask(operation, 304, { ...asked, headers: { "if-none-match": "*" } });
    }
  });
});

test("410: every write of a log that has ended", async () => {
  const successor = { url: "https://2027.log.example", vkey: (await ask("get_tlog_vkey", 200)).text.trim() };
  const body = { reason: "The log goes on with a new one every year.", successor };
  await ask("post_log_freeze", 200, { body, headers: await session(operator) });
  const isEnded = ({ method, id, definition }: Operation) =>
    method !== "GET" &&
    "410" in definition.responses &&
    !["post_auth_login", "post_auth_renew", "post_claims_entry_id_reveal"].includes(id);
  for (const operation of tour.which(isEnded)) {
    const { body: problem } = await ask(operation.id, 410, { params: nothing(operation), body: {} });
    expect(problem, operation.id).toMatchObject({ code: "frozen", successor });
  }
  expect((await ask("get_log_shards", 200)).body.frozen).toMatchObject(body);
});

test("every answer that the document promises was seen, but those that need a fault", () => {
  const promised = [...tour.operations.values()].flatMap(({ id, definition }) =>
    Object.keys(definition.responses)
      .filter((status) => !(Number(status) in NEEDS_A_FAULT))
      .map((status) => `${id} ${status}`),
  );
  // Only a node of a replicated log follows another: test/server/replication.
  tour.seen.add("get_follower 200");
  expect(promised.filter((answer) => !tour.seen.has(answer))).toEqual([]);
  // The harness has checked that there were no other answers.
  expect(tour.operations.size).toBeGreaterThanOrEqual(70);
});
