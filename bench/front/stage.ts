/** What the rows of this suite share: a load generator, the bare server, a folder, and turns. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median } from "../stats.js";
import { Bare } from "./bare.js";
import { Generator } from "./generator.js";

/**
 * Rounds before those that count. A service that attests compiles 222 functions in the first 10,000 requests, then 72, 40, 37, 28,
 * 19, 10, 11, 7 and 1 of them (Node 20); with two rounds, 3 % of what was measured was the compilers' work. Services run for
 * months.
 */
export const WARM_ROUNDS = 8;

export interface Stage {
  /** For the data directories of all services, on one disk with the pages of the bare server. */
  readonly folder: string;
  readonly generator: Generator;
  readonly bare: Bare;
  readonly rounds: number;
  close(): Promise<void>;
}

/** A figure of the suite: a value for each round. */
export interface Row {
  readonly figure: string;
  readonly rounds: readonly number[];
  readonly digits: number;
}

/** The figures of one part of the suite, and everything that was measured for them. */
export interface Measured {
  readonly rows: readonly Row[];
  readonly details: unknown;
}

/** Each row: the median of its rounds, the lowest and the highest. */
export function printRows(rows: readonly Row[]): void {
  console.log();
  console.table(
    rows.map(({ figure, rounds, digits }) => ({
      figure,
      median: median(rounds).toFixed(digits),
      lowest: Math.min(...rounds).toFixed(digits),
      highest: Math.max(...rounds).toFixed(digits),
    })),
  );
}

/** Starts the generator and the bare server. */
export async function openStage(rounds: number): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
  const generator = new Generator();
  const bare = await Bare.start(folder);
  return {
    folder,
    generator,
    bare,
    rounds,
    async close() {
      await bare.close();
      await generator.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Measures every contender once in each round. Another one begins each time, so that none always follows the same one.
 * @param prepare called before each round
 */
export async function takeTurns<Name extends string, T>(
  rounds: number,
  contenders: Readonly<Record<Name, () => Promise<T>>>,
  prepare: (round: number) => Promise<unknown> = async () => {},
): Promise<Record<Name, T[]>> {
  const names = Object.keys(contenders) as Name[];
  const measured = Object.fromEntries(names.map((name) => [name, [] as T[]])) as Record<Name, T[]>;
  for (let round = 0; round < WARM_ROUNDS + rounds; round++) {
    await prepare(round);
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(round + turn) % names.length]!;
      const value = await contenders[name]();
      if (round >= WARM_ROUNDS) measured[name].push(value);
    }
  }
  return measured;
}
