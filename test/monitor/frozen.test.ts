/** A frozen log under a monitor: told of once, silent for good, and caught when it goes on. */
import { expect, test } from "vitest";
import { freeze } from "#cairnlog/engine/log/operator/entries.js";
import { type Entry, parsePolicy } from "#cairnlog/engine/verify/index.js";
import { cairnlogFollower, tiledFollower } from "#cairnlog/server/cli/log/follower.js";
import { Http } from "#cairnlog/server/client/base/http.js";
import { createClient, memoryStore } from "#cairnlog/server/client/index.js";
import { ServedTiles } from "#cairnlog/server/client/log/served.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { Publisher } from "#cairnlog/server/publishing/publisher.js";
import { ServiceEntries } from "#cairnlog/server/publishing/source.js";
import { anyEvent } from "../anyevent.js";
import { conviction, failure, newClient } from "../client/clients.js";
import { LyingProxy } from "../client/proxy.js";
import { MemoryTarget } from "../publishing/memory.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { caught, newMonitor } from "./monitors.js";
import { serving, URL_OF_LOG } from "./tiled/staticlog.js";

const reason = "The year is over.";
const end = { entry_id: 3, tree_size: 3, reason, successor: null };

test("a monitor tells of the end, and goes on with its rounds", async () => {
  const service = await startTestService();
  const { log } = service.server.registry;
  await log.append([anyEvent({ n: 1 }), anyEvent({ n: 2 })]);
  const told: Entry[] = [];
  const { monitor, folder } = newMonitor(service.url, { onFrozen: async (entry) => void told.push(entry) });
  await monitor.round();
  expect(monitor.isFrozen).toBe(false);
  await freeze(log, { reason, successor: null });
  await monitor.round();
  await monitor.round({ audit: true });
  expect(told).toMatchObject([{ id: 3, payload: { reason } }]);
  expect([monitor.size, monitor.isFrozen]).toEqual([3, true]);
  await monitor.close();
  const later = newMonitor(service.url, { folder });
  await later.monitor.round();
  expect(later.monitor.isFrozen).toBe(true);
  await later.monitor.close();
});

test("a monitor that could tell nobody of the end tells it in the next round, of a log and of its published files", async () => {
  const service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const { log } = service.server.registry;
  await log.append([anyEvent({ n: 1 }), anyEvent({ n: 2 })]);
  await freeze(log, { reason, successor: null });
  await service.checkpointed(3);
  const policy = parsePolicy(`log ${(await service.send("GET", "/tlog/vkey")).text.trim()}\nquorum none\n`);
  const target = new MemoryTarget();
  const [source, entries] = [
    new ServedTiles(new Http(`${service.url}/tlog`, fetch)),
    new ServiceEntries(new Http(service.url, fetch)),
  ];
  await new Publisher({ source, target, entries, policy, isPinned: true, keepPartial: false }).round();
  for (const kind of ["log", "files"]) {
    const folder = new MonitorFolder(temporaryFolder());
    const told: number[] = [];
    let isDeaf = true;
    const onFrozen = async ({ id }: Entry) => {
      told.push(id);
      if (isDeaf) throw new Error("nobody heard");
    };
    const round = async () => {
      const follower =
        kind === "log"
          ? cairnlogFollower({ server: service.url, folder, fetch, onFrozen })
          : tiledFollower({
              ...{ server: URL_OF_LOG, folder, fetch: serving(target.objects), policy, isUnpruned: false },
              onFrozen,
            });
      await follower.round({ audit: false }).finally(() => follower.close());
    };
    for (const _ of [1, 2]) await expect(round(), kind).rejects.toThrow("nobody heard");
    isDeaf = false;
    for (const _ of [1, 2]) await round();
    expect(told, kind).toEqual([3, 3, 3]);
  }
});

test("a monitor of published files learns the end also of a log whose entries are published later", async () => {
  const service = await startTestService({ SERVICE_CHECKPOINT_INTERVAL_S: "1" });
  const { log } = service.server.registry;
  await log.append(anyEvent({ n: 1 }));
  await service.checkpointed(1);
  const policy = parsePolicy(`log ${(await service.send("GET", "/tlog/vkey")).text.trim()}\nquorum none\n`);
  const target = new MemoryTarget();
  const source = new ServedTiles(new Http(`${service.url}/tlog`, fetch));
  const publish = (entries: ServiceEntries | null) =>
    new Publisher({ source, target, entries, policy, isPinned: true, keepPartial: false }).round();
  const told: number[] = [];
  const monitor = tiledFollower({
    ...{ server: URL_OF_LOG, folder: new MonitorFolder(temporaryFolder()), fetch: serving(target.objects), policy },
    ...{ isUnpruned: false, onFrozen: async ({ id }: Entry) => void told.push(id) },
  });
  await publish(null);
  await monitor.round({ audit: false });
  await freeze(log, { reason, successor: null });
  await service.checkpointed(2);
  await publish(new ServiceEntries(new Http(service.url, fetch)));
  await monitor.round({ audit: false });
  expect(told).toEqual([2]);
  await monitor.close();
});

/**
 * A log whose operator goes on behind the end with a program of his own: no hash covers the type of an entry, so this
 * service does not know that its third entry is the end, and everybody behind the proxy does.
 */
async function lawless() {
  const service = await startTestService();
  const { log } = service.server.registry;
  const payload = { event_type: "log_frozen", reason, successor: null };
  await log.append([anyEvent({ n: 1 }), anyEvent({ n: 2 }), { event_type: "log_frozem", payload }]);
  const { timestamp } = log.head()!;
  const proxy = await LyingProxy.before(service.url);
  proxy.lie = (path, answer) =>
    path === "/log/shards"
      ? { predecessor: null, frozen: { ...end, timestamp } }
      : JSON.parse(JSON.stringify(answer).replaceAll("log_frozem", "log_frozen"));
  return { proxy, goOn: () => log.append([anyEvent({ n: 3 })]) };
}

test("a head behind the end is an alarm for a monitor, with the end and both heads as evidence, before a round and in one", async () => {
  const { proxy, goOn } = await lawless();
  // Otherwise the checkpoint is the evidence, which comes first.
  proxy.seize = (path, response) => path === "/log/checkpoint" && Boolean(response.writeHead(404).end());
  const { monitor } = newMonitor(proxy.url);
  await monitor.round();
  await goOn();
  const evidence = await caught(monitor.round(), "after-freeze", /^Entry 3 froze the log at size 3/);
  expect(evidence).toMatchObject({
    known: { tree_size: 3 },
    shown: { tree_size: 4 },
    entry: { id: 3, payload: { reason } },
  });
  expect(monitor.size).toBe(3);
  await monitor.close();
  const late = newMonitor(proxy.url);
  const { entry, other } = await caught(late.monitor.round(), "after-freeze", /no entry may follow it/);
  expect([entry?.id, other?.id]).toEqual([4, 3]);
  await late.monitor.close();
});

test("a client that has had the end proven refuses a larger head, and so do all others with its store", async () => {
  const { proxy, goOn } = await lawless();
  const store = memoryStore();
  const client = createClient({ server: proxy.url, store });
  const running = createClient({ server: proxy.url, store });
  await running.log.head();
  expect(await client.shards.end()).toMatchObject(end);
  expect(await client.shards.successor()).toBeNull();
  await goOn();
  for (const each of [running, client, createClient({ server: proxy.url, store })])
    expect(await conviction(each.log.head())).toMatchObject({
      known: { tree_size: 3 },
      shown: { tree_size: 4 },
      entry: { id: 3, event_type: "log_frozen" },
    });
  const stranger = createClient({ server: proxy.url });
  expect(await conviction(stranger.shards.end())).toMatchObject({ shown: { tree_size: 4 } });
});

test("a client remembers the end when a write of its own is refused for it, and finds the next log under its key alone", async () => {
  const [service, next] = [await startTestService(), await startTestService()];
  const vkey = (await next.send("GET", "/tlog/vkey")).text.trim();
  const store = memoryStore();
  const { client } = newClient(service.url, { store });
  await client.keys.register({ pseudonym: "Ada" });
  await freeze(service.server.registry.log, { reason, successor: { url: next.url, vkey } });
  expect(await failure(client.attest({ title: "Late", content_hash: "0".repeat(64) }))).toMatchObject({
    code: "frozen",
  });
  expect((await store.load())?.frozen).toEqual({ entry_id: 2, tree_size: 2 });
  const successor = (await client.shards.successor())!;
  const { body } = await next.get("/log/operator-key");
  expect(successor).toEqual({ server: next.url, operatorKey: body.public_key });
  const moved = newClient(next.url, successor).client;
  await moved.keys.register({ pseudonym: "Ada" });
  // Whoever answers there with another key is not believed.
  const other = createClient({ ...successor, server: service.url });
  expect(await failure(other.log.head())).toMatchObject({ code: expect.stringMatching(/misbehaved|mismatch/) });
});
