/** Where the bytes of a closed log are: the pages of each table, as LMDB counts them. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { open } from "lmdb";

/** What LMDB's statistics say of a tree. */
interface Tree {
  readonly pageSize: number;
  readonly treeBranchPageCount: number;
  readonly treeLeafPageCount: number;
  readonly overflowPages: number;
}
const bytesOf = ({ pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages }: Tree): number =>
  pageSize * (treeBranchPageCount + treeLeafPageCount + overflowPages);

/** Tables below this number of bytes are added up. */
const SMALL = 2 ** 20;

async function addEnvironment(path: string, name: string, bytes: Map<string, number>): Promise<void> {
  const add = (part: string, more: number) => bytes.set(part, (bytes.get(part) ?? 0) + more);
  const environment = open({ path, readOnly: true, maxDbs: 64, keyEncoding: "ordered-binary" });
  const { lastPageNumber, pageSize } = environment.getStats() as { lastPageNumber: number; pageSize: number };
  const used = (lastPageNumber + 1) * pageSize;
  let inTables = 0;
  for (const table of [...environment.getKeys()] as string[]) {
    const tree = bytesOf(environment.openDB({ name: table, encoding: "binary" }).getStats() as Tree);
    inTables += tree;
    add(tree < SMALL ? `${name}: other tables` : `${name}: ${table}`, tree);
  }
  add(`${name}: free pages`, used - inTables);
  add(`${name}: set aside for the next commits`, Math.max(0, statSync(join(path, "data.mdb")).size - used));
  await environment.close();
}

/** Bytes of each part of the log in a data directory, the largest first. */
export async function bytesByTable(dataDir: string): Promise<ReadonlyMap<string, number>> {
  const bytes = new Map<string, number>();
  await addEnvironment(join(dataDir, "log"), "log", bytes);
  await addEnvironment(join(dataDir, "log", "postings"), "postings", bytes);
  return new Map([...bytes].sort(([, a], [, b]) => b - a));
}
