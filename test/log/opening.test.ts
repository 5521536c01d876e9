/** Refusals when a log is opened: the messages say what to do, and no files are left behind. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { type OperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog, openLogReader } from "#cairnlog/engine/log/log.js";
import type { TileKey } from "#cairnlog/engine/store/contract.js";
import type { LogMeta } from "#cairnlog/engine/store/schema/rows.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, openTestReader, temporaryFolder, testOperator } from "./harness.js";
import { tamper } from "./tamper.js";

const events = (count: number) => Array.from({ length: count }, (_, n) => ({ event_type: "note", payload: { n } }));

/** A closed log with one batch for each of these numbers of entries. */
async function closedLog(...counts: number[]): Promise<string> {
  const { log, path } = await openTestLog();
  for (const count of counts) await log.append(events(count));
  await log.close();
  return path;
}

async function changeMeta(path: string, change: Partial<LogMeta>): Promise<void> {
  const store = openStore({ path, mapSize: MAP_SIZE });
  const row = { ...store.get("meta", "log")!, ...change };
  await store.commit({
    after: store.position().sequence,
    position: null,
    batches: [],
    rows: [{ table: "meta", key: "log", row }],
    tiles: [],
  });
  await store.close();
}

/** Removes only the newest batches. */
const dropBatches = (path: string, count: number) =>
  tamper(path, "batches", async (db) => {
    for (const key of [...db.getKeys()].slice(-count)) await db.remove(key);
  });

const dropTiles = (path: string, isDropped: (key: TileKey) => boolean) =>
  tamper(path, "tiles", async (db) => {
    for (const key of [...db.getKeys()] as TileKey[]) if (isDropped(key)) await db.remove(key);
  });

describe("refused", () => {
  test.each([
    [
      "without a signer",
      { path: "log" },
      "openLog needs `signer`, a key that signs tree heads: openOperatorKey(file) makes one.",
    ],
    ["without a path", { signer: testOperator }, "openLog needs `path`, the directory of the log."],
    ["without options", undefined, "openLog needs `path`, the directory of the log."],
  ])("%s", async (_, options, message) => {
    await expect(openLog(options as never)).rejects.toMatchObject({ code: "invalid-input", message });
  });

  test("to be read without the operator's public key", async () => {
    const options = { path: await closedLog(1), operator: testOperator } as never;
    const message = "openLogReader needs `operatorKey`, the operator's public key as PEM.";
    await expect(openLogReader(options)).rejects.toMatchObject({ code: "invalid-input", message });
  });

  test("to be written a second time in this process, until the first is closed", async () => {
    const { log, path } = await openTestLog();
    await expect(openTestLog({ path })).rejects.toMatchObject({
      code: "in-use",
      message: `The log in ${path} is open to write in this process already. Use that one, or close it first.`,
    });
    await log.append(events(1));
    await log.close();
    const { log: next } = await openTestLog({ path });
    expect(next.size).toBe(1);
  });

  test.each([
    ["to be written", (path: string, signer: OperatorKey) => openTestLog({ path, signer })],
    ["to be read", openTestReader],
  ])("with another operator key, %s", async (_, opened) => {
    const path = await closedLog(1);
    const other = operatorKey(generatePrivateKey("ed25519"));
    await expect(opened(path, other)).rejects.toMatchObject({
      code: "wrong-operator",
      message: `This log is signed by operator key ${testOperator.fingerprint}, not by ${other.fingerprint}. Give the key that belongs to it, or another data directory.`,
    });
    // Neither the lock nor the environment stays open.
    const { log } = await openTestLog({ path });
    expect(log.size).toBe(1);
  });

  test("to be read where there is no folder, and none is made", async () => {
    const path = join(temporaryFolder(), "none");
    await expect(openTestReader(path)).rejects.toMatchObject({
      code: "not-found",
      message: `There is no log in ${path} to be read.`,
    });
    expect(existsSync(path)).toBe(false);
  });

  test("to be read where the folder holds no log yet", async () => {
    const path = temporaryFolder();
    await openStore({ path, mapSize: MAP_SIZE }).close();
    await expect(openTestReader(path)).rejects.toMatchObject({
      code: "not-found",
      message: `There is no log in ${path} to be read yet.`,
    });
    const { log } = await openTestLog({ path });
    expect(log.size).toBe(0);
    await log.close();
    const read = await openTestReader(path);
    expect(read.size).toBe(0);
  });

  test.each([
    ["to be written", (path: string) => openTestLog({ path })],
    ["to be read", (path: string) => openTestReader(path)],
  ])("after a rebuild that was interrupted, %s", async (_, opened) => {
    const path = await closedLog(2);
    await changeMeta(path, { rebuilding: true });
    await expect(opened(path)).rejects.toMatchObject({
      code: "corrupt-log",
      message: `A rebuild of the log in ${path} was interrupted. Finish it: cairnlog fsck --rebuild.`,
    });
  });

  test.each([
    ["to be written", (path: string) => openTestLog({ path })],
    ["to be read", (path: string) => openTestReader(path)],
  ])("in a newer format, %s", async (_, opened) => {
    const path = await closedLog(1);
    await changeMeta(path, { format: 1000 });
    await expect(opened(path)).rejects.toMatchObject({
      code: "corrupt-log",
      message: expect.stringMatching(
        /^The log is in format 1000; this version reads formats up to \d+\. Use the version/,
      ),
    });
  });
});

describe("by its format", () => {
  const opened = {
    "to be written": (path: string, signer?: OperatorKey) => openTestLog({ path, ...(signer ? { signer } : {}) }),
    "to be read": openTestReader,
  };
  test.each(Object.entries(opened))("the one after this version's is refused, %s", async (_, open) => {
    const path = await closedLog(1);
    await changeMeta(path, { format: FORMAT + 1 });
    await expect(open(path)).rejects.toMatchObject({
      code: "corrupt-log",
      message: expect.stringMatching(
        `^The log is in format ${FORMAT + 1}; this version reads formats up to ${FORMAT}\\.`,
      ),
    });
  });

  test.each([
    ["an earlier one", {}],
    ["one whose conversion is under way, or was interrupted,", { rebuilding: true, migrating: true } as const],
  ])("%s is not read before its writer has converted it", async (_, marks) => {
    const path = await closedLog(1);
    await changeMeta(path, { format: FORMAT - 1, ...marks });
    await expect(openTestReader(path)).rejects.toMatchObject({
      code: "precondition-failed",
      message: expect.stringMatching(
        `^The log is in format ${FORMAT - 1}, but this version uses format ${FORMAT}\\. Start the service once, or the monitor`,
      ),
    });
    await (await openTestLog({ path })).log.close();
    expect((await openTestReader(path)).size).toBe(1);
  });

  test("an earlier one becomes this version's, but not for a key that is not the log's", async () => {
    const path = await closedLog(1);
    await changeMeta(path, { format: FORMAT - 1 });
    const format = async () => {
      const store = openStore({ path, mapSize: MAP_SIZE, readOnly: true });
      const meta = store.get("meta", "log");
      await store.close();
      return meta?.format;
    };
    const other = operatorKey(generatePrivateKey("ed25519"));
    await expect(opened["to be written"](path, other)).rejects.toMatchObject({ code: "wrong-operator" });
    expect(await format()).toBe(FORMAT - 1);
    const { log } = await openTestLog({ path });
    expect(log.size).toBe(1);
    await log.close();
    expect(await format()).toBe(FORMAT);
  });
});

describe("a log that lost its newest batches", () => {
  const shrank = (path: string, size: number, what: string) => ({
    code: "corrupt-log",
    message: `The log in ${path} shrank: it ends after entry ${size}, but ${what} of later ones are there. Restore the newest backup (cairnlog restore).`,
  });

  test.each([
    [1, 2],
    [2, 1],
  ])("is refused for a tile of tree version %i alone", async (_, removed) => {
    // The only tile below the end is full, so the next tile is the first that may exist.
    const path = await closedLog(256, 256);
    await dropBatches(path, 1);
    await dropTiles(path, ([version, level, index]) => version === removed && level === 1 && index === 1);
    await expect(openTestLog({ path })).rejects.toMatchObject(shrank(path, 256, "tiles"));
  });

  test("is refused for one tile that is beyond its end", async () => {
    const path = await closedLog(511, 1);
    await dropBatches(path, 1);
    await expect(openTestLog({ path })).rejects.toMatchObject(shrank(path, 511, "tiles"));
  });

  test("is refused when all of it is gone", async () => {
    const path = await closedLog(256);
    await dropBatches(path, 1);
    await expect(openTestLog({ path })).rejects.toMatchObject(shrank(path, 0, "tiles"));
  });

  test("is refused for postings where tiles show nothing", async () => {
    // Postings of 4096 entries are written together.
    const path = await closedLog(...Array<number>(8).fill(512));
    const { log } = await openTestLog({ path });
    expect(log.size).toBe(4096);
    await log.close();
    await dropBatches(path, 1);
    await dropTiles(path, ([, level, index]) => level === 1 && index >= 3584 / 256);
    await expect(openTestLog({ path })).rejects.toMatchObject(shrank(path, 3584, "postings"));
  });
});
