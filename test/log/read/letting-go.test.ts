/**
 * A reader that nobody refreshes gives its moment back, again and again, whatever it is asked in between: as long as it holds
 * one, the files of the log grow with each commit. It shows what it has shown all the same.
 */
import { open, type RootDatabase } from "lmdb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LogReader } from "#cairnlog/engine/log/view/reader.js";
import { Postings } from "#cairnlog/engine/store/postings/postings.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { postingsFolder } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openFaultyLog, openTestLog, openTestReader } from "../harness.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** More than the milliseconds for which a reader holds a moment. */
const LONG = 10_500;

const ASKED: Readonly<Record<string, (reader: LogReader) => unknown>> = {
  nothing: () => undefined,
  "an entry": (reader) => reader.entryAt(0),
  "a row": (reader) => reader.row("meta", "log"),
  "a proof": (reader) => reader.inclusionProof(0),
  "a list of postings": (reader) => reader.postings(hashedTerm(POSTING.eventType, "note")).length,
  "a search": (reader) => reader.find({ eventTypes: ["note"] }, 0, 10).total,
  "the newest moment": (reader) => reader.refresh(),
};

/** The transactions of readers that are under way in each file of a log. */
const held = (files: readonly RootDatabase[]): string[] =>
  files.flatMap((file) => [...(file as unknown as Inspected).readerList().matchAll(/^\s*\d+ +\S+ +\d+$/gm)].flat());
interface Inspected {
  readerList(): string;
}

test.each(Object.entries(ASKED))("asked for %s after that, and again", async (_, ask) => {
  const { log, path } = await openTestLog();
  for (let i = 0; i < 3; i++) await log.append({ event_type: "note", payload: { i } });
  await log.close();
  const reader = await openTestReader(path);
  const files = [path, postingsFolder(path)].map((folder) => open({ path: folder, mapSize: MAP_SIZE, readOnly: true }));
  expect(held(files).length).toBeGreaterThan(0);
  for (let times = 0; times < 3; times++) {
    vi.advanceTimersByTime(LONG);
    expect(held(files), `${times}`).toEqual([]);
    ask(reader);
    ask(reader);
  }
  for (const file of files) await file.close();
});

test("what it shows stays the same when the writer has merged the runs of postings that it had read, and removed them", async () => {
  const adding = vi.spyOn(Postings.prototype, "add");
  const { log, path } = await openTestLog();
  const grow = async (runs: number) => {
    for (let i = 0; i < runs; i++) {
      await log.append([1, 2].map((n) => ({ event_type: "note", payload: { i, n } })));
      await (adding.mock.contexts.at(-1) as Postings).fileAll();
    }
  };
  await grow(3);
  const reader = await openTestReader(path);
  const shown = () => [reader.entryAt(5), reader.inclusionProof(5), reader.find({ eventTypes: ["note"] }, 0, 10)];
  const before = shown();
  for (let times = 0; times < 2; times++) {
    vi.advanceTimersByTime(LONG);
    // Four of them become one.
    await grow(4);
    expect(shown()).toEqual(before);
    expect(ASKED["a list of postings"]!(reader)).toBeGreaterThanOrEqual(6);
  }
  adding.mockRestore();
});

test("postings that are in no run are there when a run has come meanwhile, which holds only those before", async () => {
  const adding = vi.spyOn(Postings.prototype, "add");
  const { log, path, faults } = await openFaultyLog();
  let allow = () => {};
  const isAllowed = new Promise<void>((resolve) => {
    allow = resolve;
  });
  faults.step = async (label, write) => {
    if (label.startsWith("run")) await isAllowed;
    return write();
  };
  await log.append([1, 2].map((n) => ({ event_type: "note", payload: { n } })));
  const filed = (adding.mock.contexts.at(-1) as Postings).fileAll();
  await log.append([3, 4].map((n) => ({ event_type: "note", payload: { n } })));
  const reader = await openTestReader(path);
  const shown = () => [ASKED["a list of postings"]!(reader), ASKED["a search"]!(reader)];
  const before = shown();
  expect(before).toEqual([4, 4]);
  vi.advanceTimersByTime(LONG);
  allow();
  await filed;
  expect(shown()).toEqual(before);
  adding.mockRestore();
});
