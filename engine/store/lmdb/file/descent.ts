/**
 * The way from the root of a table to a leaf page, without LMDB. Every number may be wrong: a page may have been replaced
 * since, unless the caller holds a reading transaction.
 */
import {
  LEAF,
  MAX_DEPTH,
  type Meta,
  NODE_HEADER,
  PAGE_HEADER,
  type PageFile,
  type TreeRoot,
  treeAt,
} from "./pagefile.js";

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
export function leafOf(file: PageFile, meta: Meta, table: string, key: number): LeafPage | undefined {
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
  for (let level = 0; next !== undefined && level < MAX_DEPTH; level++) {
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
