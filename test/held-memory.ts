/**
 * The memory that a process holds after garbage collection; without that, the result would depend on when the last
 * collection was.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
export const collectGarbage = runInNewContext("gc") as () => void;

/** Bytes of objects and of buffers. */
export function heldMemory(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
