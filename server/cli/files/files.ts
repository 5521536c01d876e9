/** The files that a command line names, by themselves or by their directories. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { flag, texts, type Values } from "../line/subcommand.js";
import { withoutMark } from "./byte-order-mark.js";
import { decodeName, fromArgument, onDisk } from "./disk-names.js";
import { isDocument } from "./document-files.js";
import { IgnoreRules } from "./ignore-rules.js";

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

/** The text in a file, without a byte order mark; `-` is standard input. @throws the file system's error */
export const readText = (file: string): string => withoutMark(readFileSync(file === "-" ? 0 : onDisk(file), "utf8"));

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
