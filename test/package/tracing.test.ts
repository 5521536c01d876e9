/** docs/deploy/tracing with OpenTelemetry's own SDK: a service as users run it, and a receiver of OTLP that the test starts. */
import { execFile } from "node:child_process";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import type { RunningServer } from "#cairnlog/server/index.js";
import { TestService } from "../server/harness.js";
import { bearerOf, registeredSigner } from "../server/proofs.js";
import { newManifest, submission } from "../server/signers.js";
import { scratchFolder, startService } from "../service.js";
import { type Receiver, startReceiver } from "../webhooks/receiver.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

const [TRACE, STEP] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}
interface Spans {
  readonly resource: { readonly attributes: readonly Attribute[] };
  readonly scopeSpans: readonly {
    readonly spans: readonly {
      readonly traceId: string;
      readonly spanId: string;
      readonly parentSpanId?: string;
      readonly name: string;
    }[];
  }[];
}

/** All spans that a receiver has got, each with the thread that sent it. */
function spansIn({ received }: Receiver) {
  const bodies = received.map(({ path, body }) => {
    expect(path).toBe("/v1/traces");
    return JSON.parse(body.toString()) as { readonly resourceSpans: readonly Spans[] };
  });
  return bodies
    .flatMap(({ resourceSpans }) => resourceSpans)
    .flatMap(({ resource, scopeSpans }) => {
      const value = (name: string) => resource.attributes.find(({ key }) => key === name)?.value;
      expect(value("service.name")).toEqual({ stringValue: "cairnlog" });
      return scopeSpans.flatMap(({ spans }) =>
        spans.map((span) => ({ ...span, thread: value("thread.id")!.intValue })),
      );
    });
}

test("one trace of a write goes through front end and writer; a delivery names a span of the thread that sends it", async () => {
  const sample = join(folder.path, "tracing");
  cpSync(fileURLToPath(new URL("../../docs/deploy/tracing", import.meta.url)), sample, { recursive: true });
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  await promisify(execFile)("npm", ["install", ...quiet], { cwd: sample });

  const collector = await startReceiver();
  collector.answer = (response) => response.writeHead(200, { "content-type": "application/json" }).end("{}");
  const endpoint = await startReceiver();
  const environment = {
    NODE_OPTIONS: `--import ${join(sample, "tracing.mjs")}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    SERVICE_FRONT_ENDS: "2",
    SERVICE_TRANSPORT: "uws",
    SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
  };
  const service = await startService(join(folder.path, "data"), environment, { hasParent: true });
  const api = new TestService({ url: service.url } as RunningServer);
  const signer = await registeredSigner(api);
  const subscription = { url: endpoint.url, events: ["attestation.created"] };
  expect((await api.post("/webhooks", subscription, await bearerOf(api, signer))).status).toBe(200);
  const sent = { traceparent: `00-${TRACE}-${STEP}-01` };
  expect((await api.post("/attestations", submission(signer, newManifest("A")), sent)).status).toBe(200);
  await expect.poll(() => endpoint.received).toHaveLength(1);
  const [, traceId, spanId] = String(endpoint.received[0]!.headers.traceparent).split("-");
  const spanOf = (name: string) => spansIn(collector).find((span) => span.traceId === TRACE && span.name === name);
  const delivery = () => spansIn(collector).find((span) => span.spanId === spanId);
  const names = ["POST /api/v1/attestations", "attestation.record", "batch", "sign", "commit"];
  await expect.poll(() => [delivery(), ...names.map(spanOf)]).not.toContain(undefined);
  expect(await service.stop()).toBe(0);

  const [request, command, batch, ...stages] = names.map((name) => spanOf(name)!);
  expect(request).toMatchObject({ parentSpanId: STEP });
  expect(command).toMatchObject({ parentSpanId: request!.spanId, thread: 0 });
  expect(batch).toMatchObject({ parentSpanId: command!.spanId });
  for (const stage of stages) expect(stage).toMatchObject({ parentSpanId: batch!.spanId });
  expect(delivery()).toMatchObject({ traceId, name: "POST" });
  // A stranger's endpoint learns nothing of the trace of whoever wrote.
  expect(traceId).not.toBe(TRACE);
  expect(new Set([request!.thread, command!.thread, delivery()!.thread]).size).toBe(3);
});
