/** A service that may open no more files: connections wait or are closed, and the service continues. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type RunningService, scratchFolder, startService } from "../../service.js";
import { newSigner, registration, submission } from "../signers.js";
import { metric, type SlowClient, slowClient, until } from "../sockets.js";

let folder: ReturnType<typeof scratchFolder>;
let service: RunningService;
let clients: SlowClient[] = [];
beforeEach(() => {
  folder = scratchFolder();
});
afterEach(async () => {
  for (const { socket } of clients) socket.destroy();
  clients = [];
  expect(await service.stop()).toBe(0);
  folder.remove();
});

const limitFiles = (files: number) =>
  execFileSync("prlimit", ["--pid", `${service.process.pid}`, `--nofile=${files}:`]);
const openFiles = () => readdirSync(`/proc/${service.process.pid}/fd`).length;

async function post(path: string, body: object): Promise<number> {
  const response = await fetch(`${service.url}/api/v1${path}`, { method: "POST", body: JSON.stringify(body) });
  await response.arrayBuffer();
  return response.status;
}

test("10,000 connections that say nothing, where few files may be open: those beyond are closed, others answered", async () => {
  service = await startService(folder.path, {}, { wrapper: ["bash", "-c", 'ulimit -n 450; exec "$@"', "bash"] });
  for (let n = 0; n < 10_000; n += 100) {
    const some = await Promise.all(Array.from({ length: 100 }, () => slowClient(service.url)));
    clients.push(...some);
    // The limit also applies to the test's own files.
    clients = clients.filter(({ socket }) => !socket.destroyed);
    for (const { socket } of clients.splice(0, clients.length - 400)) socket.destroy();
  }
  for (const { socket } of clients) socket.destroy();
  await until(async () => (await post("/keys/register", registration(newSigner())).catch(() => 0)) === 200);
  expect(await post("/attestations", submission(newSigner()))).toBe(200);
  expect(await metric(service.url, "cairnlog_http_connections_refused_total")).toBeGreaterThan(1_000);
});

test("no file can be opened at all: connected clients are answered, and all others later", async () => {
  service = await startService(folder.path, {});
  const before = await slowClient(service.url, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  await until(() => before.received().includes("200 OK"));
  clients.push(before);
  limitFiles(openFiles());
  const waiting = await Promise.all(
    Array.from({ length: 50 }, () => slowClient(service.url, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")),
  );
  clients.push(...waiting);
  const body = JSON.stringify(submission(newSigner()));
  before.socket.write(
    `POST /api/v1/attestations HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  await until(() => before.received().includes('"sth"'));
  // The limit applies to descriptor numbers; some below it may be free.
  expect(waiting.filter(({ received }) => !received()).length).toBeGreaterThan(40);
  limitFiles(1024);
  await until(() => waiting.every(({ received }) => received().startsWith("HTTP/1.1 200 OK")));
  expect(await post("/log/verify", {})).toBe(200);
});
