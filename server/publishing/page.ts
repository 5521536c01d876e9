/**
 * The explorer beside published entries: a page that reads them, and proves them in its reader's browser. Its parts have hashes in
 * their names and are made once; the page itself is replaced by that of another version.
 *
 * If we crash here: parts without their page, which the next run goes on with. The page comes last.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import { LEFT_FOR_MS, type Target } from "./target.js";

/** What `npm run build` has made of server/explorer. */
const FOLDER = fileURLToPath(new URL("../explorer/", import.meta.url));
const PAGE = "index.html";
const PARTS = "explorer";
/** In every version of the page. Another page is somebody else's, and stays. */
const OURS = '<meta name="generator" content="cairnlog"';
const PART = /^explorer\/[\w.-]+-[\w-]{8}\.(?:js|css|svg)$/;

const built = (path: string): Buffer => brotliDecompressSync(readFileSync(join(FOLDER, `${path}.br`)));

/** Paths of the parts that the page loads. */
const parts = (): readonly string[] =>
  (JSON.parse(readFileSync(join(FOLDER, "static.json"), "utf8")) as string[]).map((name) => `${PARTS}/${name}`);

/**
 * Puts the page and its parts.
 * @param create makes an object that is not there
 * @param isAudit whether parts are looked for although the page is there
 * @returns whether it is there now; not if somebody else's is
 */
export async function putPage(
  target: Target,
  create: (path: string, bytes: Uint8Array) => Promise<boolean>,
  isAudit: boolean,
): Promise<boolean> {
  const page = built("static.html");
  const there = await target.read(PAGE);
  if (there && !new TextDecoder().decode(there.bytes).includes(OURS)) return false;
  const isSame = there !== undefined && Buffer.compare(there.bytes, page) === 0;
  if (!isSame || isAudit) for (const path of parts()) await create(path, built(path));
  // Of two publishers of other versions the last one wins: either page reads what is there.
  if (!isSame && !(await create(PAGE, page)) && there) await target.replace(PAGE, page, there);
  return true;
}

/** Parts of other versions, if those of this one are a day old: nobody has a page open that loads them. */
export async function oldParts(target: Target): Promise<readonly string[]> {
  const current = new Set(parts());
  const young = new Set(current);
  const others: string[] = [];
  for await (const { path, modified } of target.list(PARTS)) {
    if (!current.has(path) && PART.test(path)) others.push(path);
    if (Date.now() - modified > LEFT_FOR_MS) young.delete(path);
  }
  return young.size ? [] : others;
}
