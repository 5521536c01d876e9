/**
 * Where batches lie in the data file, so that one entry of a batch can be read without the others. LMDB copies a whole value
 * for every read: 180 KB for one entry of a batch of 128, which took 26 µs of the 43 of a request.
 *
 * A batch is never changed or removed while a log is open, and LMDB does not move a value that has pages of its own. So what
 * a leaf page of the table says stays true, also when LMDB has written that page anew elsewhere; and after a crash nothing of
 * this is left. The caller holds a reading transaction while a leaf is looked for: LMDB reuses none of its pages then. Every
 * batch is checked when it is first read at its place, so a wrong number in the file costs a read by LMDB and nothing else.
 *
 * It belongs to the thread that opened the store.
 */
import { join } from "node:path";
import { leastWhere } from "../../base/search.js";
import { BATCH_HEADER, layoutOf, type StoredHead, storedHead } from "../schema/batch.js";
import { HASH } from "../schema/schema.js";
import { expanded, isShort } from "../schema/shorthand.js";
import {
  BIG,
  keyEnd,
  type LeafPage,
  leafPageOf,
  nodeAt,
  numberOf,
  OVERFLOW,
  PAGE_HEADER,
  PageFile,
  sizeOf,
  uint64,
} from "./file/pagefile.js";
import { DATA_FILE } from "./inspect.js";

/**
 * Leaf pages that are kept, 28 bytes for each of their 75 to 150 batches: 9 MB at most, and five million entries in batches
 * of 32. To find one that is not kept took 22 µs, and to read an entry all over a log of 1.3 GB 4 µs (3,000 and 50,000 of a
 * million entries, Node 20).
 */
const KEPT_LEAVES = 2048;
/** Ends of entries that are kept: 4 MiB, for a million entries. Those of other batches take one more read of the file. */
const KEPT_ENDS = 2 ** 20;
const NONE = -1;

/** The batches that a leaf page of the table names, ascending. */
interface Leaf {
  readonly pageSize: number;
  /** The first leaf index of each batch and, as one more, the index behind the last. */
  readonly firsts: Float64Array;
  /** Position of each batch in the file, or `NONE` if it has no pages of its own. */
  readonly positions: Float64Array;
  readonly lengths: Uint32Array;
  /** Where the ends of its entries are kept, once it is checked. */
  readonly ends: Float64Array;
}

/** Numbers that are forgotten in the order in which they came. */
class Ring {
  readonly #numbers: Uint32Array;
  #written = 0;

  constructor(size: number) {
    this.#numbers = new Uint32Array(size);
  }

  /** Makes room for `count` numbers. @returns where the first one goes */
  reserve(count: number): number {
    const at = this.#written;
    this.#written += count;
    return at;
  }

  set(at: number, value: number): void {
    this.#numbers[at % this.#numbers.length] = value;
  }

  get(at: number): number {
    return this.#numbers[at % this.#numbers.length]!;
  }

  /** Whether the numbers from `at` on are still there. */
  holds(at: number): boolean {
    return at !== NONE && at + this.#numbers.length >= this.#written;
  }
}

/** One batch in the data file. */
export class BatchExtent {
  readonly firstIndex: number;
  readonly count: number;
  readonly #file: PlaceFile;
  readonly #leaf: Leaf;
  readonly #number: number;

  /** @param number of the batch in its leaf */
  constructor(file: PlaceFile, leaf: Leaf, number: number) {
    this.firstIndex = leaf.firsts[number]!;
    this.count = leaf.firsts[number + 1]! - this.firstIndex;
    this.#file = file;
    this.#leaf = leaf;
    this.#number = number;
  }

  /** Entry number `i` as JSON, the caller's own copy; undefined if the file cannot be read, or has no such batch there. */
  entry(i: number): Buffer | undefined {
    const at = this.#file.ends(this.#leaf, this.#number);
    if (at === NONE) return undefined;
    const { ring } = this.#file;
    // Before the end of the first entry stands where it begins.
    const start = ring.get(at + i);
    const stored = this.#file.bytes(this.#leaf.positions[this.#number]! + start, ring.get(at + i + 1) - start);
    if (!stored || !isShort(stored)) return stored;
    const digests = this.digests(Math.max(0, i - 1), i + 1);
    return digests && Buffer.from(expanded(stored, digests));
  }

  /** What the batch says of the head of entry number `i`, the caller's own copy; undefined as for `entry`. */
  head(i: number): StoredHead | undefined {
    if (this.#file.ends(this.#leaf, this.#number) === NONE) return undefined;
    return storedHead((at, length) => this.#file.bytes(this.#leaf.positions[this.#number]! + at, length), i);
  }

  /** Hashes of the entries [from, to), 32 bytes each, the caller's own copy; undefined as for `entry`. */
  digests(from: number, to: number): Buffer | undefined {
    if (this.#file.ends(this.#leaf, this.#number) === NONE) return undefined;
    const digestsAt = BATCH_HEADER + 4 * this.count;
    const position = this.#leaf.positions[this.#number]! + digestsAt;
    return this.#file.bytes(position + HASH * from, HASH * (to - from));
  }
}

/** The file, and the ends of entries that were read of it. */
class PlaceFile {
  readonly file: PageFile;
  readonly ring: Ring;

  constructor(file: PageFile, keptEnds: number) {
    this.file = file;
    this.ring = new Ring(keptEnds);
  }

  /**
   * Where the ring has the beginning of the first entry of a batch, and behind it the ends of all, counted from the batch's
   * beginning; `NONE` if the batch is not in the file where its leaf says.
   */
  ends(leaf: Leaf, number: number): number {
    const kept = leaf.ends[number]!;
    if (this.ring.holds(kept)) return kept;
    const at = this.#readEnds(leaf, number);
    leaf.ends[number] = at;
    return at;
  }

  #readEnds({ pageSize, firsts, positions, lengths }: Leaf, number: number): number {
    const position = positions[number]!;
    const count = firsts[number + 1]! - firsts[number]!;
    const bytes = this.bytes(position - PAGE_HEADER, PAGE_HEADER + BATCH_HEADER + 4 * count);
    if (!bytes || !isFirstOfValue(bytes, (position - PAGE_HEADER) / pageSize)) return NONE;
    const head = bytes.subarray(PAGE_HEADER);
    const layout = layoutOf(head);
    const endAt = (i: number) => layout!.entriesAt + head.readUInt32LE(BATCH_HEADER + 4 * i);
    if (layout?.count !== count || endAt(count - 1) !== lengths[number]) return NONE;
    const at = this.ring.reserve(count + 1);
    this.ring.set(at, layout.entriesAt);
    for (let i = 0; i < count; i++) this.ring.set(at + 1 + i, endAt(i));
    return at;
  }

  /** Undefined if the file ends before, or cannot be read: what LMDB says of that is told to those who asked. */
  bytes(at: number, length: number): Buffer | undefined {
    try {
      const bytes = this.file.read(at, length);
      return bytes.length === length ? bytes : undefined;
    } catch {
      return undefined;
    }
  }
}

export class BatchExtents {
  readonly #path: string;
  readonly #keptEnds: number;
  /** Opened when the first place is looked for; null when that failed. */
  #file: PlaceFile | null | undefined;
  /** Ascending; they may overlap where LMDB has split a leaf since. */
  readonly #leaves: Leaf[] = [];
  /** The first indexes of the leaves, in the order in which they were found. */
  readonly #found: number[] = [];

  /** @param path directory of the environment @param keptEnds more than a batch has entries */
  constructor(path: string, keptEnds = KEPT_ENDS) {
    this.#path = path;
    this.#keptEnds = keptEnds;
  }

  /** The batch with the entry at `index`: null if it has no pages of its own, undefined if that is not known. */
  at(index: number): BatchExtent | null | undefined {
    const leaf = this.#leaves[this.#before(index)];
    if (!leaf) return undefined;
    const { firsts, positions } = leaf;
    const number = leastWhere(0, firsts.length, (i) => firsts[i]! > index) - 1;
    const position = positions[number];
    if (position === undefined) return undefined;
    return position === NONE ? null : new BatchExtent(this.#file!, leaf, number);
  }

  /** The number of the last leaf that begins at `index` or before; `NONE` if there is none. */
  #before(index: number): number {
    return leastWhere(0, this.#leaves.length, (i) => this.#leaves[i]!.firsts[0]! > index) - 1;
  }

  /**
   * Looks for the place of the batch with the entry at `index`, which is on disk. The caller holds a reading transaction.
   * @returns as `at` does
   */
  find(index: number): BatchExtent | null | undefined {
    if (this.#file === null) return undefined;
    try {
      this.#file ??= new PlaceFile(new PageFile(join(this.#path, DATA_FILE)), this.#keptEnds);
      const meta = this.#file.file.meta();
      if (typeof meta === "string") return undefined;
      const page = leafPageOf(this.#file.file, meta, "batches", index);
      if (page) this.#keep(read(this.#file, page, meta.pageSize));
      return this.at(index);
    } catch {
      // A file that cannot be opened or read here is LMDB's to report.
      this.#file ??= null;
      return undefined;
    }
  }

  #keep(leaf: Leaf): void {
    const first = leaf.firsts[0]!;
    const before = this.#before(first);
    // The newest leaf has more batches now.
    if (this.#leaves[before]?.firsts[0] === first) {
      this.#leaves[before] = leaf;
      return;
    }
    this.#leaves.splice(before + 1, 0, leaf);
    if (this.#found.push(first) > KEPT_LEAVES) this.#leaves.splice(this.#before(this.#found.shift()!), 1);
  }

  close(): void {
    this.#leaves.length = this.#found.length = 0;
    this.#file?.file.close();
    this.#file = null;
  }
}

/** Whether a page is the first of those of a value, and has the number that its place in the file gives it. */
const isFirstOfValue = (page: Buffer, number: number): boolean =>
  uint64(page, 0) === number && (page.readUInt16LE(18) & OVERFLOW) !== 0;

/** @throws RangeError if a number leads out of the page */
function read(file: PlaceFile, { page, count }: LeafPage, pageSize: number): Leaf {
  const firsts = new Float64Array(count + 1);
  const positions = new Float64Array(count).fill(NONE);
  const lengths = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    const node = nodeAt(page, i);
    firsts[i] = numberOf(page, node);
    if (!(page.readUInt16LE(node + 4) & BIG)) continue;
    positions[i] = uint64(page, keyEnd(page, node)) * pageSize + PAGE_HEADER;
    lengths[i] = sizeOf(page, node);
  }
  // Only the last batch itself says where it ends.
  const last = count - 1;
  const isInPage = positions[last] === NONE;
  const head = isInPage ? page.subarray(keyEnd(page, nodeAt(page, last))) : file.bytes(positions[last]!, BATCH_HEADER);
  firsts[count] = firsts[last]! + ((head && layoutOf(head)?.count) ?? 0);
  return { pageSize, firsts, positions, lengths, ends: new Float64Array(count).fill(NONE) };
}
