/**
 * A read transaction that is kept forbids the writer to use any page again that was freed since, and the file grows with each
 * commit, for ever. So the file must grow beside readers of every kind as it grows without any.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { openTestLog, openTestReader, temporaryFolder, testOperator } from "../harness.js";

const APPENDS = 400;
/** A lone append adds some 2 KB; beside a reader that is kept, some 31 KB. */
const MAX_BYTES = 6_000;

/** Bytes by which the files grow for each of `APPENDS` lone appends. */
async function growth(log: LogWriter): Promise<number> {
  // What was freed before can be used first.
  for (let i = 0; i < 50; i++) await log.append({ event_type: "note", payload: { i } });
  const before = log.diskUsage.fileBytes;
  for (let i = 0; i < APPENDS; i++) await log.append({ event_type: "note", payload: { i } });
  return (log.diskUsage.fileBytes - before) / APPENDS;
}

/** A process that opens the log to read it, looks at it, and then does nothing. */
async function otherProcess(path: string) {
  const program = `
    import { openLogReader } from "#cairnlog/engine/log/log.js";
    const { path, operatorKey } = JSON.parse(process.argv[1]);
    const log = await openLogReader({ path, operatorKey, mapSize: 2 ** 30 });
    console.log(log.size);
    setInterval(() => {}, 1000);`;
  const input = JSON.stringify({ path, operatorKey: testOperator.public.pem });
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, input], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return child;
}

const KINDS: Readonly<Record<string, (log: LogWriter, path: string) => Promise<(() => unknown) | undefined>>> = {
  "no reader": async () => undefined,
  "an idle worker that has verified": async (log) => {
    expect(await log.verify()).toMatchObject({ valid: true });
    return undefined;
  },
  "a snapshot that was closed": async (log) => {
    const snapshot = log.snapshot();
    [...snapshot.range("meta")];
    snapshot.close();
    return undefined;
  },
  "a reader that nobody refreshes": async (_, path) => {
    const reader = await openTestReader(path);
    const { size } = reader;
    const entry = reader.entryAt(size - 1);
    await sleep(11_000);
    return () => {
      expect(reader.size).toBe(size);
      expect(reader.entryAt(size - 1)).toEqual(entry);
      expect(reader.entryAt(size)).toBeUndefined();
      expect(reader.inclusionProof(0).tree_size).toBe(size);
      reader.refresh();
      expect(reader.size).toBeGreaterThan(size);
    };
  },
  "a reader process that was killed": async (_, path) => {
    const child = await otherProcess(path);
    child.kill("SIGKILL");
    await once(child, "exit");
    await sleep(6_000);
    return undefined;
  },
  "a reader process that nobody refreshes": async (_, path) => {
    const child = await otherProcess(path);
    await sleep(11_000);
    return () => child.kill("SIGKILL");
  },
};

test.each(Object.entries(KINDS))("beside %s", async (_, begin) => {
  const path = temporaryFolder();
  const { log } = await openTestLog({ path });
  for (let i = 0; i < 300; i++) await log.append({ event_type: "note", payload: { i } });
  const end = await begin(log, path);
  const bytes = await growth(log);
  await end?.();
  expect(bytes).toBeLessThan(MAX_BYTES);
  await log.close();
});

test("the age of the oldest read is known, and ends with it", async () => {
  const { log } = await openTestLog();
  await log.append({ event_type: "note", payload: {} });
  const snapshot = log.snapshot();
  [...snapshot.range("meta")];
  for (let i = 0; i < 20; i++) await log.append({ event_type: "note", payload: { i } });
  expect(log.diskUsage.oldestReader).toBeGreaterThanOrEqual(20);
  snapshot.close();
  await sleep(10);
  expect(log.diskUsage.oldestReader).toBeLessThan(5);
  await log.close();
});
