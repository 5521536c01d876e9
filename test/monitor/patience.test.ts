/** Limits and outages are waited out, and nobody is waited for for ever. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { patientFetch } from "#cairnlog/server/monitor/patience.js";
import { startTestService } from "../server/harness.js";
import { hastyFetch, newMonitor } from "./monitors.js";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a limit is waited out as long as the service says, again and again", async () => {
  const said: string[] = [];
  let asked = 0;
  const url = await serve((_, response) => {
    if (asked++ < 6) response.writeHead(429, { "retry-after": asked === 1 ? "1" : "0" });
    response.end("x");
  });
  const started = performance.now();
  expect((await hastyFetch(said)(url)).status).toBe(429);
  expect(performance.now() - started).toBeGreaterThanOrEqual(990);
  expect(said[0]).toBe("The service's limit is reached; trying again in 1 s.");
  expect((await hastyFetch(said)(url)).status).toBe(200);
});

test("outages: five tries, then what came last", async () => {
  const said: string[] = [];
  let asked = 0;
  const url = await serve((_, response) => {
    asked++;
    response.writeHead(503).end("{}");
  });
  const response = await hastyFetch(said)(url);
  expect([response.status, await response.text(), asked]).toEqual([503, "{}", 5]);
  expect(said).toHaveLength(4);
  await new Promise((resolve) => servers.pop()!.close(resolve).closeAllConnections());
  await expect(hastyFetch(said)(url)).rejects.toThrow("fetch failed");
  expect(said.at(-1)).toBe("The service does not answer; trying again in 1 s.");
});

test("an answer other than of an outage is not asked for twice", async () => {
  for (const status of [200, 304, 404, 422, 500]) {
    let asked = 0;
    const url = await serve((_, response) => {
      asked++;
      response.writeHead(status).end();
    });
    expect((await hastyFetch()(url)).status).toBe(status);
    expect(asked).toBe(1);
  }
});

test.each([
  [1, 1],
  [999, 1],
  [1_000, 1],
  [1_001, 2],
  [4_400, 5],
])("a pause of %d ms is announced as %d s: rounded up", async (firstPauseMs, seconds) => {
  const url = await serve((_, response) => void response.writeHead(503).end());
  const interrupted = new AbortController();
  const said: string[] = [];
  const say = (sentence: string) => {
    said.push(sentence);
    interrupted.abort();
  };
  await expect(patientFetch({ signal: interrupted.signal, say, firstPauseMs })(url)).rejects.toMatchObject({
    name: "AbortError",
  });
  expect(said).toEqual([`The service answers 503; trying again in ${seconds} s.`]);
});

test("an interruption ends a wait at once", async () => {
  const url = await serve((_, response) => void response.writeHead(429, { "retry-after": "600" }).end());
  const interrupted = new AbortController();
  const patient = patientFetch({ signal: interrupted.signal, say: () => interrupted.abort() });
  await expect(patient(url)).rejects.toMatchObject({ name: "AbortError" });
});

test("a log is followed through its own rate limits, and the default ones are waited out politely", async () => {
  const service = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "12" });
  const notes = Array.from({ length: 450 }, (_, n) => ({ event_type: "note", payload: { n } }));
  await service.server.registry.log.append(notes);
  const said: string[] = [];
  const interrupted = new AbortController();
  const say = (sentence: string) => {
    said.push(sentence);
    interrupted.abort();
  };
  const { monitor } = newMonitor(service.url, { fetch: patientFetch({ signal: interrupted.signal, say }) });
  // Twelve requests are enough for the first round; the second one begins to wait.
  await monitor.round();
  expect(monitor.size).toBe(450);
  await expect(monitor.round()).rejects.toMatchObject({ code: "no-answer" });
  expect(said).toEqual([expect.stringMatching(/^The service's limit is reached; trying again in \d+ s\.$/)]);
  await monitor.close();
});
