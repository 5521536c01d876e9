/** Searches and proofs of two logs of different size in turns, by a process of its own: their CPU. */
import { type LogReader, openLogReader } from "cairnlog";
import { answerOrders, startChild } from "../front/child.js";
import { cpuMicros } from "../stats.js";
import { LONG_WORD, numbered, SAME_DOCUMENT, SIGNER, scattered, TYPES } from "./entries.js";

const PAGE = 50;
/** A search is repeated for so long in each round. */
const SEARCH_MS = 5;
/** Proofs of each kind in a round. */
const PROOFS = 2_000;

type Criteria = Parameters<LogReader["find"]>[0];

const tags = (...names: string[]) => ({ tags: names });
const TEN = ["all", "most", "half", ...numbered("two thirds", 4), ...numbered("third", 2)];

const SEARCHES: Readonly<Record<string, Criteria>> = {
  "a tag of all": tags("all"),
  "a type of 1/2": { eventTypes: TYPES.slice(0, 1) },
  "one of two types": { eventTypes: TYPES.slice(0, 2) },
  "a tag of 1/150, a type of 1/2": { ...tags("narrow 7"), eventTypes: TYPES.slice(0, 1) },
  "tags of 9/10 and 1/2": tags("most", "half"),
  "… or one of 1/150": { ...tags("most", "half"), orTag: "narrow 7" },
  "… or one of 1/3": { ...tags("most", "half"), orTag: "third 0" },
  "five tags of 2/3 to 9/10": tags("most", ...numbered("two thirds", 4)),
  "ten criteria": { tags: TEN, eventTypes: TYPES.slice(0, 2) },
  "… or a tag of 1/20": { tags: TEN, eventTypes: TYPES.slice(0, 2), orTag: "twentieth 0" },
  "two tags of 1/20": tags(...numbered("twentieth", 2)),
  "six tags of 1/20": tags(...numbered("twentieth", 6)),
  "a signer of 1/1000, a tag of 1/2": { fingerprint: SIGNER, ...tags("half") },
  "title: a word of all": { title: "report" },
  "title: a word of the first entries": { title: "z" },
  "title: a long word of theirs": { title: LONG_WORD },
  "title: a word of 1/16": { title: "a" },
  "title: two of them": { title: "a b" },
  "title: four of them": { title: "a b c d" },
  "title: eight of them": { title: "a b c d e f g h" },
  "title: eight, tags of 9/10 and 1/2": { title: "a b c d e f g h", ...tags("most", "half") },
  "search: digits of 1/256": { search: "a1" },
  "search: a digit": { search: "a" },
  "search: a hash of 1/30": { search: SAME_DOCUMENT },
  "… and a tag of 1/2": { search: SAME_DOCUMENT, ...tags("half") },
};

/** Proof number `n`. Sizes are all over the log, and leaves all over the entries of their size. */
const PROOF_KINDS: Readonly<Record<string, Readonly<Record<At, (log: LogReader, n: number) => void>>>> = {
  inclusion: {
    head: (log, n) => log.inclusionProofJson(below(log.size, n)),
    old: (log, n) => {
      const treeSize = 1 + below(log.size, n);
      log.inclusionProofJson(below(treeSize, n, 1), { treeSize });
    },
  },
  consistency: {
    head: (log, n) => log.consistencyProof(1 + below(log.size, n)),
    old: (log, n) => {
      const to = 1 + below(log.size, n);
      log.consistencyProof(1 + below(to, n, 1), to);
    },
  },
};
export type At = "head" | "old";

const below = (limit: number, n: number, seed = 0): number => scattered(n, seed) % limit;

export type Size = "small" | "large";
export interface SearchFigures {
  /** How many entries match; null where the search is refused because too many do. */
  readonly matches: Record<Size, number | null>;
  /** CPU milliseconds, by rounds. */
  readonly ms: Record<Size, number[]>;
}
/** CPU microseconds of one proof, by rounds. */
export type ProofFigures = Record<Size, Record<At, number[]>>;

export interface Reads {
  readonly searches: Record<string, SearchFigures>;
  readonly proofs: Record<string, ProofFigures>;
}

/** What is measured: of these logs, which end with heads by this key. */
export interface ReadsTask {
  readonly paths: Record<Size, string>;
  readonly operatorKey: string;
  readonly rounds: number;
  readonly searches: boolean;
  readonly proofs: boolean;
}

function countOf(log: LogReader, criteria: Criteria): number | null {
  try {
    return log.match(criteria, 0, PAGE).total;
  } catch (error) {
    if ((error as { code?: string }).code === "invalid-input") return null;
    throw error;
  }
}

/** CPU milliseconds of one search. */
function searchMs(log: LogReader, criteria: Criteria): number {
  const before = process.cpuUsage();
  const until = performance.now() + SEARCH_MS;
  let times = 0;
  do {
    countOf(log, criteria);
    times++;
  } while (performance.now() < until);
  return cpuMicros(before) / times / 1000;
}

const SIZES = ["small", "large"] as const;
const both = <T>(make: (size: Size) => T): Record<Size, T> => ({ small: make("small"), large: make("large") });

async function measure({ paths, operatorKey, rounds, ...wanted }: ReadsTask): Promise<Reads> {
  const open = (size: Size) => openLogReader({ path: paths[size], operatorKey });
  const logs = { small: await open("small"), large: await open("large") };
  const searches: Reads["searches"] = {};
  const proofs: Reads["proofs"] = {};
  for (const [name, criteria] of Object.entries(wanted.searches ? SEARCHES : {}))
    searches[name] = { matches: both((size) => countOf(logs[size], criteria)), ms: both(() => []) };
  for (const name of wanted.proofs ? Object.keys(PROOF_KINDS) : []) proofs[name] = both(() => ({ head: [], old: [] }));
  // The first round compiles code and fills caches.
  for (let round = 0; round <= rounds; round++)
    for (const size of SIZES) {
      const log = logs[size];
      for (const [name, { ms }] of Object.entries(searches)) {
        const taken = searchMs(log, SEARCHES[name]!);
        if (round) ms[size].push(taken);
      }
      for (const [name, figures] of Object.entries(proofs))
        for (const [at, prove] of Object.entries(PROOF_KINDS[name]!)) {
          const before = process.cpuUsage();
          for (let i = 0; i < PROOFS; i++) prove(log, round * PROOFS + i);
          if (round) figures[size][at as At].push(cpuMicros(before) / PROOFS);
        }
    }
  await Promise.all(SIZES.map((size) => logs[size].close()));
  return { searches, proofs };
}

export async function measureReads(task: ReadsTask): Promise<Reads> {
  const child = startChild(new URL(import.meta.url));
  try {
    return await child.ask<Reads>(task);
  } finally {
    await child.close();
  }
}

if (process.argv[1] === import.meta.filename) answerOrders(measure);
