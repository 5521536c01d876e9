/** The files of a log, looked at without LMDB: what is said of those that are damaged, lost, or not there yet. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { checkFiles, filesOnly, removePostings, withFiles } from "#cairnlog/engine/log/check/files.js";
import { openTestLog, temporaryFolder } from "../harness.js";

const PAGE = 4096;
let path: string;
let data: string;
let postings: string;
beforeEach(async () => {
  const opened = await openTestLog();
  path = opened.path;
  await opened.log.append(Array.from({ length: 100 }, (_, n) => ({ event_type: "note", payload: { n } })));
  await opened.log.close();
  [data, postings] = [join(path, "data.mdb"), join(path, "postings", "data.mdb")];
});

const overwritten = (file: string, from: number, to?: number) => {
  const bytes = readFileSync(file);
  bytes.fill(7, from, to);
  writeFileSync(file, bytes);
};
const damaged = (file: string) => expect.stringMatching(new RegExp(`^${file} is damaged: .*[^.]\\.$`));

test("nothing is said of sound files, nor where no log was made yet", () => {
  const sound = { log: "sound", postings: "sound", differences: [] };
  expect(checkFiles(path)).toEqual(sound);
  expect(checkFiles(temporaryFolder())).toEqual(sound);
  expect(checkFiles(join(temporaryFolder(), "none"))).toEqual(sound);
});

test("a log without its file, or whose file holds nothing, is lost if there are postings", () => {
  const lost = { area: "entries", message: `${data} is damaged: it holds nothing.` };
  const closed = { log: "closed", postings: "sound", differences: [lost] };
  writeFileSync(data, "");
  expect(checkFiles(path)).toEqual(closed);
  rmSync(data);
  expect(checkFiles(path)).toEqual(closed);
  removePostings(path);
  expect(existsSync(join(path, "postings"))).toBe(false);
  expect(checkFiles(path)).toEqual({ log: "sound", postings: "sound", differences: [] });
});

test("LMDB cannot open a file without its first pages, and may end the process over one with other damaged ones", () => {
  const before = readFileSync(data);
  overwritten(data, 0, 2 * PAGE);
  expect(checkFiles(path)).toMatchObject({
    log: "closed",
    differences: [{ area: "entries", message: damaged(data) }],
  });
  writeFileSync(data, before);
  overwritten(data, 2 * PAGE);
  const { log, differences } = checkFiles(path);
  expect(log).toBe("damaged");
  expect(differences[0]).toEqual({ area: "entries", message: damaged(data) });
  overwritten(postings, 0);
  const both = checkFiles(path);
  expect(both).toMatchObject({ log: "damaged", postings: "damaged" });
  expect(both.differences.at(0)).toEqual(differences[0]);
  expect(both.differences.at(-1)).toEqual({ area: "derived", message: damaged(postings) });
});

test("faults of both files are counted before those that were found in them", () => {
  const fault = (area: "entries" | "derived", message: string) => ({ area, message });
  const files = {
    log: "damaged",
    postings: "damaged",
    differences: [fault("entries", "one"), fault("entries", "two"), fault("derived", "three")],
  } as const;
  const own = fault("derived", "four");
  const report = { ok: false, entries: 5, counts: { entries: 0, derived: 1, private: 2 }, differences: [own] };
  expect(withFiles(report, files)).toEqual({
    ok: false,
    entries: 5,
    counts: { entries: 2, derived: 2, private: 2 },
    differences: [...files.differences, own],
  });
  expect(report.counts).toEqual({ entries: 0, derived: 1, private: 2 });
});

test("where only the files could be looked at, they and the reason are the report", () => {
  const sound = { log: "sound", postings: "sound", differences: [] } as const;
  const fault = { area: "entries", message: "a fault" } as const;
  const damagedFiles = { ...sound, log: "damaged", differences: [fault] } as const;
  const none = { entries: 0, derived: 0, private: 0 };
  expect(filesOnly(sound, 7, null)).toEqual({ ok: true, entries: 7, counts: none, differences: [] });
  expect(filesOnly(damagedFiles, 0, null)).toEqual({
    ...{ ok: false, entries: 0 },
    ...{ counts: { ...none, entries: 1 }, differences: [fault] },
  });
  expect(filesOnly(damagedFiles, 0, "Reading ended.")).toEqual({
    ...{ ok: false, entries: 0, counts: { ...none, entries: 2 } },
    differences: [fault, { area: "entries", message: "Reading ended." }],
  });
  expect(filesOnly(sound, 0, "Reading ended.")).toMatchObject({ ok: false, counts: { ...none, entries: 1 } });
});
