/**
 * Planted faults: a copy of the build in which one text is replaced by a wrong one. A harness that misses a planted
 * fault cannot be trusted when it finds nothing.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The build under test: the folder that holds `engine`, `server` and `wasm`, compiled. */
export const DIST = dirname(dirname(fileURLToPath(import.meta.resolve("#cairnlog/engine/index.js"))));

export interface Replacement {
  /** Compiled file below the build. */
  readonly file: string;
  /** Replaced text, which occurs exactly once in the file. */
  readonly text: string;
  readonly replacement: string;
}

export interface PlantedFault extends Replacement {
  readonly name: string;
  /** Further places that are part of the fault. */
  readonly also?: readonly Replacement[];
}

/** The command of this build. */
export const mainOf = (dist: string): string => join(dist, "server", "cli", "main.js");

/**
 * Runs `look` with a copy of the build in which `fault` is planted.
 * @throws Error if the replaced text does not occur exactly once: the code has changed, and the list must be updated
 */
export async function withPlanted<T>(fault: PlantedFault, look: (dist: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-planted-"));
  try {
    const root = dirname(DIST);
    const dist = join(folder, "dist");
    cpSync(DIST, dist, { recursive: true });
    cpSync(join(root, "package.json"), join(folder, "package.json"));
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    for (const { file, text, replacement } of [fault, ...(fault.also ?? [])]) {
      const path = join(dist, file);
      const parts = readFileSync(path, "utf8").split(text);
      if (parts.length !== 2)
        throw new Error(`${fault.name}: the text to replace is ${parts.length - 1} times in ${file}`);
      writeFileSync(path, parts.join(replacement));
    }
    return await look(dist);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Plants each fault in turn. `look` returns its findings as sentences. No findings are a failure here.
 * @returns names of the faults that were not found
 */
export async function selfTest(
  faults: readonly PlantedFault[],
  look: (dist: string, fault: PlantedFault) => Promise<readonly string[]>,
): Promise<string[]> {
  const missed: string[] = [];
  for (const fault of faults) {
    const found = await withPlanted(fault, (dist) => look(dist, fault));
    console.log(
      `${found.length ? "found" : "MISSED"}  ${fault.name}${found.length ? `: ${found[0]!.split("\n")[0]!.slice(0, 160)}` : ""}`,
    );
    if (!found.length) missed.push(fault.name);
  }
  console.log(`${faults.length - missed.length} of ${faults.length} planted faults were found`);
  return missed;
}
