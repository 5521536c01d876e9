/**
 * How fast a node that starts empty applies what is in the journal, and what an entry costs it: between the first third
 * of the entries, by which most of its code is compiled, and the last of them. Nobody appends meanwhile.
 */
import { mkdirSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Generator } from "../../bench/front/generator.js";
import { cpuNow } from "../../bench/front/threads.js";
import { median } from "../../bench/stats.js";
import type { Node } from "./rig/node.js";
import type { Rig } from "./rig/rig.js";
import { post, sizeOf } from "./throughput.js";

/** Appends before it starts, beside those that are there. */
const APPENDS = 150_000;
/** A look has the node spell all of its metrics, which costs it a millisecond. */
const LOOK_MS = 250;
const PATIENCE_MS = 120_000;
/** The first two touch memory that the machine has not used before, which costs them up to a fifth more. */
const TIMES = 5;

export interface CatchUp {
  readonly entries: number;
  /** Entries a second, at the median. */
  readonly rate: number;
  /** Microseconds of CPU for each, of all threads of the node, each time. */
  readonly micros: readonly number[];
}

/** How many entries a node has. One that is late refuses all reads of the log, but not this one. */
async function appliedBy(node: Node): Promise<number | undefined> {
  const found = /^cairnlog_log_entries (\d+)$/m.exec(String((await node.ask("/metrics"))?.body));
  return found ? Number(found[1]) : undefined;
}

export async function measureCatchUp(rig: Rig): Promise<CatchUp> {
  const leader = await rig.leader();
  const follower = rig.nodes.find((node) => node !== leader)!;
  await follower.stop();
  const generator = new Generator();
  try {
    await generator.sign({ attestations: APPENDS, name: "to catch up with" });
    await post(generator, leader, APPENDS);
  } finally {
    await generator.close();
  }
  const entries = (await sizeOf(leader))!;
  const all: { readonly rate: number; readonly micros: number }[] = [];
  for (let time = 0; time < TIMES; time++) {
    await follower.stop();
    rmSync(follower.dataDir, { recursive: true, force: true });
    mkdirSync(follower.dataDir, { mode: 0o700 });
    follower.launch();
    all.push(await appliedFrom(follower, entries));
  }
  return { entries, rate: median(all.map(({ rate }) => rate)), micros: all.map(({ micros }) => micros) };
}

async function appliedFrom(node: Node, entries: number): Promise<{ readonly rate: number; readonly micros: number }> {
  const until = performance.now() + PATIENCE_MS;
  let first: { readonly size: number; readonly at: number; readonly cpu: number } | undefined;
  for (; performance.now() < until; await sleep(LOOK_MS)) {
    const size = await appliedBy(node);
    if (size === undefined) continue;
    const sample = { size, at: performance.now(), cpu: cpuNow(node.pid!) };
    if (!first && size > entries / 3) first = sample;
    if (size < entries || !first || first.size >= entries) continue;
    const applied = size - first.size;
    return { rate: (applied / (sample.at - first.at)) * 1000, micros: (sample.cpu - first.cpu) / applied };
  }
  throw new Error(`${node.name} does not have the ${entries} entries of the journal`);
}
