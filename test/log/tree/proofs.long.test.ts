/** Proofs, tiles and roots of a log of several tiles, each compared with the definition of the tree. */
import { beforeAll, describe, expect, test } from "vitest";
import type { Log } from "#cairnlog/engine/log/log.js";
import { openTestLog } from "../harness.js";
import { sha256 } from "../history/entries.js";

type Version = 1 | 2;
const VERSIONS = [1, 2] as const;
const WIDTH = 256;
/** Four full tiles of leaves, and a partial tile that ends within a block of 16. */
const SIZE = 4 * WIDTH + 77;

/** docs/spec §3.2: computes every complete node once, and the last node of a level by padding. */
class Reference {
  readonly #node: (left: string, right: string) => string;
  /** Complete nodes by level. */
  readonly levels: string[][];

  constructor(digests: readonly string[], version: Version) {
    const [leaf, node] = version === 2 ? ["\0", "\x01"] : ["", ""];
    this.#node = (left, right) => sha256(node + left + right);
    this.levels = [digests.map((digest) => sha256(leaf + digest))];
    for (let level = this.levels[0]!; level.length > 1; level = this.levels.at(-1)!)
      this.levels.push(
        Array.from({ length: Math.floor(level.length / 2) }, (_, i) => this.#node(level[2 * i]!, level[2 * i + 1]!)),
      );
  }

  /** Nodes of a level in the tree of `size` leaves. */
  count = (size: number, level: number) => Math.ceil(size / 2 ** level);

  /** A node of the tree of `size` leaves. */
  node(size: number, level: number, index: number): string {
    if ((index + 1) * 2 ** level <= size) return this.levels[level]![index]!;
    const left = this.node(size, level - 1, 2 * index);
    return this.#node(
      left,
      2 * index + 1 < this.count(size, level - 1) ? this.node(size, level - 1, 2 * index + 1) : left,
    );
  }

  height(size: number): number {
    return Math.ceil(Math.log2(size));
  }

  root = (size: number) => this.node(size, this.height(size), 0);

  path(leafIndex: number, size: number): string[] {
    return Array.from({ length: this.height(size) }, (_, level) => [level, (leafIndex >> level) ^ 1] as const)
      .filter(([level, sibling]) => sibling < this.count(size, level))
      .map(([level, sibling]) => this.node(size, level, sibling));
  }

  /** Roots of the least cover of the leaves [from, to) by complete subtrees, left to right. */
  cover(from: number, to: number): string[] {
    const roots: string[] = [];
    for (let at = from; at < to; ) {
      let level = 0;
      while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= to) level++;
      roots.push(this.levels[level]![at / 2 ** level]!);
      at += 2 ** level;
    }
    return roots;
  }
}

let path: string;
let references: Record<Version, Reference>;
let digests: string[];
beforeAll(async () => {
  const { log, path: made } = await openTestLog();
  path = made;
  // Batches that end before, at and after the ends of tiles.
  for (const length of [1, 254, 1, 1, 255, 300, 200, SIZE - 1012])
    await log.append(Array.from({ length }, (_, i) => ({ event_type: "note", payload: { i } })));
  expect(log.size).toBe(SIZE);
  digests = [...log.entries()].map(({ entry_hash }) => entry_hash);
  references = { 1: new Reference(digests, 1), 2: new Reference(digests, 2) };
  await log.close();
});

const SIZES = [
  1,
  2,
  3,
  15,
  16,
  17,
  31,
  64,
  65,
  255,
  256,
  257,
  511,
  512,
  513,
  700,
  1023,
  1024,
  1025,
  1040,
  1041,
  SIZE - 1,
  SIZE,
];
const LEAVES = [
  0,
  1,
  14,
  15,
  16,
  17,
  127,
  128,
  239,
  240,
  255,
  256,
  511,
  512,
  768,
  1007,
  1008,
  1023,
  1024,
  1025,
  1039,
  1040,
  1055,
  1056,
  1087,
  1088,
  SIZE - 2,
  SIZE - 1,
];

function expectInclusion(log: Log, leafIndex: number, treeSize: number, treeVersion: Version): void {
  const reference = references[treeVersion];
  const expected = {
    leaf_index: leafIndex,
    tree_size: treeSize,
    tree_version: treeVersion,
    leaf_hash: reference.node(treeSize, 0, leafIndex),
    root_hash: reference.root(treeSize),
    audit_path: reference.path(leafIndex, treeSize),
    entry_hash: digests[leafIndex],
    sth: log.treeHead(treeSize),
  };
  expect(log.inclusionProof(leafIndex, { treeSize, treeVersion })).toEqual(expected);
  expect(`${log.inclusionProofJson(leafIndex, { treeSize, treeVersion }).json}`).toBe(JSON.stringify(expected));
}

describe.each(VERSIONS)("tree version %i", (version) => {
  test("every inclusion proof of a log that was just opened", async () => {
    const { log } = await openTestLog({ path });
    for (const size of SIZES)
      for (const leafIndex of LEAVES.filter((index) => index < size)) expectInclusion(log, leafIndex, size, version);
  });

  test("proofs from the newest size down, twice", async () => {
    const { log } = await openTestLog({ path });
    for (const size of SIZES.toReversed())
      for (const leafIndex of LEAVES.toReversed().filter((index) => index < size)) {
        expectInclusion(log, leafIndex, size, version);
        expectInclusion(log, leafIndex, size, version);
      }
  });

  test("consistency proofs", async () => {
    const { log } = await openTestLog({ path });
    const reference = references[version];
    for (const to of SIZES)
      for (const from of SIZES.filter((size) => size <= to))
        expect(log.consistencyProof(from, to, version)).toEqual({
          from_size: from,
          to_size: to,
          tree_version: version,
          from_root: reference.root(from),
          to_root: reference.root(to),
          peaks: reference.cover(0, from),
          extension: reference.cover(from, to),
          from_sth: log.treeHead(from),
          to_sth: log.treeHead(to),
        });
  });

  test("tiles of every width, and none that is not complete", async () => {
    const { log } = await openTestLog({ path });
    const { levels } = references[version];
    const tile = (level: number, index: number, width?: number) => {
      const bytes = log.tile(version, level, index, width);
      return bytes && Buffer.from(bytes).toString("hex").match(/.{64}/g);
    };
    for (const index of [0, 3]) expect(tile(0, index)).toEqual(levels[0]!.slice(index * WIDTH, (index + 1) * WIDTH));
    for (const width of [1, 2, 76, 77])
      expect(tile(0, 4, width)).toEqual(levels[0]!.slice(4 * WIDTH, 4 * WIDTH + width));
    expect(tile(0, 2, 255)).toEqual(levels[0]!.slice(2 * WIDTH, 3 * WIDTH - 1));
    for (const width of [1, 4]) expect(tile(1, 0, width)).toEqual(levels[8]!.slice(0, width));
    for (const [level, index, width] of [
      [0, 4, 78],
      [0, 4, undefined],
      [0, 5, 1],
      [1, 0, 5],
      [1, 1, 1],
      [2, 0, 1],
      [0, -1, 1],
      [0, 0, 0],
      [0, 0, 257],
    ] as const)
      expect(tile(level, index, width), `${level}/${index}/${width}`).toBeUndefined();
  });
});

test("a returned tile does not change when entries are appended", async () => {
  const { log } = await openTestLog();
  const append = (count: number) => log.append(Array(count).fill({ event_type: "note", payload: {} }));
  await append(WIDTH - 6);
  const given = VERSIONS.map((version) => log.tile(version, 0, 0, WIDTH - 6)!);
  const before = given.map((bytes) => Buffer.from(bytes));
  await append(50);
  expect(given.map((bytes) => Buffer.from(bytes))).toEqual(before);
  for (const [i, version] of VERSIONS.entries())
    expect(Buffer.from(log.tile(version, 0, 0)!.subarray(0, 32 * (WIDTH - 6)))).toEqual(before[i]);
});

test("a proof that was made while its tile was open is the same when the tile is full", async () => {
  const { log } = await openTestLog();
  const append = (count: number) => log.append(Array(count).fill({ event_type: "note", payload: {} }));
  const sizes = [10, 16, 17, 200, 256, 257, 300, 512, 600];
  const made: [leafIndex: number, treeSize: number, version: Version, json: string][] = [];
  for (const size of sizes) {
    await append(size - log.size);
    for (const leafIndex of [0, 9, 15, 16, 199, 255, 256, 299].filter((index) => index < size))
      for (const treeVersion of VERSIONS)
        made.push([leafIndex, size, treeVersion, `${log.inclusionProofJson(leafIndex, { treeVersion }).json}`]);
  }
  const all = [...log.entries()].map(({ entry_hash }) => entry_hash);
  for (const [leafIndex, treeSize, treeVersion, json] of made) {
    expect(`${log.inclusionProofJson(leafIndex, { treeSize, treeVersion }).json}`).toBe(json);
    const { root_hash, audit_path } = JSON.parse(json);
    const reference = new Reference(all.slice(0, treeSize), treeVersion);
    expect([root_hash, audit_path]).toEqual([reference.root(treeSize), reference.path(leafIndex, treeSize)]);
  }
});

test("proofs that differ have different tags, and the same proof the same one", async () => {
  const { log, path: own } = await openTestLog();
  await log.append(Array(20).fill({ event_type: "note", payload: {} }));
  const tags = new Map<string, Buffer>();
  for (let treeSize = 1; treeSize <= 20; treeSize++)
    for (let leafIndex = 0; leafIndex < treeSize; leafIndex++)
      for (const treeVersion of VERSIONS) {
        const { json, tag } = log.inclusionProofJson(leafIndex, { treeSize, treeVersion });
        expect(tag).toMatch(/^[\w-]{43}$/);
        expect(tags.get(tag)).toBeUndefined();
        tags.set(tag, json);
        expect(log.inclusionProofJson(leafIndex, { treeSize, treeVersion })).toEqual({ json, tag });
      }
  await log.close();
  const { log: again } = await openTestLog({ path: own });
  for (const [tag, json] of tags) {
    const { leaf_index, tree_size, tree_version } = JSON.parse(`${json}`);
    const served = again.inclusionProofJson(leaf_index, { treeSize: tree_size, treeVersion: tree_version });
    expect(served).toEqual({ json, tag });
  }
});

test("a proof that is asked for again is kept as it is served, until another one of its leaf is", async () => {
  const { log } = await openTestLog({ path });
  const ask = (treeSize: number, treeVersion: Version) => log.inclusionProofJson(7, { treeSize, treeVersion });
  const once = ask(SIZE, 2);
  const kept = ask(SIZE, 2);
  expect(kept === once).toBe(false);
  expect(ask(SIZE, 2)).toBe(kept);
  expect(kept).toEqual(once);
  for (const [treeSize, treeVersion] of [
    [SIZE - 1, 2],
    [SIZE - 1, 1],
  ] as const) {
    const other = ask(treeSize, treeVersion);
    expect(ask(treeSize, treeVersion)).toBe(other);
    expect(JSON.parse(`${other.json}`)).toMatchObject({ tree_size: treeSize, tree_version: treeVersion });
  }
  expect(ask(SIZE, 2)).toEqual(once);
});

test("positions outside of the log are refused", async () => {
  const { log } = await openTestLog({ path });
  const refused = expect.objectContaining({ code: "invalid-input" });
  for (const [leafIndex, treeSize] of [
    [SIZE, SIZE],
    [-1, SIZE],
    [5, 5],
    [0, 0],
    [0, SIZE + 1],
    [0, -1],
    [0, Number.NaN],
    [Number.NaN, 5],
  ] as const) {
    expect(() => log.inclusionProof(leafIndex, { treeSize })).toThrow(refused);
    expect(() => log.inclusionProofJson(leafIndex, { treeSize })).toThrow(refused);
  }
  for (const [from, to] of [
    [0, 5],
    [6, 5],
    [5, SIZE + 1],
    [-1, 5],
    [Number.NaN, 5],
    [1, 0],
  ] as const)
    expect(() => log.consistencyProof(from, to)).toThrow(refused);
  expect(log.consistencyProof(5, 5)).toMatchObject({ extension: [], from_root: log.treeHead(5)!.root_hash });
  expect(log.consistencyProof(5)).toMatchObject({ to_size: SIZE, tree_version: 2 });
  expect(log.inclusionProof(5)).toMatchObject({ tree_size: SIZE, tree_version: 2 });
});
