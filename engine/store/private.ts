/**
 * Who may read a data directory: its owner alone. It holds addresses, secrets of webhooks and salted hashes, which are in
 * no entry of the log. Whatever the umask is, folders are made 0700 and files 0600.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Mode of a file that only its owner may read. */
export const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;
const PERMISSIONS = 0o777;

/**
 * Makes a folder for its owner alone, or takes from others what they may do there. Folders above it that are missing are
 * made as the umask says. If we crash in between, others can look into a folder that is still empty.
 */
export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true });
  setMode(path, PRIVATE_FOLDER);
}

/** Makes a folder, and takes from others what they may do with the files that are in it already. */
export function closeToOthers(path: string): void {
  makePrivateFolder(path);
  for (const name of readdirSync(path)) {
    const inside = join(path, name);
    const found = lstatSync(inside);
    if (found.isDirectory()) closeToOthers(inside);
    else if (found.isFile()) setMode(inside, PRIVATE_FILE);
  }
}

/** What is of another owner, such as a volume that was lent to this process, is left as that owner wants it. */
function setMode(path: string, mode: number): void {
  const found = lstatSync(path);
  const isOwn = process.getuid?.() === found.uid || process.getuid?.() === 0;
  if (isOwn && (found.mode & PERMISSIONS) !== mode) chmodSync(path, mode);
}
