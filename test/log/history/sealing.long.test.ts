/** What an import makes: the sizes of its batches, the time of its head, and the rows that were there before. */
import { lstatSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { formatTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../harness.js";
import { runIn } from "../inline.js";
import { chain, type MadeEntry } from "./entries.js";

test("the head of an import is not earlier than its last entry", async () => {
  const path = `${temporaryFolder()}/log`;
  const late = chain([{ chain_version: 2, timestamp: "2250-01-01T00:00:00.000000Z" }]);
  const before = formatTimestamp(Date.now() * 1000);
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, late);
  const { log } = await openTestLog({ path });
  expect(log.treeHead()!.timestamp).toBe(late[0]!.timestamp);
  expect(await log.verify()).toMatchObject({ valid: true, errors: [] });
  const other = `${temporaryFolder()}/log`;
  await importEntries({ path: other, signer: testOperator, mapSize: MAP_SIZE }, chain([{}, {}]));
  expect((await openTestLog({ path: other })).log.treeHead()!.timestamp >= before).toBe(true);
});

test("an import writes batches of 1,024 entries or 4 MiB at most, and the last entry with its head alone", async () => {
  const batchesOf = async (made: readonly MadeEntry[]) => {
    const path = `${temporaryFolder()}/log`;
    await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, made);
    const store = openStore({ path, mapSize: MAP_SIZE });
    const keys = [...store.batchKeys()];
    await store.close();
    return keys;
  };
  expect(await batchesOf(chain(Array(1026).fill({})))).toEqual([0, 1024, 1025]);
  // Three of these have more bytes than a batch may have.
  const text = "x".repeat(1.5 * 2 ** 20);
  expect(await batchesOf(chain(Array(6).fill({ payload: { text } })))).toEqual([0, 2, 4, 5]);
});

/** The files below a folder that this process has open, removed ones too. */
const openIn = (folder: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    .filter((link) => lstatSync(link, { throwIfNoEntry: false }))
    .map((link) => readlinkSync(link))
    .filter((file) => file.startsWith(`${folder}/`));

test("a log that got an entry meanwhile keeps it, and a file that holds nothing is an empty log", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "log");
  await openStore({ path, mapSize: MAP_SIZE }).close();
  const signer = {
    ...testOperator,
    async sign(messages: readonly Uint8Array[]) {
      const { log } = await openTestLog({ path });
      await log.append({ event_type: "note", payload: {} });
      await log.close();
      return testOperator.sign(messages);
    },
  };
  await expect(importEntries({ path, signer, mapSize: MAP_SIZE }, chain([{}]))).rejects.toMatchObject({
    code: "precondition-failed",
    message: expect.stringMatching(/^The log already has 1 .* only be imported into an empty log\.$/),
  });
  expect(readdirSync(folder)).toEqual(["log"]);
  expect((await openTestLog({ path })).log.size).toBe(1);
});

test("an empty log of an older format keeps its private rows; a log that has lost its entries is not empty", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "log");
  const { log } = await openTestLog({ path });
  await runIn(log, (transaction) => transaction.put("passwords", "a key", { hash: "a hash" }));
  await log.close();
  const older = openStore({ path, mapSize: MAP_SIZE });
  const row = { ...older.get("meta", "log")!, format: FORMAT - 1 };
  const rows = [{ table: "meta", key: "log", row }] as const;
  const after = older.position().sequence;
  await older.commit({ after, position: null, batches: [], rows, tiles: [] });
  await older.close();

  const entries = chain([{}, {}]);
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
  const store = openStore({ path, mapSize: MAP_SIZE });
  expect(store.get("passwords", "a key")).toEqual({ hash: "a hash" });
  expect(store.get("meta", "log")).toMatchObject({ format: FORMAT, created_at: entries[0]!.timestamp });
  await store.close();

  expect(openIn(folder)).toEqual([]);

  const full = { code: "precondition-failed", message: expect.stringContaining("already has 2 entries") };
  rmSync(join(path, "postings"), { recursive: true });
  await expect(importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries)).rejects.toMatchObject(full);
  await (await openTestLog({ path })).log.close();
  rmSync(join(path, "data.mdb"));
  const again = importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, entries);
  await expect(again).rejects.toMatchObject({ code: "corrupt-log" });
  expect(readdirSync(folder)).toEqual(["log"]);
});
