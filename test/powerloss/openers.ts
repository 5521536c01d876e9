/** Opens states in processes of their own (`opener.mjs`): a state may end one with a signal. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Key, TableName } from "#cairnlog/engine/store/schema/schema.js";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";
import { SOURCES, unflushed } from "./record/recorder.js";

/** States after which a process is replaced, so that none sees too many addresses of earlier maps. */
const STATES_EACH = 100;
/** A state that takes longer hangs. */
const PATIENCE_MS = 120_000;

export interface OpenerTask {
  readonly dataDir: string;
  readonly settings: NodeJS.ProcessEnv;
  /** Whether the whole service is started, which takes longer. */
  readonly isService: boolean;
  /** Rows to be read. */
  readonly rows: readonly (readonly [TableName, Key])[];
}

/** What a service found that was started on the state. */
export interface Found {
  readonly operator: string;
  readonly entries: readonly {
    readonly id: number;
    readonly entry_hash: string;
    /** Null if it is withheld. */
    readonly payload: Readonly<Record<string, unknown>> | null;
  }[];
  readonly heads: readonly (TreeHead | null)[];
  readonly rows: readonly (Readonly<Record<string, unknown>> | null)[];
  /** Sentences: what does not verify. */
  readonly wrong: readonly string[];
}

export type Answer =
  | Found
  /** Why it does not open. */
  | { readonly refused: string }
  /** How the process ended, or that it did not answer. */
  | { readonly ended: string };

export class Opener {
  readonly #dist: string;
  readonly #library: string;
  #child: ChildProcess | null = null;
  #lines: AsyncIterator<string> | null = null;
  #left = 0;

  constructor(dist: string, library: string) {
    this.#dist = dist;
    this.#library = library;
  }

  async open(task: OpenerTask): Promise<Answer> {
    if (!this.#left) await this.close();
    this.#child ??= this.#start();
    this.#left--;
    const child = this.#child;
    child.stdin!.write(`${JSON.stringify(task)}\n`);
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      child.kill("SIGKILL");
    }, PATIENCE_MS);
    const begun = await this.#lines!.next();
    const answer = begun.done ? begun : await this.#lines!.next();
    clearTimeout(late);
    if (!answer.done) return JSON.parse(answer.value) as Answer;
    this.#left = 0;
    await this.close();
    const { exitCode, signalCode } = child;
    return { ended: isLate ? `no answer within ${PATIENCE_MS / 1000} s` : (signalCode ?? `exit code ${exitCode}`) };
  }

  #start(): ChildProcess {
    const child = spawn(process.execPath, [join(SOURCES, "opener.mjs"), this.#dist], {
      env: { ...process.env, ...unflushed(this.#library) },
      stdio: ["pipe", "pipe", "ignore"],
    });
    // It may be gone when it is written to.
    child.stdin!.on("error", () => {});
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    this.#left = STATES_EACH;
    return child;
  }

  async close(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.stdin!.end();
    await exited;
  }
}
