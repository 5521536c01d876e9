/**
 * Mends a fault of lmdb 3.5.6 in the memory of this process. When a page write fails, lmdb prints a message of up to 127 bytes
 * into a block of 100, and overwrites the heap behind it. What makes it too long are three numbers at its end. A zero byte in
 * front of them, in the text that lmdb gives to `sprintf`, ends the message before them; it has at most 84 bytes then.
 *
 * Linux lets a process write to its own memory through a file, also where it is mapped without the right to write. The page is
 * copied then: the binary on disk stays as it is. If the kernel forbids it, or has no such file, nothing changes.
 *
 * If we crash here, the process is gone. Another thread that prints the message meanwhile sees the old text or the new one,
 * because one byte changes.
 */
import { closeSync, openSync, readFileSync, readSync, writeSync } from "node:fs";

/** The text, with the zero byte that ends it. It is in each binary of lmdb for Linux, at a place of its own. */
const MESSAGE = Buffer.from(
  "Attempting to write page at position %u, size %u, blocks %u, buffer sizes %i %i %i\0",
  "latin1",
);
/** Where the message is to end. */
const END = MESSAGE.indexOf(", buffer sizes");
/** A mapped part of a binary that can be read and not written: addresses, rights, offset, device, inode, path. */
const READ_ONLY_PART = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ \d+ +(.+\.node)$/gm;

/**
 * Shortens the message of every binary that this process has loaded. It takes 2 ms for a binary of 4 MB.
 * @param files where the system shows a process its own memory
 * @returns how often it found the message
 */
export function shortenMessage(files = "/proc/self"): number {
  let memory: number | undefined;
  let found = 0;
  try {
    const maps = readFileSync(`${files}/maps`, "latin1");
    memory = openSync(`${files}/mem`, "r+");
    for (const [, from, to] of maps.matchAll(READ_ONLY_PART)) {
      const [start, end] = [Number(`0x${from}`), Number(`0x${to}`)];
      const part = Buffer.allocUnsafe(end - start);
      const length = readSync(memory, part, 0, part.length, start);
      for (let at = part.indexOf(MESSAGE); at >= 0 && at < length; at = part.indexOf(MESSAGE, at + 1)) {
        writeSync(memory, Buffer.of(0), 0, 1, start + at + END);
        found++;
      }
    }
  } catch {
    // No such files, or no right to write: `docs/reliability.md` says what the fault does then.
  } finally {
    if (memory !== undefined) closeSync(memory);
  }
  return found;
}
