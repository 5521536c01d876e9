/**
 * How many pages of a table lie on the ways to given keys: a transaction that changes these keys writes each of them anew. Only
 * branch pages are read. The caller lets no transaction run meanwhile. Every number in the file may be wrong.
 */
import { keyEnd, nodeAt } from "./descent.js";
import { MAX_DEPTH, NODE_HEADER, type PageFile, type TreeRoot } from "./pagefile.js";

interface TouchedPages {
  readonly leaves: number;
  readonly branches: number;
}

/**
 * @param keys as LMDB orders them: bytes, ascending
 * @throws RangeError if a number leads out of a page; the file system's error
 */
export function touchedPages(file: PageFile, pageSize: number, tree: TreeRoot, keys: readonly Buffer[]): TouchedPages {
  const { root, depth } = tree;
  if (root === undefined || !keys.length) return { leaves: 0, branches: 0 };
  if (depth < 1 || depth > MAX_DEPTH) throw new RangeError(`A tree has ${depth} levels.`);
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
