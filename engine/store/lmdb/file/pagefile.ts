/**
 * Reads the data file of an LMDB environment page by page, without LMDB. LMDB maps the file into memory and trusts every
 * number in it, so a damaged file ends the process with a signal. Numbers are little-endian, on every system that lmdb
 * is built for.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

/** Length of the header of a page. Offsets inside a page are counted from its end. */
export const PAGE_HEADER = 24;
/** Flags of a page: its nodes are records; it is the first of those of a value. */
export const LEAF = 2;
export const OVERFLOW = 4;
/** Bytes of a node before its key. */
export const NODE_HEADER = 8;
/** The flag of a node whose data is on pages of its own. */
export const BIG = 1;
/** LMDB's own limit of the levels of a tree. */
export const MAX_LEVELS = 32;
/** Where LMDB keeps the number of "no page": 64 set bits, which are this number as a double. */
const NO_PAGE = 2 ** 64;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
const META_FLAG = 8;
/** Bytes of a meta page that are used. */
const META_BYTES = 168;
/** Pages that hold no data: the two meta pages. */
export const META_PAGES = 2;
const SMALLEST_PAGE = 512;
const LARGEST_PAGE = 65_536;
/** Pages behind the end of a file that a transaction may have taken and given back. */
const MAX_UNUSED_PAGES = 2 ** 20;
/** Length of the description of a tree. */
export const TREE_BYTES = 48;

/** The root of one of the trees in the file, and what LMDB counted of it. */
export interface TreeRoot {
  /** Undefined for an empty tree. */
  readonly root: number | undefined;
  /** Levels of pages. */
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  /** Pages of values that have pages of their own. */
  readonly overflowPages: number;
  readonly entries: number;
}

/** What a meta page says: the newest of the two is where LMDB begins to read. */
export interface Meta {
  readonly pageSize: number;
  /** Number of the transaction that wrote it. */
  readonly transaction: number;
  readonly lastPage: number;
  /** The tree of free pages. */
  readonly free: TreeRoot;
  /** The tree of the names of the tables. */
  readonly main: TreeRoot;
}

export const uint64 = (bytes: Buffer, at: number): number =>
  bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;

export function treeAt(bytes: Buffer, at: number): TreeRoot {
  const root = uint64(bytes, at + 40);
  return {
    root: root === NO_PAGE ? undefined : root,
    depth: bytes.readUInt16LE(at + 6),
    branchPages: uint64(bytes, at + 8),
    leafPages: uint64(bytes, at + 16),
    overflowPages: uint64(bytes, at + 24),
    entries: uint64(bytes, at + 32),
  };
}

export class PageFile {
  readonly #file: number;
  /** Length when it was opened. */
  readonly bytes: number;

  /** @throws the file system's error */
  constructor(path: string) {
    this.#file = openSync(path, "r");
    this.bytes = fstatSync(this.#file).size;
  }

  /** The bytes from `at` on; fewer if the file ends before. @throws the file system's error */
  read(at: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    let read = 0;
    while (read < length) {
      const part = readSync(this.#file, bytes, read, length - read, at + read);
      if (!part) break;
      read += part;
    }
    return read === length ? bytes : bytes.subarray(0, read);
  }

  /**
   * The newest meta page.
   * @returns a sentence if LMDB must not open the file
   */
  meta(): Meta | string {
    const first = this.#metaAt(0, 0);
    if (typeof first === "string") return first;
    const second = this.#metaAt(1, first.pageSize);
    if (typeof second === "string") return second;
    if (second.pageSize !== first.pageSize)
      return `its two meta pages name two page sizes, ${first.pageSize} and ${second.pageSize}`;
    return first.transaction >= second.transaction ? first : second;
  }

  /**
   * Whether LMDB was interrupted while it wrote the two meta pages of a new file: the file is empty, or has nothing but
   * zeros and meta pages without a transaction. A power failure may leave any part of the two pages.
   */
  isUnborn(): boolean {
    if (this.bytes > META_PAGES * LARGEST_PAGE) return false;
    // LMDB opens a file that has both.
    if (typeof this.meta() !== "string") return false;
    const rest = this.read(0, this.bytes);
    if (this.#isFirst(0, 0)) rest.fill(0, 0, META_BYTES);
    for (let at = SMALLEST_PAGE; at <= LARGEST_PAGE; at *= 2)
      if (this.#isFirst(1, at)) rest.fill(0, at, at + META_BYTES);
    return rest.every((byte) => byte === 0);
  }

  /** Whether this is a meta page that no transaction has written yet. */
  #isFirst(page: 0 | 1, at: number): boolean {
    const meta = this.#metaAt(page, at);
    return typeof meta !== "string" && meta.transaction === 0;
  }

  #metaAt(page: 0 | 1, at: number): Meta | string {
    const bytes = this.read(at, META_BYTES);
    const broken = (what: string) => `meta page ${page} ${what}`;
    if (bytes.length < META_BYTES) return broken(`is missing: the file has ${this.bytes} bytes`);
    const magic = bytes.readUInt32LE(24);
    if (!(bytes.readUInt16LE(18) & META_FLAG) || magic !== MAGIC) return broken("is not that of an LMDB file");
    const version = bytes.readUInt32LE(28) & 0xffff;
    if (version !== DATA_VERSION) return broken(`is in version ${version} of LMDB's format, not in ${DATA_VERSION}`);
    const pageSize = bytes.readUInt32LE(48);
    if (pageSize < SMALLEST_PAGE || pageSize > LARGEST_PAGE || pageSize & (pageSize - 1))
      return broken(`names the page size ${pageSize}`);
    const meta = {
      pageSize,
      transaction: uint64(bytes, 152),
      lastPage: uint64(bytes, 144),
      free: treeAt(bytes, 48),
      main: treeAt(bytes, 96),
    };
    // Transactions write the two pages in turn.
    if (meta.transaction && meta.transaction % META_PAGES !== page)
      return broken(`holds transaction ${meta.transaction}, which belongs on the other one`);
    // The file may be shorter than the last page, by pages that were never used. It is never shorter by much.
    if (!(meta.lastPage >= META_PAGES - 1 && meta.lastPage < 2 * (this.bytes / pageSize) + MAX_UNUSED_PAGES))
      return broken(`names the last page ${meta.lastPage}, but the file has ${this.bytes} bytes`);
    return meta;
  }

  close(): void {
    closeSync(this.#file);
  }
}

// The way from the root of a table to a leaf page, without LMDB. Every number may be wrong: a page may have been replaced
// since, unless the caller holds a reading transaction.

export interface LeafPage {
  readonly page: Buffer;
  /** Number of its nodes, each of which is a record. */
  readonly count: number;
}

/** Where a node begins in its page. */
export const nodeAt = (page: Buffer, number: number): number =>
  PAGE_HEADER + page.readUInt16LE(PAGE_HEADER + 2 * number);
/** Where the key of a node ends, and its data begins. */
export const keyEnd = (page: Buffer, node: number): number => node + NODE_HEADER + page.readUInt16LE(node + 6);
/** Bytes of a record. */
export const sizeOf = (page: Buffer, node: number): number => page.readUInt32LE(node);

/**
 * The leaf page of a table whose keys are numbers, in which the last record is whose key is not above `key`.
 * @throws RangeError if a number leads out of a page; the file system's error
 */
export function leafPageOf(file: PageFile, meta: Meta, table: string, key: number): LeafPage | undefined {
  const root = tableAt(file, meta, table);
  return root && descend(file, meta, root, (page, at) => numberOf(page, at) - key);
}

/**
 * The tree of a table; undefined if there is none of that name.
 * @throws RangeError if a number leads out of a page; the file system's error
 */
export function tableAt(file: PageFile, meta: Meta, table: string): TreeRoot | undefined {
  const name = Buffer.from(`${table}\0`);
  const names = descend(file, meta, meta.main, (page, node) =>
    page.compare(name, 0, name.length, node + NODE_HEADER, keyEnd(page, node)),
  );
  if (!names) return undefined;
  const node = nodeAt(names.page, names.number);
  if (!names.page.subarray(node + NODE_HEADER, keyEnd(names.page, node)).equals(name)) return undefined;
  return treeAt(names.page, keyEnd(names.page, node));
}

/** @param compare the key of a node with the wanted one: negative if it is before */
function descend(
  file: PageFile,
  meta: Meta,
  { root }: TreeRoot,
  compare: (page: Buffer, node: number) => number,
): (LeafPage & { readonly number: number }) | undefined {
  let next = root;
  for (let level = 0; next !== undefined && level < MAX_LEVELS; level++) {
    const page = file.read(next * meta.pageSize, meta.pageSize);
    const count = page.readUInt16LE(20) >> 1;
    // The last record whose key is not behind the wanted one. The first of a branch has no key.
    let [low, high] = [0, count];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (compare(page, nodeAt(page, middle)) <= 0) low = middle;
      else high = middle;
    }
    if (page.readUInt16LE(18) & LEAF) return count ? { page, count, number: low } : undefined;
    const node = nodeAt(page, low);
    next = page.readUInt32LE(node) + page.readUInt16LE(node + 4) * 2 ** 32;
  }
  return undefined;
}

const DOUBLE = new DataView(new ArrayBuffer(16));

/** The key of a node that is a number and not negative, as lmdb writes it: the bits of a double, moved by four, without zeros at the end. */
export function numberOf(page: Buffer, node: number): number {
  const end = keyEnd(page, node);
  for (let i = 0, at = node + NODE_HEADER; i < 9; i++, at++) DOUBLE.setUint8(i, at < end ? page[at]! : 0);
  const [high, low, rest] = [DOUBLE.getUint32(0), DOUBLE.getUint32(4), DOUBLE.getUint8(8)];
  DOUBLE.setUint32(0, (high << 4) | (low >>> 28));
  DOUBLE.setUint32(4, (low << 4) | (rest >>> 4));
  return DOUBLE.getFloat64(0);
}
