/** Proofs that a client computes itself from tiles: of a log whose tree has several levels of tiles. */
import { expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { parseTlogProof } from "#cairnlog/engine/verify/index.js";
import { createClient } from "#cairnlog/server/client/index.js";
import { fetchCheckpoint } from "#cairnlog/server/monitor/tlog.js";
import { anyEvent } from "../anyevent.js";
import { startTestService } from "../server/harness.js";
import { checkpointOf, newNoteSigner } from "../verify/note/notes.js";
import { failure } from "./clients.js";
import { LyingProxy } from "./proxy.js";

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

test("a verifier key that is pinned is the only one that is believed, for every part of an answer", async () => {
  const service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const { registry } = service.server;
  await registry.log.append(anyEvent());
  await withhold(registry, 1, { reason: "An order.", basis: null });
  await service.checkpointed(2);
  const vkey = (await service.send("GET", "/tlog/vkey")).text.trim();
  const proxy = await LyingProxy.before(service.url);
  const { tlog } = createClient({ server: proxy.url });
  const { entry_hash } = registry.log.entryAt(0)!;
  const asking = {
    checkpoint: (key?: string) => tlog.checkpoint(key),
    inclusion: (key?: string) => tlog.inclusion(0, entry_hash, key),
    "a proof file": (key?: string) => tlog.proofFile(2, { vkey: key }),
    "a proof file with another one in it": (key?: string) => tlog.proofFile(1, { vkey: key }),
    "a proof file without the entry": (key?: string) => tlog.proofFile(1, { vkey: key, bare: true }),
  };
  const { vkey: another } = newNoteSigner(vkey.split("+")[0]!);
  for (const [what, ask] of Object.entries(asking)) {
    proxy.repent();
    const honest = await ask();
    proxy.lie = (path, answer) => (path === "/tlog/vkey" ? another : answer);
    expect(await ask(vkey), what).toEqual(honest);
    expect(await failure(ask()), what).toMatchObject({ code: "log-misbehaved" });
  }
});

test("a proof file has another one in it only where the payload is missing, whatever an entry says of itself", async () => {
  const service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  await service.server.registry.log.append([1, 2, 3].map((n) => anyEvent({ n })));
  await service.checkpointed(3);
  const proxy = await LyingProxy.before(service.url);
  const { tlog } = createClient({ server: proxy.url });
  const honest = await tlog.proofFile(2);
  const asked = proxy.asked.length;
  proxy.seize = (_, response) => proxy.asked.length > 4 * asked && Boolean(response.socket?.destroy());
  // No hash covers it. It may name the entry itself, or lead in a circle.
  for (const names of [(id: number) => id, (id: number) => (id % 3) + 1]) {
    proxy.asked.length = 0;
    proxy.lie = (path, answer) => (/^\/log\/\d+$/.test(path) ? { ...answer, withheld_by: names(answer.id) } : answer);
    const { text, ...place } = await tlog.proofFile(2);
    expect({ ...place, text: "" }).toEqual({ ...honest, text: "" });
    expect(Buffer.from(parseTlogProof(text).extra!).toString()).not.toContain("tlog-proof");
  }
});

test("a checkpoint of another log is not this one's, though the same key has signed it, to a client and to a monitor", async () => {
  const server = "http://log.example";
  const signer = newNoteSigner("log.example");
  const shown = async (origin: string) => {
    const note = signer.note(checkpointOf(origin, 7, Buffer.alloc(32, 1)));
    const fetcher: typeof fetch = async (input) => new Response(String(input).endsWith("/vkey") ? signer.vkey : note);
    const { tlog } = createClient({ server, fetch: fetcher });
    return { asked: tlog.checkpoint(signer.vkey), mirrored: await fetchCheckpoint(server, fetcher) };
  };
  const own = await shown(signer.name);
  expect([(await own.asked).checkpoint, own.mirrored]).toMatchObject([{ treeSize: 7 }, { treeSize: 7 }]);
  const other = await shown("other.example");
  expect(await failure(other.asked)).toMatchObject({ code: "log-misbehaved" });
  expect(other.mirrored).toBeNull();
});
