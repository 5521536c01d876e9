/** A store that is pinned shows one moment, in every table of both files, whatever its writer does; and holds no older one. */
import { open } from "lmdb";
import { expect, onTestFinished, test } from "vitest";
import { oldestReaderOf } from "#cairnlog/engine/store/lmdb/environment.js";
import type { PostingTables } from "#cairnlog/engine/store/postings/contract.js";
import { RunBuilder } from "#cairnlog/engine/store/postings/runs.js";
import { openStore, postingsFolder, type Store } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, temporaryFolder } from "../log/harness.js";

const SETS = ["postings", "words", "titles"] as const;

/** Makes run number `id` of each set of runs in the place of the one before, and changes a row, a tile and the position. */
async function change(store: Store, id: number): Promise<void> {
  const { sequence: after } = store.position();
  await store.commit({
    after,
    position: { sequence: after + 1, epoch: 0, hash: Buffer.alloc(32, id) },
    batches: [],
    rows: [
      { table: "trustConfigHeads", key: "changed", row: { id } },
      { table: "trustConfigHeads", key: `${id}`, row: { id } },
      { table: "trustConfigHeads", key: `${id - 1}`, row: undefined },
    ],
    tiles: [{ treeVersion: 2, level: 0, index: id, hashes: Buffer.alloc(32, id) }],
  });
  for (const set of SETS) {
    const tables = store[set];
    const { bloom, fences } = emptyRun();
    const row = { level: 0, from: 0, to: id, count: 0, bloom, fences, folded: true, mapped: true } as const;
    await tables.writeRun(id, [[0, Buffer.alloc(64, id)]], row, id > 1 ? [id - 1] : []);
    while (id > 1 && (await tables.removeBlocks(id - 1)));
  }
}

function emptyRun() {
  const builder = new RunBuilder(1, () => {});
  const fences = builder.finish();
  return { bloom: builder.bloom, fences };
}

/** All that is read at the moment that was pinned. */
function shown(store: Store) {
  const runs = (tables: PostingTables) =>
    tables.runIds().map((id) => [id, tables.run(id).to, Buffer.from(tables.block(id, 0) ?? "").toString("hex")]);
  return {
    runs: SETS.map((set) => runs(store[set])),
    rows: [...store.range("trustConfigHeads")],
    keys: [...store.keys("trustConfigHeads")],
    row: store.get("trustConfigHeads", "changed"),
    floor: [...store.range("trustConfigHeads", "1", "9")],
    position: store.position(),
  };
}

test("a pinned reader shows its moment until it is pinned again or let go", async () => {
  const path = temporaryFolder();
  const writer = openStore({ path, mapSize: MAP_SIZE });
  onTestFinished(() => writer.close());
  await change(writer, 1);
  const reader = openStore({ path, mapSize: MAP_SIZE, readOnly: true, isInspected: true });
  onTestFinished(() => reader.close());
  reader.pin();
  const first = shown(reader);
  expect(first.runs).toEqual(SETS.map(() => [[1, 1, "01".repeat(64)]]));
  for (const id of [2, 3]) {
    await change(writer, id);
    expect(shown(reader)).toEqual(first);
    reader.refresh();
    expect(shown(reader)).toEqual(first);
  }
  reader.pin();
  const third = shown(reader);
  expect(third).toEqual(shown(writer));
  expect(third).not.toEqual(first);
  await change(writer, 4);
  expect(shown(reader)).toEqual(third);
  reader.pinPostings();
  expect(shown(reader)).toEqual({ ...third, runs: shown(writer).runs });
  reader.unpin();
  expect(shown(reader)).toEqual(shown(writer));
  await change(writer, 5);
  expect(shown(reader)).toEqual(shown(writer));
});

test("a moment that is left is held no more, in either file", async () => {
  const path = temporaryFolder();
  const writer = openStore({ path, mapSize: MAP_SIZE });
  await change(writer, 1);
  const reader = openStore({ path, mapSize: MAP_SIZE, readOnly: true, isInspected: true });
  const environments = [path, postingsFolder(path)].map((folder) =>
    open({ path: folder, maxDbs: 64, mapSize: MAP_SIZE }),
  );
  const isHeld = () => environments.map((environment) => oldestReaderOf(environment as never) > 0);
  const steps: [leave: (() => unknown) | null, held: boolean[]][] = [
    [null, [false, false]],
    [() => reader.pin(), [true, true]],
    [() => reader.pin(), [true, true]],
    [() => reader.unpin(), [false, false]],
    [() => reader.pinPostings(), [false, true]],
    [() => reader.pin(), [true, true]],
  ];
  let id = 1;
  for (const [n, [step, held]] of steps.entries()) {
    step?.();
    await change(writer, ++id);
    expect(isHeld(), `step ${n}`).toEqual(held);
    expect(reader.usage().oldestReader > 0, `step ${n}`).toBe(held.includes(true));
  }
  await reader.close();
  await change(writer, ++id);
  expect(isHeld()).toEqual([false, false]);
  for (const environment of environments) await environment.close();
  await writer.close();
});
