/**
 * A folder that any web server can serve. A file gets its name when its content is on disk, and never another content, but for
 * the checkpoint and the key.
 *
 * If we crash here: a draft is left in `.drafts`, which a later run removes when it is a day old.
 */
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { flushFolder, flushFolders, makeFolders, nameNew } from "../../engine/base/files.js";
import { keepFile, writeFlushed } from "../monitor/folder.js";
import { LEFT_FOR_MS, type Stored, type StoredFile, type Target } from "./target.js";

const DRAFTS = ".drafts";

export class FolderTarget implements Target {
  readonly name: string;
  readonly #path: string;
  /** Folders whose new names may not be on disk yet. */
  readonly #unflushed = new Set<string>();

  #hasLooked = false;

  constructor(path: string) {
    this.name = path;
    this.#path = resolve(path);
  }

  /** Removes what publishers have left that were killed. */
  #removeDrafts(): void {
    if (this.#hasLooked) return;
    this.#hasLooked = true;
    const drafts = join(this.#path, DRAFTS);
    for (const name of absent(() => readdirSync(drafts)) ?? []) {
      const modified = modifiedAt(join(drafts, name)) ?? Number.POSITIVE_INFINITY;
      if (Date.now() - modified > LEFT_FOR_MS) rmSync(join(drafts, name), { force: true });
    }
  }

  async read(path: string): Promise<Stored | undefined> {
    const bytes = absent(() => readFileSync(join(this.#path, path)));
    if (bytes) this.#willFlush(path);
    return bytes && { bytes, tag: null };
  }

  async create(path: string, bytes: Uint8Array): Promise<boolean> {
    this.#removeDrafts();
    const target = join(this.#path, path);
    const draft = join(this.#path, DRAFTS, randomUUID());
    for (const folder of [dirname(draft), dirname(target)]) makeFolders(folder);
    this.#willFlush(path);
    try {
      writeFlushed(draft, bytes);
      // The first checkpoint comes last, too.
      if (dirname(target) === this.#path) this.#flush();
      // A file that has the name already keeps it, also if it got it just now.
      nameNew(draft, target);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      return false;
    } finally {
      rmSync(draft, { force: true });
    }
    return true;
  }

  async replace(path: string, bytes: Uint8Array, before: Stored): Promise<boolean> {
    const target = join(this.#path, path);
    this.#flush();
    // No file system replaces a file under a condition: another publisher that does so between these lines is not seen.
    const now = absent(() => readFileSync(target));
    if (!now || Buffer.compare(now, before.bytes) !== 0) return false;
    keepFile(target, bytes);
    return true;
  }

  /** Also of a file that is there already: who made it may have been killed since. */
  #willFlush(path: string): void {
    for (let folder = dirname(path); folder !== "."; folder = dirname(folder))
      this.#unflushed.add(join(this.#path, folder));
  }

  /** What a checkpoint covers is on disk, names included, before it is there. */
  #flush(): void {
    for (const folder of this.#unflushed) flushFolder(folder);
    flushFolders(this.#path);
    this.#unflushed.clear();
  }

  async remove(path: string): Promise<void> {
    const target = join(this.#path, path);
    rmSync(target, { force: true });
    try {
      rmdirSync(dirname(target));
      this.#unflushed.delete(dirname(target));
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes((error as NodeJS.ErrnoException).code!)) throw error;
    }
  }

  async *list(folder: string): AsyncIterable<StoredFile> {
    // 000 comes before 000.p.
    const names = absent(() => readdirSync(join(this.#path, folder), { withFileTypes: true })) ?? [];
    for (const entry of names.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) yield* this.list(path);
      else {
        const modified = modifiedAt(join(this.#path, path));
        if (modified !== undefined) yield { path, modified };
      }
    }
  }
}

/** When a file was changed last; undefined if another publisher has removed it. */
const modifiedAt = (path: string): number | undefined => absent(() => statSync(path).mtimeMs);

/** What `work` returns; undefined if the file or folder is not there. */
function absent<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
