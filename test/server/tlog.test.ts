/** Checkpoints where another process or node writes the log: none is shown before what it covers. */
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { LogReader } from "#cairnlog/engine/log/view/reader.js";
import { checkpointPath, tlogCheckpointPath } from "#cairnlog/server/settings/settings.js";
import { MirroredLog } from "#cairnlog/server/tlog/mirrored.js";
import { NodeTlog } from "#cairnlog/server/tlog/replicated.js";
import { openTestLog } from "../log/harness.js";
import { temporaryFolder } from "./harness.js";

const SIZE = 600;
const LATER = 1200;
const noteOf = (size: number) => `log.example/tlog\n${size}\n`;
const logger = { error: () => {} };

/** Two ways to show checkpoints of a log, each with a function that brings the newest one there. */
const SHOWING: Record<string, (log: LogReader) => { tell(size: number): void; shown(): unknown; end(): unknown }> = {
  "a mirror": (log) => {
    const dataDir = temporaryFolder();
    const mirror = new MirroredLog(log, dataDir, logger);
    return {
      tell: (size) => writeFileSync(tlogCheckpointPath(dataDir), noteOf(size)),
      shown: () => mirror.tlog.checkpoint(),
      end: () => mirror.close(),
    };
  },
  "a follower": (log) => {
    let told = noteOf(SIZE);
    const node = new NodeTlog({ log, vkey: () => null, published: () => null, told: () => told, logger });
    node.start();
    return {
      tell: (size) => {
        told = noteOf(size);
      },
      shown: () => node.checkpoint(),
      end: () => node.stop(),
    };
  },
};

test.each(Object.keys(SHOWING))(
  "%s shows no checkpoint for which the log has grown and its nodes are not made",
  async (name) => {
    const { log } = await openTestLog();
    await log.append(Array.from({ length: SIZE }, () => ({ event_type: "note", payload: {} })));
    let looks = 0;
    // It grows as soon as the nodes are being made. Those of the larger tree never can be.
    const growing = {
      rfc6962: log.rfc6962,
      refresh() {},
      get size() {
        return looks++ ? LATER : SIZE;
      },
    } as Partial<LogReader> as LogReader;
    const { tell, shown, end } = SHOWING[name]!(growing);
    tell(SIZE);
    const newest = async () => shown();
    await expect.poll(() => newest().catch(() => null), { interval: 20 }).toBe(noteOf(SIZE));
    tell(LATER);
    expect(await newest().catch(() => null)).not.toBe(noteOf(LATER));
    await end();
    await log.close();
  },
);

test("a mirror shows no checkpoint of more entries than it shows, and each as soon as it shows them", async () => {
  const { log } = await openTestLog();
  let size = 2;
  const growing = {
    rfc6962: log.rfc6962,
    refresh() {},
    get size() {
      return size;
    },
  } as Partial<LogReader> as LogReader;
  const dataDir = temporaryFolder();
  const mirror = new MirroredLog(growing, dataDir, logger);
  await expect(mirror.newest()).rejects.toMatchObject({ code: "not-found" });
  // Written by the monitor, the entries first or the checkpoint.
  for (const [written, shown] of [
    [2, 2],
    [3, null],
    [1, 1],
  ] as const) {
    writeFileSync(checkpointPath(dataDir), noteOf(written));
    expect(await mirror.newest().catch(() => null)).toBe(shown && noteOf(shown));
  }
  writeFileSync(checkpointPath(dataDir), noteOf(3));
  size = 3;
  expect(await mirror.newest()).toBe(noteOf(3));
  mirror.close();
  await log.close();
});
