/**
 * Webhooks over HTTP: subscriptions, who can see them, and deliveries that other implementations of receivers accept.
 */
import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, NO_FRONT_ENDS, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf, proofOf, registeredSigner } from "../../server/proofs.js";
import { newManifest, newSigner, registration, submission, type TestSigner } from "../../server/signers.js";
import { type Received, startReceiver } from "../../webhooks/receiver.js";

const PUBLIC = "https://receiver.example/hook";
const SECRET = "zyzzyva-quixotic-marker";

let service: TestService;
let signer: TestSigner;
let session: { authorization: string };
beforeAll(async () => {
  service = await startTestService();
  signer = await registeredSigner(service);
  session = await bearerOf(service, signer);
});

const newSession = async () => bearerOf(service, await registeredSigner(service));
const remove = (id: unknown, headers: Record<string, string>) =>
  service.send("DELETE", `/api/v1/webhooks/${id}`, { headers });

describe("POST /webhooks", () => {
  test("answers with the subscription", async () => {
    const reply = await service.post("/webhooks", { url: PUBLIC }, session);
    expect(reply.status, reply.text).toBe(200);
    expect(reply.body).toEqual({
      id: expect.any(Number),
      url: PUBLIC,
      events: [],
      key_fingerprint: null,
      document_hash: null,
      active: true,
      healthy: true,
      retry_count: 0,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
  });

  test("accepts filters and a secret, which is never returned", async () => {
    const mine = await newSession();
    const filters = {
      events: ["attestation.created", "key.revoked"],
      key_fingerprint: signer.fingerprint,
      document_hash: `sha256:${"d".repeat(64)}`,
    };
    const reply = await service.post("/webhooks", { url: PUBLIC, ...filters, secret: SECRET }, mine);
    expect(reply.body).toMatchObject(filters);
    const list = await service.get("/webhooks", mine);
    const ended = await remove(reply.body.id, mine);
    for (const { text } of [reply, list, ended]) expect(text).not.toMatch(/zyzzyva|secret/);
  });

  test.each([
    ["no URL", {}, "/url"],
    ["an address of this machine", { url: "http://127.0.0.1:8080/" }, "/url"],
    ["the same in one number", { url: "http://2130706433/" }, "/url"],
    ["an unknown event", { url: PUBLIC, events: ["key.lost"] }, "/events/0"],
    ["a fingerprint that is none", { url: PUBLIC, key_fingerprint: "x" }, "/key_fingerprint"],
    ["a short secret", { url: PUBLIC, secret: "short" }, "/secret"],
  ])("422 for %s", async (_, body, path) => {
    const reply = await service.post("/webhooks", body, session);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors.map((error: { path: string }) => error.path)).toContain(path);
    expect(reply.text).not.toContain('"short"');
  });

  test("409 beyond twenty of one key", async () => {
    const mine = await newSession();
    const replies = await Promise.all(
      Array.from({ length: 21 }, () => service.post("/webhooks", { url: PUBLIC }, mine)),
    );
    const refused = replies.filter(({ status }) => status !== 200);
    expect(refused).toHaveLength(1);
    expectProblem(refused[0]!, 409, "precondition-failed");
  });
});

describe("GET and DELETE", () => {
  test("list one's own, and end one's own only", async () => {
    const [mine, others] = [await newSession(), await newSession()];
    const first = (await service.post("/webhooks", { url: PUBLIC }, mine)).body;
    const second = (await service.post("/webhooks", { url: `${PUBLIC}/2` }, mine)).body;
    const foreign = (await service.post("/webhooks", { url: PUBLIC }, others)).body;
    expect((await service.get("/webhooks", mine)).body).toEqual([first, second]);
    expectProblem(await remove(foreign.id, mine), 404, "not-found");
    const ended = await remove(first.id, mine);
    expect(ended.status).toBe(200);
    expect(ended.body).toEqual({ ...first, active: false });
    expect((await service.get("/webhooks", mine)).body).toEqual([second]);
    expectProblem(await remove(first.id, mine), 404, "not-found");
    expect((await service.get("/webhooks", others)).body).toEqual([foreign]);
  });

  test("DELETE with an invalid id is 422, with an unknown one 404", async () => {
    expectProblem(await remove("first", session), 422, "invalid-input");
    expectProblem(await remove(999_999, session), 404, "not-found");
  });
});

describe("permissions", () => {
  const asked: [string, string][] = [
    ["POST", "/webhooks"],
    ["GET", "/webhooks"],
    ["DELETE", "/webhooks/1"],
  ];
  test.each(asked)("%s %s: refused without a session, and with an invented one", async (method, path) => {
    const body = method === "POST" ? { body: "{}" } : {};
    expectProblem(await service.send(method, `/api/v1${path}`, body), 401, "unauthenticated");
    const headers = { authorization: "Bearer a.b.c" };
    expectProblem(await service.send(method, `/api/v1${path}`, { ...body, headers }), 401, "unauthenticated");
  });

  test("a proof in place of a session does not serve", async () => {
    const auth = await proofOf(service, signer);
    expectProblem(await service.post("/webhooks", { url: PUBLIC, auth }), 401, "unauthenticated");
  });

  test("pages of other origins may not end a subscription, nor see that they could not", async () => {
    const headers = { origin: "https://reader.example", "access-control-request-method": "DELETE" };
    const preflight = await service.send("OPTIONS", "/api/v1/webhooks/1", { headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("allow")).toBe("DELETE, OPTIONS");
    expect(preflight.headers.get("access-control-allow-methods")).toBeNull();
    for (const path of ["/webhooks/1", "/webhooks"]) {
      const reply = await service.send("DELETE", `/api/v1${path}`, { headers: { origin: headers.origin } });
      expect(reply.headers.get("access-control-allow-origin")).toBeNull();
    }
  });

  test("other methods are 405", async () => {
    const put = await service.send("PUT", "/api/v1/webhooks/1");
    expectProblem(put, 405, "method-not-allowed");
    const remove = await service.send("DELETE", "/api/v1/webhooks");
    expectProblem(remove, 405, "method-not-allowed");
    expect(remove.headers.get("allow")).toBe("POST, GET, HEAD, OPTIONS");
  });
});

describe("deliveries", () => {
  /** A service that may call this machine, with a subscription of a key of its own. */
  async function subscribed(subscription: Record<string, unknown>) {
    const local = await startTestService({ SERVICE_WEBHOOK_ALLOW_PRIVATE: "on", ...NO_FRONT_ENDS });
    const receiver = await startReceiver();
    const owner = await registeredSigner(local);
    const mine = await bearerOf(local, owner);
    const reply = await local.post("/webhooks", { url: `${receiver.url}/hook`, ...subscription }, mine);
    expect(reply.status, reply.text).toBe(200);
    const arrived = async (count: number): Promise<readonly Received[]> => {
      await expect.poll(() => receiver.received.length, { interval: 5 }).toBe(count);
      return receiver.received;
    };
    return { local, receiver, owner, mine, webhook: reply.body, arrived };
  }
  const verified = (webhook: Webhook, { body, headers }: Received) =>
    webhook.verify(body, headers as Record<string, string>) as Record<string, unknown>;

  test.each([
    ["base64", `whsec_${randomBytes(32).toString("base64")}`, (secret: string) => new Webhook(secret)],
    [
      "any text",
      "correct horse battery stáple",
      (secret: string) => new Webhook(new TextEncoder().encode(secret), { format: "raw" }),
    ],
  ])("are accepted by the reference library, with a secret in %s", async (_, secret, library) => {
    const { local, owner, webhook, arrived } = await subscribed({ secret });
    const manifest = newManifest("Zoë's report");
    const receipt = (await local.post("/attestations", submission(owner, manifest))).body;
    const [delivery] = await arrived(1);
    const id = `msg_${webhook.id}_${receipt.log_entry_id}`;
    expect(delivery).toMatchObject({
      path: "/hook",
      headers: {
        "content-type": "application/json",
        "content-length": `${delivery!.body.length}`,
        "webhook-id": id,
        "user-agent": expect.stringMatching(/^cairnlog\//),
      },
    });
    expect(verified(library(secret), delivery!)).toEqual({
      id,
      type: "attestation.created",
      created_at: receipt.attestation.timestamp,
      data: {
        entry_id: receipt.log_entry_id,
        event_type: "https://x-service.example/predicates/authorship/v1",
        entry_hash: receipt.entry_hash,
        attestation_id: receipt.attestation.id,
        attestation_type: "authorship",
        signer_key_fingerprint: owner.fingerprint,
        document_hash: manifest.document.content_hash,
        manifest_hash: receipt.manifest_hash,
        document_title: "Zoë's report",
      },
    });
  });

  test("come for selected events and for nothing else", async () => {
    const { local, owner, webhook, mine, arrived } = await subscribed({ events: ["key.registered", "key.revoked"] });
    await local.post("/attestations", submission(owner));
    const other = newSigner();
    await local.post("/keys/register", registration(other, "Bob"));
    const revocation = { payload: { fingerprint: other.fingerprint }, auth: await proofOf(local, other) };
    expect((await local.post("/keys/revoke", revocation)).status).toBe(200);
    const deliveries = (await arrived(2)).map(({ body }) => JSON.parse(body.toString()));
    expect(deliveries).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "key.registered", data: expect.objectContaining({ pseudonym: "Bob" }) }),
        expect.objectContaining({
          type: "key.revoked",
          data: {
            entry_id: 4,
            event_type: "key_revocation",
            entry_hash: expect.any(String),
            fingerprint: other.fingerprint,
          },
        }),
      ]),
    );
    await local.send("DELETE", `/api/v1/webhooks/${webhook.id}`, { headers: mine });
    await local.post("/keys/register", registration(newSigner(), "Carol"));
    expect(await arrived(2)).toHaveLength(2);
  });

  test("that fail are counted where the owner sees it, and measured", async () => {
    const { local, receiver, mine, arrived } = await subscribed({});
    receiver.answer = (response) => response.writeHead(500).end();
    await local.post("/keys/register", registration(newSigner(), "Bob"));
    await arrived(1);
    await expect.poll(async () => (await local.get("/webhooks", mine)).body[0].retry_count, { interval: 5 }).toBe(1);
    expect((await local.get("/webhooks", mine)).body[0]).toMatchObject({ healthy: true, active: true });
    const { text } = await local.send("GET", "/metrics");
    expect(text).toMatch(/^cairnlog_webhook_outbox 1$/m);
    expect(text).toMatch(/^cairnlog_webhook_failed_total 1$/m);
    expect(text).toMatch(/^cairnlog_webhook_delivered_total 0$/m);
  });

  test("under way do not hold up the end of the service", async () => {
    const { local, receiver, arrived } = await subscribed({});
    receiver.answer = () => {};
    await local.post("/keys/register", registration(newSigner(), "Bob"));
    await arrived(1);
    await local.close();
  });
});
