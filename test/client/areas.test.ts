/** The client's further areas against the real service. Together they reach every route. */

import { createPrivateKey, createPublicKey, randomUUID, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import canonicalize from "canonicalize";
import { beforeAll, describe, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/index.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { encryptClaim, verifyClaimCommitment } from "#cairnlog/engine/verify/claims/claims.js";
import { parsePublicKey, parseVkey } from "#cairnlog/engine/verify/index.js";
import { type ClaimEntry, ClientError, type ClientOptions, createClient } from "#cairnlog/server/client/index.js";
import type { GraphFilter } from "#cairnlog/server/client/signing/trust.js";
import { startCalendar } from "../anchoring/calendar.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, sha256 } from "../server/signers.js";
import { all, asSigner, conviction, failure, newClient } from "./clients.js";
import { LyingProxy } from "./proxy.js";

const dataDir = temporaryFolder();
/** `METHOD path` of every request of this file's clients. */
const asked = new Set<string>();
const recorder: typeof fetch = (input, init) => {
  asked.add(`${init?.method ?? "GET"} ${new URL(String(input)).pathname}`);
  return fetch(input, init);
};
let service: TestService;
let proxy: LyingProxy;
beforeAll(async () => {
  const calendar = await startCalendar();
  service = await startTestService({
    SERVICE_DATA_DIR: dataDir,
    SERVICE_CHECKPOINT_INTERVAL_S: "1",
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    SERVICE_ENDORSEMENT_MIN_TRUST: "0",
    SERVICE_OTS_CALENDARS: calendar.url,
  });
  proxy = await LyingProxy.before(service.url);
});

const open = (options: Partial<ClientOptions> = {}, server = service.url) =>
  newClient(server, { fetch: recorder, ...options });

async function registered(server = service.url) {
  const made = open({}, server);
  await made.client.keys.register({ pseudonym: "Ada" });
  return made;
}

const newAccount = (credential_type: "hardware" | "software" = "software") => ({
  display_name: `Ada ${randomUUID()}`,
  email: "ada@example.org",
  credential_type,
  device_label: "a token",
});

/** A client whose key is on an account and declared as hardware. */
async function withHardware(server = service.url) {
  const made = await registered(server);
  const account = newAccount("hardware");
  return { ...made, account, opened: await made.client.accounts.open(account) };
}

/** The operator, by the key in the data directory. */
function operator() {
  const key = createPrivateKey(readFileSync(join(dataDir, "operator.pem")));
  const publicKeyPem = createPublicKey(key).export({ type: "spki", format: "pem" }).toString();
  const signer = { publicKeyPem, algorithm: "ed25519" as const };
  const signs = async (bytes: Uint8Array) => new Uint8Array(sign(null, bytes, key));
  return createClient({ server: service.url, fetch: recorder, signer: { ...signer, sign: signs } });
}

describe("accounts", () => {
  test("are opened, given a further key, and got back with the recovery key", async () => {
    const { client, fingerprint, account, opened } = await withHardware();
    expect(opened).toMatchObject({ credential: { key_fingerprint: fingerprint, hardware_backed: true } });
    const further = await registered();
    const enrolled = await client.accounts.enroll(asSigner(further.signer), {
      credential_type: "hardware",
      device_label: "another token",
    });
    expect(enrolled.credential).toMatchObject({ key_fingerprint: further.fingerprint, status: "active" });
    const replacement = await registered();
    const recovery = {
      pseudonym: account.display_name,
      credential_type: "software",
      device_label: "a laptop",
    } as const;
    const recovered = await replacement.client.accounts.recover({ ...recovery, recovery_key: opened.recovery_key });
    expect(recovered).toMatchObject({ revoked_credentials: 2, user: { id: opened.user.id } });
    expect(recovered.recovery_key).not.toBe(opened.recovery_key);
    const again = replacement.client.accounts.recover({ ...recovery, recovery_key: opened.recovery_key });
    expect(await failure(again)).toMatchObject({ status: 401 });
  });

  test("a challenge that is not the new key's own is not signed", async () => {
    const { client } = await withHardware(proxy.url);
    const further = await registered();
    const random = "A".repeat(43);
    proxy.lie = (path, answer) =>
      path === "/auth/challenge"
        ? { ...answer, nonce: `service.auth.v1:general:sha256:${"0".repeat(64)}:${random}` }
        : answer;
    const enrolment = client.accounts.enroll(asSigner(further.signer), {
      credential_type: "hardware",
      device_label: "x",
    });
    expect(await failure(enrolment)).toMatchObject({ code: "unsafe-challenge" });
    proxy.repent();
  });
});

test("a password is set, changed, and taken by sign-in, attestation and succession", async () => {
  const { client, fingerprint } = await registered();
  expect(await client.setPassword("correct horse")).toEqual({ fingerprint, password_set: true });
  expect(await failure(client.setPassword("battery staple"))).toMatchObject({ status: 403 });
  await client.setPassword("battery staple", "correct horse");
  expect(await failure(client.login("correct horse"))).toMatchObject({ status: 403 });
  expect(await client.login("battery staple")).toMatchObject({ fingerprint });
  const { document } = newManifest();
  expect(await failure(client.attest(document))).toMatchObject({ status: 403 });
  expect((await client.attest(document, { password: "battery staple" })).receipt.duplicate).toBe(false);
  const successor = newSigner();
  expect(await failure(client.keys.succeed(asSigner(successor)))).toMatchObject({ status: 403 });
  expect(await client.keys.succeed(asSigner(successor), { password: "battery staple" })).toMatchObject({
    old_fingerprint: fingerprint,
    new_fingerprint: successor.fingerprint,
  });
});

describe("encrypted claims", () => {
  const recipient = parsePublicKey(newSigner("ecdsa-p256").publicKey);
  const plaintext = { salary: 52_000 };
  const sealed = () => encryptClaim(plaintext, { recipient, lookupKey: sha256(randomUUID()) });

  test("are posted, found by lookup key, opaque to the service, and revealed to it", async () => {
    const { client } = await withHardware();
    const { payload, commitmentKey } = sealed();
    const receipt = await client.claims.post({ ...payload });
    expect(receipt).toMatchObject({ commitment: payload.commitment, lookup_key: payload.lookup_key });
    const [found, ...others] = await all(client.claims.list(payload.lookup_key));
    expect(others).toEqual([]);
    expect(found).toMatchObject({ id: receipt.log_entry_id, payload });
    expect(verifyClaimCommitment(found!.payload, plaintext, commitmentKey)).toBe(true);
    expect(await client.claims.payload(receipt.entry_id)).toEqual(payload);
    expect(await client.claims.reveal(receipt.entry_id, plaintext, commitmentKey)).toBe(true);
    expect(await client.claims.reveal(receipt.entry_id, { salary: 1 }, commitmentKey)).toBe(false);
    expect(await failure((await registered()).client.claims.post({ ...sealed().payload }))).toMatchObject({
      status: 403,
    });
  });

  test("are posted without what is no member of a claim", async () => {
    const { client } = await withHardware();
    const { payload } = encryptClaim(plaintext, { recipient, lookupKey: sha256(randomUUID()), nameRecipient: true });
    const { log_entry_id } = await client.claims.post({ ...payload, comment: "for Bob" } as typeof payload);
    expect(await client.claims.payload(log_entry_id)).toEqual(payload);
  });

  test("one that was changed, on its way there or in the list, convicts", async () => {
    const { client } = await withHardware(proxy.url);
    const { payload } = sealed();
    proxy.twist = (path, body) =>
      path === "/claims" ? { payload: { ...body.payload, commitment: "0".repeat(64) } } : body;
    expect((await conviction(client.claims.post({ ...payload }))).entry!.payload).toMatchObject({
      commitment: "0".repeat(64),
    });
    proxy.repent();
    await client.claims.post({ ...payload });
    proxy.lie = (path, answer) =>
      path.startsWith("/claims?")
        ? {
            ...answer,
            entries: answer.entries.map((entry: object) => ({ ...entry, payload: { ...payload, nonce: "" } })),
          }
        : answer;
    await conviction(all(client.claims.list(payload.lookup_key)));
    proxy.repent();
  });

  test("one whose digests are two of a kind, or that is called something else, is not taken", async () => {
    const { client } = await withHardware();
    const { payload } = sealed();
    await client.claims.post({ ...payload });
    // Older entries do not say what they are, so nothing hashed does.
    const older = { ciphertext: "AAAA", commitment: "0".repeat(64), lookup_key: sha256(randomUUID()) };
    await service.server.registry.log.append({ event_type: "encrypted_claim", payload: older });
    const liar = createClient({ server: proxy.url });
    for (const [lookup, lie] of [
      [payload.lookup_key, ({ previous_hashes: [one] }: ClaimEntry) => ({ previous_hashes: [one, one] })],
      [older.lookup_key, () => ({ event_type: "https://x.example/note" })],
    ] as const) {
      proxy.lie = (path, answer) =>
        path.startsWith("/claims?")
          ? { ...answer, entries: answer.entries.map((entry: ClaimEntry) => ({ ...entry, ...lie(entry) })) }
          : answer;
      expect(await failure(all(liar.claims.list(lookup)))).toBeInstanceOf(ClientError);
    }
    proxy.repent();
  });

  test("older ones are listed, too", async () => {
    const lookup_key = sha256(randomUUID());
    const payload = { ciphertext: "AAAA", commitment: "0".repeat(64), lookup_key };
    await service.server.registry.log.append({ event_type: "encrypted_claim", payload });
    expect(await all(open().client.claims.list(lookup_key))).toMatchObject([{ payload }]);
  });
});

describe("policies", () => {
  const policy = () => ({
    predicates: { field: "attestation_type", op: "eq", value: "authorship" },
    default_action_on_failure: "decline",
  });

  test("are published, by a session, too, and read", async () => {
    const { client, fingerprint } = await registered();
    expect(await client.policies.publish(policy())).toMatchObject({
      status: "active",
      target_fingerprint: fingerprint,
    });
    const guest = createClient({ server: service.url, session: await client.login() });
    await guest.policies.publish({ ...policy(), default_action_on_failure: "hold" });
    expect((await client.policies.find(fingerprint)).active).toMatchObject({ default_action_on_failure: "hold" });
  });

  test.each(["active", "scheduled"] as const)("of another key, shown as %s, are no answer", async (which) => {
    const { client, fingerprint } = await registered(proxy.url);
    await client.policies.publish(policy());
    await client.policies.publish({ ...policy(), effective_from: "2097-01-01T00:00:00Z" });
    const honest = await client.policies.find(fingerprint);
    const target_fingerprint = newSigner().fingerprint;
    proxy.lie = (path, answer) =>
      path.startsWith("/log/request-policies/")
        ? { ...answer, [which]: { ...answer[which], target_fingerprint } }
        : answer;
    expect(await failure(client.policies.find(fingerprint))).toMatchObject({ code: "malformed-answer" });
    proxy.repent();
    expect(await client.policies.find(fingerprint)).toEqual(honest);
  });

  test("one that was changed on its way convicts, where a session and no proof allowed it", async () => {
    const { client: holder } = await registered(proxy.url);
    const client = createClient({ server: proxy.url, session: await holder.login() });
    proxy.twist = (path, body) =>
      path === "/log/request-policies" ? { ...body, default_action_on_failure: "allow" } : body;
    expect(await failure(holder.policies.publish(policy()))).toMatchObject({ code: "forbidden" });
    expect((await conviction(client.policies.publish(policy()))).entry!.event_type).toBe("request_policy");
    proxy.repent();
  });
});

test("trust is configured, revoked, listed, and the graph and standing of a key told", async () => {
  const [ada, bob] = [await registered(), await registered()];
  const { client, fingerprint } = ada;
  const anchors = [{ fingerprint: bob.fingerprint, weight: 0.5 }];
  const config = await client.trust.configure({ direct_signer_anchors: anchors, minimum_threshold: 0.3 });
  expect(config).toMatchObject({ fingerprint, status: "active", direct_signer_anchors: anchors });
  expect(await client.trust.find(fingerprint)).toEqual(config);
  expect(await all(client.trust.list())).toContainEqual(config);
  expect(await client.trust.revoke()).toMatchObject({ id: config.id, status: "revoked" });
  const category = "x-service:human_attestation";
  const { entry } = await client.endorsements.offer({ endorsed_fingerprint: bob.fingerprint, category });
  await bob.client.endorsements.accept(entry.id);
  const graph = await client.trust.graph(fingerprint, { max_depth: 1 });
  expect(graph.edges).toMatchObject([{ from: fingerprint, to: bob.fingerprint, offer_entry_id: entry.id }]);
  const [nodes, edges] = [graph.nodes, graph.edges];
  const stranger = { fingerprint: `sha256:${"0".repeat(64)}` };
  for (const [lie, filter = {}] of [
    [{ nodes: [...nodes, nodes[1]] }],
    [{ nodes: nodes.toReversed() }],
    [{ nodes: [{ ...nodes[0], depth: 1 }, nodes[1]] }],
    [{ nodes: [nodes[0], { ...nodes[1], ...stranger }] }],
    [{ edges: [...edges, ...edges] }],
    [{ depth_reached: 2 }],
    [{ root: bob.fingerprint }],
    [{}, { max_depth: 0 }],
    [{}, { type: "x-service:institutional_endorsement" }],
    [{}, { status: "offered" }],
  ] as const) {
    proxy.lie = (path, answer) => (path.startsWith("/graph/") ? { ...graph, ...lie } : answer);
    const told = createClient({ server: proxy.url }).trust.graph(fingerprint, filter as GraphFilter);
    expect((await failure(told)).code, JSON.stringify([lie, filter])).toBe("malformed-answer");
  }
  proxy.repent();
  expect(await client.trust.standing(bob.fingerprint)).toMatchObject({ received: { active: 1 }, key_status: "active" });
  await client.endorsements.alert(bob.fingerprint, "the laptop was stolen");
  expect(await all(client.endorsements.alerts(bob.fingerprint))).toMatchObject([{ endorser_fingerprint: fingerprint }]);
  expect((await client.endorsements.identifierTypes()).map(({ type }) => type)).toContain("orcid");
  expect(await client.keys.status(fingerprint)).toMatchObject({ fingerprint, status: "active" });
  expect((await bob.client.endorsements.revokeAcceptance(entry.id, "over")).endorsement).toMatchObject({
    status: "acceptance_revoked",
  });
});

describe("documents", () => {
  test("a manifest is sent as it is signed: in canonical form", async () => {
    const bodies: string[] = [];
    const { client } = open({
      fetch: async (input, init) => {
        if (String(input).endsWith("/attestations")) bodies.push(String(init?.body));
        return fetch(input, init);
      },
    });
    const { document } = newManifest();
    const { bundle } = await client.attest({ ...document, more: { b: 1, a: [{ d: 2, c: 3 }] } });
    expect(bodies).toHaveLength(1);
    const { manifest } = JSON.parse(bodies[0]!);
    expect(manifest.document).toMatchObject({ ...document, attestation_type: "authorship", more: { a: [{ c: 3 }] } });
    expect(bodies[0]).toContain(`"manifest":${canonicalize(manifest)}`);
    expect(bundle.manifest).toEqual(manifest);
  });

  const parts = () => [
    { title: "One", content_hash: newManifest().document.content_hash },
    { title: "Two", content_hash: newManifest().document.content_hash, role: "annex" },
  ];

  test("are prepared by the service and signed as what they are", async () => {
    const { client } = await registered();
    const document = { ...newManifest().document, tags: ["draft"] };
    const manifest = await client.documents.prepare(document);
    expect(manifest).toEqual({ attestations: [], document });
    expect((await client.attest(manifest)).receipt.duplicate).toBe(false);
  });

  test("are put together, signed as one, and found valid", async () => {
    const { client } = await registered();
    const composite = await client.documents.assemble({ title: "Both", parts: parts() });
    const { receipt, bundle } = await client.attest(await client.documents.compile(composite));
    const manifest = { ...bundle.manifest, attestations: [receipt.attestation] };
    expect((await client.verify(manifest)).overall_status).toBe("valid");
  });

  test("a manifest or a composite of something else is not taken", async () => {
    const { client } = await registered(proxy.url);
    const document = newManifest().document;
    proxy.lie = (path, answer) =>
      path === "/documents/sign"
        ? { ...answer, manifest: { ...answer.manifest, document: newManifest().document } }
        : answer;
    expect(await failure(client.documents.prepare(document))).toMatchObject({ code: "malformed-answer" });
    for (const lie of [{ signing_payload: "AAAA" }, { manifest_hash: "0".repeat(64) }]) {
      proxy.lie = (_, answer) => ({ ...answer, ...lie });
      expect(await failure(client.documents.prepare(document))).toMatchObject({ code: "malformed-answer" });
    }
    proxy.lie = (_, { composite }) => ({ composite: { ...composite, parts: composite.parts.toReversed() } });
    const assembled = client.documents.assemble({ title: "Both", parts: parts() });
    expect(await failure(assembled)).toMatchObject({ code: "malformed-answer" });
    proxy.repent();
  });
});

test("webhooks are created, listed and removed", async () => {
  const { client } = await registered();
  const hook = await client.webhooks.create({ url: "https://example.org/hook", events: ["key.revoked"] });
  expect(await client.webhooks.list()).toEqual([hook]);
  expect(await client.webhooks.remove(hook.id)).toMatchObject({ id: hook.id, active: false });
  expect(await client.webhooks.list()).toEqual([]);
  expect(await failure(client.webhooks.remove(hook.id))).toMatchObject({ status: 404 });
});

describe("audit", () => {
  test("entries of a scope or a key, and the trail of a document", async () => {
    const { client, fingerprint } = await registered();
    const { document } = newManifest();
    await client.attest(document);
    const own = await all(client.audit.entries({ fingerprint }));
    expect(own.map((entry) => entry.event_type)).toEqual(["key_registration", expect.stringContaining("/authorship/")]);
    expect(await all(client.log.auditTrail({ document_hash: document.content_hash }))).toEqual(own.slice(1));
    expect(await all(client.audit.entries({ fingerprint, scope: "keys" }))).toEqual(own.slice(0, 1));
    const lines = (await client.audit.csv({ fingerprint })).trimEnd().split("\r\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^id,timestamp,event_type/);
    expect(await failure(client.audit.csv({ start_date: "soon" }))).toMatchObject({ status: 422 });
  });

  test("goes on where one question reaches no further, each entry once", async () => {
    const large = await startTestService();
    const note = anyEvent();
    for (let n = 0; n < 10_300; n += 515)
      await large.server.registry.log.append(Array.from({ length: 515 }, () => note));
    const ids: number[] = [];
    const client = createClient({ server: large.url });
    for await (const { id } of client.audit.entries()) ids.push(id);
    expect(ids).toEqual(Array.from({ length: 10_300 }, (_, i) => i + 1));
    const later = await all(client.audit.entries({ after_id: 8_000 }));
    expect(later.map(({ id }) => id)).toEqual(ids.slice(8_000));
  });
});

describe("the operator", () => {
  test("anchors, and signs the head again", async () => {
    const client = operator();
    const { anchored_entry_id } = await client.anchoring.anchor();
    expect(await client.anchoring.status()).toMatchObject({ anchored_entry_id, proof_status: "pending" });
    const head = await client.anchoring.signHead();
    expect(head.tree_size).toBe((await client.log.head())!.tree_size);
    expect(await failure((await registered()).client.anchoring.signHead())).toMatchObject({ status: 403 });
  });
});

describe("the log", () => {
  test("its summary, checkpoint, tiles, older heads and their consistency", async () => {
    const { client } = await registered();
    const head = (await client.log.head())!;
    expect(await client.log.summary()).toMatchObject({ entry_count: head.tree_size, head: { id: head.tree_size } });
    expect((await client.log.checkpoint()).checkpoint).toMatchObject({ treeSize: head.tree_size });
    expect((await client.log.headOf(2)).tree_size).toBe(2);
    for (const size of ["2", 2n]) expect((await client.log.headOf(size as never)).tree_size).toBe(2);
    expect((await client.log.heads(2, 2)).map(({ tree_size }) => tree_size)).toEqual([2, 3]);
    expect(await client.log.consistency(2, head.tree_size)).toMatchObject({ from_size: 2, to_size: head.tree_size });
    expect(await failure(client.log.headOf(1e6))).toMatchObject({ status: 404 });
    expect(await client.log.tile(2, 0, 0, 2)).toHaveLength(64);
    expect(await failure(client.log.tile(2, 0, 4))).toMatchObject({ status: 404 });
    const vkey = await client.tlog.vkey();
    expect(parseVkey(vkey)).toMatchObject({ type: "ed25519" });
    const { log } = service.server.registry;
    const covered = async () => (await client.tlog.checkpoint(vkey)).checkpoint.treeSize;
    await expect.poll(covered, { interval: 50 }).toBe(log.size);
    expect(await client.tlog.bundle(0, 2)).toEqual([0, 1].map((i) => log.entryAt(i)!.entry_hash));
    expect(await client.tlog.tile(0, 0, 2)).toHaveLength(64);
    expect(await failure(client.tlog.tile(0, 4))).toMatchObject({ status: 404 });
    const last = log.size - 1;
    expect((await client.tlog.inclusion(last, log.entryAt(last)!.entry_hash, vkey)).leafIndex).toBe(last);
    expect(await client.log.verify()).toMatchObject({ valid: true, entry_count: head.tree_size });
    expect(await client.health()).toMatchObject({ status: "ok" });
    expect(await client.writers()).toMatchObject({ rule: "everybody" });
  });

  test("a checkpoint of another root, another log or another key convicts", async () => {
    const { client } = open({
      fetch: async (input, init) => {
        const response = await fetch(input, init);
        return String(input).endsWith("/log/checkpoint")
          ? new Response((await response.text()).replace(/\n\d+\n/, "\n1\n"))
          : response;
      },
    });
    await conviction(client.log.checkpoint());
    await conviction(open().client.log.checkpoint("example.org/another-log"));
  });

  test("an older head that is not of the size asked for convicts", async () => {
    const { client } = await registered(proxy.url);
    const other = (await service.get("/log/sth/3")).body;
    proxy.lie = (path, answer) => (path === "/log/sth/2" ? other : answer);
    expect(await conviction(client.log.headOf(2))).toMatchObject({ shown: other });
    proxy.lie = (path, answer) => (path.startsWith("/log/heads") ? { heads: [other, other] } : answer);
    expect(await conviction(client.log.heads(2, 2))).toMatchObject({ shown: other });
    proxy.repent();
  });
});

test("in a log whose imported history left ids out, entries are found and receipts proven", async () => {
  const source = await registered();
  const history = await all(source.client.log.entries());
  // No hash covers an id.
  const gapped = history.map((entry) => ({ ...entry, id: entry.id >= 3 ? entry.id + 1_000 : entry.id }));
  const imported = temporaryFolder();
  const key = openOperatorKey(join(imported, "operator.pem"));
  const target = { path: join(imported, "log"), signer: key, projection };
  await importEntries(target, [Buffer.from(gapped.map((entry) => `${JSON.stringify(entry)}\n`).join(""))]);
  const log = await startTestService({ SERVICE_DATA_DIR: imported, SERVICE_ENDORSEMENT_MIN_TRUST: "0" });
  const client = createClient({ server: log.url, signer: asSigner(source.signer) });
  for (const [id, leaf] of [
    [2, 1],
    [1_003, 2],
  ] as const)
    expect((await client.log.entry(id)).proof.leaf_index).toBe(leaf);
  expect(await failure(client.log.entry(3))).toMatchObject({ status: 404 });
  const other = newClient(log.url);
  await other.client.keys.register({ pseudonym: "Bob" });
  const offer = { endorsed_fingerprint: other.fingerprint, category: "x-service:human_attestation" } as const;
  const { entry, proof } = await client.endorsements.offer(offer);
  expect(entry.id).toBe(proof.leaf_index + 1 + 1_000);
  expect((await all(client.log.since(0))).length).toBe(proof.leaf_index + 1);
});

test("every route of the service has been asked for by a method of the client", async () => {
  // The remaining routes: requests, inbox and so on, which have tests of their own.
  const [ada, bob] = [await registered(), await registered()];
  const request = { target_fingerprint: bob.fingerprint, attestation_type: "authorship" };
  const { request_id } = await ada.client.requests.create(request);
  await bob.client.requests.respond(request_id, { decision: "decline" });
  await ada.client.requests.find(request_id);
  await all(ada.client.requests.list({ requester: ada.fingerprint }));
  const [first] = await all(bob.client.inbox.list());
  await bob.client.inbox.markRead(first!.id);
  const { entry } = await ada.client.endorsements.offer({
    endorsed_fingerprint: bob.fingerprint,
    category: "x-service:human_attestation",
  });
  await ada.client.endorsements.withdraw(entry.id, bob.fingerprint, "over");
  await all(ada.client.endorsements.received(bob.fingerprint));
  await all(ada.client.endorsements.issued(ada.fingerprint));
  await all(ada.client.keys.list());
  await all(ada.client.keys.list("Ada"));
  await ada.client.keys.find(ada.fingerprint);
  await ada.client.log.entry(1);
  await all(ada.client.log.byFingerprint(ada.fingerprint));
  expect(await failure(ada.client.log.tile(2, 0, 0))).toMatchObject({ status: 404 });
  expect(await failure(ada.client.tlog.tile(0, 0))).toMatchObject({ status: 404 });
  expect(await ada.client.tlog.tile(0, 0, 1)).toHaveLength(32);
  await ada.client.tlog.checkpoint();
  for await (const { receipt } of ada.client.attestAll([
    { title: "One of many", content_hash: newManifest().document.content_hash },
  ]))
    expect(receipt?.duplicate).toBe(false);
  const { receipt } = await ada.client.attest({
    title: "A secret",
    content_hash: newManifest().document.content_hash,
  });
  await operator().withholding.withhold(receipt.log_entry_id, { reason: "It was a secret." });
  const session = await ada.client.login();
  const stale = { ...session, expires_at: new Date(Date.now() + 1_000).toISOString() };
  await all(open({ signer: asSigner(ada.signer), session: stale }).client.inbox.list());
  await ada.client.keys.succeed(asSigner(newSigner()));
  await bob.client.keys.revoke();
  expect([await ada.client.shards.beginning(), await ada.client.shards.end()]).toEqual([null, null]);
  await operator().shards.freeze({ reason: "All of it has been tried." });

  const { paths } = await service.openApi();
  const routes = Object.keys(paths).flatMap((path) =>
    Object.keys(paths[path])
      .filter((method) => method !== "head")
      .map((method) => `${method.toUpperCase()} ${path}`),
  );
  const without = routes.filter((route) => {
    const pattern = new RegExp(`^${route.replaceAll(".", "\\.").replace(/\{\w+\}/g, "[^/]+")}$`);
    return ![...asked].some((line) => pattern.test(line));
  });
  // These routes are for operators and for authors of clients.
  expect(without.sort()).toEqual([
    "GET /api/v1/openapi.json",
    "GET /follower",
    "GET /leader",
    "GET /livez",
    "GET /metrics",
    "GET /readyz",
  ]);
});
