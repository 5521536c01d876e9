/** CPU of another process, thread by thread, in microseconds: Linux counts it in nanoseconds. */
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds in which a process ends what it does after its last answer: commits, garbage, merges. */
export const SETTLE_MS = 100;

export interface ThreadTimes {
  /** All threads together. */
  readonly all: number;
  /** The main thread, on which a service writes its log. */
  readonly main: number;
}

/** @throws if the process has ended, or the system has no `/proc` */
function read(pid: number): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      times.set(thread, Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1000);
    } catch {
      // This thread has just ended.
    }
  }
  return times;
}

/** What all threads that the process has now have used since they began. */
export const cpuNow = (pid: number): number => [...read(pid).values()].reduce((sum, time) => sum + time, 0);

/** Kernel ticks a second, in which `/proc/PID/stat` counts. */
const TICKS = 100;

/** The fields of `/proc/PID/stat` after the name; null if the process has ended. */
function statOf(pid: number): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** What these processes and all below them have used since they began, and those of their children that have ended. */
export function cpuOfTrees(roots: readonly number[]): number {
  const processes = readdirSync("/proc").flatMap((name) => {
    const stat = /^\d+$/.test(name) ? statOf(Number(name)) : null;
    return stat ? [{ pid: Number(name), parent: Number(stat[1]), ended: Number(stat[13]) + Number(stat[14]) }] : [];
  });
  const of = (pid: number): number =>
    processes.filter(({ parent }) => parent === pid).reduce((sum, child) => sum + of(child.pid), own(pid));
  const own = (pid: number): number => {
    const ended = processes.find((one) => one.pid === pid)?.ended ?? 0;
    try {
      return cpuNow(pid) + (ended * 1_000_000) / TICKS;
    } catch {
      return 0;
    }
  };
  return roots.reduce((sum, pid) => sum + of(pid), 0);
}

/**
 * What `work` costs the process. A thread that ends meanwhile is not counted: a service ends only threads that had
 * nothing to do.
 */
export async function cpuOfProcess<T>(pid: number, work: () => Promise<T>): Promise<{ cpu: ThreadTimes; result: T }> {
  const before = read(pid);
  const result = await work();
  await sleep(SETTLE_MS);
  const after = read(pid);
  const grown = [...after].map(([thread, time]) => [thread, time - (before.get(thread) ?? 0)] as const);
  return {
    cpu: {
      all: grown.reduce((sum, [, time]) => sum + time, 0),
      main: grown.find(([thread]) => thread === String(pid))?.[1] ?? Number.NaN,
    },
    result,
  };
}
