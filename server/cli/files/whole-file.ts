/**
 * Files that a user asks for by name: a file gets its name when all of it is on disk. The beginning of an export, of a proof or
 * of what a claim held could be taken for the whole.
 *
 * If we crash before that: a draft is left over, which has a random ending.
 */
import { once } from "node:events";
import { createWriteStream, realpathSync, statSync, writeFileSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { draftOf, dropDraft, nameNew, requireNew, throughDraft } from "../../../engine/base/files.js";

/** Writes a new file from a stream. @throws the reason of `signal`; the file system's error, also if the file exists */
export async function streamNew(path: string, text: () => AsyncIterable<string>, signal: AbortSignal): Promise<void> {
  requireNew(path);
  const draft = draftOf(path);
  try {
    const file = createWriteStream(draft, { flags: "wx", flush: true });
    // Otherwise it could be made after it is removed.
    await once(file, "open");
    await pipeline(text, file, { signal });
    nameNew(draft, path);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    dropDraft(draft);
  }
}

/** Writes a new file. @throws the file system's error, also if the file exists */
export function writeNew(path: string, text: string): void {
  requireNew(path);
  const draft = draftOf(path);
  try {
    writeFileSync(draft, text, { flag: "wx", flush: true });
    nameNew(draft, path);
  } finally {
    dropDraft(draft);
  }
}

/** Codes of folders that take no draft, and of files that have no other in their place, although they can be written. */
const NO_DRAFT: ReadonlySet<string | undefined> = new Set(["EACCES", "EPERM", "EROFS", "EBUSY"]);

/** Writes a file, also in place of one that is there. @throws the file system's error */
export function writeWhole(path: string, content: string | Uint8Array, mode = 0o666): void {
  const found = statSync(path, { throwIfNoEntry: false });
  try {
    // A device or a pipe takes what is written, and stays.
    if (found && !found.isFile()) writeFileSync(path, content);
    else
      throughDraft(found ? realpathSync(path) : path, (draft) =>
        writeFileSync(draft, content, { mode, flag: "wx", flush: true }),
      );
  } catch (error) {
    if (!found || !NO_DRAFT.has((error as NodeJS.ErrnoException).code)) throw error;
    writeFileSync(path, content);
  }
}
