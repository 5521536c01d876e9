/** The command in this process: the code that `main.ts` runs, without the second that a process of its own costs. */
import { AsyncLocalStorage } from "node:async_hooks";
import { runCommand } from "#cairnlog/server/cli/command.js";
import type { Finished } from "../service.js";

interface Output {
  stdout: string;
  stderr: string;
}

/** What the command prints belongs to the run in whose course it is printed, so runs may overlap. */
const running = new AsyncLocalStorage<Output>();

type Write = (chunk: string | Uint8Array, ...more: unknown[]) => boolean;

for (const name of ["stdout", "stderr"] as const) {
  const method = name === "stdout" ? "log" : "error";
  const print = console[method].bind(console);
  console[method] = (...values: unknown[]) => {
    const output = running.getStore();
    if (output) output[name] += `${values.join(" ")}\n`;
    else print(...values);
  };
  const write = process[name].write.bind(process[name]) as Write;
  const divert: Write = (chunk, ...more) => {
    const output = running.getStore();
    if (!output) return write(chunk, ...more);
    output[name] += Buffer.from(chunk as string).toString("utf8");
    return true;
  };
  process[name].write = divert as typeof process.stdout.write;
}

/** A command that runs. */
export interface Running {
  /** What it has printed so far. */
  readonly output: Readonly<Output>;
  readonly ended: Promise<Finished>;
}

/** Begins `cairnlog` with these arguments; `env` is added to the environment until it ends. */
export function begin(args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, env);
  const output: Output = { stdout: "", stderr: "" };
  const run = async () => {
    try {
      return { code: await running.run(output, () => runCommand(args)), ...output };
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  };
  return { output, ended: run() };
}

/** Runs `cairnlog` to its end, as `cairnlog` of `service.ts` does in a process of its own. */
export const cairnlog = (...run: Parameters<typeof begin>): Promise<Finished> => begin(...run).ended;

/** What a signal from outside does to the commands that run. */
export function interrupt(signal: "SIGINT" | "SIGTERM" = "SIGTERM"): void {
  if (!process.emit(signal)) throw new Error("nothing waits for an interruption");
}
