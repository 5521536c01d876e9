/** One node of the log: `cairnlog serve` as a child process with a data directory and an address of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mainOf } from "../../reliability/planted.js";
import { SettableClock } from "./clock.js";

/** Milliseconds for a start or a stop. */
const PATIENCE_MS = 240_000;
const ASK_MS = 3_000;

export interface NodePlace {
  readonly name: string;
  /** Existing folder for its files. */
  readonly folder: string;
  readonly port: number;
  /** The build that it runs. */
  readonly dist: string;
  /** Connection string of the journal, as this node reaches it. */
  readonly journal: string;
  /** PEM file of the operator key, which all nodes share. */
  readonly operatorKey: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether its clock can be set. */
  readonly hasClock?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
}

export class Node {
  readonly name: string;
  readonly url: string;
  readonly dataDir: string;
  readonly logFile: string;
  readonly clock: SettableClock;
  /** What the commands of this node need in their environment. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #dist: string;
  readonly #hasClock: boolean;
  #process: ChildProcess | null = null;

  constructor({ name, folder, port, dist, journal, operatorKey, environment = {}, hasClock = false }: NodePlace) {
    this.name = name;
    this.url = `http://127.0.0.1:${port}`;
    this.dataDir = join(folder, name);
    this.logFile = join(folder, `${name}.log`);
    this.clock = new SettableClock(join(folder, `${name}.clock`));
    this.#dist = dist;
    this.#hasClock = hasClock;
    mkdirSync(this.dataDir, { mode: 0o700, recursive: true });
    this.environment = {
      PORT: String(port),
      SERVICE_DATA_DIR: this.dataDir,
      SERVICE_OPERATOR_KEY: operatorKey,
      SERVICE_REPLICATION: journal,
      SERVICE_NODE_URL: this.url,
      SERVICE_RATE_LIMITS: "off",
      ...environment,
    };
  }

  /** Starts it. Resolves when it says where it listens. @throws Error with the end of its log if it ends before */
  async start(): Promise<void> {
    const process = this.launch();
    for (const until = Date.now() + PATIENCE_MS; !(await this.ask("/livez")); await sleep(50))
      if (process.exitCode !== null || process.signalCode !== null || Date.now() > until)
        throw new Error(`${this.name} does not start:\n${this.lastWords()}`);
  }

  /** Starts it without waiting. */
  launch(): ChildProcess {
    if (this.isRunning) throw new Error(`${this.name} runs.`);
    const log = openSync(this.logFile, "a");
    this.#process = spawn(process.execPath, [mainOf(this.#dist), "serve", "--json", "--no-parent"], {
      env: {
        ...process.env,
        LOG_LEVEL: "info",
        ...this.environment,
        ...(this.#hasClock ? this.clock.environment : {}),
      },
      stdio: ["ignore", log, log],
      // Ctrl-C on a terminal is for those who started it.
      detached: true,
    });
    closeSync(log);
    return this.#process;
  }

  get isRunning(): boolean {
    return this.#process !== null && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** How it ended: an exit code, the name of a signal; null while it runs. */
  get ended(): number | string | null {
    return this.#process?.signalCode ?? this.#process?.exitCode ?? null;
  }

  /** Asks it to stop; it is killed if it does not. @returns its exit code or signal */
  async stop(): Promise<number | string | null> {
    if (this.isRunning) {
      const ended = once(this.#process!, "exit");
      this.thaw();
      this.#process!.kill("SIGTERM");
      const late = setTimeout(() => this.killAtOnce(), PATIENCE_MS);
      await ended;
      clearTimeout(late);
    }
    return this.ended;
  }

  async kill(): Promise<void> {
    if (!this.isRunning) return;
    const ended = once(this.#process!, "exit");
    this.killAtOnce();
    await ended;
  }

  killAtOnce(): void {
    if (this.isRunning) this.#process!.kill("SIGKILL");
  }

  freeze(): void {
    if (this.isRunning) this.#process!.kill("SIGSTOP");
  }

  thaw(): void {
    if (this.isRunning) this.#process!.kill("SIGCONT");
  }

  /** GET of a path; null if it does not answer in time. */
  async ask(path: string, milliseconds = ASK_MS): Promise<Answer | null> {
    try {
      const response = await fetch(this.url + path, { signal: AbortSignal.timeout(milliseconds) });
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.includes("json") ?? false;
      return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
    } catch (error) {
      // Refused, cut off, or frozen.
      if (error instanceof TypeError || (error as Error).name === "TimeoutError") return null;
      throw error;
    }
  }

  /** Whether it says that it leads. */
  async leads(): Promise<boolean> {
    return (await this.ask("/leader"))?.status === 200;
  }

  /** The end of what it said. */
  lastWords(lines = 15): string {
    return readFileSync(this.logFile, "utf8").split("\n").slice(-lines).join("\n");
  }
}
