/** What a run says of itself follows it through merges, through being written anew, and through every start. */
import { expect, test } from "vitest";
import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import { FLUSH_ENTRIES, Postings } from "#cairnlog/engine/store/postings/postings.js";
import { MAPS } from "#cairnlog/engine/store/postings/run-format.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { TermTable } from "#cairnlog/engine/store/postings/termtable.js";
import type { RunRow } from "#cairnlog/engine/store/schema/rows.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../../log/harness.js";
import { storedRuns } from "./storedruns.js";

const NOTE = hashedTerm(POSTING.eventType, "note");

/** What a run may say of the words of titles that it holds. */
type Words = Pick<RunRow, "folded" | "titled">;

/** Tables that write new runs as another version did. */
const older = (tables: PostingTables, words: Words, isMapped: boolean): PostingTables => ({
  ...tables,
  writeRun(run, blocks, { folded: _, titled: __, mapped: ___, ...row }, replaced) {
    const kept = isMapped ? blocks : blocks.filter(([number]) => number < MAPS);
    return tables.writeRun(run, kept, { ...row, ...words, ...(isMapped ? { mapped: true } : {}) }, replaced);
  },
});

/** Writes a run, with a posting of every 64th entry. */
async function writeRun(tables: PostingTables): Promise<void> {
  const postings = new Postings(tables);
  const from = postings.size;
  const terms = new TermTable();
  for (let index = from; index < from + FLUSH_ENTRIES; index += 64) terms.add(NOTE, index);
  postings.add(from + FLUSH_ENTRIES, terms);
  await postings.close();
}

test.each<[runs: number, made: string, isMapped: boolean, levels: number[]]>([
  [4, "are merged", true, [1]],
  [3, "have no bitmaps and are written anew", false, [0, 0, 0]],
])("%i runs that %s say what they said of the words of titles", async (count, _, isMapped, levels) => {
  for (const words of [{}, { titled: true }, { folded: true }] as const) {
    const path = temporaryFolder();
    let store = openStore({ path, mapSize: MAP_SIZE });
    for (let run = 0; run < count; run++) await writeRun(older(store.postings, words, isMapped));
    expect(storedRuns(store.postings).map(({ level }) => level)).toEqual(Array(count).fill(0));
    const postings = new Postings(store.postings);
    await postings.settle();
    const end = count * FLUSH_ENTRIES;
    const lacking = {
      untitledEnd: "folded" in words ? 0 : end,
      earlierUntitledEnd: Object.keys(words).length ? 0 : end,
    };
    const check = (held: Postings) => {
      const runs = storedRuns(store.postings);
      expect(runs.map(({ level }) => level)).toEqual(levels);
      for (const { folded, titled, mapped } of runs)
        expect({ folded, titled, mapped }).toEqual({ ...words, mapped: true });
      expect(held).toMatchObject({ ...lacking, size: end, runsEnd: end });
      expect(held.list(NOTE).length).toBe(end / 64);
    };
    check(postings);
    check(new Postings(store.postings, true));
    await postings.close();
    await store.close();
    store = openStore({ path, mapSize: MAP_SIZE });
    check(new Postings(store.postings));
    await store.close();
  }
});
