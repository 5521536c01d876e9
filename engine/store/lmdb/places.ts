/**
 * Where large batches lie in the data file, so that one entry of a batch can be read without the others. LMDB copies a
 * whole value for every read: 180 KB for one entry of a batch of 128, which took 26 µs of the 43 of a request.
 *
 * A batch is never changed or removed while a log is open, and LMDB does not move a value that has pages of its own. A
 * place is kept only if the bytes there are those that LMDB gave for the batch, so a wrong number in the file, or a page
 * that was replaced while we looked for it, costs a search and nothing else. After a crash nothing of this is left.
 *
 * It belongs to the thread that opened the store.
 */
import { join } from "node:path";
import { Recent } from "../../recent.js";
import type { Batch } from "../batch.js";
import { HASH } from "../schema.js";
import { DATA_FILE } from "./inspect.js";
import { type Meta, PAGE_HEADER, PageFile, type TreeRoot, treeAt, uint64 } from "./pagefile.js";

/** Bytes from which a batch is worth a place: below, one copy by LMDB costs no more than reading the file. */
const LARGE = 16_384;
/** Places that are kept: about 700 bytes for a batch of 128 entries. */
const KEPT_PLACES = 8192;
/** Neighbouring leaf indexes that share a hint, and the number of hints: 512 KiB. */
const HINT_WIDTH = 16;
const HINTS = 65_536;
const LEAF = 2;
const NODE_HEADER = 8;
/** The flag of a node whose data is on pages of its own. */
const BIG = 1;
const MAX_DEPTH = 32;

/** One batch in the data file. */
export class Place {
  readonly firstIndex: number;
  readonly count: number;
  readonly #file: PageFile;
  readonly #digestsAt: number;
  readonly #entriesAt: number;
  /** End of each entry, counted from the first. */
  readonly #ends: Uint32Array;

  /** @param at position of the batch in the file */
  constructor(file: PageFile, at: number, batch: Batch, { digestsAt, entriesAt, ends }: Batch["layout"]) {
    this.firstIndex = batch.firstIndex;
    this.count = batch.count;
    this.#file = file;
    this.#digestsAt = at + digestsAt;
    this.#entriesAt = at + entriesAt;
    this.#ends = ends;
  }

  /** Entry number `i` as JSON, the caller's own copy; undefined if the file cannot be read. */
  entry(i: number): Buffer | undefined {
    const start = i ? this.#ends[i - 1]! : 0;
    return bytesAt(this.#file, this.#entriesAt + start, this.#ends[i]! - start);
  }

  /** Hash of entry number `i`, hex; undefined if the file cannot be read. */
  digest(i: number): string | undefined {
    return bytesAt(this.#file, this.#digestsAt + HASH * i, HASH)?.toString("hex");
  }
}

export class Places {
  readonly #path: string;
  /** Opened with the first large batch; null when that failed. */
  #file: PageFile | null | undefined;
  readonly #kept = new Recent<number, Place>(KEPT_PLACES);
  /** The first leaf index of a batch, plus one, by a part of the leaf index. Any value may be out of date. */
  readonly #hints = new Float64Array(HINTS);

  /** @param path directory of the environment */
  constructor(path: string) {
    this.#path = path;
  }

  /** The batch with the entry at `index`, if it is known where it lies. */
  at(index: number): Place | undefined {
    // Of two batches that share a part only one has its hint there. The other's is in the part beside it.
    return this.#hinted(index, 0) ?? this.#hinted(index, -HINT_WIDTH) ?? this.#hinted(index, HINT_WIDTH);
  }

  #hinted(index: number, aside: number): Place | undefined {
    const firstIndex = this.#hints[hintOf(index + aside)]! - 1;
    if (!(firstIndex >= 0 && firstIndex <= index)) return undefined;
    const place = this.#kept.look(firstIndex);
    return place && index < firstIndex + place.count ? place : undefined;
  }

  /** Looks for the place of a batch that LMDB gave. @param row all its bytes */
  learn(batch: Batch, row: Buffer): void {
    if (row.length < LARGE || this.#file === null) return;
    const { firstIndex, count } = batch;
    if (!this.#kept.look(firstIndex)) {
      const place = this.#find(batch, row);
      if (!place) return;
      this.#kept.keep(firstIndex, place);
    }
    for (let index = firstIndex; index < firstIndex + count; index += HINT_WIDTH)
      this.#hints[hintOf(index)] = firstIndex + 1;
    this.#hints[hintOf(firstIndex + count - 1)] = firstIndex + 1;
  }

  #find(batch: Batch, row: Buffer): Place | undefined {
    try {
      this.#file ??= new PageFile(join(this.#path, DATA_FILE));
      const meta = this.#file.meta();
      if (typeof meta === "string") return undefined;
      const at = positionOf(this.#file, meta, "batches", batch.firstIndex);
      if (at === undefined) return undefined;
      const { layout } = batch;
      const head = row.subarray(0, layout.entriesAt);
      return this.#file.read(at, head.length).equals(head) ? new Place(this.#file, at, batch, layout) : undefined;
    } catch {
      // A file that cannot be opened or read here is LMDB's to report.
      this.#file ??= null;
      return undefined;
    }
  }

  close(): void {
    this.#kept.clear();
    this.#file?.close();
    this.#file = null;
  }
}

const hintOf = (index: number): number => Math.floor(Math.max(0, index) / HINT_WIDTH) % HINTS;

function bytesAt(file: PageFile, at: number, length: number): Buffer | undefined {
  try {
    const bytes = file.read(at, length);
    return bytes.length === length ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The position in the file of a value that has pages of its own, under a number in a table; undefined if it has none.
 * Every number may be wrong: the pages may be those of another moment.
 */
function positionOf(file: PageFile, meta: Meta, table: string, key: number): number | undefined {
  const named = descend(file, meta, meta.main, (bytes) => Buffer.compare(bytes, Buffer.from(`${table}\0`)));
  if (!named) return undefined;
  const leaf = descend(file, meta, treeAt(named.page, named.data), (bytes) => numberOf(bytes) - key);
  return leaf && leaf.flags & BIG ? uint64(leaf.page, leaf.data) * meta.pageSize + PAGE_HEADER : undefined;
}

/** A record in a leaf: the position of its data in the page. */
interface Found {
  readonly page: Buffer;
  readonly flags: number;
  readonly data: number;
}

/**
 * The record whose key `compare` finds equal.
 * @param compare negative for keys that are before the wanted one
 * @throws RangeError if a number leads out of a page
 */
function descend(file: PageFile, meta: Meta, tree: TreeRoot, compare: (key: Buffer) => number): Found | undefined {
  let next = tree.root;
  for (let level = 0; next !== undefined && level < MAX_DEPTH; level++) {
    const page = file.read(next * meta.pageSize, meta.pageSize);
    const isLeaf = (page.readUInt16LE(18) & LEAF) !== 0;
    const count = page.readUInt16LE(20) >> 1;
    const nodeAt = (i: number) => PAGE_HEADER + page.readUInt16LE(PAGE_HEADER + 2 * i);
    const keyEnd = (node: number) => node + NODE_HEADER + page.readUInt16LE(node + 6);
    const keyAt = (i: number) => page.subarray(nodeAt(i) + NODE_HEADER, keyEnd(nodeAt(i)));
    // The last record whose key is not behind the wanted one. The first of a branch has no key.
    let [low, high] = [0, count];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (compare(keyAt(middle)) <= 0) low = middle;
      else high = middle;
    }
    const node = nodeAt(low);
    if (isLeaf)
      return compare(keyAt(low)) === 0 ? { page, flags: page.readUInt16LE(node + 4), data: keyEnd(node) } : undefined;
    next = page.readUInt32LE(node) + page.readUInt16LE(node + 4) * 2 ** 32;
  }
  return undefined;
}

const DOUBLE = new DataView(new ArrayBuffer(16));

/** A number that is not negative, as lmdb writes it as a key: the bits of a double, moved by four, without zeros at the end. */
function numberOf(key: Buffer): number {
  for (let i = 0; i < 9; i++) DOUBLE.setUint8(i, key[i] ?? 0);
  const [high, low, rest] = [DOUBLE.getUint32(0), DOUBLE.getUint32(4), DOUBLE.getUint8(8)];
  DOUBLE.setUint32(0, (high << 4) | (low >>> 28));
  DOUBLE.setUint32(4, (low << 4) | (rest >>> 4));
  return DOUBLE.getFloat64(0);
}
