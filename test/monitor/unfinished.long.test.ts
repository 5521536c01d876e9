/** Rounds that fail: whichever request it is, the next round finishes what was left, and tells what was not told. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freeze } from "#cairnlog/engine/log/operator/entries.js";
import { type Entry, parsePolicy } from "#cairnlog/engine/verify/index.js";
import { type Follower, tiledFollower } from "#cairnlog/server/cli/log/follower.js";
import { MonitorFolder } from "#cairnlog/server/monitor/folder.js";
import { Monitor } from "#cairnlog/server/monitor/monitor.js";
import { anyEvent } from "../anyevent.js";
import { attestSecrets, holding, withholdSecrets } from "../backup/bytes.js";
import { cairnlog } from "../cli/harness.js";
import { LiveLog, served } from "../publishing/logs.js";
import { temporaryFolder } from "../server/harness.js";
import { newSigner } from "../server/signers.js";

const end = { reason: "The year is over.", successor: null };

/** A follower that had a whole round of the log before it grew, and its requests. */
interface Early {
  readonly follower: Pick<Follower, "round" | "close">;
  readonly folder: MonitorFolder;
  readonly told: string[];
  /** The number of the request that fails, counted from the one that comes next; none at first. */
  failing: number;
}

async function followed(open: (early: Early, fetcher: typeof fetch) => Early["follower"]): Promise<Early> {
  const early: Early = { follower: null as never, folder: new MonitorFolder(temporaryFolder()), told: [], failing: -1 };
  const fetcher: typeof fetch = (...request) =>
    early.failing-- === 0 ? Promise.reject(new TypeError("fetch failed")) : fetch(...request);
  const follower = open(early, fetcher);
  await follower.round({ audit: false });
  return Object.assign(early, { follower });
}

/** Has each of them fail at another request of a round, until one is not reached; and go on with the next round. */
async function failEverywhere(all: readonly Early[], check: (early: Early) => void | Promise<void>): Promise<void> {
  let reached = 0;
  for (const [request, early] of all.entries()) {
    early.failing = request;
    const isDone = await early.follower.round({ audit: false }).then(
      () => true,
      () => false,
    );
    if (early.failing < 0) reached++;
    expect(isDone, `${request}`).toBe(early.failing >= 0);
    early.failing = -1;
    if (!isDone) await early.follower.round({ audit: false });
    await check(early);
    await early.follower.close();
  }
  expect(reached).toBeGreaterThan(3);
  expect(reached).toBeLessThan(all.length);
}

const earlyOnes = async (count: number, make: () => Promise<Early>) => {
  const all: Early[] = [];
  while (all.length < count) all.push(await make());
  return all;
};

test("of a cairnlog: watched keys, the end, and payloads that are withheld", async () => {
  const log = await LiveLog.start(0);
  const { service } = log;
  const { id, named, secrets } = await attestSecrets(service);
  const watched = newSigner();
  const all = await earlyOnes(17, () =>
    followed(
      ({ folder, told }, fetcher) =>
        new Monitor({
          ...{ server: service.url, folder, fetch: fetcher, obeysWithholding: true },
          watched: new Set([watched.fingerprint]),
          onWatched: async (entry: Entry) => void told.push(entry.event_type),
          onFrozen: async (entry: Entry) => void told.push(entry.event_type),
        }),
    ),
  );
  await log.register(watched, "Ada");
  await withholdSecrets(service, { id, named });
  // So many that what withholds and the end are on different pages.
  await service.server.registry.log.append(Array.from({ length: 200 }, (_, n) => anyEvent({ n })));
  await freeze(service.server.registry.log, end);
  const size = service.server.registry.log.size;
  await failEverywhere(all, ({ follower, folder, told }) => {
    expect([...new Set(told)]).toEqual(["key_registration", "log_frozen"]);
    expect((follower as Monitor).size).toBe(size);
    expect(holding(folder.path, secrets)).toEqual([]);
  });
});

test("a word that could not be given is given in the next round, with all that come after it", async () => {
  const log = await LiveLog.start(0);
  const watched = [newSigner(), newSigner()];
  for (const [n, signer] of watched.entries()) await log.register(signer, `Ada ${n}`);
  await freeze(log.service.server.registry.log, end);
  for (const failing of [0, 1, 2]) {
    const told: string[] = [];
    let words = 0;
    const tell = async (name: string) => {
      if (words++ === failing) throw new Error("injected: nobody takes it");
      told.push(name);
    };
    const folder = new MonitorFolder(temporaryFolder());
    const monitor = new Monitor({
      ...{ server: log.service.url, folder, fetch, watched: new Set(watched.map(({ fingerprint }) => fingerprint)) },
      onWatched: (_: Entry, fingerprint: string) => tell(fingerprint),
      onFrozen: () => tell("end"),
    });
    await expect(monitor.round()).rejects.toThrow("injected");
    await monitor.round();
    expect(new Set(told)).toEqual(new Set([...watched.map(({ fingerprint }) => fingerprint), "end"]));
    await monitor.close();
  }
});

test("of published files: new entries and the end", async () => {
  const [log, published] = [await LiveLog.start(300), temporaryFolder()];
  const vkey = await log.vkey();
  const publish = () => cairnlog(["publish", log.url, published, "--entries"]);
  expect(await publish()).toMatchObject({ code: 0 });
  const server = await served(published);
  const all = await earlyOnes(7, () =>
    followed(({ folder, told }, fetcher) =>
      tiledFollower({
        ...{ server, folder, fetch: fetcher, isUnpruned: false, policy: parsePolicy(`log ${vkey}\nquorum none\n`) },
        onFrozen: async (entry) => void told.push(entry.event_type),
      }),
    ),
  );
  await freeze(log.service.server.registry.log, end);
  await log.service.checkpointed(301);
  expect(await publish()).toMatchObject({ code: 0 });
  await failEverywhere(all, ({ folder, told }) => {
    expect([...new Set(told)]).toEqual(["log_frozen"]);
    expect(folder.end).toMatchObject({ leafIndex: 300 });
    for (const path of filesIn(folder.mirror))
      expect(readFileSync(join(folder.mirror, path)), path).toEqual(readFileSync(join(published, path)));
  });
});

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => statSync(join(folder, path)).isFile());
