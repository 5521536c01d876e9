/** Runs as those read them who do not write them: each once, however often the writer makes others. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FLUSH_ENTRIES, MERGE_WIDTH, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import { POSTING } from "#cairnlog/engine/store/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";

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
