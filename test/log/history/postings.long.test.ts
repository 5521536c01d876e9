/** The postings of history that was imported or restored, and of a log that has lost some of them. */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { restore } from "#cairnlog/engine/log/history/restore.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { FLUSH_ENTRIES } from "#cairnlog/engine/store/postings/postings.js";
import { openStore, postingsFolder } from "#cairnlog/engine/store/store.js";
import { storedRuns } from "../../store/postings/storedruns.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../harness.js";
import { chain, line, type Wanted } from "./entries.js";

const MERGE_WIDTH = 4;

/** Enough for a merge, and fewer beyond it than a log files when it is closed. */
const ENTRIES = MERGE_WIDTH * FLUSH_ENTRIES + 100;
const history = chain(Array<Wanted>(ENTRIES).fill({ payload: { tags: ["old"] } }));

/** The runs on disk, and the ids of all that has blocks there. */
async function runsIn(path: string) {
  const store = openStore({ path, readOnly: true, mapSize: MAP_SIZE });
  try {
    const runs = storedRuns(store.postings).map(({ id, level, from, to, count }) => ({ id, level, from, to, count }));
    return { runs, filed: store.postings.filedIds() };
  } finally {
    await store.close();
  }
}

/** Opens the log once, as a start does, and closes it when it is at rest. */
async function started(path: string): Promise<void> {
  const { log } = await openTestLog({ path });
  expect(log.find({ tags: ["old"] }, 0, 1).total).toBe(log.size);
  expect(log.stateDifferences()).toEqual([]);
  await log.close();
}

async function importedLog(entries: readonly object[]): Promise<string> {
  const path = join(temporaryFolder(), "log");
  await importEntries(
    { path, signer: testOperator, mapSize: MAP_SIZE },
    entries.map((entry) => `${JSON.stringify(entry)}\n`),
  );
  return path;
}

let path: string;
beforeAll(async () => {
  path = await importedLog(history);
});

test("an import and a restore leave the postings of a log at rest, so that the first start files nothing", async () => {
  const to = join(temporaryFolder(), "backup");
  await backUp({ path, to, operatorKey: testOperator.public.pem });
  const restored = join(temporaryFolder(), "log");
  const options = { projection: noProjection, pool: testPool, published: [], mayFork: true };
  await restore({ from: to, path: restored, ...options });
  for (const log of [path, restored]) {
    const before = await runsIn(log);
    const [merged, last] = before.runs;
    expect(before).toEqual({
      runs: [
        { ...merged, level: 1, from: 0, to: MERGE_WIDTH * FLUSH_ENTRIES },
        { ...last, level: 0, from: MERGE_WIDTH * FLUSH_ENTRIES, to: ENTRIES },
      ],
      filed: [merged!.id, last!.id].sort((one, other) => one - other),
    });
    await started(log);
    expect(await runsIn(log)).toEqual(before);
  }
});

test.each([
  ["all", 0],
  ["most", 5000],
])("a log that has lost %s of its postings files them in stretches when it is opened", async (_, left) => {
  const copy = join(temporaryFolder(), "log");
  cpSync(path, copy, { recursive: true });
  rmSync(postingsFolder(copy), { recursive: true });
  // A shorter copy of the same history has the postings of its beginning.
  if (left)
    cpSync(postingsFolder(await importedLog(history.slice(0, left))), postingsFolder(copy), { recursive: true });
  const { log } = await openTestLog({ path: copy });
  await log.close();
  const { runs } = await runsIn(copy);
  const ends = runs.map(({ to }) => to).sort((a, b) => a - b);
  expect(ends.at(-1)).toBeGreaterThan(ENTRIES - FLUSH_ENTRIES);
  expect(runs.every((run) => run.level > 0 || run.to - run.from <= FLUSH_ENTRIES)).toBe(true);
  await started(copy);
});

test.each([
  [1023, []],
  [1024, [{ from: 0, to: 1024 }]],
])("a log that is closed with %i entries in no run has these runs", async (count, expected) => {
  const { log, path } = await openTestLog();
  await log.append(Array.from({ length: count }, () => ({ event_type: "note", payload: { tags: ["old"] } })));
  await log.close();
  const { runs } = await runsIn(path);
  expect(runs).toEqual(expected.map((run) => expect.objectContaining(run)));
  await started(path);
});

test("who goes on with a history files them, too", async () => {
  const copy = join(temporaryFolder(), "log");
  cpSync(path, copy, { recursive: true });
  rmSync(postingsFolder(copy), { recursive: true });
  const writer = await openHistory({ path: copy, operatorKey: testOperator.public.pem, mapSize: MAP_SIZE });
  const [next] = chain([{ payload: { tags: ["old"] } }], history.at(-1)!);
  await writer.add([{ entry: line(next!), otsProof: null, head: null }]);
  await writer.close();
  expect((await runsIn(copy)).runs.at(-1)).toMatchObject({ to: MERGE_WIDTH * FLUSH_ENTRIES });
  await started(copy);
});
