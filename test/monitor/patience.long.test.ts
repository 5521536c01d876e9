/** A monitor waits for limits and outages to end, but not for ever. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, expect, test } from "vitest";
import { OversizedAnswer } from "#cairnlog/server/client/base/body.js";
import { persistentFetch } from "#cairnlog/server/outgoing/traced.js";
import { anyEvent } from "../anyevent.js";
import { startTestService } from "../server/harness.js";
import { hastyFetch, newMonitor } from "./monitors.js";

const MAX_ANSWER_BYTES = 256 * (2 + 0xffff);

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

/** A service that gives these answers in turn and then repeats the last one, and a patient client of it. */
async function patience(...answers: [status: number, headers?: Record<string, string>, body?: string][]) {
  let asked = 0;
  const url = await serve((_, response) => {
    const [status, headers = {}, body = ""] = answers[Math.min(asked++, answers.length - 1)]!;
    response.writeHead(status, headers).end(body);
  });
  const said: string[] = [];
  const pauses: number[] = [];
  const patient = persistentFetch({
    signal: new AbortController().signal,
    say: (sentence) => said.push(sentence),
    sleep: async (ms) => void pauses.push(ms),
  });
  return { url, said, pauses, patient, asked: () => asked };
}

test("a limit is waited out as long as the service says, again and again", async () => {
  const limit = [429, { "retry-after": "40" }] as [number, Record<string, string>];
  const { url, said, pauses, patient, asked } = await patience(limit, limit, limit, limit, limit, limit, limit, [200]);
  expect((await patient(url)).status).toBe(200);
  expect(pauses).toEqual(Array(7).fill(40_000));
  expect(said).toEqual(Array(7).fill("The service's limit is reached; trying again in 40 s."));
  expect(asked()).toBe(8);
});

test("each request has patience of its own, whatever those before it have met", async () => {
  const { url, patient, asked } = await patience([503], [503], [503], [503], [200], [503], [503], [503], [503], [200]);
  for (const requests of [5, 10]) {
    expect((await patient(url)).status).toBe(200);
    expect(asked()).toBe(requests);
  }
});

test.each([
  ["60", 15],
  ["61", 14],
  ["900", 1],
  ["901", 0],
  ["999999999", 0],
])("a limit of %s s each time is waited out %d times: quarter of an hour in all", async (seconds, times) => {
  const { url, pauses, patient } = await patience([429, { "retry-after": seconds }, "enough"]);
  const response = await patient(url);
  expect([response.status, await response.text()]).toEqual([429, "enough"]);
  expect(pauses).toEqual(Array(times).fill(Number(seconds) * 1000));
});

test("a service that names the end of its outage is given that time, five times", async () => {
  const { url, said, pauses, patient } = await patience([503, { "retry-after": "7" }]);
  expect((await patient(url)).status).toBe(503);
  expect(pauses).toEqual([7_000, 7_000, 7_000, 7_000]);
  expect(said[0]).toBe("The service answers 503; trying again in 7 s.");
});

test.each([
  [429, {}],
  [429, { "retry-after": "0" }],
  [429, { "retry-after": "Wed, 21 Oct 2099 07:28:00 GMT" }],
  [429, { "retry-after": "-5" }],
  [429, { "retry-after": "5 s" }],
  [429, { "retry-after": "1234567890" }],
  [502, {}],
  [503, {}],
  [504, {}],
])("%d %j: five tries with growing pauses, then what came last", async (status, headers) => {
  const { url, said, pauses, patient, asked } = await patience([status, headers, "{}"]);
  const response = await patient(url);
  expect([response.status, await response.text(), asked()]).toEqual([status, "{}", 5]);
  expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000]);
  const reason = status === 429 ? "The service's limit is reached" : `The service answers ${status}`;
  expect(said).toEqual([1, 2, 4, 8].map((seconds) => `${reason}; trying again in ${seconds} s.`));
});

test("no answer at all: five tries, then the reason", async () => {
  const { url, said, pauses, patient } = await patience([200]);
  await new Promise((resolve) => servers.pop()!.close(resolve).closeAllConnections());
  await expect(patient(url)).rejects.toThrow("fetch failed");
  expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000]);
  expect(said[0]).toBe("The service does not answer; trying again in 1 s.");
});

test("an outage that ends is forgotten", async () => {
  const { url, pauses, patient } = await patience([502], [503], [504], [503], [200, { "x-own": "a" }, "there"]);
  const response = await patient(url);
  expect([response.status, await response.text(), response.headers.get("x-own")]).toEqual([200, "there", "a"]);
  expect(pauses).toHaveLength(4);
  expect((await patient(url)).status).toBe(200);
  expect(pauses).toHaveLength(4);
});

test.each([200, 204, 304, 404, 422, 428, 430, 500, 501, 505])("%d is not asked for twice", async (status) => {
  const { url, patient, asked } = await patience([status]);
  const response = await patient(url);
  expect([response.status, await response.text(), asked()]).toEqual([status, "", 1]);
});

test("the question is passed on", async () => {
  let seen = "";
  const url = await serve((request, response) => {
    seen = `${request.method} ${request.headers["x-own"]}`;
    response.end();
  });
  await hastyFetch()(url, { method: "POST", headers: { "x-own": "a" }, body: "b" });
  expect(seen).toBe("POST a");
});

test("an answer as long as the largest entry bundle is accepted; one that is a byte longer is not requested again", async () => {
  const long = (bytes: number) => patience([200, {}, "x".repeat(bytes)]);
  const fitting = await long(MAX_ANSWER_BYTES);
  expect((await (await fitting.patient(fitting.url)).arrayBuffer()).byteLength).toBe(16_777_472);
  const longer = await long(MAX_ANSWER_BYTES + 1);
  await expect(longer.patient(longer.url)).rejects.toBeInstanceOf(OversizedAnswer);
  expect(longer.asked()).toBe(1);
});

test("a missing answer is not an answer", async () => {
  const url = await serve(() => {});
  const said: string[] = [];
  await expect(hastyFetch(said, 50)(url)).rejects.toMatchObject({ name: "TimeoutError" });
  expect(said).toHaveLength(4);
});

test("a missing answer is none either if memory is collected meanwhile", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const url = await serve(() => {});
  const collecting = setInterval(collect, 10);
  await expect(hastyFetch([], 100)(url)).rejects.toMatchObject({ name: "TimeoutError" });
  clearInterval(collecting);
});

test("an interruption ends a request at once", async () => {
  const interrupted = new AbortController();
  let asked = 0;
  const url = await serve(() => {
    asked++;
    interrupted.abort(new Error("enough"));
  });
  const said: string[] = [];
  const patient = persistentFetch({ signal: interrupted.signal, say: (sentence) => said.push(sentence) });
  await expect(patient(url)).rejects.toThrow("enough");
  expect([asked, said]).toEqual([1, []]);
});

test("an interruption ends a wait at once", async () => {
  const url = await serve((_, response) => void response.writeHead(429, { "retry-after": "600" }).end());
  const interrupted = new AbortController();
  const patient = persistentFetch({ signal: interrupted.signal, say: () => interrupted.abort() });
  await expect(patient(url)).rejects.toMatchObject({ name: "AbortError" });
});

test("a log is followed through its own rate limits, and the default ones are waited out politely", async () => {
  const service = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "12" });
  const notes = Array.from({ length: 450 }, (_, n) => anyEvent({ n }));
  await service.server.registry.log.append(notes);
  const said: string[] = [];
  const interrupted = new AbortController();
  const say = (sentence: string) => {
    said.push(sentence);
    interrupted.abort();
  };
  const { monitor } = newMonitor(service.url, { fetch: persistentFetch({ signal: interrupted.signal, say }) });
  // Twelve requests are enough for the first round; the second one begins to wait.
  await monitor.round();
  expect(monitor.size).toBe(450);
  await expect(monitor.round()).rejects.toMatchObject({ code: "no-answer" });
  expect(said).toEqual([expect.stringMatching(/^The service's limit is reached; trying again in \d+ s\.$/)]);
  await monitor.close();
});
