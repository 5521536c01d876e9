/** Entries that are read at their place in the data file, without the rest of their batch. */
import { expect, test } from "vitest";
import { Batch, packBatch } from "#cairnlog/engine/store/batch.js";
import { Places } from "#cairnlog/engine/store/lmdb/places.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { openTestLog, temporaryFolder } from "../log/harness.js";

const PER_BATCH = 8;
/** Bytes of one payload: a batch of eight is large. */
const TEXT = 2_500;

/** A log of `batches` large batches, each followed by one of a single entry. @returns its directory */
async function logOf(batches: number, letter: string): Promise<string> {
  const { log, path } = await openTestLog();
  for (let n = 0; n < batches; n++) {
    const large = Array.from({ length: PER_BATCH }, (_, i) => ({ n, i, text: letter.repeat(TEXT + i) }));
    await log.append(large.map((payload) => ({ event_type: "note", payload })));
    await log.append({ event_type: "note", payload: { n } });
  }
  await log.close();
  return path;
}

test("what is read at its place is what LMDB gives, in a file of several levels", async () => {
  const batches = 160;
  const store = openStore({ path: await logOf(batches, "a"), readOnly: true });
  for (let index = 0; index < batches * (PER_BATCH + 1); index++) {
    const batch = store.batchAt(index)!;
    const i = index - batch.firstIndex;
    expect(store.batchView(index)!.firstIndex).toBe(batch.firstIndex);
    const place = store.batchPlace(index);
    if (batch.count === 1) {
      expect(place).toBeUndefined();
      continue;
    }
    expect(place).toMatchObject({ firstIndex: batch.firstIndex, count: PER_BATCH });
    expect(place!.entry(i)).toEqual(batch.entry(i));
    expect(place!.digest(i)).toBe(batch.digest(i));
  }
  expect(store.batchPlace(-1)).toBeUndefined();
  expect(store.batchPlace(batches * (PER_BATCH + 1))).toBeUndefined();
  await store.close();
});

test("a place is not taken where the file has other bytes than LMDB gave", async () => {
  const [one, other] = [await logOf(2, "a"), await logOf(2, "b")];
  const store = openStore({ path: one, readOnly: true });
  const places = { own: new Places(one), foreign: new Places(other), absent: new Places(temporaryFolder()) };
  const stored = store.batchAt(0)!;
  const entries = Array.from({ length: stored.count }, (_, i) => stored.entry(i));
  const row = packBatch(entries, stored.digests, stored.heads);
  const batch = new Batch(0, row);
  for (const each of Object.values(places)) each.learn(batch, row);
  expect(places.own.at(0)).toMatchObject({ firstIndex: 0, count: PER_BATCH });
  expect(places.foreign.at(0)).toBeUndefined();
  expect(places.absent.at(0)).toBeUndefined();
  places.own.close();
  expect(places.own.at(0)).toBeUndefined();
  await store.close();
});
