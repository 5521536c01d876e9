/** The processes of a PostgreSQL server, as the kernel knows them. Linux only. */
import { readdirSync, readFileSync } from "node:fs";

export interface ServerProcess {
  readonly pid: number;
  /** What it does, as PostgreSQL says in its title: `walreceiver streaming 0/3000060`. */
  readonly title: string;
}

/** The processes that `postmaster` has started. Each is the leader of a process group of its own. */
export function childrenOf(postmaster: number): ServerProcess[] {
  const found: ServerProcess[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      // The name of the program, in brackets, may hold spaces.
      const [, parent] = readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]!.split(" ");
      if (Number(parent) !== postmaster) continue;
      const title = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      found.push({ pid: Number(name), title: title.replace(/^postgres: /, "") });
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return found;
}

/** Sends a signal. A process that has ended already is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

const isGone = (error: unknown): boolean => ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
