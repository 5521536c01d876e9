/** The service and the command as people run them: child processes of what was built. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const MAIN = fileURLToPath(new URL("../dist/server/cli/main.js", import.meta.url));

// What the command remembers of services must outlive no test, and be nobody's own.
const configuration = mkdtempSync(join(tmpdir(), "cairnlog-config-"));
process.env.XDG_CONFIG_HOME = configuration;
process.on("exit", () => rmSync(configuration, { recursive: true, force: true }));

export interface RunningService {
  readonly url: string;
  readonly process: ChildProcess;
  /** Asks it to stop; resolves to its exit code. */
  stop(): Promise<number | null>;
}

/** Starts `cairnlog serve` on a free port, without rate limits unless `environment` says otherwise. */
export async function startService(dataDir: string, environment: NodeJS.ProcessEnv = {}): Promise<RunningService> {
  const child = spawn(process.execPath, [MAIN, "serve", "--json"], {
    env: {
      ...process.env,
      PORT: "0",
      SERVICE_DATA_DIR: dataDir,
      SERVICE_RATE_LIMITS: "off",
      LOG_LEVEL: "error",
      ...environment,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: child.stdout! }), "line")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  return {
    url,
    process: child,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      return (await ended)[0] as number | null;
    },
  };
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
