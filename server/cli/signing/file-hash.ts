/** SHA-256 of a file of any size, in constant memory. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { formatBytes, startProgress } from "../terminal/progress.js";

const CHUNK_BYTES = 1 << 20;

/** @returns bare lower-case hex. @throws the file system's error */
export async function hashFile(path: string): Promise<string> {
  const { size } = await stat(path);
  const progress = startProgress(`Hashing ${path}:`, size, formatBytes);
  const hash = createHash("sha256");
  let done = 0;
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
      hash.update(chunk as Buffer);
      done += (chunk as Buffer).length;
      progress.update(done);
    }
  } finally {
    progress.end();
  }
  return hash.digest("hex");
}
