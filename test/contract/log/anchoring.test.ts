/** Anchoring and signing on request over HTTP: who may do it, the answers, and that nothing else in the log changes. */
import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, test } from "vitest";
import { otsCommitments, parseOtsFile } from "#cairnlog/engine/verify/ots/ots.js";
import { startCalendar, type TestCalendar } from "../../anchoring/calendar.js";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { bearerOf, registeredSigner } from "../../server/proofs.js";
import { newSigner, registration } from "../../server/signers.js";

const ROUTES = ["/log/anchor", "/log/sth/sign"];

const operatorOf = ({ operatorFingerprint, operatorSign }: Controlled) => ({
  fingerprint: operatorFingerprint,
  sign: (message: string | Uint8Array) => operatorSign(Buffer.from(message)).toString("base64"),
});
const commitments = (proof: string) => otsCommitments(parseOtsFile(Buffer.from(proof, "base64")).timestamp);

let calendar: TestCalendar;
let world: Controlled;
let service: TestService;
let operator: { authorization: string };
beforeEach(async () => {
  calendar = await startCalendar();
  world = await startControlled("ed25519", { calendars: [calendar.url] });
  service = world.service;
  operator = await bearerOf(service, operatorOf(world));
});

describe.each(ROUTES)("POST %s", (path) => {
  test("is for the operator alone: 401 without a session, 403 with another's, 503 while his key is away", async () => {
    expectProblem(await service.post(path), 401, "unauthenticated");
    for (const authorization of ["", "Bearer", "Bearer x.y.z", `${operator.authorization}x`])
      expectProblem(await service.post(path, {}, { authorization }), 401, "unauthenticated");
    const signer = await registeredSigner(service);
    expectProblem(await service.post(path, {}, await bearerOf(service, signer)), 403, "forbidden");
    world.operatorAnswers = false;
    expectProblem(await service.post(path, {}, operator), 503, "signer-unavailable");
    world.operatorAnswers = true;
    expect((await service.post(path, {}, operator)).status).toBe(200);
  });

  test("has nothing to do on an empty log", async () => {
    const reply = await service.post(path, {}, operator);
    expect(reply.status).toBe(409);
    expect(reply.body.code).toBe("precondition-failed");
  });

  test("needs no body", async () => {
    await registeredSigner(service);
    for (const body of ["", "{}", "anything"]) expect((await service.post(path, body, operator)).status).toBe(200);
  });
});

describe("POST /log/anchor", () => {
  test("on an empty log says so in the contract's words", async () => {
    const { body } = await service.post("/log/anchor", {}, operator);
    expect(body.detail).toBe("No entries to anchor");
    expect(calendar.requests).toEqual([]);
  });

  test("is 502 when no calendar answers, and writes nothing", async () => {
    await registeredSigner(service);
    calendar.misbehave = () => ({ status: 500, body: "" });
    const reply = await service.post("/log/anchor", {}, operator);
    expectProblem(reply, 502, "calendars-unavailable");
    expect(reply.body.title).toBe("Bad Gateway");
    expect(reply.body.detail).toContain(calendar.url);
    expect((await service.get("/log/1")).body).not.toHaveProperty("ots_proof");
    expect((await service.get("/log/anchor-status")).body.proof_status).toBe("none");
  });

  test("without any calendar is 502 with a message that says what to do", async () => {
    const bare = await startControlled();
    await registeredSigner(bare.service);
    const reply = await bare.service.post("/log/anchor", {}, await bearerOf(bare.service, operatorOf(bare)));
    expectProblem(reply, 502, "calendars-unavailable");
    expect(reply.body.detail).toContain("SERVICE_OTS_CALENDARS");
  });

  test("puts a proof on the newest entry, served with it ever after, first pending, then confirmed", async () => {
    for (let i = 0; i < 3; i++) await registeredSigner(service);
    const [bare, head, sth] = [
      await service.get("/log/3"),
      await service.get("/log/head"),
      await service.get("/log/sth"),
    ];
    expect((await service.get("/log/anchor-status")).body).toEqual({
      anchored_entry_id: null,
      anchored_at: null,
      proof_status: "none",
      entries_since_anchor: 3,
      anchor_due: false,
    });
    const { status, body } = await service.post("/log/anchor", {}, operator);
    expect(status).toBe(200);
    expect(body).toEqual({
      anchored_entry_id: 3,
      entry_hashes: bare.body.entry_hashes,
      ots_proof: expect.any(String),
    });
    expect(commitments(body.ots_proof)).toEqual([{ kind: "pending", uri: calendar.url }]);

    const expectServed = async (proof: string) => {
      const joined = `${bare.text.slice(0, -1)},"ots_proof":"${proof}"}`;
      expect((await service.get("/log/3")).text).toBe(joined);
      const { text, body: list } = await service.get("/log");
      expect(text).toContain(joined);
      expect(list.entries.filter((entry: object) => "ots_proof" in entry)).toHaveLength(1);
      expect((await service.get(`/log?search=sha256:${bare.body.payload.fingerprint.slice(7, 15)}`)).text).toContain(
        joined,
      );
      expect((await service.get("/log/head")).text).toBe(head.text);
      expect((await service.get("/log/sth")).text).toBe(sth.text);
      expect((await service.post("/log/verify")).body).toEqual({
        valid: true,
        entry_count: 3,
        errors: [],
        warnings: [],
      });
      expect(world.registry.log.stateDifferences()).toEqual([]);
    };
    await expectServed(body.ots_proof);
    const anchored_at = "2025-01-01T00:00:00.000000Z";
    const status1 = { anchored_entry_id: 3, anchored_at, entries_since_anchor: 0, anchor_due: false };
    expect((await service.get("/log/anchor-status")).body).toEqual({ ...status1, proof_status: "pending" });

    calendar.height = 800_000;
    await world.anchoring.upgrade();
    const { ots_proof } = (await service.get("/log/3")).body;
    expect(commitments(ots_proof)).toMatchObject([{ kind: "pending" }, { kind: "bitcoin", height: 800_000 }]);
    await expectServed(ots_proof);
    expect((await service.get("/log/anchor-status")).body).toEqual({ ...status1, proof_status: "confirmed" });
  });

  test("of a frozen log: its last entry can still be anchored, and what was pending at the end is confirmed", async () => {
    await registeredSigner(service);
    await service.post("/log/anchor", {}, operator);
    await service.post("/log/freeze", { reason: "The year is over." }, operator);
    expect((await service.post("/log/anchor", {}, operator)).body).toMatchObject({ anchored_entry_id: 2 });
    calendar.height = 800_000;
    await world.anchoring.upgrade();
    for (const id of [1, 2]) {
      const { ots_proof } = (await service.get(`/log/${id}`)).body;
      expect(commitments(ots_proof)).toMatchObject([{ kind: "pending" }, { kind: "bitcoin", height: 800_000 }]);
    }
    expect((await service.get("/log/anchor-status")).body).toMatchObject({ proof_status: "confirmed" });
  });

  test("is shown in the metrics", async () => {
    const metric = async (name: string) =>
      Number(
        new RegExp(`^${name.replace(/[{}]/g, "\\$&")} (\\S+)$`, "m").exec(
          (await service.send("GET", "/metrics")).text,
        )?.[1],
      );
    expect(await metric('cairnlog_anchors{status="pending"}')).toBe(0);
    expect(await metric("cairnlog_anchor_oldest_pending_seconds")).toBe(0);
    await registeredSigner(service);
    await service.post("/log/anchor", {}, operator);
    expect(await metric('cairnlog_anchors{status="pending"}')).toBe(1);
    expect(await metric('cairnlog_anchors{status="confirmed"}')).toBe(0);
    // The anchor has the time of the test's clock, which is at the beginning of 2025.
    expect(await metric("cairnlog_anchor_oldest_pending_seconds")).toBeGreaterThan(86_400);
    calendar.height = 800_000;
    await world.anchoring.upgrade();
    expect(await metric('cairnlog_anchors{status="pending"}')).toBe(0);
    expect(await metric('cairnlog_anchors{status="confirmed"}')).toBe(1);
    expect(await metric("cairnlog_anchor_oldest_pending_seconds")).toBe(0);
  });
});

describe("POST /log/sth/sign", () => {
  const expectSigned = async (head: Record<string, string>) => {
    const { public_key } = (await service.get("/log/operator-key")).body;
    const message = Buffer.from(`${head.root_hash}:${head.tree_size}:${head.timestamp}`);
    expect(verify(null, message, createPublicKey(public_key), Buffer.from(head.signature!, "base64"))).toBe(true);
  };

  test("signs the current size with the current time; the first head of the size does not change", async () => {
    for (let i = 0; i < 3; i++) await registeredSigner(service);
    const first = await service.get("/log/sth/3");
    world.now += 60_000_000;
    const { body: fresh } = await service.post("/log/sth/sign", {}, operator);
    expect(fresh).toEqual({
      ...first.body,
      timestamp: "2025-01-01T00:01:00.000000Z",
      signature: expect.any(String),
    });
    await expectSigned(fresh);
    expect((await service.get("/log/sth/3")).text).toBe(first.text);
    expect((await service.get("/log/sth")).text).toBe(first.text);
    expect((await service.post("/log/verify")).body.valid).toBe(true);
  });

  test("never goes back before a head that was signed, nor does any head after it", async () => {
    await registeredSigner(service);
    world.now += 1_800_000_000;
    const { body: fresh } = await service.post("/log/sth/sign", {}, operator);
    world.now -= 1_200_000_000;
    expect((await service.post("/log/sth/sign", {}, operator)).body.timestamp).toBe(fresh.timestamp);
    await registeredSigner(service);
    expect((await service.get("/log/sth")).body).toMatchObject({ tree_size: 2, timestamp: fresh.timestamp });
  });
});

describe("a running service", () => {
  test("looks for the Bitcoin proofs in the background, across restarts", async () => {
    const dataDir = temporaryFolder();
    const environment = {
      SERVICE_DATA_DIR: dataDir,
      SERVICE_OTS_CALENDARS: ` ${calendar.url}/ ,`,
      SERVICE_OTS_UPGRADE_INTERVAL_S: "1",
    };
    const first = await startTestService(environment);
    await first.post("/keys/register", registration(newSigner()));
    const key = createPrivateKey(readFileSync(`${dataDir}/operator.pem`));
    const session = await bearerOf(first, {
      fingerprint: first.server.operatorFingerprint,
      sign: (message) => sign(null, Buffer.from(message), key).toString("base64"),
    });
    const { body } = await first.post("/log/anchor", {}, session);
    await first.close();
    const second = await startTestService(environment);
    expect((await second.get("/log/1")).body.ots_proof).toBe(body.ots_proof);
    calendar.height = 800_000;
    const status = async () => (await second.get("/log/anchor-status")).body.proof_status;
    while ((await status()) !== "confirmed") await new Promise((resolve) => setTimeout(resolve, 20));
    expect(commitments((await second.get("/log/1")).body.ots_proof)).toHaveLength(2);
    await second.close();
  });

  test("ends while a calendar is silent, and the waiting client gets an error", async () => {
    calendar.misbehave = () => null;
    await registeredSigner(service);
    const waiting = service.post("/log/anchor", {}, operator);
    await calendar.seen(1);
    await service.close();
    expectProblem(await waiting, 503, "closed");
  });

  test("counts anchorings against a limit of 12 an hour", async () => {
    const limited = await startTestService({ SERVICE_RATE_LIMITS: "on" });
    for (let i = 0; i < 12; i++) {
      const reply = await limited.post("/log/anchor");
      expectProblem(reply, 401);
      expect(reply.headers.get("ratelimit-policy")).toBe('"anchoring";q=12;w=3600');
    }
    expectProblem(await limited.post("/log/anchor"), 429, "rate-limited");
    expect((await limited.get("/log/anchor-status")).status).toBe(200);
  });
});
