/** What is left out of a directory whose files are named together: what people keep there for themselves, as a rule. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import ignore, { type Ignore } from "ignore";
import { withoutMark } from "./byte-order-mark.js";
import { onDisk } from "./disk-names.js";

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
export class IgnoreRules {
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
