/** Health probes and metrics. */
import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { startTestService, type TestService } from "../../server/harness.js";
import { newSigner, registration, submission } from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

test("health tells the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
  expect((await service.get("/health")).body).toEqual({ status: "ok", version });
});

test("a service with an empty log, and one with entries, is alive and ready", async () => {
  for (const path of ["/livez", "/readyz"])
    expect((await service.send("GET", path)).body).toMatchObject({ status: "ok" });
  await service.post("/keys/register", registration(newSigner()));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect((await service.send("GET", "/readyz")).status).toBe(200);
});

test("metrics count all events", async () => {
  const size = await service.entryCount();
  await Promise.all(Array.from({ length: 8 }, () => service.post("/attestations", submission(newSigner()))));
  await service.get("/nothing");
  const { text, headers } = await service.send("GET", "/metrics");
  expect(headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  const value = (name: string) =>
    Number(new RegExp(`^${name.replace(/[{}()]/g, "\\$&")} (\\S+)$`, "m").exec(text)?.[1]);
  expect(value("cairnlog_log_entries")).toBe(size + 16);
  expect(value("cairnlog_appends_total")).toBe(size + 16);
  expect(value("cairnlog_batches_total")).toBeGreaterThan(0);
  expect(value("cairnlog_batches_total")).toBeLessThan(size + 16);
  expect(value("cairnlog_append_queue")).toBe(0);
  expect(value('cairnlog_http_requests_total{method="POST",route="/api/v1/attestations",status="200"}')).toBe(8);
  expect(value('cairnlog_http_requests_total{method="other",route="(unknown)",status="404"}')).toBe(1);
  expect(value('cairnlog_http_request_duration_seconds_count{method="POST",route="/api/v1/attestations"}')).toBe(8);
  expect(value("process_resident_memory_bytes")).toBeGreaterThan(1e6);
});
