/** The service as a child process whose end is looked at: its exit code or signal, and what it said. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { mainOf } from "../reliability/planted.js";

/** Milliseconds after which nobody would wait any longer: for a start, an end, or an answer. */
export const PATIENCE_MS = 30_000;

export interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class ServiceProcess {
  readonly #child: ChildProcess;
  /** Its address; null if it ends before it listens. */
  readonly listening: Promise<string | null>;
  readonly #ended: Promise<End>;
  stderr = "";

  constructor(dist: string, dataDir: string, environment: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(process.execPath, [mainOf(dist), "serve", "--json"], {
      env: {
        ...process.env,
        PORT: "0",
        SERVICE_DATA_DIR: dataDir,
        SERVICE_RATE_LIMITS: "off",
        SERVICE_WORKERS: "1",
        LOG_LEVEL: "error",
        ...environment,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.#ended = once(this.#child, "close").then(([code, signal]): End => ({ code, signal }));
    const line = once(createInterface({ input: this.#child.stdout! }), "line");
    const address = line.then(([text]) => (JSON.parse(text) as { url: string }).url);
    this.listening = Promise.race([address, this.#ended.then(() => null)]);
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** How it ended; null if it does not end in time, and is killed. */
  async end(): Promise<End | null> {
    const late = setTimeout(() => this.#child.kill("SIGKILL"), PATIENCE_MS);
    const end = await this.#ended;
    clearTimeout(late);
    return end.signal === "SIGKILL" ? null : end;
  }

  /** Asks it to stop. */
  stop(): Promise<End | null> {
    this.#child.kill("SIGTERM");
    return this.end();
  }

  /** Ends it at once, if it has not ended. */
  async kill(): Promise<void> {
    if (!this.isOver) this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
