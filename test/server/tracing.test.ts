/** Spans, as the SDK that a program brings gets them; and what a program that brings none shows of traces. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SpanKind } from "@opentelemetry/api";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { post } from "#cairnlog/server/monitor/notice.js";
import { persistentFetch } from "#cairnlog/server/outgoing/traced.js";
import { startCalendar } from "../anchoring/calendar.js";
import { startControlled } from "./controlled.js";
import { startTestService, type TestService } from "./harness.js";
import { bearerOf } from "./proofs.js";
import { recordSpans } from "./recordedspans.js";
import { newSigner, registration } from "./signers.js";

/** A step of a client, in a trace of its own. */
const STEP = "00f067aa0ba902b7";
const client = () => {
  const trace = randomBytes(16).toString("hex");
  return { trace, sent: { traceparent: `00-${trace}-${STEP}-01` } };
};

/** What a calendar gets because the operator asks for an anchor. */
async function askedCalendar(headers: Record<string, string>) {
  const calendar = await startCalendar();
  const { service, operatorFingerprint, operatorSign } = await startControlled("ed25519", {
    calendars: [calendar.url],
  });
  await service.post("/keys/register", registration(newSigner()));
  const sign = (message: string | Uint8Array) => operatorSign(Buffer.from(message)).toString("base64");
  const operator = await bearerOf(service, { fingerprint: operatorFingerprint, sign });
  expect((await service.post("/log/anchor", {}, { ...operator, ...headers })).status).toBe(200);
  return calendar.requests[0]!;
}

describe("with an SDK", () => {
  const recording = recordSpans();
  const { spans } = recording;
  const lines: { readonly route?: string; readonly trace_id?: string }[] = [];
  let service: TestService;
  beforeAll(async () => {
    const keep = (details: object | string) => void lines.push(typeof details === "string" ? {} : details);
    const logger = { fatal: keep, error: keep, warn: keep, info: keep, debug: keep };
    // In this thread, where the spans are recorded.
    service = await startTestService({ SERVICE_FRONT_ENDS: "0", LOG_LEVEL: "debug" }, { logger });
  });
  afterAll(() => recording.stop());

  const ofTrace = (trace: string) => spans.filter(({ traceId }) => traceId === trace);
  const named = (trace: string, name: string) => ofTrace(trace).filter((span) => span.name === name);

  test("request, command, batch, signature and commit are spans of the trace that the client names", async () => {
    const { trace, sent } = client();
    await service.post("/keys/register", registration(newSigner()), { ...sent, "x-request-id": "mine" });
    const [request] = named(trace, "POST /api/v1/keys/register");
    expect(request).toMatchObject({
      kind: SpanKind.SERVER,
      parentId: STEP,
      attributes: { "http.response.status_code": 200, "cairnlog.request_id": "mine" },
    });
    const [command] = named(trace, "key.register");
    expect(command).toMatchObject({ parentId: request!.spanId });
    const [batch] = named(trace, "batch");
    expect(batch).toMatchObject({ parentId: command!.spanId, attributes: { "cairnlog.entries": 1 } });
    for (const name of ["sign", "commit"]) expect(named(trace, name)).toMatchObject([{ parentId: batch!.spanId }]);
    await expect.poll(() => ofTrace(trace).every(({ ends }) => ends === 1)).toBe(true);
    expect(ofTrace(trace).filter(({ hasFailed }) => hasFailed)).toEqual([]);
  });

  test("the span of a batch is below one of its commands and names the others", async () => {
    const clients = Array.from({ length: 8 }, client);
    await Promise.all(clients.map(({ sent }) => service.post("/keys/register", registration(newSigner()), sent)));
    const commands = clients.flatMap(({ trace }) => named(trace, "key.register"));
    const batches = clients.flatMap(({ trace }) => named(trace, "batch"));
    expect(commands).toHaveLength(8);
    expect(batches.flatMap(({ parentId, links }) => [parentId, ...links]).sort()).toEqual(
      commands.map(({ spanId }) => spanId).sort(),
    );
  });

  test("what a client does not want to be recorded is not, and neither is the batch", async () => {
    const { trace } = client();
    await service.post("/keys/register", registration(newSigner()), { traceparent: `00-${trace}-${STEP}-00` });
    expect(ofTrace(trace)).toEqual([]);
  });

  test("a refusal is a failure of the command, and no error of the service", async () => {
    const { trace, sent } = client();
    const body = registration(newSigner());
    await service.post("/keys/register", body);
    expect((await service.post("/keys/register", body, sent)).status).toBe(409);
    const attributes = { "error.type": "already-exists" };
    expect(named(trace, "key.register")).toMatchObject([{ hasFailed: true, attributes, ends: 1 }]);
    expect(named(trace, "POST /api/v1/keys/register")).toMatchObject([
      { hasFailed: false, attributes: { "http.response.status_code": 409 } },
    ]);
    expect(named(trace, "batch")).toMatchObject([{ hasFailed: false, ends: 1 }]);
  });

  test("a request that the client breaks off has failed", async () => {
    const { trace, sent } = client();
    const head = `POST /api/v1/keys/register HTTP/1.1\r\nHost: localhost\r\ntraceparent: ${sent.traceparent}\r\n`;
    await service.raw(`${head}Content-Length: 9\r\n\r\n{`, 50);
    await expect
      .poll(() => ofTrace(trace))
      .toMatchObject([{ hasFailed: true, attributes: { "error.type": "aborted" }, ends: 1 }]);
  });

  test("unknown paths and methods have no names of their own, and queries are in no span", async () => {
    const { trace, sent } = client();
    await service.send("GET", "/secret-in-a-path?and=query", { headers: sent });
    await service.send("POST", "/livez?and=query", { headers: sent });
    expect(ofTrace(trace).map(({ name }) => name)).toEqual(["HTTP (unknown)", "HTTP /livez"]);
    expect(JSON.stringify(ofTrace(trace))).not.toMatch(/secret|query/);
  });

  test("log lines name the trace of the span, also where the client names none", async () => {
    await service.get("/log/head");
    const line = () => lines.find(({ route }) => route === "/api/v1/log/head");
    await expect.poll(line).toBeDefined();
    const { traceId, parentId } = spans.find(({ name }) => name === "GET /api/v1/log/head")!;
    expect(line()!.trace_id).toBe(traceId);
    expect(parentId).toBeUndefined();
  });

  test("a request to a calendar is a step of the one for the anchor, and names its own span", async () => {
    const { trace, sent } = client();
    const { traceparent } = await askedCalendar(sent);
    const [request] = named(trace, "POST /api/v1/log/anchor");
    const [asking] = named(trace, "POST");
    expect(asking).toMatchObject({
      kind: SpanKind.CLIENT,
      parentId: request!.spanId,
      attributes: { "server.address": "127.0.0.1", "http.response.status_code": 200 },
    });
    expect(traceparent).toBe(`00-${trace}-${asking!.spanId}-01`);
  });

  test("what a monitor asks, and its notices, are spans, which are named to whom they go", async () => {
    let tries = 0;
    const asked: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      asked.push(request.headers.traceparent as string | undefined);
      response.writeHead(tries++ ? 200 : 503).end();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { signal } = new AbortController();
    const before = spans.length;
    await persistentFetch({ signal, say: () => {}, sleep: async () => {} })(url, { headers: { accept: "text/plain" } });
    await post(url, { kind: "stalled", sentence: "" } as unknown as Parameters<typeof post>[1]);
    server.close();
    const [question, notice, ...others] = spans.slice(before);
    expect(others).toEqual([]);
    const attributes = { "server.address": "127.0.0.1", "http.response.status_code": 200 };
    expect(question).toMatchObject({ name: "GET", kind: SpanKind.CLIENT, attributes, ends: 1 });
    expect(notice).toMatchObject({ name: "POST", kind: SpanKind.CLIENT, attributes, ends: 1 });
    const named = [question!, question!, notice!].map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
    expect(asked).toEqual(named);
  });
});

test("without an SDK, requests to other servers have no traceparent", async () => {
  expect((await askedCalendar(client().sent)).traceparent).toBeUndefined();
});
