/** Postings compared with a simple map, through flushes, merges and restarts in the middle of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { indexesOf } from "#cairnlog/engine/log/read/bits.js";
import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { BLOCK_RECORDS, MAPS, RECORD_BYTES } from "#cairnlog/engine/store/postings/run-format.js";
import { hashedTerm, hexPrefixTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { storedRuns } from "./storedruns.js";

const MERGE_WIDTH = 4;

/** A small deterministic generator, so that a failure can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A table with these postings. */
function tableOf(postings: Iterable<readonly [term: string, indexes: readonly number[]]>): TermTable {
  const table = new TermTable();
  for (const [term, indexes] of postings) for (const index of indexes) table.add(term, index);
  return table;
}

const unique = (index: number) => hashedTerm(POSTING.submission, `attestation ${index}`);

test("lists equal a plain map at every stage", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const pick = random(7);
  const model = new Map<string, number[]>();
  let store = openStore({ path });
  let postings = new Postings(store.postings);
  const check = () => {
    expect(postings.count).toBe([...model.values()].reduce((sum, indexes) => sum + indexes.length, 0));
    const terms = [...model.keys()];
    for (let i = 0; i < 60; i++) {
      const term = terms[pick(terms.length)]!;
      const expected = model.get(term)!;
      const list = postings.list(term);
      expect(list.length).toBe(expected.length);
      for (let j = 0; j < 5; j++) {
        const rank = pick(expected.length);
        expect(list.at(rank)).toBe(expected[rank]);
        const index = pick(postings.size + 2);
        const below = expected.filter((held) => held < index).length;
        expect(list.seek(index)).toBe(below);
        const count = pick(2000);
        expect(list.window(index, count)).toEqual(expected.slice(below, below + count));
      }
      const [start, end] = [32 * pick(postings.size / 32), postings.size - pick(1000)];
      const bits = new Int32Array(Math.ceil(Math.max(0, end - start) / 32));
      list.fill(bits, start, end);
      const set = expected.filter((held) => held >= start && held < end);
      expect(indexesOf(bits, start)).toEqual(set);
      expect(() => list.at(expected.length)).toThrow(RangeError);
      expect(postings.first(term)).toBe(expected[0]);
    }
    for (let i = 0; i < 200; i++) {
      expect(postings.list(unique(10_000_000 + i)).length).toBe(0);
      expect(postings.first(unique(10_000_000 + i))).toBe(undefined);
    }
    const [low, high] = [hexPrefixTerm(POSTING.digest, "3"), hexPrefixTerm(POSTING.digest, "3f".padEnd(32, "f"))];
    const found = postings.range(low, high);
    expect(postings.rangeCount(low, high)).toBe(found.length);
    found.sort((a, b) => a - b);
    // The last entries have no bits.
    const end = 32 * pick(postings.size / 32);
    const bits = new Int32Array(end / 32);
    postings.fillRange(low, high, bits);
    expect(indexesOf(bits)).toEqual([...new Set(found)].filter((index) => index < end));
    const wanted = [...model].flatMap(([term, indexes]) => (term >= low && term <= high ? indexes : []));
    expect(found).toEqual(wanted.sort((a, b) => a - b));
  };

  for (let round = 0; round < 60; round++) {
    const from = postings.size;
    const to = from + 1 + pick(FLUSH_ENTRIES);
    const batch = new Map<string, number[]>();
    for (let index = from; index < to; index++)
      for (const term of new Set([
        hashedTerm(POSTING.eventType, `type ${pick(3)}`),
        hashedTerm(POSTING.tag, `tag ${pick(2000)}`),
        hexPrefixTerm(
          POSTING.digest,
          pick(2 ** 31)
            .toString(16)
            .padStart(8, "0"),
        ),
        unique(index),
      ])) {
        batch.set(term, [...(batch.get(term) ?? []), index]);
        const held = model.get(term);
        if (held) held.push(index);
        else model.set(term, [index]);
      }
    postings.add(to, tableOf(batch));
    if (round % 10 === 9) {
      check();
      // Restarts at any point of the background work. Postings that are not in a run yet are added again.
      await postings.close();
      await store.close();
      store = openStore({ path });
      postings = new Postings(store.postings);
      const rest = new Map<string, number[]>();
      const kept = postings.size;
      for (const [term, indexes] of model) {
        const lost = indexes.filter((index) => index >= kept);
        if (lost.length) rest.set(term, lost);
      }
      postings.add(to, tableOf(rest));
      check();
    } else if (round % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await postings.settle();
  check();
  expect(postings.runCount).toBeLessThan(16);
  const { size } = postings;
  await postings.close();
  // A restart reads less than one run again, for any size of the log.
  expect(size - new Postings(store.postings).size).toBeLessThan(FLUSH_ENTRIES);
  await store.close();
  rmSync(path, { recursive: true, force: true });
});

/** Adds entries with one posting each, as a log does. */
async function grow(postings: Postings, entries: number): Promise<void> {
  const to = postings.size + entries;
  while (postings.size < to) {
    const [from, end] = [postings.size, Math.min(to, postings.size + 512)];
    postings.add(end, tableOf(Array.from({ length: end - from }, (_, i) => [unique(from + i), [from + i]])));
    await new Promise((resolve) => setImmediate(resolve));
    await postings.relieved(FLUSH_ENTRIES);
  }
}

/** The levels of the runs on disk, oldest first. */
const levels = (store: ReturnType<typeof openStore>) =>
  storedRuns(store.postings)
    .sort((a, b) => a.from - b.from)
    .map(({ level }) => level);

test("merges keep up with what comes in: at no time are there more runs than two merges a level need", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const store = openStore({ path });
  const postings = new Postings(store.postings);
  let most = 0;
  for (let flush = 0; flush < 70; flush++) {
    await grow(postings, FLUSH_ENTRIES);
    most = Math.max(most, postings.runCount);
    // Older runs have higher levels, so runs of one level are neighbours.
    expect(levels(store)).toEqual(levels(store).toSorted((a, b) => b - a));
  }
  // Levels 0, 1 and 2 have three waiting runs and four in a merge each; level 3 has one.
  expect(most).toBeLessThanOrEqual(3 * (2 * MERGE_WIDTH - 1) + 1);
  await postings.settle();
  expect(postings.runCount).toBeLessThanOrEqual(3 * (MERGE_WIDTH - 1) + 1);
  for (const index of [0, 4095, 4096, 100_000, postings.size - 1])
    expect(postings.list(unique(index)).window(0, 9)).toEqual([index]);
  expect(postings.count).toBe(postings.size);
  await postings.close();
  await store.close();
  rmSync(path, { recursive: true, force: true });
});

test("what waits until it is relieved waits for merges too: they get few turns where each brings much", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const store = openStore({ path });
  const postings = new Postings(store.postings);
  const [batch, each] = [512, 16];
  let most = 0;
  for (let from = 0; from < 40 * FLUSH_ENTRIES; from += batch) {
    const ranks = Array.from({ length: batch * each }, (_, i) => i);
    postings.add(from + batch, tableOf(ranks.map((i) => [unique(from * each + i), [from + Math.floor(i / each)]])));
    await postings.relieved(FLUSH_ENTRIES);
    most = Math.max(most, postings.runCount);
  }
  // Of levels 0 and 1; one more when it is seen.
  expect(most).toBeLessThanOrEqual(2 * (2 * MERGE_WIDTH + 1));
  await postings.close();
  await store.close();
  rmSync(path, { recursive: true, force: true });
});

test("settle merges what is due when nothing has come in since the start", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const store = openStore({ path });
  const before = new Postings(store.postings);
  for (let run = 0; run < MERGE_WIDTH; run++) {
    await grow(before, FLUSH_ENTRIES);
    if (run < MERGE_WIDTH - 1) await before.settle();
  }
  // This interrupts the merge of the four.
  await before.close();
  expect(levels(store)).toEqual([0, 0, 0, 0]);
  const postings = new Postings(store.postings);
  await postings.settle();
  expect(levels(store)).toEqual([1]);
  await postings.close();
  await store.close();
  rmSync(path, { recursive: true, force: true });
});

test("a merge that a restart interrupted leaves nothing behind once entries come in again", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  let store = openStore({ path });
  let postings = new Postings(store.postings);
  for (let run = 1; run < MERGE_WIDTH; run++) {
    await grow(postings, FLUSH_ENTRIES);
    await postings.settle();
  }
  expect(levels(store)).toEqual([0, 0, 0]);
  // The part of a merge that was written before the process ended.
  const block = Buffer.alloc(BLOCK_RECORDS * RECORD_BYTES);
  for (let from = 0; from < 600; from += 100)
    await store.postings.writeBlocks(
      77,
      Array.from({ length: 100 }, (_, i): [number, Buffer] => [from + i, block]),
    );
  await postings.close();
  await store.close();

  store = openStore({ path });
  postings = new Postings(store.postings);
  expect(store.postings.filedIds()).toContain(77);
  expect(postings.count).toBe(postings.size);
  await grow(postings, FLUSH_ENTRIES);
  await postings.settle();
  expect(store.postings.filedIds()).toEqual(store.postings.runIds());
  expect(store.postings.runIds().every((id) => id !== 77)).toBe(true);
  expect(levels(store)).toEqual([1]);
  expect(postings.count).toBe(postings.size);
  await postings.close();
  await store.close();
  rmSync(path, { recursive: true, force: true });
});

test("runs of an older version are written anew with bitmaps, and hold what they held", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const store = openStore({ path });
  const half = hashedTerm(POSTING.tag, "half");
  const older: PostingTables = {
    ...store.postings,
    writeRun: (run, blocks, { mapped: _, ...row }, replaced) =>
      store.postings.writeRun(
        run,
        blocks.filter(([number]) => number < MAPS),
        row,
        replaced,
      ),
  };
  const add = async (postings: Postings, entries: number) => {
    const from = postings.size;
    const indexes = Array.from({ length: entries }, (_, i) => from + i);
    postings.add(from + entries, tableOf([[half, indexes.filter((index) => index % 2)]]));
    await postings.settle();
  };
  const before = new Postings(older);
  for (let i = 0; i < 5; i++) await add(before, FLUSH_ENTRIES);
  await before.close();
  const written = levels(store);
  expect(storedRuns(store.postings).map(({ mapped }) => mapped)).toEqual([undefined, undefined]);

  const postings = new Postings(store.postings);
  await add(postings, 1);
  expect(storedRuns(store.postings).map(({ mapped }) => mapped)).toEqual([true, true]);
  expect(levels(store)).toEqual(written);
  const list = postings.list(half);
  expect(list.between(0, postings.size)).toEqual(Array.from({ length: list.length }, (_, i) => 2 * i + 1));
  const bits = new Int32Array(postings.size / 32 + 1);
  list.fill(bits, 0, postings.size);
  expect(new Set(bits.subarray(0, -1))).toEqual(new Set([0xaaaaaaaa | 0]));
  await postings.close();
  await store.close();
  rmSync(path, { recursive: true, force: true });
});
