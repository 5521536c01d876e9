/** Checkpoints where another process or node writes the log: none is shown before what it covers. */
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Rfc6962Growth } from "#cairnlog/engine/log/rfc6962/growth.js";
import type { LogReader } from "#cairnlog/engine/log/view/reader.js";
import { checkpointPath, tlogCheckpointPath } from "#cairnlog/server/settings/settings.js";
import { MirroredLog } from "#cairnlog/server/tlog/mirrored.js";
import { NodeTlog } from "#cairnlog/server/tlog/replicated.js";
import type { OpenedTlog } from "#cairnlog/server/tlog/tlog.js";
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

test("a node shows what it publishes while it leads, and between its terms the newest that it has shown, or was told and has", async () => {
  const { log } = await openTestLog();
  const note = { event_type: "note", payload: {} };
  let [published, told, errors]: [OpenedTlog | null, string | null, number] = [null, null, 0];
  const node = new NodeTlog({
    ...{ log, vkey: () => null, published: () => published, told: () => told },
    logger: { error: () => void errors++ },
  });
  const shown = async () => node.checkpoint();
  await expect(shown()).rejects.toMatchObject({ code: "not-found" });
  for (const size of [2, 400]) {
    await log.append(Array.from({ length: size - log.size }, () => note));
    node.start();
    told = noteOf(size);
    await expect.poll(() => shown().catch(() => null), { interval: 20 }).toBe(told);
    told = noteOf(size + 1);
    expect(await shown()).toBe(noteOf(size));
    await node.stop();
    // As after a renewal of its cosignatures.
    for (const again of [`${noteOf(size)}again`, noteOf(size)]) {
      told = again;
      expect(await shown()).toBe(again);
    }
    told = noteOf(size + 1);
    const own = noteOf(size + 2);
    published = { checkpoint: () => own, witnesses: () => ["W"] } as unknown as OpenedTlog;
    expect([await shown(), node.witnesses()]).toEqual([own, ["W"]]);
    // What it publishes has the nodes made, too.
    await log.append([note, note]);
    await new Rfc6962Growth(log.rfc6962).extend(log.size);
    published = null;
    expect([await shown(), node.witnesses()]).toEqual([own, []]);
  }
  expect(errors).toBe(0);
  await log.close();
});
