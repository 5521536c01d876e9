/** A service as an operator runs it: the command of a built checkout, in a process of its own, without rate limits. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** This checkout. */
export const CHECKOUT = join(import.meta.dirname, "..", "..", "..");
/** The setting for the number of threads that serve HTTP. */
const FRONT_ENDS = "SERVICE_FRONT_ENDS";

export interface Service {
  readonly pid: number;
  readonly port: number;
  /** Number of entries that its log shows. */
  size(): Promise<number>;
  close(): Promise<void>;
}

export interface ServiceOptions {
  /** Root of a checkout that is built. */
  readonly checkout: string;
  readonly dataDir: string;
  /** Front ends; the service's own default if absent. */
  readonly frontEnds?: number;
  /** Further settings. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The command of a built checkout, a file for Node. */
export const command = (checkout: string) => join(checkout, "dist", "server", "cli", "main.js");

/** So that the process that is measured is the service. Older versions have no parent process. */
const withoutParent = (checkout: string): string[] =>
  existsSync(join(checkout, "dist", "server", "cli", "operate", "parent.js")) ? ["--no-parent"] : [];

/** Whether this version has front ends. */
export const knowsFrontEnds = (checkout: string): boolean =>
  execFileSync(process.execPath, [command(checkout), "serve", "--help"], { encoding: "utf8" }).includes(FRONT_ENDS);

/** Starts a service; resolves when it listens. @throws if it ends before */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { checkout, dataDir, frontEnds, environment = {} } = options;
  const args = [command(checkout), "serve", "--json", ...withoutParent(checkout)];
  const child: ChildProcess = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      PORT: "0",
      SERVICE_DATA_DIR: dataDir,
      SERVICE_RATE_LIMITS: "off",
      LOG_LEVEL: "error",
      ...(frontEnds === undefined ? {} : { [FRONT_ENDS]: String(frontEnds) }),
      ...environment,
    },
  });
  // It would go on without this process.
  const kill = () => child.kill("SIGKILL");
  process.on("exit", kill);
  const exited = once(child, "exit").then(() => null);
  const line = await Promise.race([once(createInterface({ input: child.stdout! }), "line"), exited]);
  if (!line) throw new Error(`the service of ${checkout} did not start`);
  const { url } = JSON.parse(line[0] as string) as { url: string };
  return {
    pid: child.pid!,
    port: Number(new URL(url).port),
    async size() {
      const answer = await fetch(`${url}/api/v1/log/head`);
      return ((await answer.json()) as { entry_count: number }).entry_count;
    },
    async close() {
      child.kill("SIGTERM");
      await exited;
      process.off("exit", kill);
    },
  };
}
