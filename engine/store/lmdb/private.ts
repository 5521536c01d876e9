/**
 * Makes a data directory readable by its owner alone. It holds addresses, secrets of webhooks and salted hashes, which
 * are in no entry of the log. With any umask, folders are made with mode 0700 and files with 0600.
 */
import { chmodSync, lstatSync, readdirSync, readFileSync, type Stats, writeFileSync } from "node:fs";
import { join } from "node:path";
import { giveToOwner, isPresent, makeFolders, throughDraft } from "../../base/files.js";

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

/**
 * Writes a file that only its owner may read. If root makes it, it belongs to the owner of its folder. If we crash here, it
 * may be cut short.
 * @param flag `wx` fails if there is such a file
 */
export function writePrivateFile(path: string, content: string, flag: "w" | "wx" = "w"): void {
  writeFileSync(path, content, { mode: PRIVATE_FILE, flag });
  giveToOwner(path);
}

/**
 * Has a file that only its owner may read hold this content. One that holds it is not written again: a full disk would take it
 * away. If we crash here, or if this fails, the file has its old content or the new one, whole.
 * @throws the file system's error
 */
export function keepPrivateFile(path: string, content: string): void {
  if (isPresent(path) && readFileSync(path, "utf8") === content) return;
  throughDraft(path, (draft) => writePrivateFile(draft, content));
}

/**
 * Makes a folder, and removes the permissions of others on the folder and on the files that are already in it. Folders of
 * another owner inside it are left alone, with what is in them: `lost+found` of a volume belongs to root.
 */
export function closeToOthers(path: string): void {
  makePrivateFolder(path);
  for (const name of readdirSync(path)) {
    const inside = join(path, name);
    const found = lstatSync(inside);
    if (found.isDirectory() && mayChange(found)) closeToOthers(inside);
    else if (found.isFile()) setMode(inside, PRIVATE_FILE);
  }
}

/** Files of another owner, such as a volume that was lent to this process, are not changed. */
function setMode(path: string, mode: number): void {
  const found = lstatSync(path);
  if (mayChange(found) && (found.mode & PERMISSIONS) !== mode) chmodSync(path, mode);
}

const mayChange = ({ uid }: Stats): boolean => process.getuid?.() === uid || process.getuid?.() === 0;
