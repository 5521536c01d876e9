/** Entries that are read at their place in the data file, without the rest of their batch. */
import { appendFileSync, copyFileSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BatchExtents } from "#cairnlog/engine/store/lmdb/batch-extents.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { openTestLog, temporaryFolder } from "../log/harness.js";
import { Random } from "../reliability/random.js";

const PER_BATCH = 8;
/** Bytes of one payload. */
const TEXT = 2_500;
/** A large batch and one of a single entry, which has no pages of its own. */
const PAIR = PER_BATCH + 1;

const large = (n: number, letter: string) =>
  Array.from({ length: PER_BATCH }, (_, i) => ({
    event_type: "note",
    payload: { n, i, text: letter.repeat(TEXT + i) },
  }));
const small = (n: number) => ({ event_type: "note", payload: { n } });

/** A log of `batches` large batches, each followed by one of a single entry. @returns its directory */
async function logOf(batches: number, letter: string): Promise<string> {
  const { log, path } = await openTestLog();
  for (let n = 0; n < batches; n++) {
    await log.append(large(n, letter));
    await log.append(small(n));
  }
  await log.close();
  return path;
}

/** What LMDB gives of an entry, and what its place gives, if it has one. */
function compare(store: Store, index: number): void {
  const batch = store.batchAt(index)!;
  const i = index - batch.firstIndex;
  const place = store.batchPlace(index);
  if (batch.count === 1) {
    expect(place, `${index}`).toBeUndefined();
    return;
  }
  const { firstIndex, count } = place!;
  expect({ firstIndex, count }, `${index}`).toEqual({ firstIndex: batch.firstIndex, count: PER_BATCH });
  // Without the diff of two long buffers, which takes longer than all reads.
  expect(place!.entry(i)!.equals(batch.entry(i)), `${index}`).toBe(true);
  expect(place!.digests(i, i + 1)?.toString("hex")).toBe(batch.digest(i));
}

test("what is read at its place is what LMDB gives, in a file of several levels", async () => {
  const batches = 160;
  const store = openStore({ path: await logOf(batches, "a"), readOnly: true });
  for (let index = 0; index < batches * PAIR; index++) compare(store, index);
  expect(store.batchPlace(-1)).toBeUndefined();
  expect(store.batchPlace(batches * PAIR)).toBeUndefined();
  await store.close();
});

test("what is forgotten of a batch is read again, however little is kept", async () => {
  const batches = 12;
  const path = await logOf(batches, "a");
  const store = openStore({ path, readOnly: true });
  const entries = Array.from({ length: batches * PAIR }, (_, index) => index).filter(
    (index) => index % PAIR < PER_BATCH,
  );
  const right = entries.map((index) => store.batchAt(index)!.entry(index % PAIR));
  await store.close();
  const random = new Random(7);
  // One batch has nine ends.
  for (const kept of [9, 10, 17, 18, 25, 60]) {
    const places = new BatchExtents(path, kept);
    for (let reads = 0; reads < 300; reads++) {
      const n = random.below(entries.length);
      const place = places.at(entries[n]!) ?? places.find(entries[n]!);
      const entry = place?.entry(entries[n]! % PAIR);
      expect(entry?.equals(right[n]!), `${kept} kept, entry ${entries[n]}`).toBe(true);
    }
    places.close();
  }
});

test("places stay right while the log grows and LMDB writes the pages that name them anew", async () => {
  const { log, path } = await openTestLog();
  await log.append(large(0, "a"));
  const [newest, pinned] = [0, 1].map(() => openStore({ path, readOnly: true })) as [Store, Store];
  pinned.pin();
  let pinnedSize = log.size;
  for (let n = 1; n <= 100; n++) {
    await log.append(large(n, "a"));
    await log.append(small(n));
    newest.refresh();
    if (n % 7 === 0) {
      pinned.pin();
      pinnedSize = log.size;
    }
    // The newest, and some all over.
    for (let k = 0; k < 4; k++) {
      compare(newest, log.size - 1 - k);
      compare(newest, (n * 7_919 + k * 104_729) % log.size);
      compare(pinned, pinnedSize - 1 - k);
      compare(pinned, (n * 7_919 + k * 104_729) % pinnedSize);
    }
  }
  for (let index = 0; index < log.size; index++) compare(newest, index);
  await Promise.all([newest.close(), pinned.close()]);
  await log.close();
});

test("where the file has something else than its leaf page says, nothing is read", async () => {
  const path = await logOf(2, "a");
  const bytes = readFileSync(join(path, "data.mdb"));
  const sound = new BatchExtents(path);
  const first = sound.find(0)!;
  const firstEntry = first.entry(0)!;
  const digests = first.digests(0, PER_BATCH)!;
  expect(firstEntry.toString()).toContain('"id":1,');
  sound.close();
  expect(sound.at(0)).toBeUndefined();

  const batchAt = bytes.indexOf(digests) - beforeDigests(PER_BATCH);
  const pageAt = batchAt - 24;
  /** `change` a copy of the file, and read the first entry at its place. */
  const read = (change: (file: string) => void) => {
    const folder = temporaryFolder();
    const file = join(folder, "data.mdb");
    copyFileSync(join(path, "data.mdb"), file);
    change(file);
    const places = new BatchExtents(folder);
    const place = places.find(0);
    const found = { entry: place?.entry(0), digest: place?.digests(0, 1)?.toString("hex") };
    places.close();
    return found;
  };
  const overwrite = (at: number, by: number[]) => (file: string) => {
    const changed = readFileSync(file);
    changed.set(by, at);
    writeFileSync(file, changed);
  };
  const nothing = { entry: undefined, digest: undefined };
  expect(read(() => {}).entry).toEqual(firstEntry);
  // The page's number and kind; the batch's format, count and length; the end of the file; no LMDB file at all.
  expect(read(overwrite(pageAt, [1, 2]))).toEqual(nothing);
  expect(read(overwrite(pageAt + 18, [2, 0]))).toEqual(nothing);
  expect(read(overwrite(batchAt, [9]))).toEqual(nothing);
  expect(read(overwrite(batchAt + 4, [PER_BATCH - 1]))).toEqual(nothing);
  expect(read(overwrite(batchAt + 8 + 4 * (PER_BATCH - 1), [1, 1]))).toEqual(nothing);
  expect(read((file) => truncateSync(file, pageAt + 4096))).toEqual(nothing);
  expect(read(overwrite(0, Array(8192).fill(255)))).toEqual(nothing);
  expect(read((file) => appendFileSync(file, "more")).entry).toEqual(firstEntry);
  const absent = new BatchExtents(temporaryFolder());
  expect(absent.find(0)).toBeUndefined();
  expect(absent.find(0)).toBeUndefined();
});

test("a meta page that is read while it is written costs one read by LMDB, not all of them", async () => {
  const path = await logOf(1, "a");
  const folder = temporaryFolder();
  const file = join(folder, "data.mdb");
  const sound = readFileSync(join(path, "data.mdb"));
  writeFileSync(file, Buffer.from(sound).fill(255, 0, 8192));
  const places = new BatchExtents(folder);
  expect(places.find(0)).toBeUndefined();
  writeFileSync(file, sound);
  expect(places.find(0)).toMatchObject({ firstIndex: 0, count: PER_BATCH });
  places.close();
});

/** Bytes of a batch before its digests: header and ends. */
const beforeDigests = (count: number): number => 8 + 4 * count;
