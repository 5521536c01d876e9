/**
 * A reader whose files another process has replaced shows of the new ones what one shows that is opened now, whatever it had read
 * before: runs of new files have numbers that those of the old ones had.
 */
import { spawn } from "node:child_process";
import { lstatSync, readdirSync, readlinkSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { LogReader } from "#cairnlog/engine/log/view/reader.js";
import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING, RECORD_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, postingsFolder, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestReader, temporaryFolder } from "../log/harness.js";

/** So many are a run when the log is closed. */
const ENTRIES = 1_100;

/** For each number opens the log, appends entries of which it withholds one, and closes it. The next opening makes the files anew. */
const WRITER = `
import { createInterface } from "node:readline";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { eventOf } from "#cairnlog/engine/verify/events/kinds.js";
import { payloadHash } from "#cairnlog/engine/verify/events/withheld.js";
const [path, key] = process.argv.slice(1);
const pool = createPool(1);
for await (const line of createInterface({ input: process.stdin })) {
  const log = await openLog({ path, signer: openOperatorKey(key), pool, mapSize: ${MAP_SIZE} });
  const { size } = log;
  await log.append(Array.from({ length: ${ENTRIES} }, (_, n) => ({
    event_type: "https://example.org/" + n % 2,
    payload: { n, document_title: "title " + n % 100, tags: ["tag " + n % 7] },
  })));
  const { id: entry_id, entry_hash, payload } = log.entry(size + Number(line));
  const about = { entry_id, entry_hash, payload_hash: payloadHash(payload), reason: "an order", basis: null };
  await log.append(eventOf("payload_withheld", about));
  await log.close();
  console.log(log.size);
}
await pool.close();
`;

function startWriter(path: string, key: string) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", WRITER, path, key], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    write: async (withheld: number) => {
      child.stdin.write(`${withheld}\n`);
      return Number((await answers.next()).value);
    },
    end: () => child.stdin.end(),
  };
}

/** What is found, by every set of runs. */
function found(log: LogReader) {
  const { size } = log;
  const types = [0, 1].map((n) => `https://example.org/${n}`);
  return {
    size,
    lists: types.map((type) => log.postings(hashedTerm(POSTING.eventType, type)).window(0, 2 * size)),
    types: types.map((type) => log.match({ eventTypes: [type] }, 0, size)),
    tags: [0, 1, 4].map((n) => log.match({ tags: [`tag ${n}`] }, 0, size)),
    titles: [3, 50, 99].map((n) => log.match({ title: `title ${n}` }, 0, size)),
  };
}

/** What is stored, by every table that a reader opens. */
function stored(store: Store) {
  const runs = (tables: PostingTables) => tables.runIds().map((id) => tables.run(id));
  return {
    runs: [store.postings, store.words, store.titles].map(runs),
    nodes: [store.rfc6962.extent(), [...store.rfc6962.tileKeys()]],
    batches: [...store.batchKeys()].map((index) => store.batchAt(index)!.entry(0)),
    tiles: [...store.tileKeys()],
    rows: RECORD_TABLES.map((table) => [...store.range(table)]),
    position: store.position(),
  };
}

/** The files below a folder that this process has open, removed ones too. */
const openIn = (folder: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    .filter((link) => lstatSync(link, { throwIfNoEntry: false }))
    .map((link) => readlinkSync(link))
    .filter((file) => file.startsWith(`${folder}/`));

test("a reader finds in new files what one finds that is opened now", async () => {
  const path = temporaryFolder();
  const key = join(temporaryFolder(), "operator.pem");
  const operator = openOperatorKey(key);
  const { write, end } = startWriter(path, key);
  const files = () => [path, postingsFolder(path)].map((folder) => statSync(join(folder, "data.mdb")).ino);
  const openBare = () => openStore({ path, readOnly: true, isInspected: true, mapSize: MAP_SIZE });
  try {
    await write(3);
    const reader = await openTestReader(path, operator);
    const bare = openBare();
    bare.pin();
    found(reader);
    stored(bare);
    const snapshot = bare.snapshot();
    const rows = () => RECORD_TABLES.map((table) => [...snapshot.range(table)]);
    const seen = rows();
    // One that is not asked for the newest moment goes on with the files that it has open.
    const left = openBare();
    const held = stored(left);
    const before = files();
    const size = await write(6);
    expect(stored(left)).toEqual(held);
    await left.close();
    for (const [n, inode] of files().entries()) expect(inode).not.toBe(before[n]);
    reader.refresh();
    bare.pin();
    expect(reader.size).toBe(size);
    const late = await openTestReader(path, operator);
    expect(found(reader)).toEqual(found(late));
    const now = openBare();
    expect(stored(bare)).toEqual(stored(now));
    // A snapshot is still one of the files that it was taken of.
    expect(rows()).toEqual(seen);
    expect(seen).not.toEqual(RECORD_TABLES.map((table) => [...bare.range(table)]));
    snapshot.close();
    // The old files take room on the disk, and hold what was withheld, as long as anybody has one open.
    await Promise.all([bare, now, reader, late].map((each) => each.close()));
    expect(openIn(path)).toEqual([]);
  } finally {
    end();
  }
});
