/** Flushes files and folders: a new file survives a power failure only if the folder that names it is on disk too. */
import { closeSync, fsyncSync, openSync, statSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { giveToOwner } from "./owner.js";

/** Waits until the content of a file is on disk. @throws the file system's error */
export function flushFile(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Waits until the names in a folder are on disk. A folder that this process may not read is left out: somebody else made
 * what is in it.
 * @throws the file system's error
 */
export function flushFolder(path: string): void {
  try {
    flushFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
  }
}

/**
 * Waits until a folder can be found after a power failure: its names are on disk, and so is each folder above it under its
 * own name. Any of these may be new, also if another process made it and was killed then. The folders of other file
 * systems are not ours.
 * @throws the file system's error
 */
export function flushFolders(path: string): void {
  const folder = resolve(path);
  flushFolder(folder);
  const parent = dirname(folder);
  if (parent !== folder && statSync(parent).dev === statSync(folder).dev) flushFolders(parent);
}

/**
 * Replaces the content of a file, or makes the file; resolves when that is on disk, or if that is not asked for, when every
 * process sees it. It blocks no event loop. If root does it, the file belongs to the owner of its folder.
 *
 * If we crash here: the file has its old content or the new one, whole. A draft beside it may be left over; the next call
 * overwrites it. One call for a file at a time.
 * @throws the file system's error; the file then has its old content or the new one
 */
export async function replaceFile(path: string, content: string, mode: number, isFlushed = true): Promise<void> {
  const draft = `${path}.new`;
  const file = await open(draft, "w", mode);
  try {
    giveToOwner(draft);
    await file.writeFile(content);
    if (isFlushed) await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  if (!isFlushed) return;
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
