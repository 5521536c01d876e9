/** The files that a command line names, by themselves or by their directories. */
import { existsSync, readdirSync, readFileSync, readSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import ignore, { type Ignore } from "ignore";
import { flag, texts, type Values } from "../line/subcommand.js";
import { withoutMark } from "./byte-order-mark.js";
import { decodeName, fromArgument, onDisk } from "./disk-names.js";
import { isDocument } from "./document-files.js";

// What is left out of a directory whose files are named together: what people keep there for themselves, as a rule.

/** `hidden` is what `--all` takes; `excluded` is what `--exclude` names. */
type Verdict = "taken" | "hidden" | "excluded";

/** File systems on which names that differ in case are the same file; git's `core.ignorecase` is set there. */
const IGNORES_CASE = process.platform === "win32" || process.platform === "darwin";

/** Backups and locks of editors whose names do not begin with a dot. */
const EDITORS_OWN = /~$|^#.*#$|\.sw[op]$/s;

/**
 * The rules for one directory, and those below it. `.gitignore` files count as git reads them: those in the directory, below
 * it, and above it up to the top of its repository.
 */
class IgnoreRules {
  readonly #all: boolean;
  /** Patterns are relative to this directory: the top of the repository, or else the named one. */
  #top: string;
  #ignored: Ignore = ignore({ ignorecase: IGNORES_CASE });
  readonly #named: string;
  readonly #excluded: Ignore = ignore({ ignorecase: IGNORES_CASE });

  /** @param named the directory that was named. The rules for it do not concern itself: it is wanted */
  constructor(named: string, all: boolean, exclude: readonly string[]) {
    this.#named = named;
    this.#all = all;
    this.#excluded.add([...exclude]);
    const path = resolve(named);
    const above = all ? [] : repositoryAbove(path);
    this.#top = above[0] ?? path;
    for (const directory of above) this.#add(directory);
    if (above.length && this.#ignored.ignores(`${slashed(relative(this.#top, path))}/`)) {
      this.#top = path;
      this.#ignored = ignore({ ignorecase: IGNORES_CASE });
    }
  }

  /** Takes the `.gitignore` of a directory, before anything in it is judged. @throws the file system's error */
  read(directory: string): void {
    if (!this.#all) this.#add(resolve(directory));
  }

  judge(path: string, isDirectory: boolean): Verdict {
    const end = isDirectory ? "/" : "";
    if (this.#excluded.ignores(slashed(relative(this.#named, path)) + end)) return "excluded";
    if (this.#all) return "taken";
    const name = basename(path);
    const isHidden =
      name.startsWith(".") ||
      (isDirectory ? name === "node_modules" : EDITORS_OWN.test(name)) ||
      this.#ignored.ignores(slashed(relative(this.#top, resolve(path))) + end);
    return isHidden ? "hidden" : "taken";
  }

  /**
   * All patterns are in one list, since the last one that fits decides. Those of a directory are written as they would be at
   * the top.
   */
  #add(directory: string): void {
    const file = join(directory, ".gitignore");
    if (!existsSync(onDisk(file))) return;
    const place = slashed(relative(this.#top, directory));
    const before = place === "" ? "/" : `/${place.replace(/[\\*?[\] !#]/g, "\\$&")}/`;
    for (const line of withoutMark(readFileSync(onDisk(file), "utf8")).split(/\r?\n/)) {
      const [, not, pattern] = /^(!?)(.*)$/s.exec(line)!;
      if (pattern === "" || pattern === "/" || line.startsWith("#")) continue;
      // A pattern with a slash before its end is meant from the directory on, others at any depth.
      const isAnchored = /\/./s.test(pattern!.replace(/ +$/, ""));
      this.#ignored.add(`${not}${before}${isAnchored ? pattern!.replace(/^\//, "") : `**/${pattern}`}`);
    }
  }
}

/** The directories above `path` whose `.gitignore` counts for it, from the top of its repository on; none outside of one. */
function repositoryAbove(path: string): string[] {
  const above: string[] = [];
  for (let directory = path; !existsSync(onDisk(join(directory, ".git"))); ) {
    const parent = dirname(directory);
    if (parent === directory) return [];
    above.unshift(parent);
    directory = parent;
  }
  return above;
}

const slashed = (path: string): string => (process.platform === "win32" ? path.replaceAll("\\", "/") : path);

/** Options of commands that take directories. */
export const SELECTION_OPTIONS = {
  all: flag(
    "of directories, also names that begin with a dot, node_modules, backups of editors, and what .gitignore names",
  ),
  exclude: texts(
    "PATTERN",
    "of directories, leave out what this pattern names, as .gitignore has them; may be given several times",
  ),
} as const;

/** The bytes in a file; `-` is standard input. @throws the file system's error */
export const readBytes = (file: string): Buffer => (file === "-" ? readInput() : readFileSync(onDisk(file)));

/** The text in a file, without a byte order mark; `-` is standard input. @throws the file system's error */
export const readText = (file: string): string => withoutMark(readBytes(file).toString("utf8"));

const STDIN = 0;
const PIECE_BYTES = 2 ** 16;
const LOOK_MS = 10;

/**
 * Standard input, to its end. Where another process has the same pipe and made it one that nobody waits for, as `npx` does, Node's
 * own `readFileSync` fails as soon as it is empty.
 */
function readInput(): Buffer {
  const pieces: Buffer[] = [];
  for (;;)
    try {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      const length = readSync(STDIN, piece);
      if (!length) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, length));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_MS);
    }
}

export interface NamedFiles {
  /** Files as they were named, and the regular files in each directory, in the order of their paths. */
  readonly files: readonly string[];
  /** Of each file that was found in a directory: its path below that. */
  readonly inside: ReadonlyMap<string, string>;
  /** Files and directories in the named directories that `--all` would take, in the same order. */
  readonly leftOut: readonly string[];
  /** Why directories could not be read. */
  readonly failures: readonly Error[];
  readonly hasDirectory: boolean;
}

/**
 * Lists the files. Those in directories are found at any depth, without what the command keeps beside files, and without
 * symbolic links: they may lead out of the directory, or in a circle. What is left out of a directory never concerns a path that
 * was named itself.
 * @param isTakenAnyway whether a file is taken although `--all` is not given. Directories that are left out are searched for such
 *   files. Absent: there are none
 */
export function namedFiles(
  paths: readonly string[],
  { all, exclude }: Values<typeof SELECTION_OPTIONS>,
  isTakenAnyway?: (file: string) => boolean,
): NamedFiles {
  const files: string[] = [];
  const inside = new Map<string, string>();
  const leftOut: string[] = [];
  const failures: Error[] = [];
  let hasDirectory = false;
  for (const path of paths.map(fromArgument)) {
    // A path that does not exist is taken for a file, so that reading it reports the error.
    if (!statSync(onDisk(path), { throwIfNoEntry: false })?.isDirectory()) {
      files.push(path);
      continue;
    }
    hasDirectory = true;
    const found: Found = { files: [], leftOut: [], failures };
    search(path, new IgnoreRules(path, all, exclude), found, isTakenAnyway);
    for (const file of found.files.sort()) {
      files.push(file);
      inside.set(file, relative(path, file));
    }
    leftOut.push(...found.leftOut.sort());
  }
  return { files, inside, leftOut, failures, hasDirectory };
}

interface Found {
  readonly files: string[];
  readonly leftOut: string[];
  readonly failures: Error[];
}

/** @param rules null in a directory that is left out */
function search(
  directory: string,
  rules: IgnoreRules | null,
  found: Found,
  isTakenAnyway?: (file: string) => boolean,
): void {
  try {
    const entries = readdirSync(onDisk(directory), { withFileTypes: true, encoding: "buffer" });
    rules?.read(directory);
    for (const entry of entries) {
      const name = decodeName(entry.name);
      const path = join(directory, name);
      const isDirectory = entry.isDirectory();
      if (!isDirectory && !(entry.isFile() && isDocument(name))) continue;
      const verdict = rules ? rules.judge(path, isDirectory) : "hidden";
      if (verdict === "excluded") continue;
      const isTaken = verdict === "taken";
      if (isDirectory && (isTaken || isTakenAnyway)) search(path, isTaken ? rules : null, found, isTakenAnyway);
      else if (isTaken || isTakenAnyway?.(path)) found.files.push(path);
      else found.leftOut.push(path);
    }
  } catch (error) {
    found.failures.push(error as Error);
  }
}
