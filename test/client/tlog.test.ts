/** Proofs that a client computes itself from tiles: of a log whose tree has several levels of tiles. */
import { expect, test } from "vitest";
import { createClient } from "#cairnlog/server/client/index.js";
import { anyEvent } from "../anyevent.js";
import { startTestService } from "../server/harness.js";

test("an entry of any tile is proven, with nodes of every level, each tile asked for once", async () => {
  const service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const { log } = service.server.registry;
  await log.append(Array.from({ length: 600 }, (_, n) => anyEvent({ n })));
  const asked: string[] = [];
  const fetcher: typeof fetch = (input, init) => {
    asked.push(String(input));
    return fetch(input, init);
  };
  const { tlog } = createClient({ server: service.url, fetch: fetcher });
  await expect.poll(async () => (await tlog.checkpoint()).checkpoint.treeSize, { interval: 20 }).toBe(600);
  for (const leafIndex of [0, 255, 256, 300, 511, 512, 599]) {
    asked.length = 0;
    const found = await tlog.inclusion(leafIndex, log.entryAt(leafIndex)!.entry_hash);
    expect(found).toMatchObject({ leafIndex, checkpoint: { treeSize: 600 } });
    expect(new Set(asked).size).toBe(asked.length);
  }
  const other = log.entryAt(1)!.entry_hash;
  await expect(tlog.inclusion(0, other)).rejects.toMatchObject({ code: "log-misbehaved" });
});
