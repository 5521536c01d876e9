/** A log that is asked to check itself: what it has checked, by whom, once for all who ask, and what is left open. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import type { Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey, publicOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog, openLogFollower, openLogReader } from "#cairnlog/engine/log/log.js";
import { noProjection, type Projection } from "#cairnlog/engine/log/state/projection.js";
import { MAP_SIZE, openTestLog, openTestReader, temporaryFolder, testOperator, testPool } from "../harness.js";

const events = (count: number) => Array.from({ length: count }, () => ({ event_type: "note", payload: {} }));

/** A pool that notes the tasks it is given, and whether it was closed; the real one runs them. */
function notingPool() {
  const pool = {
    ...testPool,
    tasks: [] as Record<string, unknown>[],
    isClosed: false,
    run(...[url, name, input, transfer]: Parameters<Pool["run"]>) {
      pool.tasks.push(input as Record<string, unknown>);
      return testPool.run(url, name, input, transfer);
    },
    close: async () => {
      pool.isClosed = true;
    },
  };
  return pool as typeof pool & Pool;
}

async function builtLog(size: number): Promise<string> {
  const { log, path } = await openTestLog();
  for (let n = 0; n < size; n += 512) await log.append(events(Math.min(512, size - n)));
  await log.close();
  return path;
}

/** For followers that are only read. */
const noWriter = {} as never;

/** The files in a folder that this process has open. */
const openIn = (folder: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    .filter((link) => lstatSync(link, { throwIfNoEntry: false }))
    .map((link) => readlinkSync(link))
    .filter((path) => path.startsWith(`${folder}/`));

describe("verifying", () => {
  const checking: Projection = { ...noProjection, checksEvents: true };

  test.each([
    ["a log that is written", (path: string, pool: Pool) => openTestLog({ path, pool }).then(({ log }) => log)],
    [
      "a log that is read",
      (path: string, pool: Pool) =>
        openLogReader({ path, pool, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE }),
    ],
  ])("%s is the work of the given pool, which it leaves open", async (_, open) => {
    const path = await builtLog(3);
    const pool = notingPool();
    const log = await open(path, pool);
    const task = { path, from: 0, to: 3, size: 3, mapSize: MAP_SIZE, checksEvents: false };
    expect(await log.verify()).toEqual({ valid: true, entry_count: 3, errors: [], warnings: [] });
    expect(pool.tasks.splice(0)).toEqual([{ ...task, operators: log.operators.chain }]);
    expect(await log.verifyNewest()).toMatchObject({ valid: true });
    expect(pool.tasks).toEqual([{ ...task, operators: log.operators.chain }]);
    await log.close();
    expect(pool.isClosed).toBe(false);
  });

  test("events is done where every entry must be one of the service's", async () => {
    const path = await builtLog(1);
    const pool = notingPool();
    const { log } = await openTestLog({ path, pool, projection: checking });
    expect(await log.verify()).toMatchObject({ valid: false });
    expect(pool.tasks).toMatchObject([{ checksEvents: true }]);
    await log.close();
    const reader = await openLogReader({ path, pool, operatorKey: testOperator.public.pem, projection: checking });
    expect(await reader.verify()).toMatchObject({ valid: false });
    expect(pool.tasks[1]).toMatchObject({ checksEvents: true });
    expect(pool.tasks[1]).not.toHaveProperty("mapSize");
    await reader.close();
  });

  test("at one time is one run for all who ask; later it is another one, of what is there then", async () => {
    const pool = notingPool();
    const { log } = await openTestLog({ pool });
    await log.append(events(2));
    const first = log.verify();
    expect(log.verify()).toBe(first);
    expect(await first).toMatchObject({ entry_count: 2 });
    expect(pool.tasks).toHaveLength(1);
    await log.append(events(1));
    const second = log.verify();
    expect(second).not.toBe(first);
    expect(await second).toMatchObject({ entry_count: 3 });
    expect(pool.tasks).toHaveLength(2);
  });

  test("the newest entries looks at 4,096 of them and no other", async () => {
    const tasks: unknown[] = [];
    const pool: Pool = {
      ...testPool,
      run: async <T>(_: URL, __: string, task: unknown) => {
        tasks.push(task);
        return { errors: [], warnings: [] } as T;
      },
    };
    const { log } = await openTestLog({ pool });
    await log.append(events(10));
    expect(await log.verifyNewest()).toMatchObject({ valid: true, entry_count: 10 });
    for (let n = 0; n < 8; n++) await log.append(events(512));
    expect(await log.verifyNewest()).toMatchObject({ valid: true, entry_count: 4106 });
    expect(tasks).toMatchObject([
      { from: 0, to: 10, size: 10 },
      { from: 10, to: 4106, size: 4106 },
    ]);
  });

  test("without a pool is done by threads that let all others go first, and end with the run", async () => {
    const path = await builtLog(2 * 4096);
    /** The priorities of this process's threads, as `nice` counts. Behind the name, which may have spaces, stands field 3. */
    const priorities = () =>
      readdirSync("/proc/self/task").flatMap((thread) => {
        try {
          return Number(readFileSync(`/proc/self/task/${thread}/stat`, "utf8").split(") ").at(-1)!.split(" ")[16]);
        } catch {
          // It has ended since it was listed.
          return [];
        }
      });
    const log = await openLogReader({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE });
    const before = priorities();
    for (const verify of [() => log.verify(), () => log.verifyNewest()]) {
      let lowest = Math.max(...before);
      const sampling = setInterval(() => {
        lowest = Math.max(lowest, ...priorities());
      }, 1);
      expect(await verify()).toMatchObject({ valid: true });
      clearInterval(sampling);
      expect(lowest).toBe(Math.max(...before, Math.min(getPriority(process.pid) + 10, 19)));
      await expect.poll(() => priorities().length, { interval: 5 }).toBeLessThanOrEqual(before.length);
    }
    await log.close();
  });

  test("is broken off by a close, which waits for its threads", async () => {
    const path = await builtLog(4 * 4096);
    const log = await openLogReader({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE });
    const runs = [log.verify(), log.verifyNewest()].map((run) =>
      run.then(
        () => "ended",
        ({ code }) => code,
      ),
    );
    await log.close();
    expect(openIn(path)).toEqual([]);
    expect((await Promise.all(runs))[0]).toBe("closed");
  });
});

describe("nothing stays open", () => {
  const other = publicOperatorKey(operatorKey(generatePrivateKey("ed25519")).public.pem);
  test("of a log that is closed, and it can be opened again", async () => {
    const path = await builtLog(2);
    expect(openIn(path)).toEqual([]);
    for (let round = 0; round < 2; round++) {
      const { log } = await openTestLog({ path });
      expect(log.postings("x").length).toBe(0);
      expect(openIn(path).length).toBeGreaterThan(0);
      for (let times = 0; times < 2; times++) await log.close();
      expect(openIn(path)).toEqual([]);
    }
    const reader = await openLogReader({ path, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE });
    expect(reader.postings("x").length).toBe(0);
    expect(reader.match({}, 0, 1).total).toBe(2);
    // The second time nothing is left to close.
    for (let times = 0; times < 2; times++) await reader.close();
    expect(openIn(path)).toEqual([]);
    const follower = openLogFollower({
      path,
      operatorKey: testOperator.public.pem,
      mapSize: MAP_SIZE,
      writer: noWriter,
    });
    expect(follower.match({}, 0, 1).total).toBe(2);
    for (let times = 0; times < 2; times++) await follower.close();
    expect(openIn(path)).toEqual([]);
  });

  test("of a log that was refused", async () => {
    const path = await builtLog(2);
    await expect(openTestReader(path, other)).rejects.toMatchObject({ code: "wrong-operator" });
    expect(openIn(path)).toEqual([]);
    await expect(openTestLog({ path, signer: other })).rejects.toMatchObject({ code: "wrong-operator" });
    expect(openIn(path)).toEqual([]);
    const empty = temporaryFolder();
    await expect(openTestReader(empty)).rejects.toMatchObject({ code: "not-found" });
    expect(readdirSync(empty)).toEqual([]);
    expect(openIn(empty)).toEqual([]);
  });
});

describe("the size to which a log can grow", () => {
  const usual = 2 ** 38;
  test.each([
    ["what is asked for", { mapSize: 2 ** 29 }, 2 ** 29],
    ["256 GiB where nobody asks", {}, usual],
  ])("is %s, for whoever opens it", async (_, asked, mapBytes) => {
    const path = temporaryFolder();
    const options = { path, operatorKey: testOperator.public.pem, ...asked };
    const log = await openLog({ path, signer: testOperator, ...asked });
    await log.append(events(1));
    expect(log.diskUsage.mapBytes).toBe(mapBytes);
    await log.close();
    const reader = await openLogReader(options);
    expect(reader.diskUsage.mapBytes).toBe(mapBytes);
    await reader.close();
    const follower = openLogFollower({ ...options, writer: noWriter });
    expect(follower.diskUsage.mapBytes).toBe(mapBytes);
    await follower.close();
  });
});
