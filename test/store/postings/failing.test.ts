/** Runs whose writes fail or are late: whatever is on the disk by then, each posting is there once. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { turn } from "#cairnlog/engine/base/turns.js";
import { Room, storageFull } from "#cairnlog/engine/store/lmdb/health.js";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../../log/harness.js";

let store: Store;
beforeEach(() => {
  store = openStore({ path: temporaryFolder(), mapSize: MAP_SIZE });
});
afterEach(() => store.close());

const termOf = (index: number) => hashedTerm(POSTING.submission, `attestation ${index}`);

function add(postings: Postings, count: number): void {
  const terms = new TermTable();
  const from = postings.size;
  for (let index = from; index < from + count; index++) terms.add(termOf(index), index);
  postings.add(from + count, terms);
}

/** Of each entry there is one posting, and nothing of others. */
function expectAll(postings: Postings, size: number): void {
  expect([postings.size, postings.count]).toEqual([size, size]);
  for (let index = 0; index < size; index += 997)
    expect(postings.list(termOf(index)).window(0, size), `entry ${index}`).toEqual([index]);
}

test("a write that found no room keeps no later one from being made", async () => {
  const check = vi.spyOn(Room.prototype, "check").mockImplementationOnce(() => {
    throw storageFull("injected: there is no room");
  });
  onTestFinished(() => check.mockRestore());
  const write = () => store.postings.writeBlocks(1, [[0, Buffer.from("records")]]);
  await expect(write()).rejects.toMatchObject({ code: "storage-full" });
  await write();
  expect(store.postings.filedIds()).toEqual([1]);
});

describe.each([
  ["and nothing is on the disk", false],
  ["although the run is on the disk", true],
])("a write that fails, %s", (_, isOnDisk) => {
  test("is made up for when entries come, and at the next start", async () => {
    let failures = 1;
    const postings = new Postings({
      ...store.postings,
      async writeRun(...run) {
        const fails = failures-- > 0;
        if (!fails || isOnDisk) await store.postings.writeRun(...run);
        if (fails) throw new Error("injected");
      },
    });
    add(postings, FLUSH_ENTRIES);
    await expect(postings.settle()).rejects.toThrow("injected");
    expectAll(postings, FLUSH_ENTRIES);
    add(postings, FLUSH_ENTRIES);
    await postings.settle();
    expectAll(postings, 2 * FLUSH_ENTRIES);
    await postings.close();
    expectAll(new Postings(store.postings), 2 * FLUSH_ENTRIES);
  });
});

test("a failed write behind which the runs cannot be read again either is what settling ends with, and a close ends", async () => {
  let hasFailed = false;
  const postings = new Postings({
    ...store.postings,
    async writeRun() {
      hasFailed = true;
      throw new Error("the write");
    },
    runIds() {
      if (hasFailed) throw new Error("the reading");
      return store.postings.runIds();
    },
  });
  add(postings, FLUSH_ENTRIES);
  // Nobody waits for what goes on in the background: a rejection there would end the process.
  while (!hasFailed) await turn();
  for (let turns = 0; turns < 3; turns++) await turn();
  await expect(postings.settle()).rejects.toThrow("the write");
  expectAll(postings, FLUSH_ENTRIES);
  await postings.close();
});

test("a merge that fails leaves no blocks behind: those that it had written are removed when entries come", async () => {
  const TERMS = 4;
  const addMany = (postings: Postings) => {
    const terms = new TermTable();
    const from = postings.size;
    for (let index = from; index < from + FLUSH_ENTRIES; index++)
      for (let term = 0; term < TERMS; term++)
        terms.add(hashedTerm(POSTING.submission, `attestation ${index} ${term}`), index);
    postings.add(from + FLUSH_ENTRIES, terms);
  };
  let written = 0;
  let failures = 1;
  const postings = new Postings({
    ...store.postings,
    async writeBlocks(run, blocks) {
      written += blocks.length;
      await store.postings.writeBlocks(run, blocks);
    },
    async writeRun(id, blocks, row, replaced) {
      if (row.level === 1 && failures-- > 0) throw new Error("injected");
      await store.postings.writeRun(id, blocks, row, replaced);
    },
  });
  for (let run = 0; run < 3; run++) {
    addMany(postings);
    await postings.settle();
  }
  addMany(postings);
  await expect(postings.settle()).rejects.toThrow("injected");
  expect(written).toBeGreaterThan(0);
  addMany(postings);
  await postings.settle();
  expect(store.postings.filedIds()).toEqual(store.postings.runIds());
  expect([postings.size, postings.count]).toEqual([5 * FLUSH_ENTRIES, TERMS * 5 * FLUSH_ENTRIES]);
  await postings.close();
});

test("a close while a run is written writes it once, and then what came meanwhile", async () => {
  const postings = new Postings(store.postings);
  add(postings, FLUSH_ENTRIES);
  add(postings, FLUSH_ENTRIES - 1);
  await postings.close();
  expectAll(new Postings(store.postings), 2 * FLUSH_ENTRIES - 1);
});

test("a run gets no number whose blocks an unfinished one has left, and loses nothing when these are removed", async () => {
  const before = new Postings(store.postings);
  add(before, FLUSH_ENTRIES);
  await before.close();
  const [last] = store.postings.runIds();
  // So many that their removal lasts while the next runs are written.
  const blocks = Array.from({ length: 5000 }, (_, block): [number, Buffer] => [block, Buffer.alloc(8)]);
  for (const id of [1, 2]) await store.postings.writeBlocks(last! + id, blocks);
  const postings = new Postings(store.postings);
  for (let run = 0; run < 2; run++) {
    add(postings, FLUSH_ENTRIES);
    await postings.settle();
  }
  expectAll(postings, 3 * FLUSH_ENTRIES);
  await postings.close();
  expect(store.postings.filedIds()).toEqual(store.postings.runIds());
  expectAll(new Postings(store.postings), 3 * FLUSH_ENTRIES);
});
