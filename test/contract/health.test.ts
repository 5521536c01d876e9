/** Probes, measurements and the description of the interface. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { startTestService, type TestService } from "../server/harness.js";
import { newSigner, registration, submission } from "../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

test("health tells the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect((await service.get("/health")).body).toEqual({ status: "ok", version });
});

test("a service with an empty log, and one with entries, is alive and ready", async () => {
  for (const path of ["/livez", "/readyz"])
    expect((await service.send("GET", path)).body).toMatchObject({ status: "ok" });
  await service.post("/keys/register", registration(newSigner()));
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  expect((await service.send("GET", "/readyz")).status).toBe(200);
});

test("metrics count what happened", async () => {
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

describe("openapi.json", () => {
  test("describes the routes", async () => {
    const document = await service.openApi();
    expect(document.openapi).toBe("3.1.0");
    const expected = [
      "/api/v1/attestations",
      "/api/v1/health",
      "/api/v1/keys",
      "/api/v1/keys/register",
      "/api/v1/keys/search",
      "/api/v1/keys/{fingerprint}",
      "/api/v1/keys/{fingerprint}/status",
      "/api/v1/log",
      "/api/v1/log/consistency",
      "/api/v1/log/head",
      "/api/v1/log/operator-key",
      "/api/v1/log/proof/{leaf_index}",
      "/api/v1/log/sth",
      "/api/v1/log/sth/{tree_size}",
      "/api/v1/log/verify",
      "/api/v1/log/{entry_id}",
      "/api/v1/openapi.json",
      "/api/v1/verify",
      "/livez",
      "/metrics",
      "/readyz",
    ];
    expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(expected));
  });

  test("is sound in itself", async () => {
    const document = await service.openApi();
    const text = JSON.stringify(document);
    for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g))
      expect(document.components.schemas).toHaveProperty(name!);
    const ids = [...text.matchAll(/"operationId":"([^"]+)"/g)].map(([, id]) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [path, item] of Object.entries<Record<string, { parameters?: { in: string; name: string }[] }>>(
      document.paths,
    ))
      for (const operation of Object.values(item)) {
        const named = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
        expect(named.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
      }
  });

  test("says which parameters may be left out", async () => {
    const document = await service.openApi();
    const { parameters } = document.paths["/api/v1/log/consistency"].get;
    const required = parameters.map(({ name, required }: { name: string; required: boolean }) => [name, required]);
    expect(required).toEqual([
      ["from", true],
      ["to", false],
      ["tree_version", false],
      ["If-None-Match", false],
    ]);
    expect(document.paths["/api/v1/log"].get.parameters[0]).toMatchObject({ name: "page", required: false });
  });
});
