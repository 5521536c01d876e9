/** The files that a command line names, by themselves or by their directories. */
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

export interface NamedFiles {
  /** Files as they were named, and the regular files in each directory, in the order of their paths. */
  readonly files: readonly string[];
  /** Why directories could not be read. */
  readonly failures: readonly Error[];
  readonly hasDirectory: boolean;
}

/**
 * Lists the files. Those in directories are found at any depth. Symbolic links in a directory are not followed: they may lead
 * out of it, or in a circle.
 * @param isTaken whether a file in a directory is wanted; called with its name. A file that was named itself is always taken
 */
export function namedFiles(paths: readonly string[], isTaken: (name: string) => boolean): NamedFiles {
  const files: string[] = [];
  const failures: Error[] = [];
  let hasDirectory = false;
  for (const path of paths) {
    // A path that does not exist is taken for a file, so that reading it reports the error.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
      files.push(path);
      continue;
    }
    hasDirectory = true;
    const inside: string[] = [];
    addFiles(path, isTaken, inside, failures);
    files.push(...inside.sort());
  }
  return { files, failures, hasDirectory };
}

function addFiles(directory: string, isTaken: (name: string) => boolean, files: string[], failures: Error[]): void {
  try {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) addFiles(path, isTaken, files, failures);
      else if (entry.isFile() && isTaken(entry.name)) files.push(path);
    }
  } catch (error) {
    failures.push(error as Error);
  }
}
