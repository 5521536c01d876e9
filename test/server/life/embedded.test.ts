/** A service inside of another program: settings as values, a logger of its own, an address of its own for metrics. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { type GivenSettings, type LogSink, startServer } from "#cairnlog/server/index.js";
import { completeSettings, readSettings } from "#cairnlog/server/settings/settings.js";
import { anyEvent } from "../../anyevent.js";
import { collectGarbage } from "../../held-memory.js";
import { keepUncaught } from "../../uncaught.js";
import { temporaryFolder, WANTED_TRANSPORT } from "../harness.js";

type Line = readonly [level: string, details: Readonly<Record<string, unknown>>, sentence: string];

/** A logger that keeps what it gets. */
function keeping(): { readonly lines: Line[]; readonly logger: LogSink } {
  const lines: Line[] = [];
  const write = (level: string) => (details: object | string, sentence?: string) =>
    void lines.push(typeof details === "string" ? [level, {}, details] : [level, { ...details }, sentence!]);
  const logger = {
    fatal: write("fatal"),
    error: write("error"),
    warn: write("warn"),
    info: write("info"),
    debug: write("debug"),
  };
  return { lines, logger };
}

const small = (): GivenSettings => ({
  port: 0,
  dataDir: temporaryFolder(),
  workers: 1,
  rateLimits: false,
  transport: WANTED_TRANSPORT,
});

test("values are settings, and the rest has its defaults; what the environment says is taken, too", () => {
  expect(completeSettings({ port: 1 })).toEqual({ ...readSettings({}), port: 1 });
  const read = readSettings({
    SERVICE_TRUSTED_PROXIES: "10.1.2.3, fe80::/10",
    SERVICE_OTS_CALENDARS: "https://a.example/",
  });
  expect(completeSettings(read)).toEqual(read);
  expect(read).toMatchObject({ trustedProxies: ["10.1.2.3/32", "fe80::/10"], otsCalendars: ["https://a.example"] });
  expect(completeSettings({ metricsAddress: { host: "::1", port: 9 } }).metricsAddress).toEqual({
    host: "::1",
    port: 9,
  });
});

test.each<[string, unknown, string]>([
  ["port", "8080", "port must be a whole number from 0 to 65535, not '8080'."],
  ["port", 1.5, "port must be a whole number from 0 to 65535, not 1.5."],
  ["dataDir", 7, "dataDir must be text, not 7."],
  ["rateLimits", "on", "rateLimits must be true or false, not 'on'."],
  ["trustedProxies", "10.0.0.0/8", "trustedProxies must be a list of texts, not '10.0.0.0/8'."],
  [
    "trustedProxies",
    ["ten"],
    "trustedProxies must be a comma-separated list of addresses or networks such as 10.0.0.0/8, not [ 'ten' ].",
  ],
  [
    "metricsAddress",
    { host: "a" },
    "metricsAddress must be null, or an object of a host and a port, not { host: 'a' }.",
  ],
  ["endorsementMinTrust", 2, "endorsementMinTrust must be a number from 0 to 1, not 2."],
  ["tlsKey", "key.pem", "tlsCertificate and tlsKey must be given together."],
  ["dataDr", "x", "dataDr is not a setting. Is dataDir meant?"],
  ["colour", "x", "colour is not a setting."],
])("%s: %j is refused", async (name, value, sentence) => {
  const refusal = await startServer({ [name]: value } as GivenSettings).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(CairnlogError);
  expect(refusal).toMatchObject({ code: "invalid-input", message: sentence });
});

test.each([
  ["127.0.0.1:9464", { host: "127.0.0.1", port: 9464 }],
  ["9464", { host: "127.0.0.1", port: 9464 }],
  ["[::1]:0", { host: "::1", port: 0 }],
  ["metrics.internal:80", { host: "metrics.internal", port: 80 }],
  ["", null],
])("SERVICE_METRICS_ADDRESS=%s", (text, address) => {
  expect(readSettings({ SERVICE_METRICS_ADDRESS: text }).metricsAddress).toEqual(address);
});

test.each([":9464", "::1:9464", "a:65536", "localhost", "a b:1", "http://a:1"])(
  "SERVICE_METRICS_ADDRESS=%s is refused",
  (text) => {
    expect(() => readSettings({ SERVICE_METRICS_ADDRESS: text })).toThrow(/^SERVICE_METRICS_ADDRESS must be host:port/);
  },
);

test("a program's logger gets the lines of every thread, up to its level, and those of the start and the end", async () => {
  const { lines, logger } = keeping();
  const server = await startServer({ ...small(), frontEnds: 1, logLevel: "debug" }, { logger });
  await (await fetch(`${server.url}/livez`)).text();
  while (!lines.some(([, , sentence]) => sentence === "answered")) await sleep(5);
  await server.close();
  await server.close();
  const sentences = lines.filter(([level]) => level !== "debug").map(([, , sentence]) => sentence);
  expect(sentences[0]).toBe("listening");
  expect(sentences.slice(-2)).toEqual(["stopping", "stopped"]);
  const [, details] = lines.find(([, , sentence]) => sentence === "answered")!;
  expect(details).toMatchObject({ method: "GET", route: "/livez", status: 200 });

  const quiet = keeping();
  await (await startServer({ ...small(), logLevel: "silent" }, { logger: quiet.logger })).close();
  expect(quiet.lines).toEqual([]);
});

test("metrics and readiness on an address of their own are not on the public one", async () => {
  const server = await startServer({ ...small(), logLevel: "silent", metricsAddress: { host: "127.0.0.1", port: 0 } });
  const status = async (url: string) => {
    const response = await fetch(url);
    await response.arrayBuffer();
    return response.status;
  };
  try {
    const { url, metricsUrl } = server;
    expect(new URL(metricsUrl!).port).not.toBe(new URL(url).port);
    for (const [path, here, there] of [
      ["/metrics", 404, 200],
      ["/readyz", 404, 200],
      ["/livez", 200, 200],
      ["/", 200, 404],
      ["/api/v1/log/head", 200, 404],
    ] as const)
      expect([path, await status(url + path), await status(metricsUrl + path)]).toEqual([path, here, there]);
    const text = await (await fetch(`${metricsUrl}/metrics`)).text();
    expect(text).toMatch(/^cairnlog_http_requests_total\{method="GET",route="\/livez",status="200"\} 1$/m);
    const { paths } = (await (await fetch(`${url}/api/v1/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(paths).filter((path) => !/^\/(?:api|tlog)\//.test(path))).toEqual([
      "/livez",
      "/leader",
      "/follower",
    ]);
  } finally {
    await server.close();
  }
  expect((await startedWithout()).metricsUrl).toBeNull();
});

async function startedWithout() {
  const server = await startServer({ ...small(), logLevel: "silent" });
  await server.close();
  return server;
}

test("a log that is behind what was shown of it is refused, as often as it is started", async () => {
  const given = { ...small(), dataDir: temporaryFolder(), logLevel: "silent" } as const;
  const service = await startServer(given);
  const { sth } = await service.registry.writer.append(anyEvent());
  await service.close();
  const file = join(given.dataDir, "published.json");
  const shown = JSON.stringify({ ...sth, tree_size: sth.tree_size + 1 });
  writeFileSync(file, shown);
  for (let starts = 0; starts < 2; starts++)
    await expect(startServer(given)).rejects.toMatchObject({ code: "corrupt-log" });
  expect(readFileSync(file, "utf8")).toBe(shown);
});

test.each([[null], [5], ["settings"], [undefined]])("settings that are %s are refused", async (given) => {
  const refused = { code: "invalid-input", message: "Settings are an object: { dataDir, port, … }." };
  await expect(startServer(given as never)).rejects.toMatchObject(refused);
});

test.each([[{}], [5], [{ ...keeping().logger, warn: "warn" }]])("a logger that is %o is refused", async (logger) => {
  const refused = { code: "invalid-input", message: "`logger` needs the functions fatal, error, warn, info, debug." };
  await expect(startServer(small(), { logger } as never)).rejects.toMatchObject(refused);
});

describe("functions that throw", () => {
  const uncaught = keepUncaught();
  const own = new Error("of the program");
  const fail = (): never => {
    throw own;
  };

  test("neither a logger nor an observer of the stop keeps a service from starting, writing and closing", async () => {
    const logger = { fatal: fail, error: fail, warn: fail, info: fail, debug: fail };
    const settings = small();
    const server = await startServer(settings, { logger });
    const { log_entry_id } = await server.registry.writer.append(anyEvent());
    expect((await fetch(`${server.url}/api/v1/log/${log_entry_id}`)).status).toBe(200);
    expect(await server.close(fail)).toEqual({ hanging: [], isSettled: true });

    const again = await startServer(settings, { logger: keeping().logger });
    expect(again.registry.log.size).toBe(log_entry_id);
    await again.close();
    await expect.poll(() => uncaught.length).toBeGreaterThan(3);
    expect(new Set(uncaught)).toEqual(new Set([own]));
  });
});

test("a program that starts and closes one service after the other holds none but perhaps the newest", async () => {
  const logs: WeakRef<object>[] = [];
  const use = async () => {
    const server = await startServer({ ...small(), frontEnds: 0 }, { logger: keeping().logger });
    await (await fetch(`${server.url}/api/v1/health`)).text();
    logs.push(new WeakRef(server.registry.log));
    await server.close();
  };
  for (let count = 0; count < 4; count++) await use();
  const isHeld = (log: WeakRef<object>) => log.deref() !== undefined;
  await expect
    .poll(() => {
      collectGarbage();
      return logs.filter(isHeld).length;
    })
    .toBeLessThan(2);
});
