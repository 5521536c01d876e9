/** The file with the newest published head: its content, and the logs that may continue after it. */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { PublishedHead, readPublishedHead } from "#cairnlog/engine/log/tlog/published.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "./harness.js";
import { chain, definedRoot } from "./history/entries.js";

afterEach(() => {
  vi.useRealTimers();
});

const note = { event_type: "note", payload: {} };

/** A log of three entries, and an empty file. */
async function openShown(): Promise<{ log: LogWriter; file: string; published: PublishedHead }> {
  const { log } = await openTestLog();
  await log.append([note, note, note]);
  const file = join(temporaryFolder(), "published.json");
  return { log, file, published: new PublishedHead(file, log) };
}

describe("a log may go on", () => {
  test("if no head of it was shown, or the file is cut short", async () => {
    const { file, published } = await openShown();
    expect(() => published.check()).not.toThrow();
    for (const text of ["", '{"tree_size":', "[]", '{"tree_size":9}']) {
      writeFileSync(file, text);
      expect(() => published.check()).not.toThrow();
    }
  });

  test("if the shown head is its newest or an older one, but not if it is a later or a different one", async () => {
    const { log, file, published } = await openShown();
    const check = (change: object) => {
      writeFileSync(file, JSON.stringify({ ...log.treeHead(), ...change }));
      published.check();
    };
    const refusal = (message: RegExp) =>
      expect.objectContaining({ code: "corrupt-log", message: expect.stringMatching(message) });
    const { root_hash } = log.treeHead(2)!;
    check({});
    check({ tree_size: 2, root_hash });
    expect(() => check({ tree_size: 4 })).toThrow(
      refusal(/^The log shrank: it has 3 entries, but a head of 4 was signed and shown/),
    );
    expect(() => check({ root_hash })).toThrow(
      refusal(/^The log is not the one that was shown: its first 3 entries have another root/),
    );
    expect(() => check({ tree_size: 2 })).toThrow(refusal(/its first 2 entries have another root/));
    // Of which tree it is, is not signed.
    check({ tree_version: 1 });
    check({ tree_version: 1, root_hash: log.consistencyProof(3, 3, 1).to_root });
  });

  test("after an import that brought no heads, where the entries are those that were shown", async () => {
    const path = join(temporaryFolder(), "log");
    const entries = chain([{}, {}, {}]);
    await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
    const { log } = await openTestLog({ path });
    expect(log.treeHead(2)).toBeNull();
    const file = join(temporaryFolder(), "published.json");
    const published = new PublishedHead(file, log);
    const shown = { ...log.treeHead(), tree_size: 2 };
    const digests = entries.slice(0, 2).map(({ entry_hash }) => entry_hash);
    writeFileSync(file, JSON.stringify({ ...shown, root_hash: definedRoot(digests, 2) }));
    published.check();
    writeFileSync(file, JSON.stringify({ ...shown, root_hash: definedRoot(digests.toReversed(), 2) }));
    expect(() => published.check()).toThrow(/its first 2 entries have another root/);
  });
});

describe("the written file", () => {
  test("is the newest head at the end, once", async () => {
    const { log, file, published } = await openShown();
    await published.stop();
    expect(readPublishedHead(file)).toEqual(log.treeHead());
    const { ino, mtimeNs } = statSync(file, { bigint: true });
    await published.stop();
    expect(statSync(file, { bigint: true })).toMatchObject({ ino, mtimeNs });
    await log.append(note);
    await published.stop();
    expect(readPublishedHead(file)).toEqual(log.treeHead(4));
    expect(existsSync(`${file}.new`)).toBe(false);
  });

  test("is the newest head of each second, and nothing on an empty log", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const { log } = await openTestLog();
    const file = join(temporaryFolder(), "published.json");
    const published = new PublishedHead(file, log);
    published.start();
    vi.advanceTimersByTime(1_000);
    await log.append(note);
    vi.advanceTimersByTime(999);
    expect(existsSync(file)).toBe(false);
    vi.advanceTimersByTime(1);
    await expect.poll(() => existsSync(file), { interval: 1 }).toBe(true);
    expect(readPublishedHead(file)).toEqual(log.treeHead(1));
    // The log's own timers stay.
    const timers = vi.getTimerCount();
    await published.stop();
    expect(vi.getTimerCount()).toBe(timers - 1);
  });

  test.each([1, 3])("is written again after the folder could not be, in a log of %i entries", async (count) => {
    const { log } = await openTestLog();
    await log.append(Array(count).fill(note));
    const file = join(temporaryFolder(), "published.json");
    const published = new PublishedHead(file, log);
    const folder = join(file, "..");
    rmSync(folder, { recursive: true });
    await published.stop();
    mkdirSync(folder);
    await published.stop();
    expect(readPublishedHead(file)).toEqual(log.treeHead());
  });
});

test("an unreadable file is not treated as a missing one", () => {
  const folder = temporaryFolder();
  expect(readPublishedHead(join(folder, "none"))).toBeUndefined();
  expect(() => readPublishedHead(folder)).toThrow(
    expect.objectContaining({
      code: "storage-failed",
      message: `${folder} cannot be read.`,
      cause: expect.objectContaining({ code: "EISDIR" }),
    }),
  );
});

test("a line is written, so that people can read it", async () => {
  const { log, file, published } = await openShown();
  await published.stop();
  expect(readFileSync(file, "utf8")).toBe(`${JSON.stringify(log.treeHead())}\n`);
  // Only for the operator, like all files of the data directory that are no keys.
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("a log that is behind what was shown leaves the file as it is until it has caught up", async () => {
  const { log, file, published } = await openShown();
  const shown = { ...log.treeHead(), tree_size: 4 };
  writeFileSync(file, JSON.stringify(shown));
  published.start();
  await published.stop();
  expect(readPublishedHead(file)).toEqual(shown);
  await log.append([note, note]);
  const later = new PublishedHead(file, log);
  later.start();
  await later.stop();
  expect(readPublishedHead(file)).toEqual(log.treeHead(5));
});
