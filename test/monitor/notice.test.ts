/** Delivery of alarms to the configured address. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import type { Alarm } from "#cairnlog/server/monitor/alarm.js";
import { post } from "#cairnlog/server/monitor/notice.js";
import { waitInstead } from "../timers.js";
import { receiver } from "./receiver.js";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close().closeAllConnections();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const alarm: Alarm = {
  alarm: "stalled",
  detail: "No tree head was seen.",
  server: "http://log.example",
  observed_at: "2026-01-02T03:04:05.678Z",
  head: null,
};

/** Posts the alarm without real waiting. Returns the result and the time that it would have waited. */
async function posted(url: string) {
  const pauses: number[] = [];
  const refusal = await post(url, alarm, async (ms) => void pauses.push(ms));
  return { refusal, pauses };
}

test("as JSON by POST, only once if it is accepted", async () => {
  const requests: IncomingMessage[] = [];
  const url = await serve((request, response) => {
    requests.push(request);
    response.writeHead(204).end();
  });
  expect(await posted(url)).toEqual({ refusal: null, pauses: [] });
  const [request] = requests;
  expect(requests).toHaveLength(1);
  expect([request!.method, request!.headers["content-type"]]).toEqual(["POST", "application/json"]);
  const hook = await receiver();
  await posted(hook.url);
  expect(hook.received).toEqual([alarm]);
});

test.each([
  [0, null, []],
  [1, null, [1_000]],
  [3, null, [1_000, 2_000, 4_000]],
  [4, "it answered 500", [1_000, 2_000, 4_000]],
])("refused %d times: %s, with growing pauses", async (failures, refusal, pauses) => {
  const hook = await receiver(failures);
  expect(await posted(hook.url)).toEqual({ refusal, pauses });
  expect(hook.asked()).toBe(Math.min(failures + 1, 4));
});

test.each([200, 201, 299])("%d is accepted as an answer", async (status) => {
  const url = await serve((_, response) => void response.writeHead(status).end("thanks"));
  expect((await posted(url)).refusal).toBeNull();
});

test.each([300, 404, 503])("%d is not", async (status) => {
  const url = await serve((_, response) => void response.writeHead(status).end());
  expect((await posted(url)).refusal).toBe(`it answered ${status}`);
});

test("it contacts no other address, for any answer", async () => {
  const hook = await receiver();
  const url = await serve((_, response) => void response.writeHead(307, { location: hook.url }).end());
  expect((await posted(url)).refusal).toBe("nothing answers there");
  expect(hook.asked()).toBe(0);
});

test("nothing answers there", async () => {
  const url = await serve(() => {});
  await new Promise((resolve) => servers.pop()!.close(resolve));
  expect(await posted(url)).toEqual({ refusal: "nothing answers there", pauses: [1_000, 2_000, 4_000] });
});

test("it does not answer: each try has a limit of ten seconds", async () => {
  const limits: number[] = [];
  waitInstead((ms) => (ms === 10_000 ? limits.push(ms) && 20 : ms));
  const url = await serve(() => {});
  expect(await posted(url)).toEqual({ refusal: "it did not answer", pauses: [1_000, 2_000, 4_000] });
  expect(limits).toEqual(Array(4).fill(10_000));
});
