/** Flushes files and folders: a new file survives a power failure only if the folder that names it is on disk too. */
import { closeSync, fsyncSync, openSync } from "node:fs";

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
