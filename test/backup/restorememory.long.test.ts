/** The memory that a restore needs, in a process of its own. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { openTestLog, temporaryFolder, testOperator } from "../log/harness.js";

const MIB = 2 ** 20;
const CHILD = fileURLToPath(new URL("restorechild.mjs", import.meta.url));
const BATCH = 500;
/** As many as an entry may have: 900 bytes of postings an entry. */
const TAGS = 32;
const [SMALL, LARGE] = [20_000, 200_000];

/** The backup of a log of so many entries, restored. */
async function restored(entries: number): Promise<{ entries: number; mapped: number; own: number }> {
  const folder = temporaryFolder();
  const path = join(folder, "log");
  const { log } = await openTestLog({ path });
  const event = (n: number) => ({
    event_type: "note",
    payload: { n, tags: Array.from({ length: TAGS }, (_, tag) => `tag ${(n + 7 * tag) % 500}`) },
  });
  for (let n = 0; n < entries; n += BATCH) await log.append(Array.from({ length: BATCH }, (_, i) => event(n + i)));
  await log.close();
  await backUp({ path, to: join(folder, "backup"), operatorKey: testOperator.public.pem });
  const { stdout } = await promisify(execFile)(process.execPath, [
    CHILD,
    join(folder, "backup"),
    join(folder, "restored"),
  ]);
  return JSON.parse(stdout);
}

test("it does not grow with the log, mapped pages of its files included", async () => {
  const [small, large] = [await restored(SMALL), await restored(LARGE)];
  expect([small.entries, large.entries]).toEqual([SMALL, LARGE]);
  expect(large.own - small.own).toBeLessThan(96 * MIB);
  // The postings of the larger log take 170 MiB more, and merges read them several times: 101 MiB if their file stays open, else 37.
  expect(large.mapped - small.mapped).toBeLessThan(64 * MIB);
});
