/** Trees that are read from the disk again: what was never written is forgotten, and what is damaged is named. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Frontier } from "#cairnlog/engine/log/read/frontier.js";
import { Tree } from "#cairnlog/engine/log/tree/tree.js";
import type { LogView } from "#cairnlog/engine/log/view/view.js";
import type { StoreReader } from "#cairnlog/engine/store/store.js";
import { openFaultyLog, openTestLog } from "../harness.js";
import { definedRoot } from "../history/entries.js";
import { replaceInBatch, tamper } from "../tamper.js";

const VERSIONS = [1, 2] as const;
const notes = (count: number, what: string) =>
  Array.from({ length: count }, (_, n) => ({ event_type: "note", payload: { n, what } }));

/** Proofs of both versions, of many leaves and for several sizes. */
function proofs(log: LogView): unknown[] {
  const sizes = [1, 2, 3, 4, 8, 9, 12, 100, 255, 256, 257, 300, log.size].filter((size) => size <= log.size);
  return VERSIONS.flatMap((treeVersion) =>
    sizes.flatMap((treeSize) => [
      ...[0, 1, 2, 3, 7, 8, 9, 11, 254, 255, 256, 280]
        .filter((leafIndex) => leafIndex < treeSize)
        .map((leafIndex) => log.inclusionProof(leafIndex, { treeSize, treeVersion })),
      log.consistencyProof(treeSize, log.size, treeVersion),
      log.tile(treeVersion, 0, 0, Math.min(256, treeSize)),
    ]),
  );
}

describe("leaves that were never written", () => {
  test.each([2, 9])(
    "are in no proof, though their neighbours were asked for before: after %i leaves",
    async (before) => {
      const { log, path, faults } = await openFaultyLog();
      await log.append(notes(before, "first"));
      const { begun } = faults;
      let release = () => {};
      faults.hold = new Promise((resolve) => {
        release = resolve;
      });
      faults.plan = ["not persisted"];
      const failing = log.append(notes(300, "never written"));
      const failed = expect(failing).rejects.toMatchObject({ code: "storage-failed" });
      await expect.poll(() => faults.begun, { interval: 1 }).toBe(begun + 1);
      // Blocks, crowns and tiles are whole in memory now, with leaves that are not on disk.
      proofs(log);
      release();
      await failed;
      proofs(log);
      await log.append(notes(300, "second"));
      const said = proofs(log);
      await log.close();
      const { log: anew } = await openTestLog({ path });
      expect(said).toEqual(proofs(anew));
    },
  );

  test("are in no tile, though another writer fills it", async () => {
    const { log, path, faults } = await openFaultyLog();
    await log.append(notes(9, "first"));
    faults.plan = ["not persisted"];
    await expect(log.append(notes(300, "never written"))).rejects.toMatchObject({ code: "storage-failed" });
    proofs(log);
    const { log: other } = await openTestLog({ path });
    await other.append(notes(300, "second"));
    await expect(log.append(notes(1, "refused"))).rejects.toMatchObject({ code: "storage-failed" });
    expect(log.size).toBe(309);
    expect(proofs(log)).toEqual(proofs(other));
  });
});

describe("a tree in memory", () => {
  const digests = (count: number) =>
    Buffer.concat(Array.from({ length: count }, (_, n) => createHash("sha256").update(`${n}`).digest()));
  const texts = (count: number) => digests(count).toString("hex").match(/.{64}/g)!;

  /** A tree over a disk that has these tiles of level 0, and notes which ones are asked for. */
  function treeOver(version: 1 | 2, tiles: Map<string, Uint8Array> = new Map()) {
    const asked: string[] = [];
    const tile = (_: number, level: number, index: number) => {
      asked.push(`${level}/${index}`);
      return tiles.get(`${level}/${index}`);
    };
    const tree = new Tree(version, { tile, tileView: tile } as unknown as StoreReader);
    tree.restore(0, new Uint8Array(0));
    return { tree, asked };
  }

  test.each(VERSIONS)("has the roots of the definition, of version %i, before anything is on disk", (version) => {
    const { tree, asked } = treeOver(version);
    const { roots } = tree.extend(digests(600), true);
    for (const size of [1, 2, 3, 255, 256, 257, 512, 600]) {
      expect(tree.rightEdge(size).rootHex).toBe(definedRoot(texts(size), version));
      expect(Buffer.from(roots.subarray(32 * (size - 1), 32 * size)).toString("hex")).toBe(
        tree.rightEdge(size).rootHex,
      );
    }
    expect(asked).toEqual([]);
    expect(tree.size).toBe(600);
  });

  test("gives up full tiles of its own version when they are on disk, and only them", () => {
    const { tree, asked } = treeOver(2);
    const { tiles } = tree.extend(digests(600), false);
    const full = tiles.filter(({ level }) => level === 0);
    expect(full.map(({ index, hashes }) => [index, hashes?.length])).toEqual([
      [0, 256 * 32],
      [1, 256 * 32],
    ]);
    // Level 1 has a node for each of them; it is written unfinished.
    const above = tiles.filter(({ level }) => level === 1);
    expect(above.map(({ index, hashes }) => [index, hashes?.length])).toEqual([[0, 2 * 32]]);
    tree.written([{ ...full[0]!, treeVersion: 1 }]);
    tree.written([{ ...full[0]!, hashes: full[0]!.hashes!.slice(32) }, { ...full[0]!, hashes: null }, ...above]);
    expect([tree.tile(0, 0).length, tree.tile(0, 1).length, tree.tile(0, 2).length, tree.tile(1, 0).length]).toEqual(
      [256, 256, 88, 2].map((count) => 32 * count),
    );
    expect(asked).toEqual([]);
    tree.written([full[0]!]);
    expect(() => tree.tile(0, 0)).toThrow(/Tile 0 of level 0 .*is missing or cut short/);
    expect(tree.tile(0, 1)).toHaveLength(256 * 32);
    expect(asked).toEqual(["0/0"]);
  });

  test("and so do both trees of a log", () => {
    const tile = () => undefined;
    const frontier = new Frontier({ tile, tileView: tile, lastBatch: tile, get: tile } as unknown as StoreReader);
    frontier.restore();
    expect([frontier.size, frontier.lastId, frontier.lastHash]).toEqual([0, 0, null]);
    const { tiles } = frontier.extend(digests(256));
    for (const version of VERSIONS) expect(frontier.trees[version].tile(0, 0)).toHaveLength(256 * 32);
    frontier.written(tiles);
    for (const version of VERSIONS) expect(() => frontier.trees[version].tile(0, 0)).toThrow(/missing or cut short/);
  });

  test("reads a tile once while it is in use", () => {
    const { tree: made } = treeOver(2);
    const tiles = new Map(
      made.extend(digests(600), false).tiles.map(({ level, index, hashes }) => [`${level}/${index}`, hashes!]),
    );
    const { tree, asked } = treeOver(2, tiles);
    tree.restore(600, digests(600).subarray(512 * 32));
    asked.length = 0;
    for (let round = 0; round < 3; round++) expect(tree.tile(0, 1)).toEqual(made.tile(0, 1));
    expect(asked).toEqual(["0/1"]);
    for (const [level, index] of [
      [0, 0],
      [1, 100],
      [3, 5],
      [8, 1],
      [9, 0],
    ] as const)
      expect(tree.node(level, index)).toEqual(made.node(level, index));
    expect(tree.rightEdge(600).rootHex).toBe(definedRoot(texts(600), 2));
  });

  test("has no node that is not complete", () => {
    const { tree } = treeOver(2);
    tree.extend(digests(3), false);
    expect(tree.node(1, 0)).toHaveLength(32);
    for (const [level, index] of [
      [0, 3],
      [1, 1],
      [2, 0],
    ] as const)
      expect(() => tree.node(level, index)).toThrow(RangeError);
  });
});

describe("a damaged log", () => {
  async function builtLog(...lengths: number[]): Promise<string> {
    const { log, path } = await openTestLog();
    for (const length of lengths) await log.append(notes(length, "first"));
    await log.close();
    return path;
  }
  const damagedTile = (index: number, level: number, version: number) =>
    expect.objectContaining({
      code: "corrupt-log",
      message: `Tile ${index} of level ${level} (tree version ${version}) is missing or cut short: the data directory is damaged. cairnlog fsck --rebuild restores it.`,
    });
  const isTile =
    (version: number, level: number, index: number) =>
    ([v, l, i]: number[]) =>
      v === version && l === level && i === index;

  test.each([
    ["missing", () => null],
    ["one byte short", (tile: Buffer) => tile.subarray(0, -1)],
  ])("whose tile of leaves is %s has no proofs from it, and others go on", async (_, change) => {
    const path = await builtLog(600);
    await tamper(path, "tiles", async (db) => {
      for (const key of [...db.getKeys()] as number[][]) {
        if (!isTile(2, 0, 1)(key)) continue;
        const changed = change(db.get(key)!);
        await (changed ? db.put(key, changed) : db.remove(key));
      }
    });
    const { log } = await openTestLog({ path });
    const damaged = damagedTile(1, 0, 2);
    expect(() => log.inclusionProof(300)).toThrow(damaged);
    expect(() => log.inclusionProofJson(300)).toThrow(damaged);
    expect(() => log.tile(2, 0, 1)).toThrow(damaged);
    expect(log.inclusionProof(0)).toMatchObject({ tree_size: 600 });
    expect(log.inclusionProof(300, { treeVersion: 1 })).toMatchObject({ tree_size: 600 });
    expect(log.tile(2, 0, 0)).toHaveLength(256 * 32);
  });

  test("whose newest tile above the leaves is missing is not opened", async () => {
    const path = await builtLog(600);
    await tamper(path, "tiles", async (db) => {
      for (const key of [...db.getKeys()] as number[][]) if (isTile(1, 1, 0)(key)) await db.remove(key);
    });
    await expect(openTestLog({ path })).rejects.toEqual(damagedTile(0, 1, 1));
  });

  test("that lost a batch before the newest one is not opened", async () => {
    const path = await builtLog(256, 20, 20);
    await tamper(path, "batches", (db) => db.remove(256));
    await expect(openTestLog({ path })).rejects.toMatchObject({
      code: "corrupt-log",
      message: "Entry 257 is missing from the data directory.",
    });
  });

  test("whose newest entry cannot be read is not opened", async () => {
    const path = await builtLog(2, 3);
    await tamper(path, "batches", replaceInBatch(2, '{"id":5', '["id":5'));
    await expect(openTestLog({ path })).rejects.toMatchObject({
      code: "corrupt-log",
      message: "The newest entry of the log cannot be read. Restore the newest backup (cairnlog restore).",
      cause: expect.any(SyntaxError),
    });
  });
});
