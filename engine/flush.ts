/** Flushes files and folders: a new file survives a power failure only if the folder that names it is on disk too. */
import { closeSync, fsyncSync, openSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

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
