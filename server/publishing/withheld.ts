/**
 * Takes what the operator withholds out of what was published before: out of each bundle that has the entry, and out of the index.
 *
 * If we crash here: the checkpoint does not have the entry yet that withholds the payload, so the next run does the same again.
 * A run of the index whose parts were replaced in part has a record twice, and the fence of before.
 */

import { isCut, withholdingFault, withholdingIn, withoutName } from "../../engine/verify/events/withheld.js";
import type { Entry } from "../../engine/verify/index.js";
import { FULL_TILE } from "../client/log/served.js";
import { parseBundle } from "../client/static/bundle.js";
import { entriesPath, type LeafRange, parseRunPath, runPath } from "../client/static/layout.js";
import { HASH_RECORD_BYTES, PART_RECORDS, readFence } from "../client/static/run.js";
import { objectsOf } from "./runs.js";
import { compressedBundle } from "./source.js";
import type { Target } from "./target.js";

/** A payload that is withheld. */
interface Withheld {
  /** The entry by which it is withheld. */
  readonly by: Entry;
  /** Where the entry is whose payload it is. */
  readonly leafIndex: number;
}

/** @param gone the error for an object that somebody else has changed meanwhile */
export async function takeBack(target: Target, withheld: Withheld, gone: (path: string) => Error): Promise<void> {
  const replace = async (path: string, bytes: Uint8Array) => {
    const before = await target.read(path);
    if (before && Buffer.compare(before.bytes, bytes) === 0) return;
    const isDone = before ? await target.replace(path, bytes, before) : await target.create(path, bytes);
    if (!isDone) throw gone(path);
  };
  for (const path of await bundlesWith(target, withheld.leafIndex)) {
    const bytes = await withoutPayload(target, path, withheld);
    if (bytes) await replace(path, bytes);
  }
  // What is shown of an entry about a key is still about that.
  if (withholdingIn(withheld.by)!.member) return;
  for (const run of await runsWith(target, withheld.leafIndex)) {
    const { records, parts } = await recordsIn(target, run);
    const left = withoutLeaf(records, withheld.leafIndex);
    const fence = (await target.read(runPath(run, "fence")))?.bytes;
    // A run without its fence is being made by somebody who knows of this, or was left by somebody who did not.
    if (!fence && left.length === records.length) continue;
    const count = (fence && readFence(fence)?.count) ?? Number.NaN;
    const lost = count - left.length / HASH_RECORD_BYTES;
    // The entry has one record. If parts lack more, another fence would hide that.
    if (parts * PART_RECORDS < count || !Number.isInteger(lost) || lost > 1) {
      await removeRun(target, run);
      continue;
    }
    if (left.length === records.length && lost === 0) continue;
    for (const [path, bytes] of objectsOf(run, left)) await replace(path, bytes);
    const needed = Math.ceil(left.length / HASH_RECORD_BYTES / PART_RECORDS);
    for (let part = needed; part < parts; part++) await target.remove(runPath(run, part));
  }
}

/** The full bundle with a leaf, and the partial ones that are still there. */
async function bundlesWith(target: Target, leafIndex: number): Promise<readonly string[]> {
  const index = Math.floor(leafIndex / FULL_TILE);
  const full = entriesPath(index, FULL_TILE);
  const partial: string[] = [];
  for await (const { path } of target.list(`${full}.p`)) partial.push(path);
  return [full, ...partial];
}

/** A bundle without the payload; undefined if it has none, or not this leaf. */
async function withoutPayload(target: Target, path: string, { by, leafIndex }: Withheld) {
  const stored = await target.read(path);
  const entries = stored && (await parseBundle(stored.bytes));
  const found = entries?.[leafIndex % FULL_TILE];
  if (!entries || !found || isCut(found.entry)) return undefined;
  const { id, timestamp, event_type, payload, ...rest } = found.entry;
  const shown = withholdingIn(by)!.member ? withoutName(payload) : null;
  const entry = { id, timestamp, event_type, payload: shown, withheld_by: by.id, ...rest };
  if (withholdingFault(entry, by) !== undefined) return undefined;
  return compressedBundle(entries.map((one) => (one === found ? { ...found, entry } : one)));
}

/** Runs of the index that may have a leaf, also those that a larger one has replaced, and those that are not finished. */
async function runsWith(target: Target, leafIndex: number): Promise<Iterable<LeafRange>> {
  const runs = new Map<string, LeafRange>();
  for await (const { path } of target.list("index")) {
    const run = parseRunPath(path);
    if (run && run.from <= leafIndex && leafIndex < run.to) runs.set(runPath(run, "fence"), run);
  }
  return runs.values();
}

/** Removes a run that is damaged, or unfinished: an audit, or who needs it, makes it anew, without the payload. */
async function removeRun(target: Target, run: LeafRange): Promise<void> {
  const fence = runPath(run, "fence");
  await target.remove(fence);
  for await (const { path } of target.list(fence.slice(0, fence.lastIndexOf("/")))) await target.remove(path);
}

/** What the parts of a run hold, whatever its fence says. */
async function recordsIn(
  target: Target,
  run: LeafRange,
): Promise<{ readonly records: Buffer; readonly parts: number }> {
  const parts: Uint8Array[] = [];
  for (;;) {
    const stored = await target.read(runPath(run, parts.length));
    if (!stored) return { records: Buffer.concat(parts), parts: parts.length };
    parts.push(stored.bytes);
  }
}

/** Records, in order and each once, without those of a leaf. */
export function withoutLeaf(records: Uint8Array, leafIndex: number): Buffer {
  const all = Buffer.from(records.buffer, records.byteOffset, records.byteLength);
  const kept: Buffer[] = [];
  for (let at = 0; at < all.length; at += HASH_RECORD_BYTES) {
    const record = all.subarray(at, at + HASH_RECORD_BYTES);
    const isTwice = kept.at(-1)?.equals(record) ?? false;
    const isWhole = record.length === HASH_RECORD_BYTES;
    const isOfLeaf = isWhole && record.readBigUInt64BE(HASH_RECORD_BYTES - 8) === BigInt(leafIndex);
    if (!isTwice && !isOfLeaf) kept.push(record);
  }
  return Buffer.concat(kept);
}
