/**
 * What the number of a process says. It names a process in its own container only: each container counts from 1, so that the
 * processes of one image have the same small number in all of them, and at every start.
 */
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

let known: number | undefined;

/**
 * A number below 2^32 for the container of this process, until the machine starts again: other than that of any that runs
 * beside it. 0 where the system does not tell containers apart.
 */
export function container(): number {
  known ??= readContainer();
  return known;
}

function readContainer(): number {
  try {
    const names = [readFileSync("/proc/sys/kernel/random/boot_id", "latin1"), readlinkSync("/proc/self/ns/pid")];
    return createHash("sha256").update(names.join()).digest().readUInt32LE();
  } catch {
    return 0;
  }
}

/** Whether no process of this container has the number. */
export function hasEnded(pid: number): boolean {
  try {
    // Signal 0 is not sent.
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}
