/** `cairnlog fsck` on damaged files: it ends with a report, and can make postings again. */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LogCheckReport } from "#cairnlog/engine/log/check/fsck.js";
import { MAIN } from "../../service.js";
import { DamagedLogs, PAGE, pageDamage } from "./damages.js";

const SIZE = 150;
/** In the header of a page of LMDB's: its kind, and how many pages a value has that does not fit into one. */
const KIND = 18;
const COUNT = 20;
const OVERFLOW = 4;
const logs = new DamagedLogs();
beforeAll(() => logs.build(SIZE));
afterAll(() => logs.remove());

interface Answer extends LogCheckReport {
  readonly rebuilt: boolean;
}

function fsck(data: string, ...more: string[]): { status: number | null; report: Answer } {
  const { status, stdout } = spawnSync(process.execPath, [MAIN, "fsck", "--data", data, "--json", ...more], {
    encoding: "utf8",
  });
  return { status, report: JSON.parse(stdout) };
}
const messages = ({ differences }: Answer): readonly string[] => differences.map(({ message }) => message);

test("damaged postings are named, refused at the start and made anew", () => {
  const data = logs.damaged("postings/data.mdb", "cut at a page");
  const { status, report } = fsck(data);
  expect(status).toBe(1);
  expect(report).toMatchObject({ entries: SIZE, counts: { entries: 0, private: 0 } });
  expect(messages(report)[0]).toMatch(/postings\/data\.mdb is damaged: it was cut: it has \d+ bytes, and should have /);

  const serve = spawnSync(process.execPath, [MAIN, "serve", "--data", data], { encoding: "utf8" });
  expect(serve).toMatchObject({ status: 1, signal: null });
  expect(serve.stderr).toMatch(/postings\/data\.mdb is damaged: .*cairnlog fsck --rebuild/);

  expect(fsck(data, "--rebuild")).toMatchObject({ status: 0, report: { ok: true, entries: SIZE, rebuilt: true } });
  expect(fsck(data)).toMatchObject({ status: 0, report: { ok: true, entries: SIZE } });
});

test("pages that were cut off are named, although LMDB ends the process that reads them", () => {
  const { status, report } = fsck(logs.damaged("data.mdb", "cut at a page"), "--rebuild");
  expect(status).toBe(1);
  expect(report).toMatchObject({ ok: false, rebuilt: false });
  const said = messages(report).join("\n");
  expect(said).toMatch(/the pages \d+ to \d+ are missing, in the table "batches"/);
  expect(said).toMatch(/Reading the log ended with SIG(BUS|SEGV) /);
});

/** The second page of the first value that has several pages: here a batch. */
function pageOfEntries(file: Buffer): number {
  for (let page = 2; page < file.length / PAGE; page++)
    if (file.readUInt16LE(PAGE * page + KIND) === OVERFLOW && file.readUInt32LE(PAGE * page + COUNT) > 1)
      return page + 1;
  throw new Error("no value has several pages");
}

test("a damaged page inside of the entries is found by the entries' hashes", () => {
  const zeroed = (file: Buffer, seed: string) => pageDamage(pageOfEntries(file), true)(file, seed);
  const { status, report } = fsck(logs.damaged("data.mdb", "a page of entries zeroed", zeroed));
  expect(status).toBe(1);
  expect(report.counts.entries).toBeGreaterThan(0);
});

test("a log whose file is gone or not LMDB's any more is not made anew", () => {
  for (const damage of ["absent", "empty", "zeros", "first page overwritten", "random bytes"]) {
    const { status, report } = fsck(logs.damaged("data.mdb", damage), "--rebuild");
    expect({ damage, status, entries: report.entries }).toEqual({ damage, status: 1, entries: 0 });
    expect(messages(report)).toEqual([expect.stringMatching(/log\/data\.mdb is damaged: /)]);
  }
});

test("the lock's files are made anew", () => {
  for (const file of ["writer/data.mdb", "writer/lock.mdb", "lock.mdb"] as const)
    expect(fsck(logs.damaged(file, "random bytes"))).toMatchObject({ status: 0, report: { ok: true, entries: SIZE } });
});
