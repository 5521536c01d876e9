/**
 * Walks through the pages of an LMDB file and checks every number in them that LMDB follows without a check: page
 * numbers, offsets and lengths. If they are all right, reading the file with LMDB cannot end the process.
 *
 * What a record contains is not checked here: hashes and signatures do that.
 */
import {
  BIG,
  LEAF,
  MAX_LEVELS,
  META_PAGES,
  type Meta,
  NODE_HEADER,
  OVERFLOW,
  PAGE_HEADER,
  type PageFile,
  TREE_BYTES,
  type TreeRoot,
  treeAt,
  uint64,
} from "./pagefile.js";

const BRANCH = 1;
/** The flag of a node whose data describes a tree. */
const TREE = 2;
/** Length of the reference to pages of its own. */
const REFERENCE_BYTES = 24;
/** Bytes read at once of data on pages of its own. */
const PIECE = 2 ** 20;

/** Damage of one page or of a range of pages. */
export interface PageFault {
  readonly page: number;
  /** The table that the page belongs to; undefined for the names of tables and the list of free pages. */
  readonly table: string | undefined;
  /** A part of a sentence, after the name of the file. */
  readonly message: string;
}

/** One of the trees in the file. */
interface Tree extends TreeRoot {
  readonly table: string | undefined;
  readonly kind: "free" | "names" | "rows";
  /** Entries in the leaves that were read. */
  counted: number;
}

/** A page that is still to be read. */
interface Step {
  readonly tree: Tree;
  readonly page: number;
  readonly level: number;
}

/** Pages of which each may be marked once. */
class PageSet {
  readonly #bits: Uint8Array;

  constructor(pages: number) {
    this.#bits = new Uint8Array(Math.ceil(pages / 8));
  }

  has(page: number): boolean {
    return (this.#bits[page >>> 3]! & (1 << (page & 7))) !== 0;
  }

  /** @returns whether it was not marked */
  mark(page: number): boolean {
    if (this.has(page)) return false;
    this.#bits[page >>> 3]! |= 1 << (page & 7);
    return true;
  }
}

export class PageWalk {
  readonly #file: PageFile;
  readonly #meta: Meta;
  readonly #pageSize: number;
  readonly #limit: number;
  readonly #isWhole: boolean;
  readonly #faults: PageFault[] = [];
  readonly #maxFaults: number;
  readonly #used: PageSet;
  readonly #free: PageSet;
  #read = 0;

  /**
   * @param limit number of pages to read; without it, the whole file is read
   * @param maxFaults the walk ends after this number of faults
   */
  constructor(file: PageFile, meta: Meta, limit: number | undefined, maxFaults: number) {
    this.#file = file;
    this.#meta = meta;
    this.#pageSize = meta.pageSize;
    this.#isWhole = limit === undefined;
    this.#limit = limit ?? Number.POSITIVE_INFINITY;
    this.#maxFaults = maxFaults;
    this.#used = new PageSet(meta.lastPage + 1);
    this.#free = new PageSet(meta.lastPage + 1);
  }

  /**
   * Reads the upper pages of all trees first, and of each level the newest pages first.
   * @throws the file system's error
   */
  run(): readonly PageFault[] {
    return this.#walk([this.#meta.free, this.#meta.main]);
  }

  /**
   * Whether all pages behind the end of the file are free. LMDB does not write pages that a transaction took and gave
   * back.
   * @throws the file system's error
   */
  isComplete(): boolean {
    const end = Math.floor(this.#file.bytes / this.#pageSize);
    if (end > this.#meta.lastPage) return true;
    if (this.#walk([this.#meta.free]).length) return false;
    for (let page = end; page <= this.#meta.lastPage; page++) if (!this.#free.has(page)) return false;
    return true;
  }

  /** @param roots of the list of free pages, and of the names of tables */
  #walk(roots: readonly [TreeRoot, TreeRoot?]): readonly PageFault[] {
    const tree = (root: TreeRoot, kind: Tree["kind"]): Tree => ({ ...root, table: undefined, kind, counted: 0 });
    const trees = roots.map((root, i) => tree(root!, i ? "names" : "free"));
    let level = trees.flatMap((each) => this.#begin(each));
    while (level.length && this.#goesOn) {
      const next: Step[] = [];
      for (const step of level) {
        if (!this.#goesOn) break;
        for (const child of this.#visit(step, trees)) next.push(child);
      }
      level = next;
    }
    if (this.#isWhole && !this.#faults.length) this.#checkCounts(trees);
    return this.#faults;
  }

  get #goesOn(): boolean {
    return this.#read < this.#limit && this.#faults.length < this.#maxFaults;
  }

  #fault(page: number, tree: Tree, message: string): void {
    if (this.#faults.length < this.#maxFaults)
      this.#faults.push({ page, table: tree.table, message: `${message}, ${placeOf(tree)}` });
  }

  #begin(tree: Tree): Step[] {
    if (tree.root === undefined) return [];
    if (tree.depth >= 1 && tree.depth <= MAX_LEVELS) return this.#claim(tree.root, 1, tree, tree.root, 0);
    this.#fault(tree.root, tree, `page ${tree.root} is the root of a tree of ${tree.depth} levels`);
    return [];
  }

  /** Marks `count` pages as those of `tree`, if they can be. @returns a step to the first of them */
  #claim(page: number, count: number, tree: Tree, from: number, level: number): Step[] {
    const end = page + count;
    if (page < META_PAGES || end > this.#meta.lastPage + 1) {
      this.#fault(from, tree, `page ${from} refers to ${rangeOf(page, count)}, which cannot be`);
      return [];
    }
    if (end * this.#pageSize > this.#file.bytes) {
      this.#fault(page, tree, `${rangeOf(page, count)} ${count === 1 ? "is" : "are"} missing`);
      return [];
    }
    for (let i = page; i < end; i++)
      if (!this.#used.mark(i)) {
        this.#fault(i, tree, `page ${i} is used twice`);
        return [];
      }
    return [{ tree, page, level }];
  }

  /** @returns the pages below this one, newest first */
  #visit({ tree, page, level }: Step, trees: Tree[]): Step[] {
    this.#read++;
    const bytes = this.#readPage(page, tree);
    if (!bytes) return [];
    const flags = bytes.readUInt16LE(18);
    const wrong = (what: string) => {
      this.#fault(page, tree, `page ${page} ${what}`);
      return [];
    };
    if (flags !== (level === tree.depth - 1 ? LEAF : BRANCH)) return wrong("is not of the kind that belongs there");
    const [lower, upper] = [bytes.readUInt16LE(20), bytes.readUInt16LE(22)];
    const room = this.#pageSize - PAGE_HEADER;
    const count = lower >> 1;
    if (lower % 2 || lower > upper || upper > room || count < (flags === BRANCH ? 2 : 1))
      return wrong(`has room for ${count} records from ${lower} to ${upper}`);
    const steps: Step[] = [];
    let behind: Buffer | undefined;
    for (let i = count - 1; i >= 0; i--) {
      const at = bytes.readUInt16LE(PAGE_HEADER + 2 * i);
      const isInside = at >= upper && at % 2 === 0 && at + NODE_HEADER <= room;
      const node = PAGE_HEADER + at;
      const keyEnd = isInside ? node + NODE_HEADER + bytes.readUInt16LE(node + 6) : Number.POSITIVE_INFINITY;
      if (keyEnd > this.#pageSize) return wrong(`has a record that does not lie in it`);
      // LMDB makes a table anew that it does not find by its name, and then a log is empty.
      const key = bytes.subarray(node + NODE_HEADER, keyEnd);
      if (tree.kind === "names" && behind && Buffer.compare(key, behind) >= 0) return wrong("has names out of order");
      behind = key;
      const found =
        flags === BRANCH
          ? this.#child(bytes, node, tree, page, level)
          : this.#leafNode(bytes, node, keyEnd, tree, page, trees);
      if (!found) return wrong(`has a record that cannot be read`);
      for (const step of found) steps.push(step);
    }
    if (flags === LEAF) tree.counted += count;
    return steps;
  }

  /** The page, if its header is its own. */
  #readPage(page: number, tree: Tree): Buffer | undefined {
    const bytes = this.#file.read(page * this.#pageSize, this.#pageSize);
    if (bytes.length === this.#pageSize && uint64(bytes, 0) === page && uint64(bytes, 8) <= this.#meta.transaction)
      return bytes;
    const isZero = bytes.every((byte) => byte === 0);
    this.#fault(page, tree, `page ${page} ${isZero ? "is empty" : "was overwritten"}`);
    return undefined;
  }

  #child(bytes: Buffer, node: number, tree: Tree, page: number, level: number): Step[] {
    const child = bytes.readUInt32LE(node) + bytes.readUInt16LE(node + 4) * 2 ** 32;
    return this.#claim(child, 1, tree, page, level + 1);
  }

  /** @returns undefined if the record is damaged */
  #leafNode(bytes: Buffer, node: number, keyEnd: number, tree: Tree, page: number, trees: Tree[]): Step[] | undefined {
    const length = bytes.readUInt32LE(node);
    const flags = bytes.readUInt16LE(node + 4);
    if (flags === BIG) return this.#big(bytes, keyEnd, length, tree, page);
    if (keyEnd + length > this.#pageSize) return undefined;
    if (tree.kind === "free")
      return this.#freePages(
        bytes.subarray(node + NODE_HEADER, keyEnd),
        bytes.subarray(keyEnd, keyEnd + length),
        tree,
        page,
      );
    if (flags === 0) return [];
    if (flags !== TREE || tree.kind !== "names" || length !== TREE_BYTES) return undefined;
    // The name ends with a zero byte.
    const table = bytes.toString("utf8", node + NODE_HEADER, keyEnd).replace(/\0$/, "");
    const named: Tree = { ...treeAt(bytes, keyEnd), table, kind: "rows", counted: 0 };
    trees.push(named);
    return this.#begin(named);
  }

  /** Data on pages of its own. */
  #big(bytes: Buffer, at: number, length: number, tree: Tree, page: number): Step[] | undefined {
    if (at + REFERENCE_BYTES > this.#pageSize) return undefined;
    const [first, count] = [uint64(bytes, at), uint64(bytes, at + 16)];
    if (count < 1 || PAGE_HEADER + length > count * this.#pageSize) return undefined;
    if (!this.#claim(first, count, tree, page, 0).length) return [];
    this.#read++;
    const header = this.#file.read(first * this.#pageSize, PAGE_HEADER);
    if (uint64(header, 0) !== first || header.readUInt16LE(18) !== OVERFLOW || header.readUInt32LE(20) !== count)
      this.#fault(first, tree, `${rangeOf(first, count)} ${count === 1 ? "was" : "were"} overwritten`);
    else if (tree.kind === "free") {
      const data = this.#file.read(first * this.#pageSize + PAGE_HEADER, length);
      return this.#freePages(Buffer.alloc(8), data, tree, page);
    } else if (this.#isWhole) {
      // A bad sector: LMDB reads through a memory map, and would be ended by a signal.
      for (let read = 0; read < count * this.#pageSize; read += PIECE)
        this.#file.read(first * this.#pageSize + read, Math.min(PIECE, count * this.#pageSize - read));
    }
    return [];
  }

  /** A list of free pages: a number of items; each is zero, a page, or minus a count that is followed by a page. */
  #freePages(key: Buffer, list: Buffer, tree: Tree, page: number): Step[] | undefined {
    if (key.length !== 8 || list.length < 8) return undefined;
    const items = uint64(list, 0);
    if ((items + 1) * 8 > list.length) return undefined;
    for (let i = 1; i <= items; i++) {
      const item = list.readBigInt64LE(8 * i);
      if (item === 0n) continue;
      const count = item < 0n ? Number(-item) : 1;
      if (item < 0n && ++i > items) return undefined;
      const first = uint64(list, 8 * i);
      if (first < META_PAGES || first + count > this.#meta.lastPage + 1) {
        this.#fault(page, tree, `page ${page} lists ${rangeOf(first, count)} as free, which cannot be`);
        return [];
      }
      for (let free = first; free < first + count; free++) this.#free.mark(free);
    }
    return [];
  }

  /** What can be compared only after the whole file was read. */
  #checkCounts(trees: readonly Tree[]): void {
    for (const tree of trees)
      if (tree.root !== undefined && tree.kind !== "free" && tree.counted !== tree.entries)
        this.#fault(tree.root, tree, `there are ${tree.counted} records instead of ${tree.entries}`);
    for (let page = META_PAGES; page <= this.#meta.lastPage; page++)
      if (this.#free.has(page) && this.#used.has(page)) {
        this.#fault(page, trees[0]!, `page ${page} is listed as free, but is in use`);
        return;
      }
  }
}

const rangeOf = (page: number, count: number): string =>
  count === 1 ? `page ${page}` : `the pages ${page} to ${page + count - 1}`;

function placeOf({ kind, table }: Tree): string {
  if (kind === "free") return "in the list of free pages";
  return kind === "names" ? "in the list of tables" : `in the table ${JSON.stringify(table)}`;
}
