/** The service and the command as users run them: child processes of the build. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const MAIN = fileURLToPath(import.meta.resolve("#cairnlog/server/cli/main.js"));

// The prefix of a temporary folder for the command's state. Ports are reused, so the state must not outlive a test
// file, and must not be a user's own.
const PREFIX = join(tmpdir(), "cairnlog-config-");
const forget = () => rmSync(process.env.XDG_CONFIG_HOME!, { recursive: true, force: true });
if (process.env.XDG_CONFIG_HOME?.startsWith(PREFIX)) forget();
else process.on("exit", forget);
process.env.XDG_CONFIG_HOME = mkdtempSync(PREFIX);

export interface RunningService {
  readonly url: string;
  readonly process: ChildProcess;
  /** The exit code, or the name of the signal that ended it. */
  readonly exited: Promise<number | string | null>;
  /** Asks it to stop; resolves to its exit code. */
  stop(): Promise<number | null>;
}

export interface ServiceOptions {
  /** The command to run, if it is from another build. */
  readonly main?: string;
  /** Further arguments. */
  readonly args?: readonly string[];
  /** Put before `node`: a program that runs it under limits, or observes it. */
  readonly wrapper?: readonly string[];
  /** Whether it has the parent process that users have. Without it, signals reach the service itself. */
  readonly hasParent?: boolean;
  /** Where its stderr goes, or an open file; to this process's own by default. */
  readonly stderr?: "inherit" | "pipe" | number;
  /** Called with the process before it listens. */
  readonly started?: (child: ChildProcess) => void;
}

/**
 * Starts `cairnlog serve` on a free port, without rate limits unless `environment` says otherwise.
 * @throws Error if it ends before it listens
 */
export async function startService(
  dataDir: string,
  environment: NodeJS.ProcessEnv = {},
  {
    main = MAIN,
    args: further = [],
    wrapper = [],
    hasParent = false,
    stderr = "inherit",
    started = () => {},
  }: ServiceOptions = {},
): Promise<RunningService> {
  const alone = hasParent ? [] : ["--no-parent"];
  const [command, ...args] = [...wrapper, process.execPath, main, "serve", "--json", ...alone, ...further];
  const child = spawn(command!, args, {
    env: {
      ...process.env,
      PORT: "0",
      SERVICE_DATA_DIR: dataDir,
      SERVICE_RATE_LIMITS: "off",
      LOG_LEVEL: "error",
      ...environment,
    },
    stdio: ["ignore", "pipe", stderr],
  });
  started(child);
  const exited = once(child, "exit").then(([code, signal]): number | string | null => signal ?? code);
  const listening = once(createInterface({ input: child.stdout! }), "line");
  const ended = once(child, "exit").then(([code, signal]) => {
    throw new Error(`the service ended before it listened: ${signal ?? `exit code ${code}`}`);
  });
  const [line] = (await Promise.race([listening, ended])) as [string];
  const { url } = JSON.parse(line) as { url: string };
  return {
    url,
    process: child,
    exited,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      return (await ended)[0] as number | null;
    },
  };
}

/** The process of a service that has a parent. */
export function childOf({ process: { pid } }: RunningService): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());
}

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `cairnlog` with these arguments to its end. */
export function cairnlog(
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Finished> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr });
    });
  });
}

/** A folder that `remove` deletes. */
export function scratchFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
