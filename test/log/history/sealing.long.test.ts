/** The end of an import: the sizes of its batches, and the time of its head. */
import { expect, test } from "vitest";
import { formatTimestamp } from "#cairnlog/engine/log/clock.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../harness.js";
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
