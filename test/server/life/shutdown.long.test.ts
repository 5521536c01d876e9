/** Starting and stopping: a service that is closed answers the requests that it accepted, and nothing keeps running. */
import { existsSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readSettings, startServer } from "#cairnlog/server/index.js";
import { anyEvent } from "../../anyevent.js";
import { act, newPair } from "../endorsements.js";
import {
  NO_FRONT_ENDS,
  type Reply,
  startTestService,
  type TestService,
  temporaryFolder,
  testEnvironment,
} from "../harness.js";
import { newSigner, registration } from "../signers.js";

const post = (url: string, body: unknown) => fetch(url, { method: "POST", body: JSON.stringify(body) });

test("idle keep-alive clients and half uploads do not hold it up", async () => {
  const service = await startTestService();
  await service.get("/health");
  const idle = connect(service.server.address.port, "127.0.0.1");
  idle.on("error", () => {});
  const half = connect(service.server.address.port, "127.0.0.1");
  half.on("error", () => {});
  half.write("POST /api/v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc");
  await new Promise((resolve) => setTimeout(resolve, 50));
  const closed = [idle, half].map((socket) => new Promise((resolve) => socket.on("close", resolve)));
  const started = Date.now();
  await service.close();
  expect(Date.now() - started).toBeLessThan(1_000);
  await Promise.all(closed);
  await expect(fetch(service.url)).rejects.toThrow();
});

test("accepted requests are answered, and their entries are there after a restart", async () => {
  const dataDir = temporaryFolder();
  const listeners = process.listenerCount("exit");
  const server = await startServer(readSettings(testEnvironment(dataDir)));
  const requests = Array.from({ length: 40 }, (_, i) =>
    post(`${server.url}/api/v1/keys/register`, registration(newSigner(), `Key ${i}`)).then(
      async (response) => ({ status: response.status, body: (await response.json()) as { log_entry_id: number } }),
      () => null,
    ),
  );
  while (server.registry.writer.queued === 0 && server.registry.log.size === 0) await new Promise(setImmediate);
  await server.close();
  const answers = (await Promise.all(requests)).flatMap((answer) => answer ?? []);
  const accepted = answers.filter(({ status }) => status === 200);
  expect(accepted.length).toBeGreaterThan(0);
  for (const { status } of answers) expect([200, 503]).toContain(status);

  const again = await startServer(readSettings({ ...testEnvironment(dataDir), ...NO_FRONT_ENDS }));
  expect(again.operatorFingerprint).toBe(server.operatorFingerprint);
  expect(again.registry.log.size).toBeGreaterThanOrEqual(accepted.length);
  for (const { body } of accepted) expect(again.registry.log.entry(body.log_entry_id)).toBeDefined();
  await again.close();
  // Nothing of either is left to be asked at the end of the process; threads may end a moment later.
  await expect.poll(() => process.listenerCount("exit")).toBe(listeners);
});

test.each([
  ["in the writer's thread", "0"],
  ["in a front end", "1"],
])("whoever is served %s when it stops has its whole answer before the log is closed", async (_, frontEnds) => {
  const service = await startTestService({ SERVICE_FRONT_ENDS: frontEnds });
  // More than the buffers of both sides hold: what is behind them is read from the log while it is sent.
  const text = "木".repeat(20_000);
  await service.server.registry.log.append(Array.from({ length: 200 }, () => anyEvent({ text })));
  const whole = (await service.get("/log?per_page=200")).text;
  const socket = connect(service.server.address.port, "127.0.0.1");
  let received = 0;
  const ended = new Promise((resolve) => socket.on("close", resolve));
  socket.write("GET /api/v1/log?per_page=200 HTTP/1.1\r\nHost: x\r\n\r\n");
  await new Promise((resolve) => socket.once("readable", resolve));
  // When the writer's thread has settled its proof, the log is asked and written, and trust evaluated.
  const { offering, goOn } = await offerHeld(service);

  const parts: string[] = [];
  const closing = service.server.close((part) => parts.push(part));
  // Whoever takes no more connections has begun to stop.
  const asked = () =>
    post(service.url, "").then(
      () => "answered",
      () => "refused",
    );
  await expect.poll(asked).toBe("refused");
  expect(parts.at(-1)).toBe("the front ends and their connections");
  goOn();
  expect((await offering).status).toBe(200);
  expect(parts.at(-1)).toBe("the front ends and their connections");
  socket.on("data", (data) => {
    received += data.length;
  });
  expect((await closing).hanging).toEqual([]);
  expect(parts).toContain("the log");
  await ended;
  expect(received).toBeGreaterThan(Buffer.byteLength(whole));
});

/** An offer whose proof is being settled, until `goOn` is called. */
async function offerHeld(service: TestService) {
  const pair = await newPair(service);
  const { challengeUses } = service.server.registry;
  const settle = challengeUses.settle.bind(challengeUses);
  return new Promise<{ readonly offering: Promise<Reply>; goOn(): void }>((resolve) => {
    challengeUses.settle = async (...given) => {
      await new Promise<void>((goOn) => resolve({ offering, goOn }));
      return settle(...given);
    };
    const offering = act("offer", pair);
  });
}

test("two services live in one process", async () => {
  const [one, two] = await Promise.all([startTestService(), startTestService()]);
  await one.post("/keys/register", registration(newSigner()));
  expect(await one.entryCount()).toBe(1);
  expect(await two.entryCount()).toBe(0);
  await one.close();
  expect((await two.get("/health")).status).toBe(200);
});

test("a port in use is refused with a message, and nothing stays open", async () => {
  const service = await startTestService(NO_FRONT_ENDS);
  const dataDir = temporaryFolder();
  const settings = readSettings({ ...testEnvironment(dataDir), PORT: `${service.server.address.port}` });
  await expect(startServer(settings)).rejects.toMatchObject({ code: "precondition-failed" });
  const second = await startServer(readSettings({ ...testEnvironment(dataDir), ...NO_FRONT_ENDS }));
  await second.close();
});

test("a port that is asked for by its number is one service's alone", async () => {
  const earlier = await startTestService(NO_FRONT_ENDS);
  const PORT = `${earlier.server.address.port}`;
  await earlier.close();
  const service = await startTestService({ PORT });
  await expect(startServer(readSettings({ ...testEnvironment(), PORT }))).rejects.toMatchObject({
    code: "precondition-failed",
  });
  expect((await service.get("/health")).status).toBe(200);
});

test("the operator key is made in the data directory, for its owner alone", async () => {
  const dataDir = join(temporaryFolder(), "deep", "down");
  const service = await startTestService({ SERVICE_DATA_DIR: dataDir, ...NO_FRONT_ENDS });
  expect(statSync(join(dataDir, "operator.pem")).mode & 0o777).toBe(0o600);
  expect(existsSync(join(dataDir, "log"))).toBe(true);
  expect(service.server.dataDir).toBe(dataDir);
});

test("it listens on IPv6 too", async () => {
  const service = await startTestService({ HOST: "::1" }).catch(() => null);
  if (!service) return;
  expect(service.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
  expect((await service.get("/health")).status).toBe(200);
});
