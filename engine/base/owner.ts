/**
 * What root makes in a folder of somebody else belongs to that folder's owner. Maintenance is often run as root, and the
 * service's own user must be able to read and write what it leaves in the data directory.
 */
import { lchownSync, lstatSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";

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
