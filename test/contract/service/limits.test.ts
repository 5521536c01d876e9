/** Rate limits: the headers, when a client is refused, and which requests count as one client's. */
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { expectProblem, type Reply, startTestService, type TestService } from "../../server/harness.js";
import { newSigner, registration } from "../../server/signers.js";
import { postHead, slowClient, until } from "../../server/sockets.js";
import { operationsOf } from "../tour.js";

const limited = (settings: Record<string, string> = {}) =>
  startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_TRUSTED_PROXIES: "127.0.0.1", ...settings });

const from = (address: string) => ({ "x-forwarded-for": address });
const remaining = (reply: Reply) => Number(reply.headers.get("ratelimit-remaining"));

/** Stops the clock. Returns a function that sets it to this number of milliseconds after that moment. */
function stopTime(): (milliseconds: number) => void {
  const start = process.hrtime.bigint();
  const clock = vi.spyOn(process.hrtime, "bigint").mockReturnValue(start);
  return (milliseconds) => void clock.mockReturnValue(start + BigInt(milliseconds) * 1_000_000n);
}
afterEach(() => {
  vi.restoreAllMocks();
});

describe("with the default limits", () => {
  let service: TestService;
  beforeAll(async () => {
    // In this thread, whose clock the tests stop.
    service = await limited({ SERVICE_FRONT_ENDS: "0" });
  });

  test("every answer says where the client stands", async () => {
    stopTime();
    const replies = [
      await service.get("/health", from("192.0.2.1")),
      await service.get("/nothing", from("192.0.2.1")),
      await service.get("/log/x", from("192.0.2.1")),
      await service.send("DELETE", "/api/v1/log", { headers: from("192.0.2.1") }),
    ];
    for (const [i, { headers }] of replies.entries()) {
      expect(headers.get("ratelimit-policy")).toBe('"general";q=100;w=60');
      expect(headers.get("ratelimit")).toBe(`"general";r=${99 - i};t=60`);
      expect(headers.get("ratelimit-limit")).toBe("100");
      expect(headers.get("ratelimit-remaining")).toBe(`${99 - i}`);
      expect(headers.get("ratelimit-reset")).toBe("60");
      expect(headers.get("retry-after")).toBeNull();
    }
  });

  test("the 101st request of a minute is refused, and another client's is not", async () => {
    for (let i = 0; i < 100; i++) expect((await service.get("/log/head", from("192.0.2.2"))).status).toBe(200);
    const reply = await service.get("/log/head", from("192.0.2.2"));
    expectProblem(reply, 429, "rate-limited");
    expect(remaining(reply)).toBe(0);
    expect((await service.get("/log/head", from("192.0.2.3"))).status).toBe(200);
  });

  test("a refusal says in whole seconds when the next request is let through, and that one is", async () => {
    const setTime = stopTime();
    const ask = () => service.post("/keys/register", "{", from("192.0.2.7"));
    for (let i = 0; i < 10; i++) expectProblem(await ask(), 400);
    for (const [passed, seconds] of [
      [0, 3600],
      [1, 3600],
      [1_000, 3599],
      [1_001, 3599],
      [3_598_999, 2],
      [3_599_000, 1],
      [3_599_999, 1],
    ] as const) {
      setTime(passed);
      const reply = await ask();
      expectProblem(reply, 429, "rate-limited");
      expect(reply.body.detail).toBe(`The limit "key-registration" is used up. Try again in ${seconds} seconds.`);
      for (const name of ["retry-after", "ratelimit-reset"]) expect(reply.headers.get(name)).toBe(`${seconds}`);
      expect(reply.headers.get("ratelimit")).toBe(`"key-registration";r=0;t=${seconds}`);
    }
    setTime(3_600_000);
    expectProblem(await ask(), 400);
  });

  test("a route with a limit of its own counts against that one", async () => {
    for (let i = 0; i < 10; i++) {
      const reply = await service.post("/keys/register", registration(newSigner()), from("192.0.2.4"));
      expect(reply.status).toBe(200);
      expect(reply.headers.get("ratelimit-policy")).toBe('"key-registration";q=10;w=3600');
      expect(remaining(reply)).toBe(9 - i);
    }
    expectProblem(await service.post("/keys/register", registration(newSigner()), from("192.0.2.4")), 429);
    const read = await service.get("/keys", from("192.0.2.4"));
    expect(read.status).toBe(200);
    expect(remaining(read)).toBe(99);
  });

  test("attestations have 50 an hour, refused ones included", async () => {
    const reply = await service.post("/attestations", {}, from("192.0.2.5"));
    expectProblem(reply, 422);
    expect(reply.headers.get("ratelimit-policy")).toBe('"attestation";q=50;w=3600');
    expect(remaining(reply)).toBe(49);
  });

  test("what a page of another origin sends uses up no limit of a kind, whatever it asks for", async () => {
    const writes = operationsOf(await service.openApi()).filter(
      ({ method }) => method === "POST" || method === "DELETE",
    );
    expect(writes.length).toBeGreaterThan(30);
    for (const [i, { id, method, path }] of writes.entries()) {
      const headers = { ...from(`192.0.3.${i}`), origin: "https://evil.example", "content-type": "application/json" };
      const reply = await service.send(method, path.replaceAll(/\{(\w+)\}/g, "99999"), { headers });
      expectProblem(reply, 403, "foreign-origin");
      expect(reply.headers.get("ratelimit-policy"), id).toBe('"general";q=100;w=60');
    }
  });

  test("a refusal comes without reading the body", async () => {
    for (let i = 0; i < 10; i++) await service.post("/keys/register", "{", from("192.0.2.6"));
    expectProblem(await service.post("/keys/register", "x".repeat(2_000_000), from("192.0.2.6")), 429);
  });

  test("a refusal leaves the connection usable, though its body is still on the way", async () => {
    for (let i = 0; i < 10; i++) await service.post("/keys/register", "{", from("192.0.2.8"));
    const address = "X-Forwarded-For: 192.0.2.8\r\n";
    const head = postHead("/api/v1/keys/register", 20_000).replace("\r\n\r\n", `\r\n${address}\r\n`);
    const client = await slowClient(service.url, `${head}${"x".repeat(10_000)}`);
    await until(() => client.received().includes("HTTP/1.1 429"));
    client.socket.write(`${"x".repeat(10_000)}GET /api/v1/log/head HTTP/1.1\r\nHost: x\r\n${address}\r\n`);
    await until(() => client.received().includes("HTTP/1.1 200"));
    client.socket.destroy();
  });

  test("the addresses of one IPv6 /64 are one client", async () => {
    expect(remaining(await service.get("/log", from("2001:db8:0:1::1")))).toBe(99);
    expect(remaining(await service.get("/log", from("2001:db8:0:1:ffff::2")))).toBe(98);
    expect(remaining(await service.get("/log", from("2001:db8:0:2::1")))).toBe(99);
  });

  test("an IPv4 address is one client however it is written", async () => {
    expect(remaining(await service.get("/log", from("198.51.100.1")))).toBe(99);
    expect(remaining(await service.get("/log", from("::ffff:198.51.100.1")))).toBe(98);
    expect(remaining(await service.get("/log", from("198.51.100.1:4711")))).toBe(97);
  });

  test("addresses that a client writes into X-Forwarded-For itself do not count", async () => {
    expect(remaining(await service.get("/log", from("203.0.113.9, 198.51.100.2")))).toBe(99);
    expect(remaining(await service.get("/log", from("203.0.113.8, 198.51.100.2")))).toBe(98);
    expect(remaining(await service.get("/log", from("nonsense, 198.51.100.2")))).toBe(97);
  });

  test("probes are never refused", async () => {
    for (let i = 0; i < 120; i++) expect((await service.send("GET", "/livez")).status).toBe(200);
    const ready = await service.send("GET", "/readyz");
    expect(ready.status).toBe(200);
    expect(ready.headers.get("ratelimit-limit")).toBe("100");
  });
});

test("without trusted proxies X-Forwarded-For is nothing", async () => {
  const service = await limited({ SERVICE_TRUSTED_PROXIES: "", SERVICE_RATE_LIMIT_GENERAL: "4" });
  // The harness reads the document from the service, which counts the request.
  await service.openApi();
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) statuses.push((await service.get("/log", from(`192.0.2.${i}`))).status);
  expect(statuses).toEqual([200, 200, 200, 429]);
});

test("several front ends let as many requests pass as one", async () => {
  const service = await limited({ SERVICE_FRONT_ENDS: "3", SERVICE_RATE_LIMIT_GENERAL: "20" });
  // Each on a connection of its own: the system spreads connections over the front ends.
  const ask = () => service.get("/log", { ...from("192.0.2.1"), connection: "close" });
  const replies = await Promise.all(Array.from({ length: 60 }, ask));
  expect(replies.filter(({ status }) => status === 200)).toHaveLength(20);
  const left = replies.filter(({ status }) => status === 200).map(remaining);
  expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test("settings change the limits", async () => {
  const service = await limited({ SERVICE_RATE_LIMIT_GENERAL: "5", SERVICE_RATE_LIMIT_ATTESTATION: "1" });
  expect((await service.get("/log")).headers.get("ratelimit-limit")).toBe("5");
  expectProblem(await service.post("/attestations", {}), 422);
  expectProblem(await service.post("/attestations", {}), 429);
});

test("switched off, nothing is limited and no header speaks of limits", async () => {
  const service = await startTestService({ SERVICE_RATE_LIMITS: "off" });
  for (let i = 0; i < 150; i++) expect((await service.get("/log/head")).status).toBe(200);
  const { headers } = await service.get("/log/head");
  for (const name of ["ratelimit", "ratelimit-policy", "ratelimit-limit"]) expect(headers.get(name)).toBeNull();
});
