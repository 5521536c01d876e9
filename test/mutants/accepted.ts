/** Mutants that are known to have no effect, or none that matters, each with its reason. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Mutant, mutantsOf } from "./generate.js";

/** Identifies mutants without line numbers, so that it stays valid while the file changes. */
export interface Accepted {
  /** Source file. */
  readonly file: string;
  /** Source line, without surrounding white space. */
  readonly line: string;
  readonly kind: string;
  /** Compiled text that the mutant replaces. All white space in it is equal. */
  readonly original: string;
  /** Which of several such mutants of the line, counted from 1; absent for all of them. */
  readonly nth?: number;
  /** One sentence. */
  readonly reason: string;
}

const MEMBERS = ["file", "line", "kind", "original", "reason"] as const;

/** Reads every list in a folder. @throws Error for an entry with a missing member or one that is not a text */
export function readAccepted(folder: string): Accepted[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .sort()
    .flatMap((name) => {
      const list = JSON.parse(readFileSync(join(folder, name), "utf8")) as Accepted[];
      for (const entry of list)
        for (const member of MEMBERS)
          if (typeof entry[member] !== "string" || !entry[member])
            throw new Error(`${name}: an entry has no "${member}": ${JSON.stringify(entry)}`);
      return list;
    });
}

const squeezed = (text: string) => text.replace(/\s+/g, " ");

export const accepts = (entry: Accepted, mutant: Mutant): boolean =>
  entry.file === mutant.file &&
  entry.line === mutant.source &&
  entry.kind === mutant.kind &&
  squeezed(entry.original) === squeezed(mutant.original) &&
  (entry.nth === undefined || entry.nth === mutant.nth);

/** A sentence for each entry that matches no mutant: the code has changed, and the list must be updated. */
export function staleEntries(list: readonly Accepted[], dist: string): string[] {
  const mutants = new Map<string, Mutant[]>();
  return list
    .filter((entry) => {
      if (!mutants.has(entry.file)) mutants.set(entry.file, generated(dist, entry.file));
      return !mutants.get(entry.file)!.some((mutant) => accepts(entry, mutant));
    })
    .map(
      ({ file, line, kind, original }) =>
        `${file} has no mutant "${kind}" of \`${squeezed(original)}\` on the line \`${line}\` any more.`,
    );
}

function generated(dist: string, file: string): Mutant[] {
  const built = file.replace(/\.ts$/, ".js");
  return existsSync(join(dist, built)) ? mutantsOf(dist, built) : [];
}
