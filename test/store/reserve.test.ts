/** The log's file is extended before LMDB needs the space, and never over pages that LMDB has written. */
import { fstatSync, readFileSync, statSync, write } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { JournalPosition } from "#cairnlog/engine/store/changeset.js";
import { fileUse, openEnvironment } from "#cairnlog/engine/store/lmdb/environment.js";
import { Growth } from "#cairnlog/engine/store/lmdb/growth.js";
import { StoreHealth } from "#cairnlog/engine/store/lmdb/health.js";
import { Reserve } from "#cairnlog/engine/store/lmdb/reserve.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../log/harness.js";

type Append = ConstructorParameters<typeof Reserve>[2] & {};

const open = (path: string, options = {}) => openStore({ path, mapSize: MAP_SIZE, ...options });

/** Rows that are larger than a page. */
const bigRows = (commit: number) =>
  Array.from({ length: 40 }, (_, n) => ({
    table: "userNames" as const,
    key: `${commit}-${n}`,
    row: { user_id: String(commit % 10).repeat(100_000) },
  }));

async function commitAll(store: Store, commits: readonly number[]): Promise<void> {
  for (const commit of commits) {
    const { sequence } = store.position();
    const position: JournalPosition = { sequence: sequence + 1, epoch: 0, hash: Buffer.alloc(32) };
    const rows =
      commit % 2 ? bigRows(commit) : [{ table: "userNames" as const, key: `${commit}`, row: { user_id: "x" } }];
    await store.commit({ after: sequence, position, batches: [], tiles: [], rows });
  }
}

describe("the reserve of a log's file", () => {
  test("rows on pages of their own survive the next growth", async () => {
    const path = temporaryFolder();
    const store = open(path);
    const commits = Array.from({ length: 12 }, (_, n) => n);
    await commitAll(store, commits);
    await store.close();
    const again = open(path);
    for (const commit of commits.filter((n) => n % 2))
      for (const { key, row } of bigRows(commit)) expect(again.get("userNames", key)).toEqual(row);
    await again.close();
  });

  test("the file has room for the next batch before LMDB writes it", async () => {
    const path = temporaryFolder();
    const store = open(path);
    await commitAll(store, [0]);
    expect(statSync(join(path, "data.mdb")).size).toBeGreaterThan(store.usage().fileBytes + 200_000);
    await store.close();
  });
});

/** An environment and its reserve. Writes of zeros go through `append`. */
function openReserve(append: Append) {
  const path = temporaryFolder();
  const environment = openEnvironment({
    path,
    mapSize: MAP_SIZE,
    maxDbs: 1,
    readOnly: false,
    noSync: true,
    advice: null,
    mustExist: false,
  });
  const rows = environment.openDB<Buffer, number>({ name: "rows", encoding: "binary" });
  const reserve = new Reserve(environment, path, append);
  const file = join(path, "data.mdb");
  const length = () => statSync(file).size;
  const used = () => fileUse(environment).bytes;
  const spend = (from: number, count: number, run: () => unknown = () => {}, bytes = 100) => {
    const growth = new Growth();
    for (let n = from; n < from + count; n++) growth.add("rows", n, bytes);
    return reserve.spend(growth, async () => {
      await run();
      const room = length();
      await environment.batch(() => {
        for (let n = from; n < from + count; n++) void rows.put(n, Buffer.alloc(bytes, n));
      });
      // What it needs was there before it began.
      expect(used()).toBeLessThanOrEqual(room);
    });
  };
  /** Rows of which the reserve knows nothing. */
  const fill = (count: number) =>
    environment.batch(() => {
      for (let n = 0; n < count; n++) void rows.put(n, Buffer.alloc(100));
    });
  const close = async () => {
    await reserve.close();
    await environment.close();
  };
  return { path, file, rows, fill, spend, length, used, close };
}

describe("writes of zeros", () => {
  const real: Append = (descriptor, bytes) =>
    new Promise((resolve, reject) =>
      write(descriptor, bytes, 0, bytes.length, null, (error) => (error ? reject(error) : resolve(undefined))),
    );

  test("are made by the thread pool, a piece at a time, and a batch of many rows asks for a few of them", async () => {
    const pieces: number[] = [];
    let running = 0;
    const { rows, spend, length, used, close } = openReserve(async (descriptor, bytes) => {
      expect(++running).toBe(1);
      pieces.push(bytes.length);
      await real(descriptor, bytes);
      running--;
    });
    const count = 100_000;
    await spend(0, 1);
    const before = used();
    await spend(1, count);
    const grown = used() - before;
    expect(Math.max(...pieces)).toBeLessThanOrEqual(2 ** 20);
    expect(pieces.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(8 * grown + 16 * 2 ** 20);
    expect(length()).toBeGreaterThanOrEqual(used());
    for (const n of [0, 1, count]) expect(rows.get(n)).toEqual(Buffer.alloc(100, n));
    await close();
  });

  test("are waited for by a transaction that needs them, and not by one that has room", async () => {
    let release = () => {};
    let isHeld = false;
    const { spend, length, used, close } = openReserve(async (descriptor, bytes) => {
      if (isHeld) await new Promise<void>((resolve) => (release = resolve));
      await real(descriptor, bytes);
    });
    await spend(0, 1);
    isHeld = true;
    // Transactions go on while zeros are written ahead of need.
    for (let n = 1; length() - used() > 600_000; n++) await spend(n, 1);
    let hasBegun = false;
    const many = spend(1_000, 20_000, () => {
      hasBegun = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(hasBegun).toBe(false);
    isHeld = false;
    release();
    await many;
    expect(hasBegun).toBe(true);
    await close();
  });

  test("keep little more ahead than one transaction can need, however many there were", async () => {
    let written = 0;
    const { fill, spend, length, used, close } = openReserve(async (descriptor, bytes) => {
      written += bytes.length;
      await real(descriptor, bytes);
    });
    const [first, count, most] = [200_000, 20, 16 * 2 ** 20];
    await fill(first);
    for (let n = first; n < first + 300 * count; n += count) {
      await spend(n, count);
      expect(length()).toBeLessThan(used() + most);
    }
    expect(written).toBeLessThan(used() + most);
    await close();
  });

  test.each([
    [1, 100],
    [20, 100],
    [100, 100],
    [1, 100_000],
    [5, 100_000],
  ])(
    "are made ahead of need: of many transactions of %i rows of %i bytes only the first few wait for them",
    async (count, size) => {
      let isWaiting = false;
      let waits = 0;
      let written: Promise<unknown> = Promise.resolve();
      const { spend, close } = openReserve((descriptor, bytes) => {
        written = real(descriptor, bytes).then(() => {
          if (isWaiting) waits++;
        });
        return written;
      });
      const ready = () => {
        isWaiting = false;
      };
      for (let n = 0; n < 50; n++) {
        isWaiting = true;
        await spend(n * count, count, ready, size);
        // The disk is quick enough.
        await written;
        if (n < 3) waits = 0;
      }
      expect(waits).toBe(0);
      await close();
    },
  );

  test.each([
    ["that a transaction waits for", 20_000, 100],
    ["ahead of need", 1, 50_000],
  ])(
    "%s are waited for by a close, as is the transaction, and no file is closed under them",
    async (_, count, size) => {
      let release: (() => void) | undefined;
      const inodes: number[] = [];
      let isHeld = false;
      const { path, file, spend, close } = openReserve(async (descriptor, bytes) => {
        if (isHeld) await new Promise<void>((resolve) => (release = resolve));
        inodes.push(fstatSync(descriptor).ino);
        await real(descriptor, bytes);
      });
      await spend(0, 1);
      isHeld = true;
      let endTransaction: (() => void) | undefined;
      const isRunning = () => new Promise<void>((resolve) => (endTransaction = resolve));
      let running: Promise<unknown> = Promise.resolve();
      for (let n = 1; !release && n < 50; n++) {
        endTransaction?.();
        await running;
        endTransaction = undefined;
        running = spend(n, count, isRunning, size);
        await expect.poll(() => release ?? endTransaction).toBeDefined();
      }
      const sign = () => readFileSync(join(path, "running")).readUInt32LE();
      let isClosed = false;
      const closing = close().then(() => (isClosed = true));
      if (!endTransaction) {
        await new Promise((resolve) => setImmediate(resolve));
        isHeld = false;
        release!();
        await expect.poll(() => endTransaction).toBeDefined();
      }
      expect([sign(), isClosed]).toEqual([process.pid, false]);
      endTransaction!();
      await running;
      await new Promise((resolve) => setImmediate(resolve));
      expect(isClosed).toBe(count > 1);
      release!();
      await closing;
      expect(sign()).toBe(0);
      expect(new Set(inodes)).toEqual(new Set([statSync(file).ino]));
    },
  );

  test("that fail refuse the transaction that needs them before it begins, and no other", async () => {
    let isFull = false;
    const { rows, spend, close } = openReserve((descriptor, bytes) =>
      isFull ? Promise.reject(Object.assign(new Error("full"), { code: "ENOSPC" })) : real(descriptor, bytes),
    );
    await spend(0, 1);
    isFull = true;
    let hasBegun = false;
    await expect(
      spend(1, 20_000, () => {
        hasBegun = true;
      }),
    ).rejects.toMatchObject({ code: "storage-full" });
    expect([hasBegun, rows.get(1)]).toEqual([false, undefined]);
    await spend(1, 1);
    expect(rows.get(1)).toEqual(Buffer.alloc(100, 1));
    isFull = false;
    await spend(2, 20_000);
    await close();
  });
});

test("what is thrown away may fill the disk to its end", async () => {
  const minFreeBytes = Number.MAX_SAFE_INTEGER;
  const kept = open(temporaryFolder(), { minFreeBytes });
  await expect(commitAll(kept, [0])).rejects.toMatchObject({ code: "storage-full" });
  const scratch = open(temporaryFolder(), { minFreeBytes, isScratch: true });
  await commitAll(scratch, [0, 1]);
  await Promise.all([kept.close(), scratch.close()]);
});

test("who asks after a failure is told at once", () => {
  const health = new StoreHealth();
  const told: CairnlogError[] = [];
  health.observe((failure) => told.push(failure));
  const failure = health.judge(new Error("EIO"));
  health.observe((late) => told.push(late));
  expect(told).toEqual([failure, failure]);
});
