// `extend` of every kernel: every small start and length against the plain definition, large ones against a tree of
// peaks.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Extension, kernels, type TreeVersion } from "#cairnlog/wasm/index.js";
import {
  type CompleteNode,
  digest,
  digests,
  leafHash,
  nodeHash,
  PeakTree,
  rootOf,
  split,
  unaligned,
  VERSIONS,
} from "./reference.js";

const cases = kernels.flatMap((kernel) => VERSIONS.map((version) => [kernel.name, version, kernel] as const));
const popcount = (size: number) => [...size.toString(2)].filter((bit) => bit === "1").length;

/** Peaks of no known leaves. `extend` cannot tell the difference, and nobody has to build a tree of 2^40 leaves. */
function fakePeaks(size: number, seed: number): Buffer {
  return digests(1e9 + seed * 64, popcount(size));
}

/** The expected result of `extend`, one leaf at a time. */
function expectedExtension(size: number, peaks: Buffer, leaves: Buffer, version: TreeVersion) {
  const tree = new PeakTree(size, split(peaks), version);
  const complete: CompleteNode[] = [];
  const roots = split(leaves).map((leaf) => {
    complete.push(...tree.append(leaf));
    return tree.root();
  });
  const runs = [0, 8, 16, 24, 32, 40, 48].flatMap((level) => {
    const nodes = complete.filter((node) => node.level === level);
    if (nodes.length === 0) return [];
    return [{ level, firstIndex: nodes[0]!.index, hashes: Buffer.concat(nodes.map((node) => node.hash)) }];
  });
  return { peaks: tree.peaks(), roots: Buffer.concat(roots), runs };
}

const comparable = (extension: Extension) => ({
  peaks: Buffer.from(extension.peaks).toString("hex"),
  roots: Buffer.from(extension.roots).toString("hex"),
  runs: extension.runs.map((run) => ({ ...run, hashes: Buffer.from(run.hashes).toString("hex") })),
});

describe("the reference", () => {
  it.each(VERSIONS)("gives the root of the definition, version %i", (version) => {
    const tree = new PeakTree(0, [], version);
    const leaves: Buffer[] = [];
    for (let i = 0; i < 140; i++) {
      tree.append(digest(i));
      leaves.push(leafHash(digest(i), version));
      expect(tree.root()).toEqual(rootOf(leaves, version));
    }
  });
});

describe.each(cases)("extend, %s, version %i", (_name, version, kernel) => {
  it("gives every root, peak and leaf of the definition, for every small start and length", () => {
    const limit = 70;
    const input = digests(0, 2 * limit);
    const leaves = split(input).map((leaf) => leafHash(leaf, version));
    const roots = Buffer.concat(leaves.map((_, i) => rootOf(leaves.slice(0, i + 1), version)));
    const peaks = [Buffer.alloc(0)];
    for (let size = 1; size <= 2 * limit; size++) {
      const found: Uint8Array[] = [];
      for (let level = 0, end = size; end > 0; level++) {
        const width = 2 ** level;
        if (end % (2 * width) === 0) continue;
        found.push(rootOf(leaves.slice(end - width, end), version));
        end -= width;
      }
      peaks.push(Buffer.concat(found));
    }
    // `expect` costs more than `extend`, and there are tens of thousands of results.
    const wrong: string[] = [];
    const same = (found: Uint8Array, expected: Uint8Array, what: string) => {
      if (Buffer.compare(found, expected) !== 0) wrong.push(what);
    };
    for (let size = 0; size <= limit; size++)
      for (let count = 1; count <= limit; count++) {
        const part = input.subarray(32 * size, 32 * (size + count));
        const at = `${count} on ${size}`;
        const expectedLeaves = Buffer.concat(leaves.slice(size, size + count));
        for (const withRoots of [true, false]) {
          const found = kernel.extend(size, peaks[size]!, part, version, withRoots);
          const expectedRoots = withRoots ? roots.subarray(32 * size, 32 * (size + count)) : Buffer.alloc(0);
          same(found.roots, expectedRoots, `roots, ${at}`);
          same(found.peaks, peaks[size + count]!, `peaks, ${at}`);
          const [run, ...others] = found.runs;
          if (!run || others.length > 0 || run.level !== 0 || run.firstIndex !== size)
            wrong.push(`runs, ${at}: ${JSON.stringify(found.runs)}`);
          else same(run.hashes, expectedLeaves, `leaves, ${at}`);
        }
      }
    expect(wrong).toEqual([]);
  });

  it("agrees with a tree of peaks on sizes up to 2^53 - 1", () => {
    const size = fc.oneof(
      fc.nat({ max: 5000 }),
      fc.maxSafeNat().map((n) => Math.min(n, Number.MAX_SAFE_INTEGER - 3000)),
      // Just below a power of two, where a leaf completes nodes of many levels.
      fc
        .tuple(fc.integer({ min: 1, max: 52 }), fc.nat({ max: 40 }))
        .map(([bits, less]) => Math.max(0, 2 ** bits - less)),
    );
    fc.assert(
      fc.property(size, fc.integer({ min: 1, max: 90 }), (start, count) => {
        const peaks = fakePeaks(start, count);
        const leaves = digests(count, count);
        const expected = expectedExtension(start, peaks, leaves, version);
        const found = comparable(kernel.extend(start, unaligned(peaks), unaligned(leaves), version, true));
        expect(found).toEqual(comparable(expected));
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    [0, 1500],
    [1, 1024],
    [1000, 1025],
    [4095, 3000],
    [65_536 - 1500, 2600],
    [2 ** 24 - 300, 700],
    [2 ** 32 - 77, 300],
    [2 ** 40 - 1, 2],
    [2 ** 40 + 12_345, 300],
    [2 ** 48 - 3, 10],
    [Number.MAX_SAFE_INTEGER - 5, 5],
  ])("from %i, %i leaves: roots, peaks and the runs of stored levels", (size, count) => {
    const peaks = fakePeaks(size, 1);
    const leaves = digests(0, count);
    const expected = expectedExtension(size, peaks, leaves, version);
    expect(comparable(kernel.extend(size, peaks, leaves, version, true))).toEqual(comparable(expected));
    const bare = comparable(kernel.extend(size, peaks, leaves, version, false));
    expect(bare).toEqual({ ...comparable(expected), roots: "" });
  });

  it("gives runs that are subtrees of the leaves", () => {
    const leaves = digests(0, 66_000);
    const { runs } = kernel.extend(0, new Uint8Array(0), leaves, version, false);
    expect(runs.map((run) => [run.level, run.firstIndex, run.hashes.length / 32])).toEqual([
      [0, 0, 66_000],
      [8, 0, 257],
      [16, 0, 1],
    ]);
    let level = split(runs[0]!.hashes);
    const complete = () => Buffer.concat(level.slice(0, runs.find((run) => run.level === at)!.hashes.length / 32));
    let at = 0;
    for (; at < 16; at++) {
      if (at === 8) expect(Buffer.compare(runs[1]!.hashes, complete())).toBe(0);
      const pairs = level.slice(0, level.length - (level.length % 2));
      level = Array.from({ length: pairs.length / 2 }, (_, i) => nodeHash(pairs[2 * i]!, pairs[2 * i + 1]!, version));
    }
    expect(Buffer.compare(runs[2]!.hashes, complete())).toBe(0);
  });

  it("gives the same in one call and in a chain of calls", () => {
    const parts = fc.array(fc.integer({ min: 0, max: 1200 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.nat({ max: 3000 }), parts, (start, counts) => {
        const total = counts.reduce((sum, count) => sum + count, 0);
        const leaves = digests(0, total);
        const whole = kernel.extend(start, fakePeaks(start, 2), leaves, version, true);
        let size = start;
        let peaks: Uint8Array = fakePeaks(start, 2);
        const roots: Uint8Array[] = [];
        const stored = new Map<number, { firstIndex: number; hashes: Uint8Array[] }>();
        for (const count of counts) {
          const from = size - start;
          const piece = kernel.extend(size, peaks, leaves.subarray(32 * from, 32 * (from + count)), version, true);
          roots.push(piece.roots);
          for (const { level, firstIndex, hashes } of piece.runs) {
            const run = stored.get(level) ?? { firstIndex, hashes: [] };
            stored.set(level, run);
            run.hashes.push(hashes);
          }
          size += count;
          peaks = piece.peaks;
        }
        const runs = [...stored]
          .sort(([a], [b]) => a - b)
          .map(([level, run]) => ({ level, firstIndex: run.firstIndex, hashes: Buffer.concat(run.hashes) }));
        expect(comparable({ peaks, roots: Buffer.concat(roots), runs })).toEqual(comparable(whole));
      }),
      { numRuns: 12 },
    );
  });

  it("does nothing with no leaves", () => {
    const peaks = fakePeaks(11, 3);
    const found = kernel.extend(11, peaks, new Uint8Array(0), version, true);
    expect(comparable(found)).toEqual({
      peaks: peaks.toString("hex"),
      roots: "",
      runs: [{ level: 0, firstIndex: 11, hashes: "" }],
    });
  });

  it("returns copies", () => {
    const first = kernel.extend(3, fakePeaks(3, 1), digests(0, 300), version, true);
    const before = comparable(first);
    kernel.extend(3, fakePeaks(3, 9), digests(500, 300), version, true);
    expect(comparable(first)).toEqual(before);
  });
});
