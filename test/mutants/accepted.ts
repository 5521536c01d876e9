/** Mutants that are known to change nothing, or nothing that matters, each with its reason. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Mutant, mutantsOf } from "./generate.js";

/** Says which mutants are meant without line numbers, so that it holds while the file grows. */
export interface Accepted {
  /** Source file. */
  readonly file: string;
  /** Source line, without the space around it. */
  readonly line: string;
  readonly kind: string;
  /** Compiled text that is replaced; any white space in it is the same as another. */
  readonly original: string;
  /** One sentence. */
  readonly reason: string;
}

const MEMBERS = ["file", "line", "kind", "original", "reason"] as const;

/** Reads every list in a folder. @throws Error for an entry with a member that is missing or is no text */
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
  squeezed(entry.original) === squeezed(mutant.original);

/** A sentence for each entry that fits no mutant: the code has moved on, and the list must follow. */
export function staleEntries(list: readonly Accepted[], dist: string): string[] {
  const mutants = new Map<string, Mutant[]>();
  return list
    .filter((entry) => {
      if (!mutants.has(entry.file)) mutants.set(entry.file, generated(dist, entry.file));
      return !mutants.get(entry.file)!.some((mutant) => accepts(entry, mutant));
    })
    .map(
      ({ file, line, kind, original }) =>
        `${file} has no mutant "${kind}" of \`${original}\` on the line \`${line}\` any more.`,
    );
}

function generated(dist: string, file: string): Mutant[] {
  const built = file.replace(/\.ts$/, ".js");
  return existsSync(join(dist, built)) ? mutantsOf(dist, built) : [];
}
