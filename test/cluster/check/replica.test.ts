/** The checker of replication compares what a node has with what PostgreSQL had when it was there, and not with what came later. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { rowLine } from "#cairnlog/engine/journal/rows.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { openTestLog, temporaryFolder } from "../../log/harness.js";
import { runIn } from "../../log/inline.js";
import { Records } from "./records.js";
import { compareNode } from "./replica.js";

const CHANGE = { table: "counters", key: "webhook", row: { last: 11 } } as const;

/** A node that has applied one record, which has made one row. */
async function nodeWithRow() {
  const dataDir = temporaryFolder();
  const path = join(dataDir, "log");
  const { log } = await openTestLog({ path });
  await runIn(log, (transaction) => transaction.put(CHANGE.table, CHANGE.key, CHANGE.row));
  await log.close();
  const store = openStore({ path, readOnly: true });
  const { sequence, hash } = store.position();
  const lines = [...store.range("counters")].map(({ key, row }) => rowLine({ table: "counters", key, row }));
  await store.close();
  const records = new Records();
  while (records.hashes.length < sequence - 1) records.hashes.push("00");
  records.hashes.push(Buffer.from(hash).toString("hex"));
  return { node: { name: "n1", dataDir }, records, sequence, lines };
}

test("a row that only a newer record has deleted is no difference", async () => {
  const { node, records, sequence, lines } = await nodeWithRow();
  const states = [
    { records, rows: { sequence: sequence + 1, lines: [] } },
    { records, rows: { sequence, lines } },
  ];
  expect(await compareNode(node, async () => states.shift()!, 0)).toEqual([]);
  expect(states).toEqual([]);
});

test("a row that PostgreSQL did not have at the record that the node has applied is a difference", async () => {
  const { node, records, sequence, lines } = await nodeWithRow();
  expect(lines).toContain(rowLine(CHANGE));
  expect(await compareNode(node, async () => ({ records, rows: { sequence, lines: [] } }), 0)).toContain(
    `n1: its private row is not in PostgreSQL: ${rowLine(CHANGE)}`,
  );
});
