/**
 * The index of a static log: runs of records, each a hash and the leaf index of an entry that is about it, in the order of their
 * bytes. A run's fence has the beginning of every block of records, so that a reader asks for the blocks that may have a hash,
 * and for no others. Nobody signs an index: entries that it names are verified, those that it leaves out are not noticed.
 */

import { membersIn } from "../../../engine/verify/events/withheld.js";
import { type Entry, kindOf } from "../../../engine/verify/index.js";

const TERM_BYTES = 32;
export const HASH_RECORD_BYTES = TERM_BYTES + 8;
/** Records of a part, which is one object. */
export const PART_RECORDS = 65_536;
/** Hashes are compared with the fence by so many bytes. Whoever chooses hashes only makes readers ask for more. */
const FENCE_BYTES = 8;
/** A fence has at most so many blocks, if its blocks need not be longer than a part. */
const FENCE_BLOCKS = 4_096;
const SHORTEST_BLOCK = 64;

/** The hashes under which an entry is found, in hex: of its document, or of the keys that an event of keys is about. */
export function lookupHashes(entry: Entry): readonly string[] {
  const payload = membersIn(entry);
  const isOfKeys = kindOf(entry.event_type)?.scope === "keys";
  const values = [payload.document_hash, ...(isOfKeys ? [payload.fingerprint, payload.old_fingerprint] : [])];
  return values.flatMap((value) => (typeof value === "string" ? (termOf(value) ?? []) : []));
}

/** A hash in either spelling as a term; undefined if it is none. */
export const termOf = (hash: string): string | undefined => /^(?:sha256:)?([0-9a-f]{64})$/.exec(hash)?.[1];

export interface Fence {
  /** Number of records. */
  readonly count: number;
  /** Records of a block: a power of two, so that every block is in one part. */
  readonly block: number;
  readonly starts: readonly bigint[];
}

/** Records of a block in a run. */
function blockOf(count: number): number {
  let block = SHORTEST_BLOCK;
  while (block < PART_RECORDS && block * FENCE_BLOCKS < count) block *= 2;
  return block;
}

/** The bytes of the fence of a run: the number of its records, and the beginning of each block. */
export function writeFence(records: Uint8Array): Uint8Array {
  const count = records.length / HASH_RECORD_BYTES;
  const block = blockOf(count);
  const blocks = Math.ceil(count / block);
  const bytes = new Uint8Array(8 + blocks * FENCE_BYTES);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(count));
  for (let i = 0; i < blocks; i++) {
    const at = i * block * HASH_RECORD_BYTES;
    bytes.set(records.subarray(at, at + FENCE_BYTES), 8 + i * FENCE_BYTES);
  }
  return bytes;
}

/** The fence in these bytes; undefined for what is none. */
export function readFence(bytes: Uint8Array): Fence | undefined {
  if (bytes.length < 8) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = Number(view.getBigUint64(0));
  const block = blockOf(count);
  if (bytes.length !== 8 + Math.ceil(count / block) * FENCE_BYTES) return undefined;
  const starts: bigint[] = [];
  for (let at = 8; at < bytes.length; at += FENCE_BYTES) starts.push(view.getBigUint64(at));
  return starts.every((start, i) => start >= (starts[i - 1] ?? 0n)) ? { count, block, starts } : undefined;
}

/** Which records of a run may be about a term, from the first one to that behind the last one. */
export function recordsOf(
  { count, block, starts }: Fence,
  term: string,
): { readonly from: number; readonly to: number } {
  const start = BigInt(`0x${term.slice(0, 2 * FENCE_BYTES)}`);
  // The block before the first one that begins with the term may end with it.
  const from = Math.max(0, search(starts, (value) => value >= start) - 1);
  const to = search(starts, (value) => value > start);
  return { from: from * block, to: Math.min(count, to * block) };
}

/** Number of the first value of which `test` holds; it holds of all behind it. */
function search(values: readonly bigint[], test: (value: bigint) => boolean): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(values[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Leaf indexes in the records that are about a term. */
export function leavesIn(records: Uint8Array, term: string): readonly number[] {
  const view = new DataView(records.buffer, records.byteOffset, records.byteLength);
  const bytes = Array.from({ length: TERM_BYTES }, (_, i) => Number.parseInt(term.slice(2 * i, 2 * i + 2), 16));
  const found: number[] = [];
  for (let at = 0; at + HASH_RECORD_BYTES <= records.length; at += HASH_RECORD_BYTES)
    if (bytes.every((byte, i) => records[at + i] === byte)) found.push(Number(view.getBigUint64(at + TERM_BYTES)));
  return found;
}
