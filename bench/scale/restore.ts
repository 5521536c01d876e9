/** A backup and its restore by the command: the largest amounts of memory that each has had, and how long it took. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import { text } from "node:stream/consumers";
import { CHECKOUT, command } from "../front/service.js";

/** Milliseconds between two looks at the memory of a process. */
const LOOK_MS = 10;

export interface Run {
  readonly seconds: number;
  /** MiB of memory of its own, of pages of mapped files, and of both together, each at its most. */
  readonly own: number;
  readonly mapped: number;
  readonly resident: number;
}

function memoryOf(pid: number): Pick<Run, "own" | "mapped" | "resident"> {
  // An ended process has none of these lines.
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mebibytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0) / 1024;
  return { own: mebibytes("RssAnon"), mapped: mebibytes("RssFile"), resident: mebibytes("VmRSS") };
}

async function run(...args: string[]): Promise<Run> {
  const started = performance.now();
  const child = spawn(process.execPath, [command(CHECKOUT), ...args], { stdio: ["ignore", "ignore", "pipe"] });
  const [exited, said] = [once(child, "exit"), text(child.stderr)];
  const most = { own: 0, mapped: 0, resident: 0 };
  const looking = setInterval(() => {
    const now = memoryOf(child.pid!);
    for (const name of ["own", "mapped", "resident"] as const) most[name] = Math.max(most[name], now[name]);
  }, LOOK_MS);
  const [code] = await exited.finally(() => clearInterval(looking));
  if (code !== 0) throw new Error(`cairnlog ${args[0]} failed: ${await said}`);
  return { seconds: (performance.now() - started) / 1000, ...most };
}

export interface Restore {
  readonly backup: Run;
  readonly restore: Run;
}

/** Backs a data directory up and restores the backup. Removes both. */
export async function measureRestore(dataDir: string): Promise<Restore> {
  const [to, restored] = [`${dataDir}-backup`, `${dataDir}-restored`];
  const backup = await run("backup", "--data", dataDir, "--to", to);
  const restore = await run("restore", to, "--to", restored, "--may-fork");
  for (const folder of [to, restored]) rmSync(folder, { recursive: true });
  return { backup, restore };
}
