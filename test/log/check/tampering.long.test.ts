/** A data file that was changed directly: `verify` reports each fault. */
import { open } from "lmdb";
import { expect, test } from "vitest";
import { checkChunk } from "#cairnlog/engine/log/check/chunk.js";
import { Operators } from "#cairnlog/engine/log/operator/operators.js";
import { Batch, packBatch } from "#cairnlog/engine/store/schema/batch.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, testOperator } from "../harness.js";
import { type Bytes, headsOf, replaceInBatch, tamper } from "../tamper.js";

async function builtLog(): Promise<string> {
  const { log, path } = await openTestLog();
  for (let n = 0; n < 3; n++)
    await log.append(
      Array.from({ length: 200 }, (_, i) => ({ event_type: "note", payload: { text: `entry ${n} ${i}` } })),
    );
  await log.close();
  return path;
}

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

test("a first entry that says of one before it is a broken link", async () => {
  const path = await builtLog();
  await tamper(path, "batches", async (db) => {
    const batch = new Batch(0, db.get(0)!);
    const [first, ...others] = Array.from({ length: batch.count }, (_, i) => batch.entry(i).toString("utf8"));
    const linked = first!.replace('"previous_hash":null', `"previous_hash":"${"0".repeat(64)}"`);
    const entries = [linked, ...others].map((text) => Buffer.from(text));
    await db.put(0, packBatch(entries, batch.digests, headsOf(batch)));
  });
  expect(await errorsAfter(path)).toContainEqual(expect.objectContaining({ id: 1, code: "broken-link" }));
});

test("a time that goes back is named at its entry", async () => {
  const path = await builtLog();
  const { log } = await openTestLog({ path });
  const { timestamp } = [...log.entries()][200]!;
  await log.close();
  const earlier = timestamp.replace(/^\d{4}/, "2001");
  await tamper(path, "batches", replaceInBatch(200, `"timestamp":"${timestamp}"`, `"timestamp":"${earlier}"`));
  const decreases = (await errorsAfter(path)).filter(({ code }) => code === "timestamp-decrease");
  expect(decreases).toEqual([expect.objectContaining({ id: 201 })]);
});

test("an altered head is a bad root or a bad signature at its size", async () => {
  const path = await builtLog();
  const headsAt = 8 + 4 * 200 + 32 * 200 + 32;
  const headLength = 32 + 8 + 64;
  const flip = (at: number) => async (db: Bytes) => {
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

/** Checks the stretch [from, to) of a closed log of `to` entries on this thread after each change. */
async function withStretch(
  path: string,
  [from, to]: readonly [number, number],
  work: (errors: () => ReturnType<typeof checkChunk>["errors"], table: (name: string) => Bytes) => Promise<void>,
): Promise<void> {
  const store = openStore({ path, mapSize: MAP_SIZE });
  const env = open({ path, maxDbs: 50, mapSize: MAP_SIZE, noSync: true });
  const errors = () => {
    store.refresh();
    return checkChunk(store, { from, to, size: to, operators: Operators.of(testOperator.public).chain }).errors;
  };
  try {
    await work(errors, (name) => env.openDB({ name, encoding: "binary" }));
  } finally {
    await env.close();
    await store.close();
  }
}

test.each([1, 2])("a tile of tree version %i that is cut short is named", async (version) => {
  const path = await builtLog();
  await withStretch(path, [300, 600], async (errors, table) => {
    expect(errors()).toEqual([]);
    const tiles = table("tiles");
    await tiles.put([version, 0, 1], Buffer.from(tiles.get([version, 0, 1])!.subarray(0, -1)));
    const message = `Tile 1 of level 0 (tree version ${version}) is missing or cut short`;
    expect(errors()).toEqual([
      { id: null, tree_size: 600, code: "tile-missing", message: expect.stringContaining(message) },
    ]);
  });
});

test("whichever byte of a batch is damaged, something is named, unless no hash covers it", async () => {
  const { log, path } = await openTestLog();
  await log.append([1, 2].map((n) => ({ event_type: "note", payload: { n } })));
  await log.close();
  await withStretch(path, [0, 2], async (errors, table) => {
    const batches = table("batches");
    const row = Buffer.from(batches.get(0)!);
    const silent: string[] = [];
    for (let at = 0; at < row.length; at++) {
      const damaged = Buffer.from(row);
      damaged[at]! ^= 1 << (at % 7);
      await batches.put(0, damaged);
      if (!errors().length) silent.push(row.toString("latin1", at, at + 1));
    }
    expect(silent.join("")).toBe("notenote");
  });
});

test("calls at one time share one run", async () => {
  const { log } = await openTestLog();
  await log.append({ event_type: "note", payload: {} });
  expect(log.verify()).toBe(log.verify());
  await log.verify();
});
