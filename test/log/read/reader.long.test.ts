/** A log that one process writes and another reads: the data that the reader sees, and when. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { publicOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { Log } from "#cairnlog/engine/log/log.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { openTestLog, openTestReader, temporaryFolder, testOperator } from "../harness.js";
import { chain, type MadeEntry } from "../history/entries.js";

const MAP_SIZE = 2 ** 30;
/** Adds the entries of each line (a JSON array) and answers with the size. Closing completes merges. */
const WRITER = `
import { createInterface } from "node:readline";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
const [path, operatorKey] = process.argv.slice(1);
const writer = await openHistory({ path, operatorKey, mapSize: ${MAP_SIZE} });
for await (const text of createInterface({ input: process.stdin })) {
  const items = JSON.parse(text).map((entry) => ({ entry: Buffer.from(JSON.stringify(entry)), otsProof: null, head: null }));
  await writer.add(items);
  console.log(writer.size);
}
await writer.close();
`;

async function startWriter(path: string) {
  const args = ["--input-type=module", "-e", WRITER, path, testOperator.public.pem];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async add(entries: readonly MadeEntry[]): Promise<void> {
      child.stdin.write(`${JSON.stringify(entries)}\n`);
      await answers.next();
    },
    async end(): Promise<void> {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

const notes = (log: Log) => log.postings(hashedTerm(POSTING.eventType, "note")).length;

test("a reader shows one moment, while runs are written and merged under it, and refreshes to the next", async () => {
  const path = temporaryFolder();
  const writer = await startWriter(path);
  let last: MadeEntry | null = null;
  const add = async (count: number) => {
    const entries = chain(Array(count).fill({}), last);
    last = entries.at(-1)!;
    await writer.add(entries);
  };
  await add(10);
  const log = await openTestReader(path);
  expect([log.size, notes(log)]).toEqual([10, 10]);
  for (let round = 0; round < 12; round++) {
    const { size } = log;
    const tail = log.entryJsonAt(size - 1);
    await add(2100);
    // Between two refreshes nothing changes for the reader, even if rows are replaced on disk.
    expect([log.size, notes(log)]).toEqual([size, size]);
    expect(log.entry(size + 1)).toBeUndefined();
    log.refresh();
    expect([log.size, notes(log)]).toEqual([size + 2100, size + 2100]);
    expect(log.entryJsonAt(size - 1)).toEqual(tail);
    expect(log.inclusionProof(size).tree_size).toBe(log.size);
  }
  expect(log.head()).toEqual(last);
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: log.size, errors: [] });
  expect(log.stateDifferences()).toEqual([]);
  await writer.end();
  log.refresh();
  expect(log.stateDifferences()).toEqual([]);
});

const READER = `
const { parentPort, workerData } = require("node:worker_threads");
const reading = async () => {
  const { openLogReader } = await import("#cairnlog/engine/log/log.js");
  const { path, pem } = workerData;
  const log = await openLogReader({ path, operatorKey: pem, mapSize: ${MAP_SIZE} });
  parentPort.on("message", async (word) => {
    if (word === "close") {
      await log.close();
      parentPort.close();
      return;
    }
    log.refresh();
    parentPort.postMessage({ size: log.size, head: log.treeHead(), proof: log.inclusionProof(0), last: log.head() });
  });
  parentPort.postMessage("ready");
};
reading();
`;

test("readers in other threads show what the writer of this process has acknowledged", async () => {
  const { log, path } = await openTestLog();
  const append = (count: number) =>
    log.append(Array.from({ length: count }, (_, n) => ({ event_type: "note", payload: { n } })));
  await append(1);
  const workerData = { path, pem: testOperator.public.pem };
  const readers = [1, 2].map(() => new Worker(READER, { eval: true, workerData }));
  await Promise.all(readers.map((reader) => once(reader, "message")));
  for (const count of [1, 300, 5000]) {
    await append(count);
    const shown = { size: log.size, head: log.treeHead(), proof: log.inclusionProof(0), last: log.head() };
    for (const reader of readers) {
      reader.postMessage("refresh");
      expect(await once(reader, "message")).toEqual([shown]);
    }
  }
  for (const reader of readers) reader.postMessage("close");
  await Promise.all(readers.map((reader) => once(reader, "exit")));
  await append(1);
  expect(log.size).toBe(5303);
});

test("without the private key a log can be read, and appends and heads on demand are refused", async () => {
  const { log: writer, path } = await openTestLog();
  await writer.append({ event_type: "note", payload: {} });
  await writer.close();
  const { log } = await openTestLog({ path, signer: publicOperatorKey(testOperator.public.pem) });
  expect(log.treeHead()).toMatchObject({ tree_size: 1 });
  await expect(log.append({ event_type: "note", payload: {} })).rejects.toMatchObject({ code: "signer-unavailable" });
  await expect(log.signHead()).rejects.toMatchObject({ code: "signer-unavailable" });
  expect(log.size).toBe(1);
});

test("without a log, opening a reader fails", async () => {
  await expect(openTestReader(`${temporaryFolder()}/none`)).rejects.toMatchObject({ code: "not-found" });
  const path = temporaryFolder();
  await openStore({ path }).close();
  await expect(openTestReader(path)).rejects.toMatchObject({ code: "not-found" });
});

test("the name of a log's directory may hold a dot", async () => {
  const { log } = await openTestLog({ path: `${temporaryFolder()}/log.v1` });
  await log.append({ event_type: "note", payload: {} });
  expect(log.size).toBe(1);
});
