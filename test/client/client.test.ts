/** The client against the real service: the effect of each method, and the data that the client stores. */
import { inspect } from "node:util";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { parsePublicKey, verifyBundle } from "#cairnlog/engine/verify/index.js";
import {
  type ClientError,
  createClient,
  memoryStore,
  type State,
  webCryptoSigner,
} from "#cairnlog/server/client/index.js";
import { manifestToSign } from "#cairnlog/server/client/signing/attestations.js";
import { anyEvent } from "../anyevent.js";
import { startTestService, type TestService } from "../server/harness.js";
import { newManifest, newSigner, submission } from "../server/signers.js";
import { all, asSigner, failure, newClient } from "./clients.js";
import { LyingProxy } from "./proxy.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService({
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    SERVICE_ENDORSEMENT_MIN_TRUST: "0",
  });
});

afterEach(() => {
  vi.restoreAllMocks();
});

async function registered() {
  const made = newClient(service.url);
  await made.client.keys.register({ pseudonym: "Ada" });
  return made;
}

test("who prints a client, or writes it as JSON, shows no token", () => {
  const token = "a token that nobody may see";
  const session = { token, fingerprint: newSigner().fingerprint, pseudonym: "Ada", expires_at: "2999-01-01T00:00:00Z" };
  const client = createClient({ server: service.url, session });
  expect(inspect(client, { depth: null, showHidden: true, getters: false })).toContain(service.url);
  expect(inspect(client, { depth: null, showHidden: true, getters: false })).not.toContain(token);
  expect(JSON.stringify(client)).not.toContain(token);
});

describe("signing", () => {
  const document = () => newManifest().document;

  test("a document becomes a bundle that verifies offline, and the same receipt the second time", async () => {
    const { client } = newClient(service.url);
    const subject = document();
    const { receipt, bundle } = await client.attest(subject, { pseudonym: "Ada", intent: "I wrote it." });
    expect(receipt).toMatchObject({ pseudonym: "Ada", duplicate: false });
    const operatorKey = await client.log.operatorKey();
    expect(await verifyBundle(bundle, { fileHash: subject.content_hash, operatorKey })).toMatchObject({ valid: true });
    const again = await client.attest(subject, { intent: "I wrote it." });
    expect(again.receipt).toMatchObject({ duplicate: true, log_entry_id: receipt.log_entry_id });
    expect(again.bundle).toEqual(bundle);
  });

  test("a manifest with earlier attestations is signed as it was received, and the service finds it valid", async () => {
    // The other client signs only the document.
    const plain = newManifest();
    const subject = plain.document;
    const { body: receipt } = await service.post("/attestations", submission(newSigner(), plain));
    const second = newClient(service.url);
    const manifest = { document: subject, attestations: [receipt.attestation] };
    const reviewed = await second.client.attest(manifest, { type: "peer_review" });
    const both = { document: subject, attestations: [receipt.attestation, reviewed.receipt.attestation] };
    const result = await second.client.verify(both);
    expect(result.overall_status).toBe("valid");
    expect(result.attestations.map(({ covers }) => covers)).toEqual(["document", "document-and-prior"]);
    expect(await second.client.verify(both, { source_hash: "0".repeat(64) })).toMatchObject({
      overall_status: "invalid",
    });
  });

  test("what is signed names the type and the statement, also that there is none", async () => {
    const { client } = newClient(service.url);
    const subject = document();
    const review = await client.attest(subject, { type: "peer_review", intent: "Sound." });
    const meaning = { attestation_type: "peer_review", intent_statement: "Sound." };
    expect(review.bundle.manifest).toEqual({ attestations: [], document: { ...subject, ...meaning } });
    const { bundle } = await client.attest({ document: subject, attestations: [] });
    expect(bundle.manifest.document).toEqual({ ...subject, attestation_type: "authorship", intent_statement: null });
  });

  test.each([
    ["Ed25519", { name: "Ed25519" }],
    ["P-256", { name: "ECDSA", namedCurve: "P-256" }],
    [
      "RSA",
      { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) },
    ],
  ])("a WebCrypto key of %s that cannot be exported signs", async (_, how) => {
    const pair = (await crypto.subtle.generateKey(how, false, ["sign", "verify"])) as CryptoKeyPair;
    const client = createClient({ server: service.url, signer: await webCryptoSigner(pair) });
    await client.attest(document());
    expect(await client.login()).toMatchObject({ token: expect.any(String) });
  });

  test("WebCrypto keys that no log takes are refused before anything is signed", async () => {
    const wrongCurve = { name: "ECDSA", namedCurve: "P-384" };
    const pair = (await crypto.subtle.generateKey(wrongCurve, false, ["sign", "verify"])) as CryptoKeyPair;
    await expect(webCryptoSigner(pair)).rejects.toMatchObject({ code: "invalid-key" });
    const wrongHash = {
      name: "RSASSA-PKCS1-v1_5",
      hash: "SHA-512",
      modulusLength: 2048,
      publicExponent: new Uint8Array([1, 0, 1]),
    };
    const rsa = (await crypto.subtle.generateKey(wrongHash, false, ["sign", "verify"])) as CryptoKeyPair;
    await expect(webCryptoSigner(rsa)).rejects.toThrow(TypeError);
  });
});

describe("keys", () => {
  test("are registered, found, replaced and revoked", async () => {
    const { client, fingerprint } = await registered();
    expect(await client.keys.find(fingerprint)).toMatchObject({ pseudonym: "Ada", status: "active" });
    const successor = newSigner("ecdsa-p256");
    const receipt = await client.keys.succeed(asSigner(successor), { pseudonym: "Ada again" });
    expect(receipt).toMatchObject({ old_fingerprint: fingerprint, new_fingerprint: successor.fingerprint });
    const next = createClient({ server: service.url, signer: asSigner(successor) });
    expect(await next.keys.revoke()).toMatchObject({ fingerprint: successor.fingerprint, status: "revoked" });
    expect((await client.keys.find(successor.fingerprint)).status).toBe("revoked");
    const named = await all(client.keys.list("ada AGAIN"));
    expect(named.map((key) => key.fingerprint)).toContain(successor.fingerprint);
  });

  test("a refusal has the service's status, code, sentence and members", async () => {
    const { client } = await registered();
    expect(await failure(client.keys.register({ pseudonym: "Ada" }))).toMatchObject({ status: 409, errors: [] });
    const other = newClient(service.url);
    const refused = await failure(other.client.keys.register({ pseudonym: "" }));
    expect(refused).toMatchObject({ status: 422, code: "invalid-input" });
    expect(refused.errors).toContainEqual({ path: "/payload/pseudonym", message: expect.any(String) });
    expect(refused.detail).toBe(refused.message);
  });

  test("without a signer nothing is signed, and no address is taken that is none", async () => {
    const client = createClient({ server: service.url });
    expect(await failure(client.login())).toMatchObject({ code: "no-signer", status: 0 });
    for (const server of ["ftp://example", "http://example/#/entry/5", "http://example/?entry=5"])
      expect(() => createClient({ server })).toThrow(TypeError);
    const nobody = createClient({ server: "http://127.0.0.1:10" });
    expect(await failure(nobody.log.head())).toMatchObject({ code: "no-answer", status: 0 });
  });

  test("a limit that is used up says how long to wait", async () => {
    const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "1" });
    const client = createClient({ server: limited.url });
    const errors: ClientError[] = [];
    vi.spyOn(Date, "now").mockReturnValue(Date.now());
    for (let i = 0; i < 3; i++) await client.log.operatorKey().catch((error) => errors.push(error));
    await client.keys.find(`sha256:${"0".repeat(64)}`).catch((error) => errors.push(error));
    expect(errors.at(-1)).toMatchObject({ status: 429, code: "rate-limited", retryAfter: 60 });
  });
});

describe("sessions", () => {
  test("are begun when they are needed, and renewed before they end", async () => {
    const short = await startTestService({ SERVICE_SESSION_TTL_S: "200" });
    const proxy = await LyingProxy.before(short.url);
    let sent: string | null = null;
    const { client, fingerprint } = newClient(proxy.url, {
      fetch: (input, init) => {
        sent = new Headers(init?.headers).get("authorization");
        return fetch(input, init);
      },
    });
    await client.keys.register({ pseudonym: "Ada" });
    expect(await all(client.inbox.list())).toEqual([]);
    const begun = client.session!;
    expect(begun).toMatchObject({ fingerprint });
    expect(await all(client.inbox.list({ unread: true }))).toEqual([]);
    expect(client.session!.token).not.toBe(begun.token);
    expect(sent).toBe(`Bearer ${client.session!.token}`);
    expect(proxy.asked.filter((line) => line.startsWith("POST /auth"))).toEqual([
      "POST /auth/challenge",
      "POST /auth/login",
      "POST /auth/renew",
    ]);
  });

  test("serve writes where there is no signer, and one that was refused is begun anew", async () => {
    const { client, signer, fingerprint } = await registered();
    const session = await client.login();
    const guest = createClient({ server: service.url, session });
    expect(
      await guest.requests.create({ target_fingerprint: fingerprint, attestation_type: "authorship" }),
    ).toMatchObject({ requester_fingerprint: fingerprint, status: "open" });
    const stale = { ...session, token: "a.b.c" };
    const healed = () => createClient({ server: service.url, signer: asSigner(signer), session: stale });
    const [notification] = await all(healed().inbox.list());
    expect(await healed().inbox.markRead(notification!.id)).toMatchObject({ read: true });
    const lost = createClient({ server: service.url, session: stale });
    expect(await failure(all(lost.inbox.list()))).toMatchObject({ status: 401 });
    expect(() => newClient(service.url, { session })).toThrow(/another key/);
  });

  test("only a challenge to oneself, for the purpose at hand, is signed", async () => {
    const proxy = await LyingProxy.before(service.url);
    const { client, fingerprint } = newClient(proxy.url);
    await client.keys.register({ pseudonym: "Ada" });
    const random = "A".repeat(43);
    const nonces = [
      '{"attestations":[],"document":{}}',
      `service.auth.v1:general:${fingerprint}:${random}`,
      `service.auth.v1:login:${fingerprint}:${random}`,
      `service.auth.v1:login:sha256:${"0".repeat(64)}:${random}`,
      `service.auth.v1:login:${fingerprint}:${random}A`,
      `service.auth.v1:login:${fingerprint}:${random}\n`,
      ` service.auth.v1:login:${fingerprint}:${random}`,
      `service.key.succession.v1:${fingerprint}:${fingerprint}`,
    ];
    for (const nonce of nonces) {
      proxy.lie = (path, answer) => (path === "/auth/challenge" ? { ...answer, nonce } : answer);
      expect(await failure(client.login()), nonce).toMatchObject({ code: "unsafe-challenge" });
    }
    expect(proxy.asked).not.toContain("POST /auth/login");
    // A challenge obtained for signing in must not become the proof of a write.
    proxy.lie = (path, answer) =>
      path === "/auth/challenge" ? { ...answer, nonce: answer.nonce.replace(":general:", ":login:") } : answer;
    expect(await failure(client.keys.revoke())).toMatchObject({ code: "unsafe-challenge" });
  });
});

test("endorsements are offered, accepted, withdrawn, ended and warned of", async () => {
  const [endorser, endorsed] = [await registered(), await registered()];
  const category = "x-service:human_attestation";
  // More than an identifier has, as a record of another system may.
  const external_identifiers = [{ type: "github", value: "octocat", label: "Mona" }];
  const content = { endorsed_fingerprint: endorsed.fingerprint, category, external_identifiers } as const;
  const offer = () => endorser.client.endorsements.offer(content);
  const { entry } = await offer();
  expect(entry.payload).toMatchObject({ external_identifiers: [{ type: "github", value: "octocat" }] });
  expect((await endorsed.client.endorsements.accept(entry.id, "thanks")).endorsement).toMatchObject({
    offer_entry_id: entry.id,
    accepted_at: expect.any(String),
  });
  const alert = await endorser.client.endorsements.alert(endorsed.fingerprint, "the laptop was stolen");
  expect(alert.alert.compromised_fingerprint).toBe(endorsed.fingerprint);
  const ended = await endorsed.client.endorsements.revokeAcceptance(entry.id, "no longer");
  expect(ended.endorsement.status).toBe("acceptance_revoked");
  const second = await offer();
  const withdrawn = await endorser.client.endorsements.withdraw(second.entry.id, endorsed.fingerprint, "we parted");
  expect(withdrawn.endorsement.status).toBe("withdrawn");
  const received = await all(endorser.client.endorsements.received(endorsed.fingerprint));
  expect(received.map((one) => one.offer_entry_id)).toEqual([entry.id, second.entry.id]);
  const filter = { status: "withdrawn" } as const;
  expect(await all(endorser.client.endorsements.issued(endorser.fingerprint, filter))).toHaveLength(1);
});

test("fingerprints may be spelt in any way that the service takes", async () => {
  const [ada, bob] = [await registered(), await registered()];
  const spelt = bob.fingerprint.slice("sha256:".length).toUpperCase();
  expect((await ada.client.keys.find(spelt)).fingerprint).toBe(bob.fingerprint);
  const offer = { endorsed_fingerprint: spelt, category: "x-service:human_attestation" } as const;
  const { entry } = await ada.client.endorsements.offer(offer);
  expect(entry.payload).toMatchObject({ endorsed_key_fingerprint: bob.fingerprint });
  await bob.client.endorsements.accept(entry.id);
  await ada.client.endorsements.alert(spelt, "the laptop was stolen");
  const request = { target_fingerprint: spelt, attestation_type: "authorship" };
  expect(await ada.client.requests.create(request)).toMatchObject({ target_fingerprint: bob.fingerprint });
});

test("requests are asked, answered, and found in the inbox", async () => {
  const [asker, target] = [await registered(), await registered()];
  const asked = await asker.client.requests.create({
    target_fingerprint: target.fingerprint,
    attestation_type: "peer_review",
    intent_statement: "for the journal",
    claims: { pages: 12 },
  });
  const [notification] = await all(target.client.inbox.list({ unread: true }));
  expect(notification).toMatchObject({ kind: "attestation_request", request_id: asked.request_id });
  const { receipt } = await target.client.attest(newManifest().document, { type: "peer_review" });
  const attestation_id = receipt.attestation.id;
  const answer = await target.client.requests.respond(asked.request_id, { decision: "accept", attestation_id });
  expect(answer).toMatchObject({ status: "accepted", responder_fingerprint: target.fingerprint });
  expect((await asker.client.requests.find(asked.request_id)).response).toMatchObject({ attestation_id });
  const accepted = await all(asker.client.requests.list({ requester: asker.fingerprint, status: "accepted" }));
  expect(accepted.map((one) => one.request_id)).toEqual([asked.request_id]);
});

test("what was signed before is attested with another type by a proof, which the client makes where it is asked for", async () => {
  const { client } = newClient(service.url);
  const first = await client.attest(newManifest().document);
  // Its attestation covers the document unchanged, so the type is not signed.
  const { manifest, attestation } = first.bundle;
  const subject = { ...manifest, document: newManifest().document, attestations: [attestation] };
  const read = await client.attest(subject, { type: "peer_review" });
  const published = await client.attest(subject, { type: "publication" });
  expect([read, published].map(({ receipt }) => [receipt.attestation.type, receipt.duplicate])).toEqual([
    ["peer_review", false],
    ["publication", false],
  ]);
  expect(published.receipt.signed).toEqual({ attestation_type: false, intent_statement: false });
  expect((await client.attest(subject, { type: "peer_review" })).receipt).toEqual({ ...read.receipt, duplicate: true });
});

test("while somebody repeats signatures with wrong passwords, an attestation with the right one is proven", async () => {
  const { client, signer } = newClient(service.url);
  const password = "correct horse battery";
  const shown = submission(signer);
  expect((await service.post("/attestations", shown)).status).toBe(200);
  await client.setPassword(password);
  for (let i = 0; i < 5; i++) await service.post("/attestations", { ...shown, password: "wrong password" });
  expect((await service.post("/attestations", { ...shown, password })).status).toBe(429);
  const one = await client.attest(newManifest().document, { password });
  expect(one.receipt.duplicate).toBe(false);
  for await (const outcome of client.attestAll([newManifest().document, newManifest().document], { password }))
    expect(outcome).toMatchObject({ receipt: { duplicate: false } });
  expect((await failure(client.attest(newManifest().document, { password: "wrong password" }))).code).toBe("forbidden");
});

describe("the name of a key", () => {
  /** Registers the key of a client as a stranger would: under another name, without its signature. */
  const squat = async ({ publicKey }: { readonly publicKey: string }) => {
    const payload = { public_key: publicKey, pseudonym: "Mallory", key_algorithm: "ed25519" };
    const reply = await service.post("/keys/register", { payload });
    expect(reply.status, reply.text).toBe(200);
    return reply.body.fingerprint as string;
  };

  test("is signed with the first attestation", async () => {
    const { client, fingerprint } = newClient(service.url);
    const { receipt, notice } = await client.attest(newManifest().document, { pseudonym: "Ada" });
    expect([receipt.pseudonym, notice]).toEqual(["Ada", undefined]);
    expect(await client.keys.find(fingerprint)).toMatchObject({ pseudonym: "Ada", named: true });
  });

  test("is not taken for signed because an attestation was there before", async () => {
    const { client, signer } = newClient(service.url);
    const fingerprint = await squat(signer);
    const { document } = newManifest();
    // As clients of earlier versions attest: without the signature by which the key names itself.
    await service.post("/attestations", submission(signer, manifestToSign(document, {}) as never));
    expect((await client.attest(document, { pseudonym: "Ada" })).receipt.duplicate).toBe(true);
    expect(await client.keys.find(fingerprint)).toMatchObject({ pseudonym: "Mallory", named: false });
    await client.attest(newManifest().document, { pseudonym: "Ada" });
    expect(await client.keys.find(fingerprint)).toMatchObject({ pseudonym: "Ada", named: true });
  });

  test("that a stranger recorded gives way, and the sentence says so", async () => {
    const { client, signer } = newClient(service.url);
    const fingerprint = await squat(signer);
    const { receipt, notice } = await client.attest(newManifest().document, { pseudonym: "Ada" });
    expect(receipt.pseudonym).toBe("Ada");
    expect(notice).toMatch(/“Mallory”, which the key had not signed.*“Ada”/);
    expect(await client.keys.find(fingerprint)).toMatchObject({ pseudonym: "Ada", named: true });
    expect(await client.attest(newManifest().document, { pseudonym: "Ada" })).not.toHaveProperty("notice");
  });

  test("that a stranger records directly before the attestation is no fault of the operator's", async () => {
    const { client, signer } = newClient(service.url);
    // As clients of earlier versions attest: without the signature by which the key names itself.
    const fingerprint = await squat(signer);
    const body = { ...submission(signer, newManifest()), pseudonym: "Ada" };
    expect((await service.post("/attestations", body)).body).toMatchObject({ pseudonym: "Mallory" });
    const { receipt, notice } = await client.attest(newManifest().document);
    expect(receipt.pseudonym).toBe("Mallory");
    expect(notice).toContain("has not signed");
    await client.attest(newManifest().document, { pseudonym: "Ada" });
    expect(await client.keys.find(fingerprint)).toMatchObject({ pseudonym: "Ada", named: true });
  });

  test("that the key signed elsewhere stays, and the sentence says so", async () => {
    const { client, signer } = newClient(service.url);
    await createClient({ server: service.url, signer: asSigner(signer) }).keys.register({ pseudonym: "Grace" });
    const outcomes = [];
    for await (const one of client.attestAll([newManifest().document, newManifest().document], { pseudonym: "Ada" }))
      outcomes.push(one);
    expect(outcomes.map(({ receipt, notice }) => [receipt?.pseudonym, notice])).toEqual(
      Array(2).fill(["Grace", expect.stringMatching(/“Grace”, not as “Ada”/)]),
    );
  });
});

describe("reading", () => {
  let long: TestService;
  beforeAll(async () => {
    long = await startTestService();
    const events = Array.from({ length: 501 }, (_, n) => anyEvent({ n, tags: [n % 2 ? "odd" : "even"] }));
    await long.server.registry.log.append(events);
  });

  test("lists go on over pages, and stop where the reader stops", async () => {
    const proxy = await LyingProxy.before(long.url);
    const client = createClient({ server: proxy.url });
    expect((await all(client.log.entries())).map((entry) => entry.id)).toEqual(
      Array.from({ length: 501 }, (_, i) => i + 1),
    );
    expect(await all(client.log.entries({ tags: "odd" }))).toHaveLength(250);
    proxy.asked.length = 0;
    for await (const entry of client.log.entries()) if (entry.id === 3) break;
    expect(proxy.asked).toEqual(["GET /log?page=1&per_page=200"]);
  });

  test("every entry since a leaf is proven under the newest head", async () => {
    const client = createClient({ server: long.url });
    expect((await all(client.log.since(150))).map((entry) => entry.id)).toEqual(
      Array.from({ length: 351 }, (_, i) => i + 151),
    );
    expect(await all(client.log.since(501))).toEqual([]);
    expect((await client.log.entry(7)).head.tree_size).toBe(501);
    expect(await client.log.proof(3, 5)).toMatchObject({ tree_size: 5, leaf_index: 3 });
    expect(await failure(client.log.entry(9_999))).toMatchObject({ status: 404 });
  });

  test("an empty log has no head, and its operator key is remembered all the same", async () => {
    const empty = await startTestService();
    const store = memoryStore();
    const client = createClient({ server: empty.url, store });
    expect(await client.log.head()).toBeUndefined();
    expect(await all(client.log.since(0))).toEqual([]);
    expect(await store.load()).toMatchObject({ head: null, operator_key: expect.stringContaining("PUBLIC KEY") });
  });

  test("the head that was seen is kept, and only ever grows", async () => {
    const saved: State[] = [];
    const store = memoryStore();
    const client = createClient({
      server: service.url,
      store: {
        load: store.load,
        save: (state) => {
          saved.push(state);
          return store.save(state);
        },
      },
    });
    await client.log.head();
    const { client: writer } = newClient(service.url);
    await Promise.all([1, 2, 3, 4].map(() => writer.attest(newManifest().document)));
    await Promise.all([client.log.head(), client.log.proof(0, 1), client.log.entry(1)]);
    const sizes = saved.flatMap(({ head }) => head?.tree_size ?? []);
    expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
    expect(sizes.length).toBeGreaterThan(1);
    expect(parsePublicKey(saved[0]!.operator_key).fingerprint).toBe((await client.log.operatorKey()).fingerprint);
  });

  test("no head is told that could not be kept", async () => {
    const store = memoryStore();
    let isFull = false;
    const save: typeof store.save = async (state) => {
      if (isFull) throw new Error("The disk is full.");
      return store.save(state);
    };
    const client = createClient({ server: service.url, store: { load: store.load, save } });
    const { writer, head } = { writer: newClient(service.url).client, head: await client.log.head() };
    await writer.attest(newManifest().document);
    isFull = true;
    for (const newer of [() => client.log.head(), () => client.log.entry(1), () => client.log.proof(0)])
      await expect(newer()).rejects.toThrow("The disk is full.");
    expect(await store.load()).toMatchObject({ head });
    isFull = false;
    expect((await client.log.head())!.tree_size).toBeGreaterThan(head!.tree_size);
  });
});
