/**
 * Makes a data directory readable by its owner alone. It holds addresses, secrets of webhooks and salted hashes, which
 * are in no entry of the log. With any umask, folders are made with mode 0700 and files with 0600.
 */
import { chmodSync, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makeFolders } from "../folders.js";

/** Mode of a file that only its owner may read. */
export const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;
const PERMISSIONS = 0o777;

/**
 * Makes a folder that only its owner may use, or removes the permissions of others. Missing folders above it are made
 * with the umask. If we crash in between, others can look into a folder that is still empty.
 */
export function makePrivateFolder(path: string): void {
  makeFolders(path);
  setMode(path, PRIVATE_FOLDER);
}

/** Makes a folder, and removes the permissions of others on the folder and on the files that are already in it. */
export function closeToOthers(path: string): void {
  makePrivateFolder(path);
  for (const name of readdirSync(path)) {
    const inside = join(path, name);
    const found = lstatSync(inside);
    if (found.isDirectory()) closeToOthers(inside);
    else if (found.isFile()) setMode(inside, PRIVATE_FILE);
  }
}

/** Files of another owner, such as a volume that was lent to this process, are not changed. */
function setMode(path: string, mode: number): void {
  const found = lstatSync(path);
  const isOwn = process.getuid?.() === found.uid || process.getuid?.() === 0;
  if (isOwn && (found.mode & PERMISSIONS) !== mode) chmodSync(path, mode);
}
