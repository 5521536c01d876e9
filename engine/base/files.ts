/** Files and folders: made, given to their owner, flushed and replaced. */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";

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

// What root makes in a folder of somebody else belongs to that folder's owner. Maintenance is often run as root, and the
// service's own user must be able to read and write what it leaves in the data directory.

/** A file system without owners, or a container without the right to change them: then the files are read without it. */
const CANNOT_CHANGE: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOTSUP", "EINVAL", "ENOSYS"]);

/**
 * Gives a file or folder of root to the owner of the folder that it is in. It changes nothing if this process is not root.
 * A file with a second name is left as it is: the owner of the folder may have linked a file of root's into it. So are
 * symbolic links.
 *
 * If we crash before this, the file belongs to root. The next run as root gives it away if it opens it.
 * @throws the file system's error
 */
export function giveToOwner(path: string): void {
  if (process.getuid?.() !== 0) return;
  const found = lstatSync(path);
  const { uid, gid } = statSync(dirname(path));
  if (found.uid !== 0 || uid === 0 || !isOnlyOne(found)) return;
  try {
    lchownSync(path, uid, gid);
  } catch (error) {
    if (!CANNOT_CHANGE.has((error as NodeJS.ErrnoException).code)) throw error;
  }
}

const isOnlyOne = (found: Stats): boolean => found.isDirectory() || (found.isFile() && found.nlink === 1);

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
 * A name for a draft of the file `path`, which no other process and no earlier one has given. The number of a process does not
 * tell them apart: in containers each has the same one at every start.
 */
export const draftOf = (path: string): string => `${path}.${randomUUID()}`;

/**
 * Has `write` make a file under another name, and gives it the name `path`, also in place of a file that is there. Where
 * that fails, no draft stays. If we crash here, one may be left over.
 * @throws what `write` throws; the file system's error
 */
export function throughDraft(path: string, write: (draft: string) => void): void {
  const draft = draftOf(path);
  try {
    write(draft);
    renameSync(draft, path);
  } catch (error) {
    dropDraft(draft);
    throw error;
  }
}

/** @throws the file system's error if something has the name */
export function requireNew(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false }))
    throw Object.assign(new Error(`EEXIST: ${path} exists already`), { code: "EEXIST", syscall: "open", path });
}

/** Codes of disks on which a file has one name, such as FAT. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/**
 * Gives a draft a name that nothing has; the draft may stay. A file that has got the name meanwhile keeps it; on a disk on which a
 * file has one name, one that gets it between the look and the renaming is replaced.
 * @throws the file system's error, also if something has the name
 */
export function nameNew(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    requireNew(path);
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error;
    renameSync(draft, path);
  }
}

/** Removes a draft, if there is one, after a failure: that failure is told, and not that of the removal. */
export function dropDraft(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The disk that takes no file may give none up, either.
  }
}

/**
 * Replaces the content of a file, or makes the file; resolves when that is on disk, or if that is not asked for, when every
 * process sees it. It blocks no event loop. If root does it, the file belongs to the owner of its folder.
 *
 * If we crash here: the file has its old content or the new one, whole. A draft beside it may be left over; the next call
 * overwrites it. A call that fails removes its draft. One call for a file at a time.
 * @throws the file system's error; the file then has its old content or the new one
 */
export async function replaceFile(path: string, content: string, mode: number, isFlushed = true): Promise<void> {
  const draft = `${path}.new`;
  try {
    const file = await open(draft, "w", mode);
    try {
      giveToOwner(draft);
      await file.writeFile(content);
      if (isFlushed) await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    dropDraft(draft);
    throw error;
  }
  if (!isFlushed) return;
  const folder = await open(dirname(path), "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Whether there is a file or folder at `path`. `existsSync` says no, too, when the disk cannot be read, and a log whose file
 * cannot be read must not be taken for one without a file.
 * @throws the file system's error if it cannot be known
 */
export const isPresent = (path: string): boolean => statSync(path, { throwIfNoEntry: false }) !== undefined;
