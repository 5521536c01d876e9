/** What the suite shows of its loads. */
import { median } from "../stats.js";
import type { Turn } from "../turns/turns.js";

/** Rates, as shares of what the machine reaches with a request at a time on each connection. */
export const SHARES = { third: 1 / 3, "two thirds": 2 / 3 } as const;
export type Share = keyof typeof SHARES;

/** One load. */
export interface Tail {
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
  /** Answers other than 200. */
  readonly refused: number;
  readonly turns: readonly Turn[];
}

export interface Result extends Tail {
  readonly entries: number;
  readonly beside: string;
  readonly share: Share;
  readonly rate: number;
  /** 99.9 % of the latencies, by that of the log alone at the same rate in the same round. */
  readonly ratio: number;
  /** Number of pieces of work that were done beside. */
  readonly pieces: number;
}

/** The name of nothing beside. */
export const QUIET = "nothing";

const isWriter = (thread: string) => thread === "main";
const isFront = (thread: string) => thread.startsWith("front-");
const KINDS = { writer: isWriter, front: isFront, other: (thread: string) => !isWriter(thread) && !isFront(thread) };
type Kind = keyof typeof KINDS;

/** The longest turn of the threads of a kind. */
function longest({ turns }: Tail, kind: Kind): Turn | undefined {
  return turns.filter(({ thread }) => KINDS[kind](thread)).sort((a, b) => b.milliseconds - a.milliseconds)[0];
}

/** Milliseconds of a turn whose stack is printed, if there is a profile. */
const LONG_MS = 15;

export function print(result: Result): void {
  const { beside, share, rate, p50, p99, p999, ratio, refused, pieces } = result;
  const turns = (Object.keys(KINDS) as Kind[]).map((kind) => [kind, longest(result, kind)] as const);
  const shown = turns.map(([kind, turn]) => `${kind} ${turn?.milliseconds.toFixed(1) ?? "-"}`).join(", ");
  const times = [p50, p99, p999].map((value) => value.toFixed(1)).join(" / ");
  const more = `${pieces ? `; ${pieces} pieces of work` : ""}${refused ? `; ${refused} refused` : ""}`;
  console.log(
    `${beside}, a ${share} (${rate.toFixed(0)}/s): ${times} ms (${ratio.toFixed(2)}); turns: ${shown} ms${more}`,
  );
  for (const [kind, turn] of turns)
    if (turn && turn.milliseconds > LONG_MS)
      for (const [name, ms] of turn.stack) console.log(`    ${kind} ${ms.toFixed(1).padStart(6)} ${name}`);
}

/** The results of one log: medians of the rounds, and the longest turns in any of them. */
export function table(results: readonly Result[]): void {
  const groups = new Map<string, Result[]>();
  for (const one of results) {
    const name = `${one.beside}, ${one.share}`;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const rows = [...groups].map(([name, all]) => {
    const middle = (of: (one: Result) => number, digits = 1) => median(all.map(of)).toFixed(digits);
    const most = (kind: Kind) => Math.max(...all.map((one) => longest(one, kind)?.milliseconds ?? 0)).toFixed(1);
    const row = {
      p50: middle(({ p50 }) => p50),
      p99: middle(({ p99 }) => p99),
      "p99.9": middle(({ p999 }) => p999),
      "/ quiet": middle(({ ratio }) => ratio, 2),
      "writer's turn": most("writer"),
      "front end's": most("front"),
      "another's": most("other"),
    };
    return [name, row] as const;
  });
  console.log(`\n${results[0]?.entries.toLocaleString("en")} entries before; milliseconds; turns are processor time`);
  console.table(Object.fromEntries(rows));
}

/** @throws if a load has no figures, if nothing happened beside it, or if there are not `count` of them */
export function checkComplete(results: readonly Result[], count: number): void {
  if (results.length !== count) throw new Error(`${results.length} loads ended, of ${count}`);
  for (const one of results) {
    const figures = [one.p50, one.p99, one.p999, one.ratio];
    const isMeasured = figures.every(Number.isFinite) && longest(one, "writer") && longest(one, "front");
    if (!isMeasured) throw new Error(`beside ${one.beside}, something was not measured`);
    if (one.beside !== QUIET && !(one.pieces > 0)) throw new Error(`${one.beside}: nothing happened`);
  }
}
