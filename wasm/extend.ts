/**
 * Appends leaves to a tree of which only the peaks are known. Splits a batch into pieces for one call each of
 * `assembly/extend.ts`, and writes the results of consecutive pieces into arrays that are made once for the whole
 * batch.
 */
import { assertLength, assertSize, assertVersion, countOf, NODE } from "./border.js";
import type { Extension, NodeRun, TreeVersion } from "./contract.js";
import type { KernelModule } from "./module.js";

/** Tiles begin at every eighth level; a size below 2^53 has complete nodes on levels 0 … 52. */
const STORED_LEVELS = [0, 8, 16, 24, 32, 40, 48];

/** See `Kernel.extend`. */
export function extend(
  wasm: KernelModule,
  size: number,
  peaks: Uint8Array,
  digests: Uint8Array,
  version: TreeVersion,
  withRoots: boolean,
): Extension {
  assertVersion(version);
  assertSize(size, "size");
  assertLength(peaks, peakCount(size) * NODE, "peaks");
  const count = countOf(digests, NODE, "digests");
  assertSize(size + count, "the new size");
  if (typeof withRoots !== "boolean") throw new TypeError("withRoots must be a boolean");

  const { memory } = wasm;
  const roots = new Uint8Array(withRoots ? count * NODE : 0);
  const runs: NodeRun[] = [];
  for (const level of STORED_LEVELS) {
    const firstIndex = completeNodes(size, level);
    const added = completeNodes(size + count, level) - firstIndex;
    if (level === 0 || added > 0) runs.push({ level, firstIndex, hashes: new Uint8Array(added * NODE) });
  }

  memory.set(peaks, wasm.peaks);
  for (let done = 0; done < count; done += wasm.extendCapacity) {
    const piece = Math.min(wasm.extendCapacity, count - done);
    const before = size + done;
    memory.set(digests.subarray(done * NODE, (done + piece) * NODE), wasm.input);
    wasm.extend(before, piece, version, withRoots ? 1 : 0);
    if (withRoots) roots.set(memory.subarray(wasm.output, wasm.output + piece * NODE), done * NODE);
    let stored = wasm.runs;
    for (const { level, firstIndex, hashes } of runs) {
      const first = completeNodes(before, level);
      const length = (completeNodes(before + piece, level) - first) * NODE;
      const from = level === 0 ? wasm.leaves : stored;
      hashes.set(memory.subarray(from, from + length), (first - firstIndex) * NODE);
      if (level !== 0) stored += length;
    }
  }
  return {
    peaks: memory.slice(wasm.peaks, wasm.peaks + peakCount(size + count) * NODE),
    roots,
    runs,
  };
}

function completeNodes(size: number, level: number): number {
  return Math.floor(size / 2 ** level);
}

/** One peak for every set bit of `size`. */
function peakCount(size: number): number {
  let count = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2;
  return count;
}
