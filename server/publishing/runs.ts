/** Makes the runs of an index (`client/static/run.ts`) of entries, and of the runs before them. */
import { CairnlogError } from "../../engine/base/error.js";
import { FULL_TILE } from "../client/log/served.js";
import type { BundledEntry } from "../client/static/bundle.js";
import { type LeafRange, runPath, runsOf } from "../client/static/layout.js";
import { HASH_RECORD_BYTES, lookupHashes, PART_RECORDS, readFence, writeFence } from "../client/static/run.js";
import type { Target } from "./target.js";

const PART_BYTES = PART_RECORDS * HASH_RECORD_BYTES;

/** The records of the entries of a bundle, in any order. */
export function recordsOfBundle(entries: readonly BundledEntry[], index: number): Uint8Array {
  const records = entries.flatMap(({ entry }, i) =>
    [...new Set(lookupHashes(entry))].map((term) => {
      const record = Buffer.alloc(HASH_RECORD_BYTES, term, "hex");
      record.writeBigUInt64BE(BigInt(index * FULL_TILE + i), HASH_RECORD_BYTES - 8);
      return record;
    }),
  );
  return Buffer.concat(records);
}

/** Records in the order of their bytes. An object for each would take twice the memory and time. */
export function sortedRecords(pieces: readonly Uint8Array[]): Uint8Array {
  const records = Buffer.concat(pieces);
  const order = Uint32Array.from({ length: records.length / HASH_RECORD_BYTES }, (_, i) => i);
  const at = (i: number) => i * HASH_RECORD_BYTES;
  order.sort(
    (a, b) =>
      records.readUInt32BE(at(a)) - records.readUInt32BE(at(b)) ||
      records.compare(records, at(b), at(b + 1), at(a), at(a + 1)),
  );
  const sorted = Buffer.allocUnsafe(records.length);
  for (const [i, from] of order.entries()) records.copy(sorted, at(i), at(from), at(from + 1));
  return sorted;
}

/** The objects of a run, its fence last: path and bytes. */
export function* objectsOf(run: LeafRange, records: Uint8Array): Iterable<readonly [path: string, bytes: Uint8Array]> {
  for (let part = 0; part * PART_BYTES < records.length; part++)
    yield [runPath(run, part), records.subarray(part * PART_BYTES, (part + 1) * PART_BYTES)];
  yield [runPath(run, "fence"), writeFence(records)];
}

/** All records of a run that a target has. @throws CairnlogError `corrupt-log` if it is not whole */
export async function readRun(target: Target, run: LeafRange): Promise<Uint8Array> {
  const bytes = (await target.read(runPath(run, "fence")))?.bytes;
  const fence = bytes && readFence(bytes);
  const parts: Uint8Array[] = [];
  for (let part = 0; fence && part * PART_RECORDS < fence.count; part++) {
    const read = (await target.read(runPath(run, part)))?.bytes;
    if (read) parts.push(read);
  }
  const records = Buffer.concat(parts);
  if (fence && records.length === fence.count * HASH_RECORD_BYTES) return records;
  throw new CairnlogError(
    "corrupt-log",
    `${target.name} has not the whole of ${runPath(run, "fence")}. cairnlog publish --entries --audit makes what is missing.`,
  );
}

/** Whether a run is within another one that is no longer the same. */
export const isCovered = (run: LeafRange, by: LeafRange): boolean =>
  by.from <= run.from && run.to <= by.to && by.to - by.from > run.to - run.from;

/** Runs of a tree that those of a smaller one do not have. */
export function newRuns(size: number, before: readonly LeafRange[]): readonly LeafRange[] {
  return runsOf(size).filter(({ from, to }) => !before.some((run) => run.from === from && run.to === to));
}
