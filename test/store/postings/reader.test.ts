/** Runs as those read them who do not write them: each once, however often the writer makes others. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
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

type Step = "add" | "freeze" | "file" | "take" | "reload";
const STEPS: readonly Step[] = ["add", "freeze", "file", "take", "reload"];

test("each posting is there once, in whatever order a reader hears of entries, runs and failures", async () => {
  const any = fc.noBias(fc.array(fc.constantFrom(...STEPS), { minLength: 60, maxLength: 60 }));
  const told = fc.asyncProperty(any, async (steps) => {
    const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
    const store = openStore({ path });
    const written = new Postings(store.postings);
    // Of the moment of which the reader has heard.
    const pinned = openStore({ path, readOnly: true });
    pinned.pinPostings();
    const reading = new Postings(pinned.postings, true);
    const note = hashedTerm(POSTING.eventType, "note");
    const addTo = (postings: Postings, to: number) => {
      const terms = new TermTable();
      for (let index = postings.size; index < to; index++) terms.add(note, index);
      postings.add(to, terms);
    };
    let frozenTo = 0;
    const does: Record<Step, () => unknown> = {
      add: () => addTo(written, written.size + 3),
      // The writer tells of the next one when that before is in a run, and has told of that run.
      freeze() {
        if (frozenTo > reading.runsEnd) return;
        frozenTo = reading.size;
        reading.freeze();
      },
      file: () => written.fileAll(),
      take() {
        pinned.pinPostings();
        reading.takeRuns();
      },
      reload() {
        pinned.pinPostings();
        reading.reload();
      },
    };
    try {
      for (const step of steps) {
        await does[step]();
        if (reading.size < written.size) addTo(reading, written.size);
        const { size } = written;
        expect(reading.count, steps.join()).toBe(size);
        expect(reading.list(note).window(0, size)).toEqual(Array.from({ length: size }, (_, index) => index));
      }
    } finally {
      await written.close();
      for (const opened of [pinned, store]) await opened.close();
      rmSync(path, { recursive: true });
    }
  });
  await fc.assert(told, { numRuns: 3 });
});
