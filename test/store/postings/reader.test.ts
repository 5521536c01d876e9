/** Runs as those read them who do not write them: each once, however often the writer makes others. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";

const MERGE_WIDTH = 4;

const submission = (index: number) => hashedTerm(POSTING.submission, `attestation ${index}`);

test("a run is read once, and what it has and lacks is found without its filter", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const store = openStore({ path });
  const written = new Postings(store.postings);
  const read: number[] = [];
  const counted = {
    ...store.postings,
    run(id: number) {
      read.push(id);
      return store.postings.run(id);
    },
  };
  const reading = new Postings(counted, true);
  for (let flushed = 0; flushed < MERGE_WIDTH + 2; flushed++) {
    const terms = new TermTable();
    const from = written.size;
    for (let index = from; index < from + FLUSH_ENTRIES; index++) terms.add(submission(index), index);
    written.add(from + FLUSH_ENTRIES, terms);
    await written.settle();
    reading.reload();
    expect(reading.runsEnd).toBe(from + FLUSH_ENTRIES);
    for (const index of [0, from, from + FLUSH_ENTRIES - 1]) {
      expect(reading.first(submission(index))).toBe(index);
      expect(reading.list(submission(index)).length).toBe(1);
    }
    expect(reading.first(submission(from + FLUSH_ENTRIES))).toBe(undefined);
    expect(reading.list(submission(from + FLUSH_ENTRIES)).length).toBe(0);
  }
  expect(read).toEqual([...new Set(read)]);
  // The first four had become one by the time that they were looked at the fourth time.
  expect(read).toHaveLength(MERGE_WIDTH - 1 + 1 + 2);
  await written.close();
  await store.close();
  rmSync(path, { recursive: true });
});

test("the postings of as many entries as a run has are added without more memory, each time anew", async () => {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  const store = openStore({ path });
  const reading = new Postings(store.postings, true);
  const TERMS = 12;
  const packed = (from: number) => {
    const terms = new TermTable();
    for (let index = from; index < from + FLUSH_ENTRIES; index++)
      for (let n = 0; n < TERMS; n++) terms.add(submission(TERMS * index + n), index);
    const words = new Int32Array(terms.packedWords);
    terms.pack(words, from);
    return words;
  };
  for (let run = 0; run < 3; run++) {
    const from = run * FLUSH_ENTRIES;
    const words = packed(from);
    const before = process.memoryUsage().arrayBuffers;
    reading.addPacked(from + FLUSH_ENTRIES, words, from);
    const terms = words[0]!;
    // The numbers of the terms, for as long as they are added.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThanOrEqual(
      Int32Array.BYTES_PER_ELEMENT * terms + 1_024,
    );
    expect(terms).toBe(TERMS * FLUSH_ENTRIES);
    expect(reading.first(submission(TERMS * (from + 1)))).toBe(from + 1);
    reading.freeze();
  }
  await store.close();
  rmSync(path, { recursive: true });
});
