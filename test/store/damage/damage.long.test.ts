/**
 * Damage of a log's files by a power failure, a bad disk or a person: the log opens completely, or the error says what
 * is wrong. All combinations of files, damages and openers of a log; also every page of every file, and many single bytes.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MAIN, startService } from "../../service.js";
import {
  byteDamage,
  type Case,
  DAMAGES,
  DamagedLogs,
  expectSoundOrSaid,
  FILES,
  type LogFile,
  type Opener,
  PAGE,
  pageDamage,
  usedBytes,
} from "./damages.js";

/** Number of entries: enough for a run of postings. */
const LARGE = 4_300;
const SMALL = 150;
const BYTE_DAMAGES = 75;
const large = new DamagedLogs();
const small = new DamagedLogs();
beforeAll(async () => {
  await large.build(LARGE);
  await small.build(SMALL);
});
afterAll(() => {
  large.remove();
  small.remove();
});

const OPENERS: readonly Opener[] = ["writer", "reader", "backup"];

function expectAll(logs: DamagedLogs, size: number, cases: readonly Case[]): void {
  for (const [i, result] of logs.outcomes(cases).entries()) expectSoundOrSaid(cases[i]!, result, size);
}

test.each(OPENERS)("every damage of every file, opened by the %s", (opener) => {
  const cases = FILES.flatMap((file) => Object.keys(DAMAGES).map((damage) => ({ file, damage, opener })));
  expectAll(small, SMALL, cases);
});

test.each(FILES.slice(0, 2))("every damage of %s of a log with runs of postings", (file) => {
  const cases = Object.keys(DAMAGES).map((damage): Case => ({ file, damage, opener: "writer" }));
  expectAll(large, LARGE, cases);
});

/** What LMDB's own checks see, and what they do not. */
const SERVED: readonly (readonly [LogFile, string])[] = [
  ...["absent", "cut inside a page", "without its last page", "a page in the middle overwritten", "random bytes"].map(
    (damage) => ["data.mdb", damage] as const,
  ),
  ...(["postings/data.mdb", "writer/data.mdb"] as const).flatMap((file) =>
    ["both meta pages overwritten", "a page in the middle overwritten"].map((damage) => [file, damage] as const),
  ),
];

test.each(SERVED)("%s, %s: is served or refused, and checked, without a signal", async (file, damage) => {
  const data = large.damaged(file, damage);
  const refused = "the service ended before it listened: exit code 1";
  const served = await startService(data).then(
    (service) => service.stop(),
    (error: Error) => error.message,
  );
  expect([0, refused]).toContain(served);
  const fsck = spawnSync(process.execPath, [MAIN, "fsck", "--data", data], { encoding: "utf8" });
  expect([fsck.signal, [0, 1].includes(fsck.status!)], fsck.stderr).toEqual([null, true]);
  if (served === refused) expect(fsck.status, fsck.stdout).toBe(1);
});

const pagesOf = (file: LogFile): number => usedBytes(readFileSync(join(small.data, "log", file))) / PAGE;

test.each(["data.mdb", "postings/data.mdb"] as const)("each page of %s is overwritten, and set to zeros", (file) => {
  const cases = Array.from({ length: pagesOf(file) }, (_, page): Case[] =>
    [true, false].map((isZeroed) => {
      const damage = `page ${page} ${isZeroed ? "zeroed" : "overwritten"}, inside`;
      return { file, damage, change: pageDamage(page, isZeroed), opener: "backup" };
    }),
  );
  expectAll(small, SMALL, cases.flat());
});

test.each(["data.mdb", "postings/data.mdb"] as const)("single bytes of %s are changed", (file) => {
  const pages = pagesOf(file);
  const cases = Array.from({ length: BYTE_DAMAGES }, (_, i): Case => {
    const page = (i * 7919) % pages;
    return { file, damage: `bytes ${i} of page ${page}, inside`, change: byteDamage(page), opener: OPENERS[i % 3]! };
  });
  expectAll(small, SMALL, cases);
});
