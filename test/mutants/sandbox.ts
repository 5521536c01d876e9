/** A copy of the project in which faults are planted and tests are run, so that the checkout itself does not change. */
import { type ChildProcess, fork } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Mutant, planted } from "./generate.js";
import type { Answer, Request } from "./host.js";
import { members, OwnTime } from "./owntime.js";

/** The result of a run of test files. */
export interface Run {
  readonly outcome: "passed" | "failed" | "timeout";
  /** Name of the first failed test, or another error. */
  readonly by: string | null;
  /** Without the time in which it only waited for a processor. */
  readonly ms: number;
}

export interface RunOptions {
  /** Without the time in which it only waits for a processor. */
  readonly timeoutMs: number;
  /** Folder to which every process of the run writes its coverage. */
  readonly coverage?: string;
  readonly signal?: AbortSignal;
}

/** Copied, since Node and vitest resolve symbolic links: a linked file would load the checkout's build. */
const COPIED = new Set(["dist", "test", "package.json"]);
const LEFT_OUT = new Set([".git", "data"]);
const HOST = fileURLToPath(new URL("host.js", import.meta.url));

export class Sandbox {
  readonly folder: string;
  readonly dist: string;
  readonly #scratch: string;
  #host: ChildProcess | null = null;

  /** @param root the checkout, built */
  constructor(root: string) {
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), "cairnlog-mutants-")));
    // Tests that act as another user must reach their own folders below.
    chmodSync(this.folder, 0o755);
    this.dist = join(this.folder, "dist");
    this.#scratch = join(this.folder, "tmp");
    mkdirSync(this.#scratch);
    for (const name of readdirSync(root)) {
      const [from, to] = [join(root, name), join(this.folder, name)];
      if (COPIED.has(name))
        cpSync(from, to, { recursive: true, filter: (path) => path !== join(root, "test", "build") });
      else if (!LEFT_OUT.has(name)) symlinkSync(from, to);
    }
  }

  /** Runs `look` while the mutant's fault is planted in the build. */
  async with<T>(mutant: Mutant, look: () => Promise<T>): Promise<T> {
    const path = join(this.dist, mutant.built);
    const code = readFileSync(path, "utf8");
    writeFileSync(path, planted(code, mutant));
    try {
      return await look();
    } finally {
      writeFileSync(path, code);
    }
  }

  /** Runs test files, in this order, up to the first failure. */
  async test(files: readonly string[], { timeoutMs, coverage, signal }: RunOptions): Promise<Run> {
    const host = await this.#running();
    let isLate = false;
    const time = new OwnTime(host.pid!, timeoutMs, () => {
      isLate = true;
      this.#end();
    });
    const stop = () => this.#end();
    signal?.addEventListener("abort", stop);
    try {
      host.send({ files, coverage: coverage ?? null } satisfies Request);
      const answer = await nextAnswer(host);
      const ms = time.stop();
      if (isLate || answer?.isLate) return { outcome: "timeout", by: answer?.failed ?? null, ms };
      // The tests ended with their process, which the fault has ended.
      if (!answer) this.#end();
      const by = answer ? answer.failed : "the process that runs the tests ended";
      return { outcome: by === null ? "passed" : "failed", by, ms };
    } finally {
      time.stop();
      signal?.removeEventListener("abort", stop);
      // Ends processes that a failed test has left running.
      if (this.#host) for (const pid of members(host.pid!)) if (pid !== host.pid) endProcess(pid);
      rmSync(this.#scratch, { recursive: true, force: true, maxRetries: 3 });
      mkdirSync(this.#scratch);
    }
  }

  /** The host, which is started if it does not run. */
  async #running(): Promise<ChildProcess> {
    if (this.#host) return this.#host;
    const host = fork(HOST, [this.folder], {
      cwd: this.folder,
      // The cache of vitest is removed with the sandbox.
      env: { ...process.env, TMPDIR: this.folder },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      // A process group of its own, so that everything that the tests started can be ended with it.
      detached: true,
    });
    this.#host = host;
    if (!(await nextAnswer(host))) throw new Error(`The process that runs the tests in ${this.folder} does not start.`);
    return host;
  }

  #end(): void {
    if (this.#host?.pid !== undefined) endProcess(-this.#host.pid);
    this.#host = null;
  }

  remove(): void {
    this.#end();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The next message of the host; null if it ends. */
function nextAnswer(host: ChildProcess): Promise<Answer | null> {
  return new Promise((resolve) => {
    const settle = (answer: Answer | null) => {
      host.off("message", onMessage);
      host.off("exit", onExit);
      resolve(answer);
    };
    const onMessage = (message: unknown) => settle(message as Answer);
    const onExit = () => settle(null);
    host.on("message", onMessage);
    host.on("exit", onExit);
  });
}

/** @param pid negative for a whole group */
function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // The process ended on its own.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
