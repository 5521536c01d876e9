/** Runs the command in this process with the code of `main.ts`. A new process would cost a second. */
import { AsyncLocalStorage } from "node:async_hooks";
import { EventEmitter, once } from "node:events";
import { afterAll } from "vitest";
import { runCommand } from "#cairnlog/server/cli/command.js";
import { withClient } from "#cairnlog/server/cli/connection/connection.js";
// Loaded for what it does, too: the command finds nothing that the user who runs the tests has told it to remember.
import "../service.js";
import type { Finished } from "../service.js";

type Stream = "stdout" | "stderr";

/** A running command. */
export class Running {
  readonly ended: Promise<Finished>;
  readonly #output: Record<Stream, string> = { stdout: "", stderr: "" };
  readonly #events = new EventEmitter();

  /** @param env additional environment variables */
  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    this.ended = running.run(this, () => this.#run(args, env));
  }

  get stdout(): string {
    return this.#output.stdout;
  }

  /** Everything that it printed, in order, as a terminal shows it. */
  shown = "";

  /** Receives its output. */
  print(stream: Stream, text: string): void {
    this.#output[stream] += text;
    this.shown += text;
    this.#events.emit("printed");
  }

  /** Resolves when its output matches. @throws Error if it ends before */
  async prints(pattern: RegExp, stream: Stream = "stdout"): Promise<void> {
    const ended = this.ended.then(({ code }) => {
      throw new Error(`it ended with ${code} before it printed ${pattern}: ${this.#output.stderr}`);
    });
    while (!pattern.test(this.#output[stream])) await Promise.race([once(this.#events, "printed"), ended]);
    ended.catch(() => {});
  }

  async #run(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
    const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
    Object.assign(process.env, env);
    try {
      return { code: await runCommand(args), ...this.#output };
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  }
}

/** The command in whose asynchronous context something is printed gets the output, so commands may overlap. */
const running = new AsyncLocalStorage<Running>();

type Write = (chunk: string | Uint8Array, ...more: unknown[]) => boolean;

/** Redirects output to the running commands. @returns a function that undoes this */
export function divertOutput(): () => void {
  const undo = (
    [
      ["stdout", "log"],
      ["stderr", "error"],
    ] as const
  ).map(([stream, method]) => {
    const { [method]: print } = console;
    const { write } = process[stream];
    console[method] = (...values: unknown[]) => {
      const command = running.getStore();
      if (command) command.print(stream, `${values.join(" ")}\n`);
      else print.apply(console, values);
    };
    const divert: Write = (chunk, ...more) => {
      const command = running.getStore();
      if (!command) return (write as Write).call(process[stream], chunk, ...more);
      command.print(stream, Buffer.from(chunk as string).toString("utf8"));
      const written = more.find((given) => typeof given === "function") as (() => void) | undefined;
      written?.();
      return true;
    };
    process[stream].write = divert as typeof write;
    return () => {
      console[method] = print;
      process[stream].write = write;
    };
  });
  return () => {
    for (const restore of undo) restore();
  };
}

// The next test file may run in this process. It loads its own copy of this module.
afterAll(divertOutput());

/** Starts `cairnlog` with these arguments. */
export const begin = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Running =>
  new Running(args, env);

/** Runs `cairnlog` to its end, like `cairnlog` of `service.ts`, but in this process. */
export const cairnlog = (...run: Parameters<typeof begin>): Promise<Finished> => begin(...run).ended;

/** Has the command pin the operator key of a service, so that no later run says that it did. */
export async function pin(server: string, state?: string): Promise<void> {
  await withClient({ server, state, json: true }, (client) => client.log.operatorKey());
}

/** Simulates a signal from outside for the running commands, as soon as one of them listens for it. */
export async function interrupt(signal: "SIGINT" | "SIGTERM" = "SIGTERM"): Promise<void> {
  while (!process.listenerCount(signal)) await once(process, "newListener");
  process.emit(signal);
}
