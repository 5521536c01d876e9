/** Runs a command under the shim of `test/faults`: what it does to a folder, step by step, and what is left when it stops at one. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { type Call, type ErrorName, Injector, type Rule } from "../faults/shim.js";
import { MAIN } from "../service.js";

const VERBS: Readonly<Record<string, string>> = {
  create: "write",
  write: "write",
  writev: "write",
  pwrite64: "write",
  pwritev64: "write",
  fsync: "flush",
  fdatasync: "flush",
  ftruncate64: "truncate",
  rename: "rename",
  link: "link",
  unlink: "unlink",
};

/** One call of a run: the `nth` of its name on its path. */
export type At = Pick<Rule, "call" | "path" | "nth">;

/**
 * A step of a protocol: calls in a row that do the same to the same file. What LMDB writes is one step for an environment, and
 * the flush of a folder is one with those of the folders above it. Folders are made and removed without a step of their own:
 * alone, an empty one says nothing.
 */
export interface Step {
  /** Such as `rename backup/manifest.json`, `commit data/log`; `lock data/log` and `free data/log` of the writer's lock. */
  readonly name: string;
  /** Its calls; none where it cannot be stopped. */
  readonly calls: readonly At[];
}

/** LMDB's lock files are mappings; the signs of opening and of running transactions depend on the moment (`lmdb/opening-gate.ts`). */
const PASSING = /(?:^|\/)(?:lock\.mdb|running|(?:opening|preflight)(?:\.N(?:-N)*)?|writer\/data\.mdb)$/;
const WRITERS_LOCK = /^(?:(.*)\/)?writer\/lock\.mdb$/;
const DATA_FILE = /\/?data\.mdb$/;

/** The steps of a run; of those of others, only the steps that are `seen`. */
export function stepsOf(calls: readonly Call[], seen = /./): Step[] {
  const steps: { readonly name: string; path: string; readonly calls: At[] }[] = [];
  const counts = new Map<string, number>();
  const locked = new Set<string>();
  for (const { call, path } of calls) {
    const [name = "", who] = call.split("@");
    const key = `${call} ${path}`;
    const nth = (counts.get(key) ?? 0) + 1;
    counts.set(key, nth);
    const lock = WRITERS_LOCK.exec(path)?.[1];
    // The slot is freed when the file is closed.
    if (name === "close" && lock !== undefined && locked.delete(lock))
      steps.push({ name: `free ${lock}`, path, calls: [] });
    if (name === "lock" && lock !== undefined && !locked.has(lock)) {
      locked.add(lock);
      steps.push({ name: `lock ${lock}`, path, calls: [] });
    }
    const verb = VERBS[name];
    if (!verb || PASSING.test(path)) continue;
    const isCommit = who === "lmdb" || (DATA_FILE.test(path) && verb === "write");
    const step = isCommit ? `commit ${dirname(path)}` : `${verb} ${path}`;
    if (!seen.test(step)) continue;
    const last = steps.at(-1);
    const isAbove = verb === "flush" && last?.name.startsWith("flush ") && dirname(last.path) === path;
    if (last && (last.name === step || isAbove)) {
      last.path = path;
      last.calls.push({ call, path, nth });
    } else steps.push({ name: step, path, calls: [{ call, path, nth }] });
  }
  return steps;
}

export interface Stop extends At {
  readonly error: ErrorName;
}

export interface Run {
  /** Null if it was killed. */
  readonly code: number | null;
  readonly stderr: string;
  readonly calls: readonly Call[];
  /** Whether it came to the step at which it was to be stopped. */
  readonly isReached: boolean;
  /** What somebody outside was promised meanwhile: a number of entries, or a size. */
  readonly promised: number;
}

/** What a protocol is run with. */
export interface Stage {
  readonly library: string;
  /** All that the protocol changes is in it. */
  readonly root: string;
  readonly stop?: Stop | undefined;
}

/** Uses a process that serves. @returns what it has promised; it may be gone at any moment */
export type Use = (first: string, child: ChildProcess, promise: (kept: number) => void) => Promise<void>;

/** Runs `cairnlog` with these arguments to its end, or to the step at which it is stopped. */
export async function run(
  { library, root, stop }: Stage,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  use?: Use,
): Promise<Run> {
  const files = `${root}.shim`;
  mkdirSync(files, { recursive: true });
  const injector = new Injector(library, files, root);
  try {
    if (stop) injector.arm({ ...stop, lasts: false });
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd: root,
      // A kill reaches the processes that it has started, as when a machine stops.
      detached: true,
      env: { ...process.env, UV_USE_IO_URING: "0", ...environment, ...injector.environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    const closed = once(child, "close") as Promise<[number | null]>;
    let promised = 0;
    if (use) {
      const line = once(createInterface({ input: child.stdout }), "line") as Promise<[string]>;
      const first = await Promise.race([line.then(([text]) => text), closed.then(() => null)]);
      if (first !== null)
        await use(first, child, (kept) => {
          promised = kept;
        });
    } else child.stdout.resume();
    const [code] = await closed;
    return { code, stderr, calls: injector.calls(), isReached: injector.injected > 0, promised };
  } finally {
    injector.close();
    rmSync(files, { recursive: true });
  }
}
