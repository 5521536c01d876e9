/** What is read of the data file without LMDB is read while LMDB may reuse none of its pages. */
import { open } from "lmdb";
import { expect, onTestFinished, test, vi } from "vitest";
import { PageFile } from "#cairnlog/engine/store/lmdb/file/pagefile.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog } from "../log/harness.js";

/** Lines of LMDB's list of readers that hold a moment: process, thread, transaction. */
const HOLDING = /^\s*\d+\s+\S+\s+\d+\s*$/gm;

test.each([
  ["of the newest moment", false],
  ["of one moment", true],
])("by a reader %s", async (_, isPinned) => {
  const { log, path } = await openTestLog();
  await log.append(
    Array.from({ length: 16 }, (_, n) => ({ event_type: "note", payload: { text: `${n}`.repeat(900) } })),
  );
  await log.close();
  const store = openStore({ path, readOnly: true, mapSize: MAP_SIZE });
  onTestFinished(() => store.close());
  // The same environment: lmdb opens a path once a process.
  const list = open({ path, readOnly: true, mapSize: MAP_SIZE, maxDbs: 64 });
  const holders = () => list.readerList().match(HOLDING)?.length ?? 0;
  if (isPinned) store.pin();
  const before = holders();

  const held: number[] = [];
  const read = PageFile.prototype.read;
  const spied = vi.spyOn(PageFile.prototype, "read").mockImplementation(function (this: PageFile, ...place) {
    held.push(holders());
    return read.apply(this, place);
  });
  onTestFinished(() => void spied.mockRestore());
  const extent = store.batchPlace(3);
  expect(extent?.entry(3)?.toString()).toContain("333");
  // The pages that lead to the batch: the meta pages, two tables. The entry itself lies where no page is ever reused.
  expect([before, held.slice(0, 4)]).toEqual([isPinned ? 1 : 0, [1, 1, 1, 1]]);
});
