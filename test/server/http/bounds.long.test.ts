/**
 * Clients that use much time, much memory and many connections. All of these are limited, and other clients are
 * answered meanwhile.
 */
import { expect, test } from "vitest";
import { expectProblem, startTestService } from "../harness.js";
import { newSigner, registration } from "../signers.js";
import { fillLog, metric, postHead, type SlowClient, slowClient, until } from "../sockets.js";

const VERIFY = "/api/v1/verify";

test("a body that does not arrive in time: 408, and nothing of it is held", async () => {
  const service = await startTestService({ SERVICE_REQUEST_TIMEOUT_S: "1" });
  const silent = await slowClient(service.url, `${postHead(VERIFY, 100)}abc`);
  const never = await slowClient(service.url, postHead(VERIFY, 100));
  const trickling = await slowClient(service.url, postHead(VERIFY, 100));
  const trickle = setInterval(() => trickling.socket.write("a"), 100);
  for (const { received } of [silent, never, trickling]) {
    await until(() => received().includes("request-timeout"));
    expect(received()).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
  }
  clearInterval(trickle);
  expect(await metric(service.url, "cairnlog_http_body_bytes")).toBe(0);
  expect(await metric(service.url, "cairnlog_http_arriving")).toBe(0);
  expect(await metric(service.url, 'cairnlog_refusals_total{code="request-timeout"}')).toBe(3);
  expect((await service.get("/health")).status).toBe(200);
});

test("thousands of bodies that arrive slowly hold no more than they may, and others are answered", async () => {
  const limit = 2 ** 20;
  const service = await startTestService({ SERVICE_MAX_PENDING_BYTES: `${limit}`, SERVICE_MAX_BODY_BYTES: "100000" });
  const part = "x".repeat(16_000);
  const clients: SlowClient[] = [];
  for (let n = 0; n < 2_000; n++) {
    clients.push(await slowClient(service.url, postHead(VERIFY, 99_000) + part));
    if (n % 400) continue;
    expect(await metric(service.url, "cairnlog_http_body_bytes")).toBeLessThanOrEqual(limit);
    // A client that sends at once is not refused because of slow ones.
    expect((await service.post("/keys/register", registration(newSigner()))).status).toBe(200);
    expectProblem(await service.post("/verify", { padding: "y".repeat(90_000) }), 422);
  }
  await until(async () => (await metric(service.url, "cairnlog_http_given_up_total")) >= 1_900);
  const held = await metric(service.url, "cairnlog_http_body_bytes");
  expect(held).toBeLessThanOrEqual(limit);
  expect(held).toBeGreaterThan(limit / 2);
  await until(() => clients.filter(({ received }) => received().endsWith("}")).length >= 1_900);
  for (const { received } of clients.filter((client) => client.received())) {
    expect(received()).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/);
    expect(received()).toContain("\r\nretry-after: 2\r\n");
    expect(received()).toContain('"code":"overloaded"');
  }
  for (const { socket } of clients) socket.destroy();
  await until(async () => (await metric(service.url, "cairnlog_http_body_bytes")) === 0);
});

test("the clients of several front ends hold no more together than those of one may", async () => {
  const limit = 2 ** 20;
  const service = await startTestService({
    ...{ SERVICE_FRONT_ENDS: "3", SERVICE_TRANSPORT: "uws" },
    ...{ SERVICE_MAX_PENDING_BYTES: `${limit}`, SERVICE_MAX_BODY_BYTES: "100000" },
  });
  const clients: SlowClient[] = [];
  const part = "x".repeat(16_000);
  for (let n = 0; n < 300; n++) clients.push(await slowClient(service.url, postHead(VERIFY, 99_000) + part));
  await until(async () => (await metric(service.url, "cairnlog_http_given_up_total")) >= 90);
  const held = await metric(service.url, "cairnlog_http_body_bytes");
  expect(held).toBeLessThanOrEqual(limit);
  expect(held).toBeGreaterThan(limit / 2);
  for (const { socket } of clients) socket.destroy();
});

test("a body of exactly 1 MiB is accepted for any limit of all bodies, and one byte more is 413", async () => {
  const service = await startTestService({ SERVICE_MAX_PENDING_BYTES: "1024" });
  const bodyOf = (size: number) => `{"padding":"${"y".repeat(size - '{"padding":""}'.length)}"}`;
  expectProblem(await service.post("/verify", bodyOf(2 ** 20)), 422);
  expectProblem(await service.post("/verify", bodyOf(2 ** 20 + 1)), 413, "payload-too-large");
});

test("answers that nobody reads hold no more than they may, streamed ones too", async () => {
  const limit = 1_000_000;
  const service = await startTestService({ SERVICE_MAX_PENDING_BYTES: `${limit}` });
  await fillLog(service.server.registry.log);
  const paths = ["/api/v1/log?per_page=100", "/api/v1/audit/export?page_size=100", "/api/v1/audit/export?format=csv"];
  const clients: SlowClient[] = [];
  for (let n = 0; n < 24; n++) {
    const get = `GET ${paths[n % 3]} HTTP/1.1\r\nHost: x\r\n\r\n`;
    clients.push(await slowClient(service.url, get, { deaf: true }));
  }
  await until(async () => (await metric(service.url, "cairnlog_http_given_up_total")) > 0);
  expect(await metric(service.url, "cairnlog_http_answer_bytes")).toBeLessThanOrEqual(limit);
  expect((await service.get("/log?per_page=100")).body.entries).toHaveLength(100);
  for (const { socket } of clients) socket.destroy();
  await until(async () => (await metric(service.url, "cairnlog_http_answer_bytes")) === 0);
  expect(await metric(service.url, "cairnlog_http_in_flight")).toBe(1);
});

test("connections beyond the limit are closed at once, and there is room when others have gone", async () => {
  const service = await startTestService({ SERVICE_MAX_CONNECTIONS: "8" });
  const clients: SlowClient[] = [];
  for (let n = 0; n < 8; n++) clients.push(await slowClient(service.url));
  const tooMany = await slowClient(service.url, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n");
  await tooMany.closed;
  expect(tooMany.received()).toBe("");
  for (const { socket } of clients.splice(0, 4)) socket.destroy();
  await until(async () => {
    const reply = await fetch(`${service.url}/livez`).catch(() => null);
    return reply?.status === 200;
  });
  expect(await metric(service.url, "cairnlog_http_connections_refused_total")).toBeGreaterThan(0);
  for (const { socket } of clients) socket.destroy();
});

// These wait for ten seconds, together.
test.concurrent("headers that do not come, or do not end, and bodies that stop cost a connection for some ten seconds", async () => {
  const service = await startTestService();
  const clients = await Promise.all([
    slowClient(service.url),
    slowClient(service.url, "GET /livez HTTP/1.1\r\nHo"),
    slowClient(service.url, "GET /livez HTTP/1.1\r\nHost: x\r\n"),
    slowClient(service.url, `${postHead(VERIFY, 100)}abc`),
    slowClient(service.url, `POST ${VERIFY} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab`),
  ]);
  const trickle = setInterval(() => clients[2]!.socket.write("a: b\r\n"), 2_000);
  await Promise.all(clients.map(({ closed }) => closed));
  clearInterval(trickle);
  await until(async () => (await metric(service.url, "cairnlog_http_body_bytes")) === 0);
});

test.concurrent("a head that is too long, or of too many lines: 431 and the end of the connection", async () => {
  const service = await startTestService();
  const isUws = service.server.transport === "uws";
  const head = "GET /livez HTTP/1.1\r\nHost: x\r\n";
  const lines = (count: number) => slowClient(service.url, `${head}${"a: b\r\n".repeat(count)}\r\n`);
  const most = await lines(97);
  await until(() => most.received().startsWith("HTTP/1.1 200 OK"));
  const tooMany = await lines(98);
  const half = isUws ? 3_000 : 9_000;
  const long = await slowClient(service.url, `${head}a: ${"b".repeat(half)}`);
  await new Promise((resolve) => setTimeout(resolve, 100));
  long.socket.write("b".repeat(half));
  await long.closed;
  expect(long.received()).toMatch(/^HTTP\/1\.1 431 /);
  // Sent in pieces, as long lines arrive over a network.
  const growing: [string, string][] = [
    [`${head}a: `, "b".repeat(1_000)],
    [head, `a${"b".repeat(40)}: ${"c".repeat(400)}\r\n`],
    ["GET /", "a".repeat(1_000)],
  ];
  for (const [start, piece] of growing) {
    const client = await slowClient(service.url, start);
    let sent = start.length;
    for (; !client.socket.destroyed && sent < 100_000; sent += piece.length) {
      client.socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await client.closed;
    // If the client continues to send, it may lose the answer.
    expect(client.received()).toMatch(/^(HTTP\/1\.1 (431|505) |$)/);
    expect(sent).toBeLessThan(100_000);
  }
  const flood = await slowClient(service.url, head + "a: b\r\n".repeat(200_000));
  await flood.closed;
  expect(flood.received()).toMatch(/^(HTTP\/1\.1 431 |$)/);
  await tooMany.closed;
  // uWebSockets.js takes them for the beginning of a longer head.
  expect(tooMany.received()).toMatch(isUws ? /^$/ : /^HTTP\/1\.1 431 /);
  expect((await service.get("/health")).status).toBe(200);
});

test("a client that sends many requests and reads no answer loses its connection", async () => {
  const service = await startTestService();
  const { socket, closed } = await slowClient(service.url, "", { deaf: true });
  const get = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n";
  const requests = 4_000;
  socket.write(get.repeat(requests));
  await until(async () => (await metric(service.url, "cairnlog_http_answer_bytes")) === 0);
  let received = "";
  socket.on("data", (data) => {
    received += data.toString("latin1");
  });
  socket.resume();
  await closed;
  expect(received.split("HTTP/1.1 200 OK").length).toBeLessThan(requests / 4);
});

test("a client that sends on after its answer was refused gets to see the answer", async () => {
  const service = await startTestService({ SERVICE_MAX_BODY_BYTES: "1024" });
  const client = await slowClient(service.url, postHead("/api/v1/verify", 500_000));
  for (let n = 0; n < 50; n++) client.socket.write("x".repeat(10_000));
  await until(() => client.received().includes("payload-too-large"));
  // The answer said that it is the last.
  await client.closed;
  expect(client.received()).toMatch(/^HTTP\/1\.1 413 [\s\S]*\r\nconnection: close\r\n/i);
});
