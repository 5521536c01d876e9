/** docs/deploy as its own tools see it: promtool (Debian package prometheus) checks rules, configuration and metrics. */
import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startTestService } from "./server/harness.js";
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
