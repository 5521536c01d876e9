/**
 * Measures which test file executes which part of the build, with `NODE_V8_COVERAGE`. This includes the commands and
 * services that a test starts, and their worker threads.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { pathToFileURL } from "node:url";
import type { Mutant } from "./generate.js";
import type { Sandbox } from "./sandbox.js";

/** The parts of one compiled file that a test file executes. */
interface Executed {
  /** Hash of the compiled file when this was measured. */
  readonly hash: string;
  /** Offsets at which executed and other code alternate; the first is the start of executed code. */
  readonly turns: readonly number[];
}

export interface TestFile {
  /** Hash of the test file and of the helpers it imports. */
  readonly hash: string;
  readonly ms: number;
  /** The reason why it says nothing about mutants: it fails without any. */
  readonly fails: string | null;
  /** By compiled file. */
  readonly executed: Readonly<Record<string, Executed>>;
}

/** By test file, e.g. `test/log/log.test.ts`. */
export type CoverageMap = Record<string, TestFile>;

/** Tests that take minutes, tests that do not test the build, and tests that need a browser or the registry. */
const LEFT_OUT =
  /^test\/(crash|faults|fuzz|powerloss|soak|browser|package|mutants|build)\/|^test\/(architecture|docs|contributing\.long)\.test\.ts$/;
const MEASURE_TIMEOUT_MS = 600_000;

const digest = (text: string | Buffer): string => createHash("sha256").update(text).digest("hex").slice(0, 32);

export class Coverage {
  readonly #root: string;
  readonly #path: string;
  #map: CoverageMap;
  /** Measured by this process. Of two that write the file at once, one loses what the other wrote. */
  readonly #own: CoverageMap = {};
  readonly #reached = new Map<string, ReadonlySet<string>>();

  /** @param path file that keeps the map between runs */
  constructor(root: string, path: string) {
    this.#root = root;
    this.#path = path;
    this.#map = this.#read();
  }

  #read(): CoverageMap {
    return existsSync(this.#path) ? JSON.parse(readFileSync(this.#path, "utf8")) : {};
  }

  /** The test files below these files and folders that may be run with a mutant. */
  tests(below: readonly string[]): string[] {
    const found: string[] = [];
    const look = (name: string) => {
      if (statSync(join(this.#root, name)).isDirectory())
        for (const entry of readdirSync(join(this.#root, name)).sort()) look(join(name, entry));
      else if (name.endsWith(".test.ts") && !LEFT_OUT.test(name)) found.push(name);
    };
    for (const name of below) look(normalize(name).replace(/\/$/, ""));
    return [...new Set(found)];
  }

  /** The test files without valid measurements for these compiled files. Tests that reach little code come first. */
  unmeasured(tests: readonly string[], targets: readonly string[]): string[] {
    const current = new Map(targets.map((built) => [built, this.#hashOf(built)]));
    const known = new Set(Object.values(this.#map).flatMap(({ executed }) => Object.keys(executed)));
    const missing = tests.filter((test) => {
      const entry = this.#map[test];
      const reached = this.#closure(test);
      const wanted = targets.filter((built) => reached.has(join("dist", built)));
      if (!wanted.length) return false;
      if (!entry || entry.fails || entry.hash !== this.#testHash(test)) return true;
      return wanted.some((built) => {
        const executed = entry.executed[built];
        return executed ? executed.hash !== current.get(built) : !known.has(built);
      });
    });
    return missing.sort((a, b) => this.#closure(a).size - this.#closure(b).size);
  }

  /** Runs one test file and keeps what it executed. */
  async measure(test: string, sandbox: Sandbox, signal: AbortSignal): Promise<TestFile | null> {
    const folder = join(sandbox.folder, "coverage");
    mkdirSync(folder);
    const hash = this.#testHash(test);
    const { outcome, by, ms } = await sandbox.test([test], { timeoutMs: MEASURE_TIMEOUT_MS, coverage: folder, signal });
    if (signal.aborted) return null;
    const fails = outcome === "passed" ? null : (by ?? outcome);
    const entry = { hash, ms, fails, executed: executedBy(folder, sandbox.dist) };
    rmSync(folder, { recursive: true });
    // Another run may have measured others meanwhile.
    this.#own[test] = entry;
    this.#map = { ...this.#read(), ...this.#own };
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(`${this.#path}.new`, JSON.stringify(this.#map));
    renameSync(`${this.#path}.new`, this.#path);
    return entry;
  }

  /** Those of the given test files that execute the mutant's place. */
  covering(mutant: Mutant, tests: readonly string[]): string[] {
    return tests.filter((test) => {
      const entry = this.#map[test];
      const turns = entry && !entry.fails ? entry.executed[mutant.built]?.turns : undefined;
      return turns !== undefined && turns.filter((offset) => offset <= mutant.start).length % 2 === 1;
    });
  }

  /** Whether the test file itself imports the compiled file, and not only a helper of it. */
  imports(test: string, built: string): boolean {
    return [...namedBy(this.#root, test)].includes(join("dist", built));
  }

  /** The duration of a test file without a fault. */
  ms(test: string): number {
    return this.#map[test]?.ms ?? 0;
  }

  /** The reason why a test file says nothing about mutants, or null. */
  failure(test: string): string | null {
    return this.#map[test]?.fails ?? null;
  }

  #hashOf(built: string): string {
    return digest(readFileSync(join(this.#root, "dist", built)));
  }

  #testHash(test: string): string {
    const helpers = [...this.#closure(test)].filter((path) => path.startsWith("test/")).sort();
    return digest(helpers.map((path) => digest(readFileSync(join(this.#root, path)))).join());
  }

  /** All files that a file names, directly or through others: at least those that are loaded. */
  #closure(path: string): ReadonlySet<string> {
    const known = this.#reached.get(path);
    if (known) return known;
    const reached = new Set<string>();
    const look = (file: string) => {
      if (reached.has(file)) return;
      reached.add(file);
      for (const named of namedBy(this.#root, file)) look(named);
    };
    look(path);
    this.#reached.set(path, reached);
    return reached;
  }
}

function* namedBy(root: string, file: string): Generator<string> {
  if (!/\.(js|ts)$/.test(file)) return;
  for (const [, name] of readFileSync(join(root, file), "utf8").matchAll(
    /["'`](\.\.?\/[^"'`\s]+|#cairnlog\/[^"'`\s]+)["'`]/g,
  )) {
    const target = name!.startsWith("#") ? name!.replace("#cairnlog", "dist") : normalize(join(dirname(file), name!));
    const candidates = target.endsWith(".js") ? [target, target.replace(/\.js$/, ".ts")] : [target];
    for (const candidate of candidates)
      if (
        /^(dist|test)\//.test(candidate) &&
        existsSync(join(root, candidate)) &&
        statSync(join(root, candidate)).isFile()
      )
        yield candidate;
  }
}

interface V8Script {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly { startOffset: number; endOffset: number; count: number }[];
  }[];
}

/** None for a file that is cut short: its process was killed while it wrote, as if it had been killed just before. */
function scriptsIn(path: string): readonly V8Script[] {
  try {
    return (JSON.parse(readFileSync(path, "utf8")) as { result: V8Script[] }).result;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return [];
  }
}

/** Everything that any of the processes which wrote to `folder` executed. */
function executedBy(folder: string, dist: string): Record<string, Executed> {
  const prefix = `${pathToFileURL(dist)}/`;
  const marks = new Map<string, Uint8Array>();
  const hashes = new Map<string, string>();
  for (const name of readdirSync(folder)) {
    for (const { url, functions } of scriptsIn(join(folder, name))) {
      if (!url.startsWith(prefix)) continue;
      const built = relative(dist, join(dist, decodeURIComponent(url.slice(prefix.length).replace(/[?#].*/, ""))));
      if (!built.endsWith(".js")) continue;
      if (!marks.has(built)) {
        const code = readFileSync(join(dist, built), "utf8");
        marks.set(built, new Uint8Array(code.length));
        hashes.set(built, digest(Buffer.from(code)));
      }
      const executed = marks.get(built)!;
      const once = new Uint8Array(executed.length);
      // Outer ranges first: nested ranges are more precise.
      const ranges = functions.flatMap((item) => item.ranges);
      ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
      for (const { startOffset, endOffset, count } of ranges) once.fill(count > 0 ? 1 : 0, startOffset, endOffset);
      for (let i = 0; i < once.length; i++) executed[i]! |= once[i]!;
    }
  }
  return Object.fromEntries(
    [...marks].map(([built, executed]) => [built, { hash: hashes.get(built)!, turns: turnsOf(executed) }]),
  );
}

function turnsOf(executed: Uint8Array): number[] {
  const turns: number[] = [];
  let last = 0;
  for (const [offset, is] of executed.entries()) {
    if (is !== last) turns.push(offset);
    last = is;
  }
  return turns;
}
