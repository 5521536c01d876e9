/**
 * An upper bound of the bytes that a transaction adds to the file of an environment. LMDB never changes a page in place: it takes a
 * new page for each page on the way to a changed row, one more for each page that it splits, and pages for its lists of
 * free pages. It takes them from the end of the file if no reader lets it use free ones, and the bound counts all of them.
 *
 * There are two bounds. `loose` costs nothing: every row takes a whole way of its own. `tight` reads branch pages to find which
 * rows share their pages; it is asked for only when the file has no room for the loose one.
 */
import { turn } from "../../base/turns.js";
import { keyValueToBuffer } from "../../native/lmdb.js";
import type { Key } from "../schema/schema.js";
import {
  keyEnd,
  MAX_LEVELS,
  META_PAGES,
  NODE_HEADER,
  nodeAt,
  PAGE_HEADER,
  type PageFile,
  type TreeRoot,
  tableAt,
} from "./file/pagefile.js";

const PAGE = 4096;
/** Bytes of a page that nodes and their offsets may use, and those of the largest node: two fit into a page. */
const USABLE = PAGE - PAGE_HEADER;
const LARGEST_NODE = USABLE / 2 - 2;
/** A node's header, its offset, and a byte that makes its length even. */
const NODE_BYTES = NODE_HEADER + 3;
/** What a node has instead of its value, if the value has pages of its own. */
const REFERENCE_BYTES = 24;
/**
 * Pages of a row that shares none: the ways to it in a tree of six levels, which has room for more rows than the map, and a
 * split on each of them. A removal may change a neighbour of each page.
 */
const LOOSE_PUT_PAGES = 12;
const LOOSE_REMOVAL_PAGES = 18;
/** Pages of any transaction: the table of tables, the way to the position, the first records of the list of free pages. */
const LOOSE_BASE_PAGES = 24;
/**
 * New leaves for each page full of inserted bytes. A page splits in the middle by the number of its nodes or by their bytes, so
 * at least a quarter of it is empty for the next ones, unless its nodes differ much in size.
 */
const SPLITS_PER_FULL_PAGE = 4;
/** Keys whose pages are looked for in one turn of the thread: 4 ms of CPU. */
const TURN_KEYS = 4096;
/** Rewritten records of the list of free pages: LMDB spreads the list, writes it anew, and takes pages for that from itself. */
const FREE_LIST_TIMES = 3;
const FREE_LIST_PAGES = 12;

interface TableChanges {
  readonly keys: Key[];
  puts: number;
  removals: number;
  /** Of values that are in the leaves. */
  bytes: number;
  /** Values that may have pages of their own. */
  large: number;
}

/** What a transaction changes: rows, and the bytes of their values. */
export class Growth {
  readonly #tables = new Map<string, TableChanges>();
  #rows = 0;
  #loosePages = LOOSE_BASE_PAGES;
  /** Pages of values that have pages of their own. */
  #valuePages = 0;

  /** @param bytes of the encoded value and its version, if the table has versions, or more; null if the row is removed */
  add(table: string, key: Key, bytes: number | null): this {
    let changes = this.#tables.get(table);
    if (!changes) {
      changes = { keys: [], puts: 0, removals: 0, bytes: 0, large: 0 };
      this.#tables.set(table, changes);
    }
    changes.keys.push(key);
    this.#rows++;
    if (bytes === null) {
      changes.removals++;
      this.#loosePages += LOOSE_REMOVAL_PAGES;
      return this;
    }
    changes.puts++;
    this.#loosePages += LOOSE_PUT_PAGES;
    if (NODE_BYTES + keyBytes(key) + bytes <= LARGEST_NODE) changes.bytes += bytes;
    else {
      // If it has no pages of its own after all, these stand for the page that it splits.
      this.#valuePages += pagesOf(bytes);
      changes.bytes += REFERENCE_BYTES;
      changes.large++;
    }
    return this;
  }

  /** @param freeListPages of the environment */
  loose(freeListPages: number): number {
    const freed = pagesOf(16 * (this.#loosePages + this.#rows));
    return PAGE * (this.#loosePages + this.#valuePages + 2 * freed + FREE_LIST_TIMES * freeListPages);
  }

  /**
   * Reads the file, while no transaction runs, in turns of at most `TURN_KEYS` keys.
   * @returns undefined if the file cannot be read this way
   */
  async tight(file: PageFile): Promise<number | undefined> {
    try {
      const meta = file.meta();
      if (typeof meta === "string" || meta.pageSize !== PAGE) return undefined;
      let replaced = pagesIn(meta.main);
      let added = replaced + 1;
      for (const [table, changes] of this.#tables) {
        const found = await pagesFor(file, tableAt(file, meta, table), changes);
        replaced += found.replaced;
        added += found.added;
      }
      // Each page or value that is replaced is listed as free: a number, or two of them.
      const freed = pagesOf(8 * (replaced + 2 * this.#rows));
      const freeList = FREE_LIST_TIMES * (pagesIn(meta.free) + meta.free.overflowPages) + 2 * freed + FREE_LIST_PAGES;
      return PAGE * (META_PAGES + replaced + added + this.#valuePages + freeList);
    } catch {
      // LMDB reports what is wrong with the file.
      return undefined;
    }
  }
}

/** Upper bound of an encoded key's bytes. */
function keyBytes(key: Key): number {
  if (typeof key === "number") return 10;
  if (typeof key === "string") return 3 * key.length + 2;
  let sum = 0;
  for (const part of key) sum += 1 + keyBytes(part);
  return sum;
}

const pagesOf = (bytes: number): number => Math.ceil((PAGE_HEADER + bytes) / PAGE);
const pagesIn = ({ branchPages, leafPages }: TreeRoot): number => branchPages + leafPages;
const EMPTY = { root: undefined, depth: 0, branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 };

/** Pages of a table that are written anew, and pages that its splits add. */
async function pagesFor(
  file: PageFile,
  tree: TreeRoot = EMPTY,
  { keys, puts, removals, bytes, large }: TableChanges,
): Promise<{ readonly replaced: number; readonly added: number }> {
  const touched = { leaves: 0, branches: 0 };
  let [keysBytes, longest] = [0, 0];
  for (let from = 0; from < keys.length; from += TURN_KEYS) {
    if (from) await turn();
    // Pages that several turns touch count several times.
    const encoded = keys.slice(from, from + TURN_KEYS).map((key) => Buffer.from(keyValueToBuffer(key)));
    const { leaves, branches } = touchedPages(file, PAGE, tree, encoded.sort(Buffer.compare));
    touched.leaves += leaves;
    touched.branches += branches;
    for (const { length } of encoded) {
      keysBytes += length;
      longest = Math.max(longest, length);
    }
  }
  // Each removal may move rows from or to one neighbour of its page.
  const withNeighbours = (pages: number) => pages + Math.min(removals, 2 * pages);
  const leaves = Math.min(tree.leafPages, withNeighbours(touched.leaves));
  const branches = Math.min(tree.branchPages, removals ? 3 * touched.branches : touched.branches);
  const inserted = bytes + keysBytes + NODE_BYTES * puts;
  const splits = puts && Math.min(puts, 2 * leaves + 1 + Math.ceil((SPLITS_PER_FULL_PAGE * inserted) / USABLE));
  // A branch takes a key for each split below it, and other keys where rows moved between neighbours.
  const entered = Math.min(puts, splits + large) + Math.min(removals, leaves);
  const perKey = Math.max(0.5, (SPLITS_PER_FULL_PAGE * (longest + NODE_BYTES)) / USABLE);
  const split =
    entered && Math.min(entered * (tree.depth + 2), branches + tree.depth + 1 + Math.ceil(entered * perKey));
  return { replaced: leaves + branches, added: splits + split };
}

interface TouchedPages {
  readonly leaves: number;
  readonly branches: number;
}

/**
 * How many pages of a table lie on the ways to given keys: a transaction that changes these keys writes each of them anew. Only
 * branch pages are read. The caller lets no transaction run meanwhile. Every number in the file may be wrong.
 * @param keys as LMDB orders them: bytes, ascending
 * @throws RangeError if a number leads out of a page; the file system's error
 */
function touchedPages(file: PageFile, pageSize: number, tree: TreeRoot, keys: readonly Buffer[]): TouchedPages {
  const { root, depth } = tree;
  if (root === undefined || !keys.length) return { leaves: 0, branches: 0 };
  if (depth < 1 || depth > MAX_LEVELS) throw new RangeError(`A tree has ${depth} levels.`);
  let [leaves, branches] = [0, 0];
  /** Of the keys [from, to), all below the page. */
  const visit = (number: number, level: number, from: number, to: number): void => {
    if (level === depth - 1) {
      leaves++;
      return;
    }
    branches++;
    const page = file.read(number * pageSize, pageSize);
    const count = page.readUInt16LE(20) >> 1;
    // The first node of a branch has no key: it holds all that is before the second.
    for (let i = 0, next = from; i < count && next < to; i++) {
      const start = next;
      if (i === count - 1) next = to;
      else {
        const after = nodeAt(page, i + 1);
        const [begin, end] = [after + NODE_HEADER, keyEnd(page, after)];
        if (end > page.length) throw new RangeError("A key leads out of its page.");
        while (next < to && page.compare(keys[next]!, 0, keys[next]!.length, begin, end) > 0) next++;
      }
      if (next === start) continue;
      const node = nodeAt(page, i);
      visit(page.readUInt32LE(node) + page.readUInt16LE(node + 4) * 2 ** 32, level + 1, start, next);
    }
  };
  visit(root, 0, 0, keys.length);
  return { leaves, branches };
}

/** At most so many bytes are before the content of a value in msgpackr's encoding. */
const HEAD_BYTES = 9;
/** UTF-8 of one unit of a text. */
const UNIT_BYTES = 3;
const SHORT_TEXT = 1024;

/** Upper bound of the bytes in which a row is encoded, without encoding it. Rows are plain data of a few levels. */
export function encodedBytes(value: unknown): number {
  if (typeof value === "string")
    return HEAD_BYTES + (value.length < SHORT_TEXT ? UNIT_BYTES * value.length : Buffer.byteLength(value));
  if (typeof value !== "object" || value === null) return HEAD_BYTES;
  if (ArrayBuffer.isView(value)) return HEAD_BYTES + value.byteLength;
  let sum = HEAD_BYTES;
  if (Array.isArray(value)) for (const item of value) sum += encodedBytes(item);
  // A record may be preceded by the names of its members.
  else for (const key in value) sum += encodedBytes(key) + encodedBytes((value as Record<string, unknown>)[key]);
  return sum;
}
