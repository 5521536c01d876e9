/** A copy of the project in which faults are planted and tests are run, so that the checkout itself stays whole. */
import { spawn } from "node:child_process";
import {
  cpSync,
  existsSync,
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
import { type Mutant, planted } from "./generate.js";

/** What a run of test files came to. */
export interface Run {
  readonly outcome: "passed" | "failed" | "timeout";
  /** Name of the test that failed first, or what else went wrong. */
  readonly by: string | null;
  readonly ms: number;
}

export interface RunOptions {
  readonly timeoutMs: number;
  /** Folder into which every process of the run writes what it executed. */
  readonly coverage?: string;
  readonly signal?: AbortSignal;
}

/** Copied, since Node and vitest resolve symbolic links: a linked file would load the checkout's build. */
const COPIED = new Set(["dist", "test", "package.json"]);
const LEFT_OUT = new Set([".git", "data"]);
const LAST_OUTPUT = 2_000;

export class Sandbox {
  readonly folder: string;
  readonly dist: string;
  readonly #report: string;
  readonly #scratch: string;

  /** @param root the checkout, built */
  constructor(root: string) {
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), "cairnlog-mutants-")));
    this.dist = join(this.folder, "dist");
    this.#report = join(this.folder, "report.json");
    this.#scratch = join(this.folder, "tmp");
    mkdirSync(this.#scratch);
    for (const name of readdirSync(root)) {
      const [from, to] = [join(root, name), join(this.folder, name)];
      if (COPIED.has(name))
        cpSync(from, to, { recursive: true, filter: (path) => path !== join(root, "test", "build") });
      else if (!LEFT_OUT.has(name)) symlinkSync(from, to);
    }
  }

  /** Runs `look` while the mutant's fault is in the build. */
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
    rmSync(this.#report, { force: true });
    const started = Date.now();
    const vitest = join(this.folder, "node_modules", "vitest", "vitest.mjs");
    const flags = ["--config=test/mutants/vitest.config.ts", "--bail=1", "--reporter=json"];
    const child = spawn(process.execPath, [vitest, "run", ...flags, `--outputFile=${this.#report}`, ...files], {
      cwd: this.folder,
      env: {
        ...process.env,
        TMPDIR: this.#scratch,
        MUTANTS_ORDER: files.join(","),
        ...(coverage && { NODE_V8_COVERAGE: coverage }),
      },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own: services that the tests started end with it.
      detached: true,
    });
    let output = "";
    const keep = (chunk: Buffer) => {
      output = (output + chunk).slice(-LAST_OUTPUT);
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      endGroup(child.pid);
    }, timeoutMs);
    const stop = () => endGroup(child.pid);
    signal?.addEventListener("abort", stop);
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("exit", resolve);
    });
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    endGroup(child.pid);
    rmSync(this.#scratch, { recursive: true, force: true, maxRetries: 3 });
    mkdirSync(this.#scratch, { recursive: true });
    const ms = Date.now() - started;
    if (isLate) return { outcome: "timeout", by: null, ms };
    if (code === 0) return { outcome: "passed", by: null, ms };
    return { outcome: "failed", by: this.#firstFailure() ?? output.trim(), ms };
  }

  #firstFailure(): string | null {
    if (!existsSync(this.#report)) return null;
    const { testResults } = JSON.parse(readFileSync(this.#report, "utf8")) as {
      testResults: {
        name: string;
        status: string;
        message: string;
        assertionResults: { status: string; fullName: string }[];
      }[];
    };
    const file = testResults.find(({ status }) => status === "failed");
    if (!file) return null;
    const name = file.name.slice(this.folder.length + 1);
    const test = file.assertionResults.find(({ status }) => status === "failed");
    return `${name}: ${test?.fullName ?? file.message.split("\n")[0]}`;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Ends what is left of a process group. */
function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // None of the group is left.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
