/**
 * The service is stopped while clients, calendars and webhook endpoints hang, each in its own way. It still ends in
 * time, with exit code 0.
 */
import { createPrivateKey, sign } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readSettings, startServer } from "#cairnlog/server/index.js";
import { type RunningService, scratchFolder, startService } from "../../service.js";
import { testEnvironment } from "../harness.js";
import { newSigner, registration } from "../signers.js";
import { fillLog, metric, postHead, type SlowClient, slowClient, until } from "../sockets.js";

const VERIFY = "/api/v1/verify";
const folder = scratchFolder();
afterAll(() => folder.remove());

/** Accepts connections and never answers. */
const mute = createServer((socket) => {
  socket.on("error", () => {});
  connections.push(socket);
});
const connections: { destroy(): void }[] = [];
let muteUrl = "";
afterAll(() => {
  for (const socket of connections) socket.destroy();
  mute.close();
});

beforeAll(async () => {
  mute.listen(0, "127.0.0.1");
  await once(mute, "listening");
  const { port } = mute.address() as { port: number };
  muteUrl = `http://127.0.0.1:${port}`;
  const settings = { ...testEnvironment(folder.path), SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" };
  const server = await startServer(readSettings(settings));
  await fillLog(server.registry.writer);
  await server.registry.webhooks.subscribe({ url: `${muteUrl}/hook`, events: [] }, server.operatorFingerprint);
  await server.close();
});

const start = (environment: NodeJS.ProcessEnv = {}) => startService(folder.path, environment);
const post = (service: RunningService, path: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(`${service.url}/api/v1${path}`, { method: "POST", body: JSON.stringify(body), headers });

const stubborn: [string, (service: RunningService) => Promise<SlowClient[]>][] = [
  ["silent connections", async ({ url }) => Promise.all([slowClient(url), slowClient(url)])],
  ["half a header", async ({ url }) => [await slowClient(url, "GET /livez HTT")]],
  ["half a body", async ({ url }) => [await slowClient(url, `${postHead(VERIFY, 100)}abc`)]],
  [
    "an idle connection that is kept alive",
    async ({ url }) => {
      const client = await slowClient(url, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
      await until(() => client.received().includes('"ok"'));
      return [client];
    },
  ],
  [
    "answers that nobody reads",
    async ({ url }) => {
      const paths = ["/api/v1/log?per_page=100", "/api/v1/audit/export?page_size=100"];
      const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
      const clients = await Promise.all(paths.map((path) => slowClient(url, get(path), { deaf: true })));
      await until(async () => (await metric(url, "cairnlog_http_slow_answers")) === 2);
      return clients;
    },
  ],
];

test.each(stubborn)("%s", async (_, hang) => {
  const service = await start();
  const clients = await hang(service);
  expect(await service.stop()).toBe(0);
  for (const { socket } of clients) socket.destroy();
});

test("a webhook endpoint that never answers", async () => {
  const service = await start({ SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" });
  const called = once(mute, "connection");
  expect((await post(service, "/keys/register", registration(newSigner()))).status).toBe(200);
  await called;
  expect(await service.stop()).toBe(0);
});

test("a calendar that never answers: the waiting client gets an error", async () => {
  const service = await start({ SERVICE_OTS_CALENDARS: muteUrl });
  const key = createPrivateKey(readFileSync(join(folder.path, "operator.pem")));
  const { fingerprint } = await (await fetch(`${service.url}/api/v1/log/operator-key`)).json();
  const { challenge_id, nonce } = await (await post(service, "/auth/challenge", { fingerprint })).json();
  const challenge_signature = sign(null, Buffer.from(nonce), key).toString("base64");
  const { token } = await (await post(service, "/auth/login", { challenge_id, challenge_signature })).json();
  const called = once(mute, "connection");
  const anchored = post(service, "/log/anchor", {}, { authorization: `Bearer ${token}` });
  await called;
  const stopped = service.stop();
  expect((await anchored).status).toBe(503);
  expect(await stopped).toBe(0);
});

test("a verification of the whole log is broken off", async () => {
  const service = await start();
  const verified = post(service, "/log/verify", {}).then(
    ({ status }) => status,
    () => null,
  );
  await until(async () => (await metric(service.url, "cairnlog_http_in_flight")) > 1);
  expect(await service.stop()).toBe(0);
  expect([200, 503, null]).toContain(await verified);
});

test("a second signal ends it at once", async () => {
  const service = await start();
  const get = "GET /api/v1/log?per_page=100 HTTP/1.1\r\nHost: x\r\n\r\n";
  const { socket } = await slowClient(service.url, get, { deaf: true });
  await until(async () => (await metric(service.url, "cairnlog_http_slow_answers")) === 1);
  const ended = once(service.process, "exit");
  service.process.kill("SIGTERM");
  // It no longer listens, so it has received the first signal.
  await until(() =>
    fetch(`${service.url}/livez`).then(
      () => false,
      () => true,
    ),
  );
  service.process.kill("SIGTERM");
  expect(await ended).toEqual([null, "SIGTERM"]);
  socket.destroy();
});
