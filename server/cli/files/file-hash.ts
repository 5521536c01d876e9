/** SHA-256 of a file of any size, in constant memory. */
import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import { CairnlogError } from "../../../engine/base/error.js";
import { formatBytes, startProgress } from "../terminal/progress.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import { onDisk } from "./disk-names.js";
import { holdsPrivateKey, KEY_SEARCH_BYTES } from "./private-key-file.js";

const CHUNK_BYTES = 1 << 20;

/** @returns bare lower-case hex. @throws the file system's error */
export const hashFile = (path: string): Promise<string> => hashed(path, () => {});

/**
 * The hash of a file whose name and hash are to become public.
 * @returns bare lower-case hex
 * @throws CairnlogError `invalid-input` if the file holds a private key; the file system's error
 */
export function hashForOthers(path: string): Promise<string> {
  let beginning: Buffer | null = Buffer.alloc(0);
  return hashed(path, (chunk) => {
    if (!beginning) return;
    beginning = Buffer.concat([beginning, chunk]).subarray(0, KEY_SEARCH_BYTES);
    if (holdsPrivateKey(beginning))
      throw new CairnlogError("invalid-input", `${path} holds a private key. Nothing of it is made public.`);
    if (beginning.length === KEY_SEARCH_BYTES) beginning = null;
  });
}

/**
 * Why a file was not hashed or read, as a sentence for a verdict on it: the other files are still looked at.
 * @throws the error, if it is about something else
 */
export function fileFault(error: unknown): string {
  if (isSystemError(error)) return systemSentence(error);
  if (error instanceof CairnlogError) return error.message;
  throw error;
}

/** @throws CairnlogError `invalid-input` if the file changed meanwhile: then the hash may be that of no version of it */
async function hashed(path: string, look: (chunk: Buffer) => void): Promise<string> {
  const file = await open(onDisk(path));
  try {
    const before = await file.stat({ bigint: true });
    const progress = startProgress(`Hashing ${path}:`, Number(before.size), formatBytes);
    const hash = createHash("sha256");
    let done = 0;
    try {
      for await (const chunk of file.createReadStream({ highWaterMark: CHUNK_BYTES, autoClose: false })) {
        look(chunk as Buffer);
        hash.update(chunk as Buffer);
        done += (chunk as Buffer).length;
        progress.update(done);
      }
    } finally {
      progress.end();
    }
    const after = await file.stat({ bigint: true });
    const isAsBefore = after.mtimeNs === before.mtimeNs && after.size === before.size && BigInt(done) === after.size;
    // An editor puts a new file in the place of the old one.
    const isThere = isAsBefore && (await stat(onDisk(path), { bigint: true })).ino === after.ino;
    if (before.isFile() && !isThere)
      throw new CairnlogError(
        "invalid-input",
        `${path} changed while it was hashed. Try again when nothing writes to it.`,
      );
    return hash.digest("hex");
  } finally {
    await file.close();
  }
}
