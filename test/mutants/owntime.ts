/**
 * The processor time of a process group, without the time in which it only waited for a processor. Otherwise a busy
 * machine would look like a hanging test, and measured times of tests would be useless.
 */
import { readdirSync, readFileSync } from "node:fs";

const SAMPLE_MS = 500;
/** Unit in which Linux shows processor time. */
const TICK_MS = 10;

interface Sample {
  readonly cpuMs: number;
  /** Whether one of the threads runs or could run. */
  readonly isRunnable: boolean;
}

export class OwnTime {
  readonly #group: number;
  readonly #timer: NodeJS.Timeout;
  #ms = 0;
  #at = Date.now();
  #cpuMs: number;

  /** @param late called once when the group has used `limitMs` */
  constructor(group: number, limitMs: number, late: () => void) {
    this.#group = group;
    this.#cpuMs = sampleOf(group).cpuMs;
    this.#timer = setInterval(() => {
      if (this.#sample() < limitMs) return;
      this.stop();
      late();
    }, SAMPLE_MS);
  }

  #sample(): number {
    const { cpuMs, isRunnable } = sampleOf(this.#group);
    const now = Date.now();
    const wallMs = now - this.#at;
    // Processes that have ended meanwhile no longer count.
    const usedMs = Math.max(0, cpuMs - this.#cpuMs);
    this.#ms += isRunnable ? Math.min(wallMs, usedMs) : wallMs;
    this.#at = now;
    this.#cpuMs = cpuMs;
    return this.#ms;
  }

  /** @returns the milliseconds so far */
  stop(): number {
    clearInterval(this.#timer);
    return this.#sample();
  }
}

/** The processes of a group. */
export function members(group: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => fieldsOf(`/proc/${pid}/stat`)?.[2] === String(group));
}

function sampleOf(group: number): Sample {
  let ticks = 0;
  let isRunnable = false;
  for (const pid of members(group)) {
    const fields = fieldsOf(`/proc/${pid}/stat`);
    if (!fields) continue;
    // The time of the process itself and of its ended children.
    for (const field of fields.slice(11, 15)) ticks += Number(field);
    const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? [];
    for (const thread of threads) isRunnable ||= fieldsOf(`/proc/${pid}/task/${thread}/stat`)?.[0] === "R";
  }
  return { cpuMs: ticks * TICK_MS, isRunnable };
}

/** The fields after the name, beginning with the state; null if the process has ended. */
function fieldsOf(path: string): string[] | null {
  const text = unlessGone(() => readFileSync(path, "utf8"));
  return text === null ? null : text.slice(text.lastIndexOf(")") + 2).split(" ");
}

/** Processes and threads may end while they are read. */
function unlessGone<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
}
