/**
 * docs/deploy as its own tools see it: promtool (Debian package prometheus) checks rules, configuration and metrics; nginx and
 * Caddy, with the samples and other addresses, stand before a service.
 */
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { cairnlog } from "./cli/harness.js";
import { startCaddy, startNginx } from "./proxies.js";
import { LiveLog } from "./publishing/logs.js";
import { startTestService, type TestService, temporaryFolder } from "./server/harness.js";
import { newSigner, registration } from "./server/signers.js";

const PROMTOOL = process.env.PROMTOOL ?? "promtool";
const at = (path: string) => fileURLToPath(new URL(`../docs/deploy/${path}`, import.meta.url));
const run = promisify(execFile);

test("the alert rules and the configuration of Prometheus", async () => {
  const rules = await run(PROMTOOL, ["check", "rules", at("prometheus/alerts.yml")]);
  expect(rules.stdout).toMatch(/SUCCESS: \d\d rules found/);
  expect((await run(PROMTOOL, ["check", "config", at("prometheus/prometheus.yml")])).stdout).not.toContain("FAILED");
});

test("what /metrics shows, in a service that was used", async () => {
  const service = await startTestService();
  await service.post("/keys/register", registration(newSigner()));
  await service.get("/nothing");
  const { text } = await service.send("GET", "/metrics");
  const { status, stdout, stderr } = spawnSync(PROMTOOL, ["check", "metrics"], { input: text, encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: "", stderr: "" });
});

/** nginx with the sample, before a service. @returns its address, and a request by way of it as `proxied` does */
const behindNginx = (service: TestService) =>
  startNginx(sample("nginx.conf").replace("server 127.0.0.1:8080;", `server ${service.url.slice("http://".length)};`));

const LIMITED = { SERVICE_RATE_LIMITS: "on", SERVICE_TRUSTED_PROXIES: "127.0.0.1" };
const sample = (path: string) => readFileSync(at(path), "utf8");

test("behind nginx: the page, the API, and what only the operator's machines see", async () => {
  const { get } = await behindNginx(await startTestService(LIMITED));
  expect(await get("/api/v1/health")).toMatchObject({ status: 200, text: expect.stringContaining('"ok"') });
  expect(await get("/")).toMatchObject({ status: 200, text: expect.stringContaining("<html") });
  expect(await get("/metrics")).toMatchObject({ status: 200, text: expect.stringContaining("cairnlog_build_info") });
  expect(await get("/readyz")).toMatchObject({ status: 200, text: expect.stringContaining('"vkey"') });
  // Whatever address a client gives itself, it has one allowance.
  const [{ remaining: before }, { remaining: after }] = [await get("/api/v1/keys"), await get("/api/v1/keys")];
  expect(after).toBe(before! - 1);
});

/** The status of a POST, on a connection of its own. */
function posted(url: string, bytes: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { method: "POST", agent: false, rejectUnauthorized: false } as const;
    const headers = { "content-type": "application/json", "content-length": bytes };
    const sent = request(url, { ...options, headers }, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode));
    });
    sent.on("error", reject).end(Buffer.alloc(bytes, " "));
  });
}

/** Milliseconds from an answer until the service closes its connection. */
async function untilClosed(url: string): Promise<number> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const closed = once(socket, "close");
  socket.write("GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  await once(socket, "data");
  const answered = performance.now();
  socket.resume();
  await closed;
  return performance.now() - answered;
}

test.each(["uws", "node"])(
  "behind nginx, over %s: 500 requests at the moment in which the service closes idle connections are answered by it",
  async (transport) => {
    const service = await startTestService({ SERVICE_TRANSPORT: transport, SERVICE_FRONT_ENDS: "0" });
    // Each keeps 50 connections.
    const proxies = await Promise.all(Array.from({ length: 10 }, () => behindNginx(service)));
    for (const { get } of proxies) await get("/api/v1/health");
    const measured = await untilClosed(service.url);
    // The timer of uWebSockets.js ticks every four seconds, and has just done so: three ticks are twelve seconds.
    const closesAfter = transport === "uws" ? 12_000 : measured;
    const ticked = performance.now();
    const statuses = new Map<number | undefined, number>();
    /** POSTs, which nginx must not send again. */
    const fifty = (url: string) => Promise.all(Array.from({ length: 50 }, () => posted(`${url}/api/v1/verify`, 20)));
    const started: number[] = [];
    for (const { url } of proxies) {
      started.push(performance.now());
      await fifty(url);
    }
    await Promise.all(
      proxies.map(async ({ url }, k) => {
        const from = transport === "uws" ? ticked : started[k]!;
        await sleep(from + closesAfter + 10 * (k - 7) - performance.now());
        for (const status of await fifty(url)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }),
    );
    expect([...statuses]).toEqual([[400, 500]]);
  },
  90_000,
);

test("behind nginx: a batch of the largest size comes to the service, and what is larger is refused", async () => {
  const { url, get } = await behindNginx(await startTestService());
  await get("/api/v1/health");
  expect(await posted(`${url}/api/v1/attestations/batch`, 3 * 2 ** 20)).toBe(400);
  expect(await posted(`${url}/api/v1/attestations/batch`, 3 * 2 ** 20 + 1)).toBe(413);
});

test.each(["nginx", "Caddy"])(
  "%s serves a log that was published, with the headers of the specification",
  async (name) => {
    const log = await LiveLog.start(300);
    const target = temporaryFolder();
    expect((await cairnlog(["publish", log.url, target, "--entries"])).code).toBe(0);
    // nginx runs its workers as another user, if it is root's.
    chmodSync(target, 0o755);
    const [start, file] = name === "nginx" ? [startNginx, "publish/nginx.conf"] : [startCaddy, "publish/Caddyfile"];
    const { url, get } = await start(sample(file).replaceAll("/srv/tlog", target));
    expect(await get("/tlog/tile/0/000")).toMatchObject({ status: 200 });
    const headersOf = async (path: string) => {
      const { stdout } = await run("curl", ["-skD-", "-o", "/dev/null", `${url}/tlog/${path}`]);
      const headers = new Map(
        [...stdout.matchAll(/^([\w-]+): (.*?)\r?$/gm)].map(([, key, value]) => [key!.toLowerCase(), value]),
      );
      return [
        / (\d+)/.exec(stdout)![1],
        ...["content-type", "cache-control"].map((key) => headers.get(key)?.toLowerCase()),
      ];
    };
    for (const path of ["tile/0/000", "tile/0/001.p/44", "tile/entries/000"])
      expect(await headersOf(path)).toEqual(["200", "application/octet-stream", "public, max-age=31536000, immutable"]);
    for (const path of ["checkpoint", "vkey"])
      expect(await headersOf(path)).toEqual(["200", "text/plain; charset=utf-8", "no-cache"]);
    expect(await headersOf("")).toEqual(["200", "text/html; charset=utf-8", "no-cache"]);
    expect((await get("/tlog/")).text).toContain("<!doctype html>");
    for (const [ending, type] of [
      ["js", "text/javascript"],
      ["css", "text/css"],
      ["svg", "image/svg+xml"],
    ] as const) {
      const part = readdirSync(join(target, "explorer")).find((name) => name.endsWith(`.${ending}`));
      const [status, shown, keep] = await headersOf(`explorer/${part}`);
      expect([status, shown, keep]).toEqual([
        "200",
        expect.stringContaining(type),
        "public, max-age=31536000, immutable",
      ]);
    }
    for (const path of ["tile/0/002", "tile/0/001.p/45", "nothing", ".drafts/", "explorer/", "explorer/nothing.js"]) {
      const [status, , keep] = await headersOf(path);
      expect([path, status, keep]).toEqual([path, expect.stringMatching(/40[34]/), undefined]);
    }
  },
);

test("behind Caddy: the page, the API, and nothing that is the operator's", async () => {
  const service = await startTestService(LIMITED);
  const { get } = await startCaddy(sample("Caddyfile").replace("127.0.0.1:8080", service.url.slice("http://".length)));
  expect(await get("/api/v1/health")).toMatchObject({ status: 200, text: expect.stringContaining('"ok"') });
  expect(await get("/")).toMatchObject({ status: 200, text: expect.stringContaining("<html") });
  for (const path of ["/metrics", "/readyz"]) expect(await get(path)).toMatchObject({ status: 404, text: "" });
  const [{ remaining: before }, { remaining: after }] = [await get("/api/v1/keys"), await get("/api/v1/keys")];
  expect(after).toBe(before! - 1);
});
