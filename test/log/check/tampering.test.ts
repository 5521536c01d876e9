/** A data file altered behind the log's back: `verify` names what is wrong. */
import { type Database, open } from "lmdb";
import { expect, test } from "vitest";
import { openTestLog } from "../harness.js";

async function builtLog(): Promise<string> {
  const { log, path } = await openTestLog();
  for (let n = 0; n < 3; n++)
    await log.append(
      Array.from({ length: 200 }, (_, i) => ({ event_type: "note", payload: { text: `entry ${n} ${i}` } })),
    );
  await log.close();
  return path;
}

async function tamper(
  path: string,
  table: string,
  change: (db: Database<Buffer, number | number[]>) => Promise<unknown>,
) {
  const env = open({ path, maxDbs: 20 });
  await change(env.openDB({ name: table, encoding: "binary" }));
  await env.close();
}

/** Replaces the first occurrence of `from` in the batch at leaf `first` by as many bytes. */
const replaceInBatch =
  (first: number, from: string | Buffer, to: string | Buffer) => async (db: Database<Buffer, number | number[]>) => {
    const row = Buffer.from(db.get(first)!);
    const at = row.indexOf(from);
    expect(at).toBeGreaterThan(0);
    row.set(Buffer.from(to), at);
    await db.put(first, row);
  };

async function errorsAfter(
  path: string,
): Promise<readonly { id: number | null; tree_size: number | null; code: string }[]> {
  const { log } = await openTestLog({ path });
  const report = await log.verify();
  expect(report.valid).toBe(false);
  return report.errors;
}

test("an altered payload is a hash mismatch at its entry", async () => {
  const path = await builtLog();
  await tamper(path, "batches", replaceInBatch(200, "entry 1 7", "entry 9 7"));
  expect(await errorsAfter(path)).toContainEqual(expect.objectContaining({ id: 208, code: "hash-mismatch" }));
});

test("an altered id, link or stored digest is named", async () => {
  const path = await builtLog();
  await tamper(path, "batches", replaceInBatch(200, '"id":205,', '"id":999,'));
  expect(await errorsAfter(path)).toContainEqual(expect.objectContaining({ id: 999, code: "id-mismatch" }));

  const other = await builtLog();
  await tamper(other, "batches", async (db) => {
    const row = Buffer.from(db.get(0)!);
    row[8 + 4 * 200 + 32 * 5]! ^= 1;
    await db.put(0, row);
  });
  expect(await errorsAfter(other)).toContainEqual(expect.objectContaining({ id: 6, code: "digest-mismatch" }));
});

test("an altered head is a bad root or a bad signature at its size", async () => {
  const path = await builtLog();
  const headsAt = 8 + 4 * 200 + 32 * 200 + 32;
  const headLength = 32 + 8 + 64;
  const flip = (at: number) => async (db: Database<Buffer, number | number[]>) => {
    const row = Buffer.from(db.get(400)!);
    row[at]! ^= 1;
    await db.put(400, row);
  };
  await tamper(path, "batches", flip(headsAt + 10 * headLength));
  await tamper(path, "batches", flip(headsAt + 20 * headLength + 50));
  const errors = await errorsAfter(path);
  expect(errors).toContainEqual(expect.objectContaining({ tree_size: 411, code: "root-mismatch" }));
  expect(errors).toContainEqual(expect.objectContaining({ tree_size: 421, code: "signature-invalid" }));
  expect(errors.every((error) => [411, 421].includes(error.tree_size!))).toBe(true);
});

test.each([1, 2])("an altered tile of tree version %i is named", async (version) => {
  const path = await builtLog();
  await tamper(path, "tiles", async (db) => {
    const tile = Buffer.from(db.get([version, 0, 1])!);
    tile[0]! ^= 1;
    await db.put([version, 0, 1], tile);
  });
  expect(await errorsAfter(path)).toContainEqual(expect.objectContaining({ code: "tile-mismatch" }));
});

test("calls at one time share one run", async () => {
  const { log } = await openTestLog();
  await log.append({ event_type: "note", payload: {} });
  expect(log.verify()).toBe(log.verify());
  await log.verify();
});
