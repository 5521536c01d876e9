/** Makes folders together with those above them. */
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { giveToOwner } from "./owner.js";

/**
 * Makes a folder, and the missing ones above it. A folder that exists is left as it is. What root makes
 * belongs to the owner of the folder above it.
 *
 * Node's own `mkdirSync(path, { recursive: true })` never returns where a file system answers "no such file" although the
 * folder above is there, as `/proc` does.
 * @param mode of new folders, less the umask
 * @throws the file system's error
 */
export function makeFolders(path: string, mode?: number): void {
  const folder = resolve(path);
  try {
    mkdirSync(folder, mode);
    giveToOwner(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && isFolder(folder)) return;
    const parent = dirname(folder);
    if (code !== "ENOENT" || isFolder(parent)) throw error;
    makeFolders(parent, mode);
    makeFolder(folder, mode);
  }
}

/** Another process may have made it in the meantime. */
function makeFolder(folder: string, mode: number | undefined): void {
  try {
    mkdirSync(folder, mode);
    giveToOwner(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !isFolder(folder)) throw error;
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
