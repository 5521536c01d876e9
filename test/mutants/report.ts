/** The report at the end of a run, or after an interruption. */
import type { Mutant } from "./generate.js";
import type { State, Verdict } from "./run.js";

export interface FolderScore {
  readonly folder: string;
  readonly counts: Readonly<Record<State, number>>;
  /** Number of mutants that count: all with a known result except the accepted ones. */
  readonly total: number;
  readonly killed: number;
}

/** One score for each requested folder or file. */
export function scores(verdicts: readonly Verdict[], folders: readonly string[]): FolderScore[] {
  return folders.map((folder) => {
    const counts: Record<State, number> = { killed: 0, timeout: 0, survived: 0, uncovered: 0, accepted: 0 };
    for (const { mutant, state } of verdicts) if (isWithin(mutant.file, folder)) counts[state]++;
    const killed = counts.killed + counts.timeout;
    return { folder, counts, killed, total: killed + counts.survived + counts.uncovered };
  });
}

const isWithin = (file: string, folder: string): boolean => file === folder || file.startsWith(`${folder}/`);

export function scoreLine({ folder, counts, killed, total }: FolderScore): string {
  const share = total ? `${((100 * killed) / total).toFixed(1)} %` : "nothing to score";
  const parts = (["timeout", "survived", "uncovered", "accepted"] as const)
    .filter((state) => counts[state])
    .map((state) => `${counts[state]} ${state}`);
  return `${folder}: ${killed}/${total} ${share}${parts.length ? ` (${parts.join(", ")})` : ""}`;
}

const LONGEST = 100;
const oneLine = (text: string) => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 3)}...` : line || "(nothing)";
};

/** A mutant in the list: place, change, and line of the source. */
export function describeMutant({ id, original, replacement, source }: Mutant): string {
  // Of a long text, only the part after the common beginning is shown.
  let same = original.length > LONGEST ? 0 : Number.NEGATIVE_INFINITY;
  while (same >= 0 && same < replacement.length && original[same] === replacement[same]) same++;
  const [before, after] =
    same > 0 ? [`... ${original.slice(same)}`, `... ${replacement.slice(same)}`] : [original, replacement];
  return `${id}\n    ${oneLine(before)}  →  ${oneLine(after)}\n    in: ${source}`;
}

/** Whether somebody has to look at the mutant, because no test noticed its fault. */
export const isOpen = ({ state }: Verdict): boolean => state === "survived" || state === "uncovered";

/** The mutants that a reader has to look at, one text for each. */
export function openVerdicts(verdicts: readonly Verdict[]): string[] {
  return verdicts.filter(isOpen).map(({ mutant, state, shown, left }) => {
    const tests =
      state === "uncovered"
        ? "no test executes it"
        : `${shown.length} test ${shown.length === 1 ? "file passes" : "files pass"}${left ? `, ${left} slower not run` : ""}`;
    return `${describeMutant(mutant)}\n    ${state}: ${tests}`;
  });
}
