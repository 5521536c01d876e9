/** Requests through the server, with routes that answer at once, later, in parts, or fail. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { pino } from "pino";
import Type from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { HttpServer } from "#cairnlog/server/http/app.js";
import { Measures } from "#cairnlog/server/http/observing/measures.js";
import { Metrics } from "#cairnlog/server/http/observing/metrics.js";
import { NO_PAGES } from "#cairnlog/server/http/origins.js";
import { type Route, route } from "#cairnlog/server/http/route/route.js";
import { chooseTransport } from "#cairnlog/server/http/servers/choose.js";
import { Answer, headerGroup, json, jsonList, StreamedAnswer } from "#cairnlog/server/http/transport/answer.js";
import { UNKNOWN } from "#cairnlog/server/http/transport/client-address.js";
import { jsonValues, texts } from "../../texts.js";
import { WANTED_TRANSPORT } from "../harness.js";
import { until } from "../sockets.js";

const LARGE = 32 * 2 ** 20;
/** The same length, with no two equal groups of eight bytes. */
const NUMBERS = Buffer.alloc(LARGE / 2);
for (let i = 0; i < NUMBERS.length / 4; i++) NUMBERS.writeUInt32BE(i, 4 * i);
const LARGE_TEXT = NUMBERS.toString("hex");
const LARGE_BYTES = Buffer.from(LARGE_TEXT);
const OTHER_TEXT = Buffer.from(LARGE_TEXT).reverse().toString();
/** Values of fast-check: any JSON, with letters of all scripts. */
let value: unknown = null;

/** These errors concern single requests, load, or the client. */
const REFUSED = ["signer-unavailable", "corrupt-log", "overloaded", "closed", "not-found"] as const;

function* breaking(): Generator<Buffer> {
  yield Buffer.from("a beginning");
  throw new Error("no more of it can be read");
}

const read = (path: string, handle: Route["handle"]): Route =>
  route({ method: "GET", path, summary: "", answer: Type.Unknown(), limit: "general", handle });
/** Events in this process, in order. */
const events: string[] = [];

/** Takes longer than the time for bodies in one turn of the event loop. */
function slow(): string {
  if (!events.length) setImmediate(() => events.push("turn"));
  events.push("slow");
  const until = performance.now() + 20;
  while (performance.now() < until);
  return "done";
}

const LIST = Array.from({ length: 40 }, (_, i) => JSON.stringify({ i, text: "x".repeat(300_000) }));
let itemsRead = 0;
function readItem(i: number): Buffer {
  itemsRead++;
  return Buffer.from(LIST[i]!);
}

const asked = { method: "POST", summary: "", body: Type.Object({}), answer: Type.Unknown(), limit: "general" } as const;
const routes: Route[] = [
  read("/value", () => value),
  read("/later", async () => value),
  read("/large", () => new Answer(LARGE_BYTES)),
  read("/large-text", () => new Answer(LARGE_TEXT)),
  read("/other-text", () => new Answer(OTHER_TEXT)),
  read("/breaking", () => new StreamedAnswer(breaking(), {})),
  read("/breaking-later", async () => new StreamedAnswer(breaking(), {})),
  read("/throwing", () => {
    throw new Error("a fault of ours");
  }),
  ...REFUSED.map((code) =>
    read(`/${code}`, () => {
      throw new CairnlogError(code, "It cannot be.");
    }),
  ),
  route({ ...asked, path: "/address", asksAddress: true, handle: ({ request }) => request.address }),
  route({ ...asked, path: "/no-address", handle: ({ request }) => request.address }),
  route({ ...asked, path: "/body", handle: ({ body }) => body }),
  route({ ...asked, path: "/slow", handle: slow }),
  read("/list", () => jsonList("items", LIST.length, readItem, { total: LIST.length })),
];

const anchors = { totals: { pending: 0, confirmed: 0 }, oldestPending: () => null };
const writing = { batches: 0, queued: 0, lastFailure: null, observeBatches: () => {} };
const log = { size: 0, treeHead: () => null, anchors, ...writing };
const metrics = new Metrics(log as never, log as never);
const measures = new Measures();
const { transport } = await chooseTransport(WANTED_TRANSPORT);
const options = {
  transport,
  routes,
  pages: NO_PAGES,
  limits: null,
  trustedProxies: [],
  bounds: { maxBodyBytes: 2 ** 20, maxPendingBytes: 2 ** 26, requestTimeoutSeconds: 30, maxConnections: 100 },
  tls: null,
  measures,
  logger: pino({ level: "silent" }),
};
const server = new HttpServer(options);
metrics.watchFronts(async () => [{ thread: "writer", figures: measures.figures(server), lateness: null }]);
let port = 0;
let url = "";
beforeAll(async () => {
  port = await server.listen("127.0.0.1", 0);
  url = `http://127.0.0.1:${port}`;
});
afterAll(async () => {
  await server.close();
  metrics.close();
});

test("before anybody has asked, nothing is counted", () => {
  expect([server.connections, server.connectionsRefused, server.inFlight]).toEqual([0, 0, 0]);
  expect([server.uploads.arriving, server.uploads.pending.held, server.answers.waiting]).toEqual([0, 0, 0]);
});

const post = (path: string, body: string) => fetch(url + path, { method: "POST", body });

test.each(["/value", "/later"])("%s: the answer is the value's JSON, for all characters", async (path) => {
  await fc.assert(
    fc.asyncProperty(jsonValues(), texts(), async (any, text) => {
      value = [any, text];
      const reply = await fetch(url + path);
      expect(Buffer.from(await reply.arrayBuffer())).toEqual(Buffer.from(JSON.stringify(value)));
      expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
      expect(reply.headers.get("access-control-allow-origin")).toBe("*");
      expect(reply.headers.get("access-control-expose-headers")).toBe("*");
      const head = await fetch(url + path, { method: "HEAD" });
      expect(head.headers.get("content-length")).toBe(reply.headers.get("content-length"));
    }),
    { numRuns: 50 },
  );
});

async function connected(): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").setNoDelay();
  await once(socket, "connect");
  return socket;
}

test("bodies that came together are handled in several turns when that takes long", async () => {
  events.length = 0;
  const length = 12;
  const sockets = await Promise.all(Array.from({ length }, () => connected()));
  for (const socket of sockets) socket.write("POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{");
  await new Promise((resolve) => setTimeout(resolve, 50));
  const answers = sockets.map((socket) => once(socket, "data"));
  for (const socket of sockets) socket.write("}");
  await Promise.all(answers);
  for (const socket of sockets) socket.destroy();
  expect(events.filter((event) => event === "slow")).toHaveLength(length);
  expect(events.slice(0, 2)).toEqual(["slow", "turn"]);
});

test("a long list is read while it is sent, no further than its client reads", async () => {
  itemsRead = 0;
  const reply = await fetch(`${url}/list`);
  expect(await reply.text()).toBe(`{"items":[${LIST.join()}],"total":${LIST.length}}`);
  expect(itemsRead).toBe(LIST.length);
  itemsRead = 0;
  const deaf = await connected();
  deaf.pause();
  deaf.write("GET /list HTTP/1.1\r\nHost: x\r\n\r\n");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(itemsRead).toBeGreaterThan(0);
  expect(itemsRead).toBeLessThan(LIST.length);
  deaf.destroy();
  // A short list is made at once, so its length is known.
  const short = jsonList("items", 2, (i) => Buffer.from(`${i}`), { total: 2 });
  expect(short.body.toString()).toBe('{"items":[0,1],"total":2}');
  expect(jsonList("items", 0, readItem, { total: 0 }).body.toString()).toBe('{"items":[],"total":0}');
  expect(jsonList("items", 1, readItem, { total: 1 }).body.toString()).toBe(`{"items":[${LIST[0]}],"total":1}`);
  const inPieces = jsonList("items", 3, readItem, { total: 3 });
  expect(inPieces.body.toString()).toBe(`{"items":[${LIST.slice(0, 3).join()}],"total":3}`);
});

test("text that needs no other letters is sent from no memory of its own", () => {
  expect(json({ a: "b" }).body).toBe('{"a":"b"}');
  expect(json({ a: "é" }).body).toEqual(Buffer.from('{"a":"é"}'));
});

test("headers written by one call are headers of their own", () => {
  expect(headerGroup(["a", "1"])).toEqual(["a", "1"]);
  expect(headerGroup(["a", "1", "b", "2", "c", "3"])).toEqual(["a", "1\r\nb: 2\r\nc: 3"]);
});

test.each(["/breaking", "/breaking-later"])(
  "%s: the connection ends, nothing is left, others are answered",
  async (path) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await new Promise((resolve) =>
      socket
        .on("close", resolve)
        .on("error", () => {})
        .resume(),
    );
    expect(server.inFlight).toBe(0);
    expect((await fetch(`${url}/value`)).status).toBe(200);
  },
);

test("a fault of a handler is a 500, and the connection goes on", async () => {
  for (let i = 0; i < 3; i++) expect((await fetch(`${url}/throwing`)).status).toBe(500);
  expect(server.inFlight).toBe(0);
});

test.each(["/large", "/large-text"])(
  "%s: a client that disconnects in the middle of an answer leaves nothing behind",
  async (path) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => server.inFlight === 1);
    expect(server.answers.held).toBe(LARGE);
    socket.destroy();
    await until(() => server.inFlight === 0);
    expect([server.answers.held, server.answers.waiting]).toEqual([0, 0]);
  },
);

test("what a client reads slowly is counted, even if the answer is the last of its connection", async () => {
  const socket = await connected();
  socket.pause();
  socket.write("GET /large HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  await until(() => server.answers.held === LARGE);
  expect(server.inFlight).toBe(1);
  socket.destroy();
  await until(() => server.inFlight === 0);
  expect([server.answers.held, server.answers.waiting]).toEqual([0, 0]);
});

test.each(["/large", "/large-text"])(
  "%s: all that the socket does not take at once arrives, in order",
  async (path) => {
    const received = Buffer.from(await (await fetch(url + path)).arrayBuffer());
    expect(received.equals(LARGE_BYTES)).toBe(true);
    await until(() => server.inFlight === 0);
    expect([server.answers.held, server.answers.waiting]).toEqual([0, 0]);
  },
);

test("two clients that read slowly at once get each their own answer", async () => {
  const texts = [LARGE_TEXT, OTHER_TEXT];
  const received = ["/large-text", "/other-text"].map(async (path) => {
    const socket = await connected();
    socket.pause();
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await until(() => server.answers.held === 2 * LARGE);
    const parts: Buffer[] = [];
    let left: number | null = null;
    for await (const part of socket as AsyncIterable<Buffer>) {
      parts.push(part);
      // The head comes whole in the first part.
      left = (left ?? LARGE + part.indexOf("\r\n\r\n") + 4) - part.length;
      if (left === 0) break;
    }
    return Buffer.concat(parts).toString("latin1").slice(-LARGE);
  });
  for (const [i, text] of (await Promise.all(received)).entries()) expect(text === texts[i]).toBe(true);
});

test("the address is looked up only for routes that need it", async () => {
  expect(await (await post("/address", "{}")).json()).toBe("127.0.0.1");
  expect(await (await post("/no-address", "{}")).json()).toBe(UNKNOWN);
});

test("a body is the same in however many parts it comes, and none of it is held afterwards", async () => {
  const body = JSON.stringify({ text: "Grüße, 你好 👋", list: Array.from({ length: 500 }, (_, i) => i) });
  const bytes = Buffer.from(body);
  for (const parts of [1, 2, 7]) {
    const socket = connect(port, "127.0.0.1").setNoDelay();
    let received = "";
    socket.on("data", (data) => (received += data.toString("utf8")));
    socket.write(`POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    for (let i = 0; i < parts; i++) {
      socket.write(bytes.subarray((bytes.length * i) / parts, (bytes.length * (i + 1)) / parts));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await until(() => received.endsWith(body));
    socket.destroy();
  }
  expect([server.uploads.pending.held, server.uploads.arriving, server.inFlight]).toEqual([0, 0, 0]);
});

/** The log lines of a server from `level` on during requests. */
async function logged(level: string, ask: (url: string) => Promise<unknown>): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const sink = { write: (line: string) => lines.push(JSON.parse(line)) };
  const speaking = new HttpServer({ ...options, logger: pino({ level }, sink) });
  await ask(`http://127.0.0.1:${await speaking.listen("127.0.0.1", 0)}`);
  await speaking.close();
  return lines;
}

test("faults are logged with the id that the client got, and refusals that come by the thousand are not", async () => {
  let id: string | null = null;
  const lines = await logged("info", async (url) => {
    id = (await fetch(`${url}/throwing`)).headers.get("x-request-id");
    for (const code of REFUSED) await fetch(`${url}/${code}`, { headers: { "x-request-id": code } });
    await fetch(`${url}/nothing`);
    await expect(fetch(`${url}/breaking`).then((reply) => reply.text())).rejects.toThrow(/terminated|fetch failed/);
  });
  expect(lines).toMatchObject([
    { level: 50, msg: "request failed", id, method: "GET", route: "/throwing", status: 500, err: { type: "Error" } },
    { level: 50, msg: "request failed", id: "signer-unavailable", status: 503, err: { code: "signer-unavailable" } },
    { level: 50, msg: "request failed", id: "corrupt-log", status: 500, err: { code: "corrupt-log" } },
    {
      level: 50,
      msg: "request failed",
      route: "/breaking",
      status: 500,
      err: { message: "no more of it can be read" },
    },
  ]);
});

test("at the level debug every answer is logged, with the client's address", async () => {
  const lines = await logged("debug", async (url) => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    await fetch(`${url}/value`, { headers: { "x-request-id": "mine", traceparent } });
    await fetch(`${url}/nothing`, { method: "POST" });
  });
  const line = { level: 20, msg: "answered", address: "127.0.0.1", milliseconds: expect.any(Number) };
  expect(lines).toMatchObject([
    { ...line, id: "mine", trace_id: "4bf92f3577b34da6a3ce929d0e0e4736", route: "/value", status: 200 },
    { ...line, method: "POST", route: "(unknown)", status: 404 },
  ]);
});

test("an answer is counted by its status, with the seconds that it took", async () => {
  const seconds = "cairnlog_http_request_duration_seconds";
  const sample = async (name: string) => {
    const line = (await metrics.text()).split("\n").find((text) => text.startsWith(`${name} `));
    return Number(line?.split(" ").at(-1) ?? 0);
  };
  const count = () => sample('cairnlog_http_requests_total{method="GET",route="/counted",status="200"}');
  const sum = () => sample(`${seconds}_sum{method="GET",route="/counted"}`);
  const counting = new HttpServer({ ...options, routes: [read("/counted", () => 1)] });
  const at = await counting.listen("127.0.0.1", 0);
  const started = performance.now();
  for (let i = 1; i <= 3; i++) {
    await (await fetch(`http://127.0.0.1:${at}/counted`)).text();
    expect(await count()).toBe(i);
  }
  await fetch(`http://127.0.0.1:${at}/counted`, { method: "PATCH" });
  // No request took longer than the whole measurement.
  const elapsed = (performance.now() - started) / 1000;
  expect(await sum()).toBeGreaterThan(0);
  expect(await sum()).toBeLessThan(elapsed);
  expect(await sample('cairnlog_http_requests_total{method="other",route="/counted",status="405"}')).toBe(1);
  await counting.close();
});
