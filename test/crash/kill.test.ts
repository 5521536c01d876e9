/**
 * The service is killed at random moments under load, again and again, in one data directory. Whatever was acknowledged
 * is there with its own head; nothing is half there.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/operator-key.js";
import { createPool } from "#cairnlog/engine/crypto/pool.js";
import { openRegistry } from "#cairnlog/engine/registry/registry.js";
import { startService } from "../service.js";
import { type Acknowledged, loadUntilDead } from "./load.js";

const ROUNDS = 20;
const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-crash-"));
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

async function checkDataDirectory(): Promise<void> {
  const pool = createPool(1);
  const operator = openOperatorKey(join(dataDir, "operator.pem"));
  const registry = await openRegistry({
    path: join(dataDir, "log"),
    operator,
    pool,
    predicateBase: "https://x-service.example/predicates",
  });
  expect(registry.log.stateDifferences()).toEqual([]);
  await registry.close();
  await pool.close();
}

test(`${ROUNDS} rounds of SIGKILL under load lose nothing and leave nothing half-written`, {
  timeout: 300_000,
}, async () => {
  const acknowledged: Acknowledged[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const service = await startService(dataDir);
    const exited = once(service.process, "exit");
    const load = loadUntilDead(service.url, round);
    await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 600));
    service.process.kill("SIGKILL");
    acknowledged.push(...(await load));
    await exited;
    // State rebuilt from the batches is state on disk: no row, posting or head without its entry.
    await checkDataDirectory();

    const again = await startService(dataDir);
    const report = await (await fetch(`${again.url}/api/v1/log/verify`, { method: "POST" })).json();
    expect(report).toMatchObject({ valid: true, errors: [] });
    expect(report.entry_count).toBeGreaterThanOrEqual(acknowledged.length);
    for (const receipt of acknowledged.slice(-200)) {
      const entry = await (await fetch(`${again.url}/api/v1/log/${receipt.log_entry_id}`)).json();
      expect(entry.entry_hash).toBe(receipt.entry_hash);
      const head = await (await fetch(`${again.url}/api/v1/log/sth/${receipt.sth.tree_size}`)).json();
      expect(head).toEqual(receipt.sth);
    }
    expect(await again.stop()).toBe(0);
  }
  expect(acknowledged.length).toBeGreaterThan(ROUNDS * 10);
});
