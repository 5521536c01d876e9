/** The RFC 6962 tree of a log against its plain definition, and what becomes of stored nodes that are not its own. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Rfc6962Growth } from "#cairnlog/engine/log/rfc6962/growth.js";
import { MemoryRfc6962Rows, Rfc6962Tree } from "#cairnlog/engine/log/rfc6962/tree.js";
import { entryBundle } from "#cairnlog/engine/log/tlog/checkpoints.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { leafHash, rfc6962 } from "#cairnlog/engine/verify/index.js";
import { hashOf, plainConsistency, plainInclusion, plainRoot } from "../../verify/tlog/plain-rfc6962.js";
import { openTestLog, openTestReader } from "../harness.js";

const hex = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString("hex");
const all = (hashes: readonly Uint8Array[]) => hashes.map(hex);
const failure = (code: string) => expect.objectContaining({ code });

async function fill(log: LogWriter, count: number): Promise<void> {
  await log.append(Array.from({ length: count }, (_, i) => ({ event_type: "note", payload: { i } })));
}

/** Leaf hashes by the definition: SHA-256 of 0x00 and the 64 characters of the entry's hash. */
const leavesOf = (log: LogWriter): Uint8Array[] =>
  Array.from({ length: log.size }, (_, i) => hashOf(0, Buffer.from(log.entryAt(i)!.entry_hash)));

/** Nodes of a tile level by the definition of tlog-tiles: roots of 256^level leaves. */
function nodesOf(leaves: readonly Uint8Array[], level: number): Uint8Array[] {
  const span = 256 ** level;
  return Array.from({ length: Math.floor(leaves.length / span) }, (_, i) =>
    plainRoot(leaves.slice(i * span, (i + 1) * span)),
  );
}

describe("the tree of a log", () => {
  test("has the leaf hashes of tree version 2, and the nodes, roots and proofs of RFC 6962", async () => {
    const { log } = await openTestLog();
    await fill(log, 700);
    await new Rfc6962Growth(log.rfc6962).extend(700);
    const leaves = leavesOf(log);
    expect(hex(leaves[5])).toBe(leafHash(log.entryAt(5)!.entry_hash, 2));
    for (const level of [0, 1])
      for (const [tile, nodes] of [0, 1, 2].map(
        (tile) => [tile, nodesOf(leaves, level).slice(256 * tile, 256 * (tile + 1))] as const,
      ))
        for (const width of [1, 2, 3, 188, 189, 255, 256])
          expect(hex(log.rfc6962.tile(level, tile, width))).toBe(
            width <= nodes.length ? hex(Buffer.concat(nodes.slice(0, width))) : undefined,
          );
    const roots = new Map([0, 1, 3, 256, 257, 511, 700].map((size) => [size, plainRoot(leaves.slice(0, size))]));
    for (const [size, root] of roots) {
      expect(hex(log.rfc6962.root(size))).toBe(hex(root));
      for (const index of [0, 255, 256, size - 1].filter((index) => index >= 0 && index < size)) {
        const proof = log.rfc6962.inclusionProof(index, size);
        expect(all(proof)).toEqual(all(plainInclusion(index, leaves.slice(0, size))));
        const claim = { leafHash: leaves[index]!, leafIndex: index, treeSize: size, proof, rootHash: root };
        expect(rfc6962.verifyInclusion(claim)).toBe(true);
      }
      for (const [from, fromRoot] of roots) {
        if (from > size) continue;
        const proof = log.rfc6962.consistencyProof(from, size);
        if (from > 0) expect(all(proof)).toEqual(all(plainConsistency(from, leaves.slice(0, size))));
        expect(rfc6962.verifyConsistency({ fromSize: from, toSize: size, fromRoot, toRoot: root, proof })).toBe(true);
      }
    }
  });

  test("has no tile, root or proof beyond its end", async () => {
    const { log } = await openTestLog();
    await fill(log, 300);
    await new Rfc6962Growth(log.rfc6962).extend(300);
    for (const [level, index, width] of [
      [0, 1, 45],
      [0, 2, 1],
      [1, 0, 2],
      [1, 1, 1],
      [2, 0, 1],
      [63, 0, 1],
      [0, 0, 0],
      [0, 0, 257],
      [1, 0, 0],
      [1, -1, 1],
    ] as const)
      expect(log.rfc6962.tile(level, index, width), `${level}/${index}.p/${width}`).toBeUndefined();
    expect(() => log.rfc6962.root(301)).toThrow(failure("not-found"));
    expect(() => log.rfc6962.inclusionProof(300, 300)).toThrow(failure("invalid-input"));
    expect(() => log.rfc6962.consistencyProof(301, 300)).toThrow(failure("invalid-input"));
    await expect(new Rfc6962Growth(log.rfc6962).extend(600)).rejects.toThrow(failure("not-found"));
  });

  test("grows with the log, in any steps", async () => {
    const { log } = await openTestLog();
    const growth = new Rfc6962Growth(log.rfc6962);
    for (const count of [1, 254, 1, 1, 255, 300, 5]) {
      await fill(log, count);
      await growth.extend(log.size);
      expect(hex(log.rfc6962.root(log.size))).toBe(hex(plainRoot(leavesOf(log))));
    }
    await Promise.all([growth.extend(log.size), growth.extend(100), growth.extend(log.size)]);
    expect(log.rfc6962.rows.extent()!.size).toBe(3 * 256);
  });

  test("is the same for a reader that made it itself, and of a log that no writer has made it for", async () => {
    const { log, path } = await openTestLog();
    await fill(log, 600);
    const reader = await openTestReader(path);
    expect(reader.rfc6962.tile(1, 0, 2)).toBeUndefined();
    expect(() => reader.rfc6962.root(600)).toThrow(failure("not-found"));
    await new Rfc6962Growth(reader.rfc6962).extend(600);
    expect(hex(reader.rfc6962.root(600))).toBe(hex(plainRoot(leavesOf(log))));
    expect(log.rfc6962.rows.extent()).toBeUndefined();
  });
});

describe("stored nodes", () => {
  /** A log of 600 entries whose nodes are stored, opened anew. */
  async function reopened() {
    const first = await openTestLog();
    await fill(first.log, 600);
    await new Rfc6962Growth(first.log.rfc6962).extend(600);
    await first.log.close();
    return openTestLog({ path: first.path });
  }

  test("are read after a start, and gone on from", async () => {
    const { log } = await reopened();
    expect(hex(log.rfc6962.root(600))).toBe(hex(plainRoot(leavesOf(log))));
    await fill(log, 300);
    await new Rfc6962Growth(log.rfc6962).extend(900);
    expect(hex(log.rfc6962.root(900))).toBe(hex(plainRoot(leavesOf(log))));
  });

  test("of another log, of more entries, or that are not whole are made again", async () => {
    const { log } = await reopened();
    const { rows } = log.rfc6962;
    const extent = rows.extent()!;
    const wrong = Buffer.alloc(64, 7);
    const damages = [
      () => rows.write([{ level: 1, index: 0, hashes: wrong }], { ...extent, lastLeaf: wrong.subarray(32) }),
      () => rows.write([{ level: 1, index: 0, hashes: wrong }], { ...extent, size: 768 }),
      () => rows.write([{ level: 1, index: 0, hashes: wrong }], { ...extent, size: 300 }),
      () => rows.write([{ level: 1, index: 0, hashes: wrong.subarray(32) }], extent),
      async () => {
        await rows.clear();
        await rows.write([], extent);
      },
    ];
    const root = hex(plainRoot(leavesOf(log)));
    for (const damage of damages) {
      await damage();
      await new Rfc6962Growth(log.rfc6962).extend(600);
      expect(hex(log.rfc6962.root(600))).toBe(root);
      expect(rows.extent()!.size).toBe(512);
    }
  });

  test("follow from the entries: without their file they are made again", async () => {
    const { log, path } = await reopened();
    await log.close();
    rmSync(join(path, "postings"), { recursive: true });
    const again = await openTestLog({ path });
    expect(again.log.rfc6962.rows.extent()).toBeUndefined();
    await new Rfc6962Growth(again.log.rfc6962).extend(600);
    expect(existsSync(join(path, "postings"))).toBe(true);
    expect(hex(again.log.rfc6962.root(600))).toBe(hex(plainRoot(leavesOf(again.log))));
  });

  test("are not ahead of what was written when writing them fails", async () => {
    const { log } = await openTestLog();
    await fill(log, 600);
    const rows = new MemoryRfc6962Rows();
    const write = rows.write.bind(rows);
    let fails = true;
    rows.write = (...change) => (fails ? Promise.reject(new Error("no room")) : write(...change));
    const tree = new Rfc6962Tree(log, () => rows);
    const growth = new Rfc6962Growth(tree);
    await expect(growth.extend(600)).rejects.toThrow("no room");
    fails = false;
    await growth.extend(600);
    expect(hex(rows.tile(1, 0))).toBe(hex(Buffer.concat(nodesOf(leavesOf(log), 1))));
  });

  test("are not made further once that is broken off", async () => {
    const { log } = await openTestLog();
    await fill(log, 600);
    await expect(new Rfc6962Growth(log.rfc6962).extend(600, AbortSignal.abort(new Error("enough")))).rejects.toThrow(
      "enough",
    );
    expect(log.rfc6962.rows.extent()).toBeUndefined();
  });
});

test("a bundle holds the hashes of entries as text, each after its length", async () => {
  const { log } = await openTestLog();
  await fill(log, 257);
  const entries = Array.from({ length: 257 }, (_, i) => log.entryAt(i)!.entry_hash);
  const text = (from: number, to: number) =>
    entries
      .slice(from, to)
      .map((hash) => `\0\x40${hash}`)
      .join("");
  expect(entryBundle(log, 0, 256)!.toString("latin1")).toBe(text(0, 256));
  expect(entryBundle(log, 0, 3)!.toString("latin1")).toBe(text(0, 3));
  expect(entryBundle(log, 1, 1)!.toString("latin1")).toBe(text(256, 257));
  for (const [index, width] of [
    [1, 2],
    [2, 1],
    [0, 0],
    [0, 257],
    [2 ** 50, 1],
    [-1, 1],
  ] as const)
    expect(entryBundle(log, index, width)).toBeUndefined();
});
