/**
 * `npm run cluster -- --measure`: how long nobody can append after a node or the primary is lost, how late a follower is,
 * and what an append costs. Nothing is between nodes and servers here.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describeMachine } from "../../bench/machine.js";
import { quantile, spread as spell } from "../../bench/stats.js";
import { DIST } from "../reliability/planted.js";
import { Random } from "../reliability/random.js";
import { newManifest, newSigner, submission } from "../server/signers.js";
import { type CatchUp, measureCatchUp } from "./catchup.js";
import { Facts } from "./check/facts.js";
import { Load, patient } from "./check/load.js";
import type { Node } from "./rig/node.js";
import { Rig } from "./rig/rig.js";
import { measureThroughput, startAlone, type Throughput } from "./throughput.js";

const WORKERS = 8;
/** Appends one after the other, and pauses between those of an idle log, in milliseconds. */
const LONE = 200;
const IDLE = 20;
const IDLE_MS = [300, 900] as const;
const LOAD_MS = 15_000;
const CALM_MS = 2_000;
const LOOK_MS = 5;

export type Spread = Readonly<Record<"p50" | "p99" | "most", number>>;

export interface Measured {
  readonly machine: ReturnType<typeof describeMachine>;
  /** From the end of a leader to the first append that another node acknowledges. */
  readonly leaderKilled: Spread;
  /** From the command to promote a standby to the first append that is acknowledged; its primary was killed before. */
  readonly primaryPromoted: Spread;
  /** From the acknowledgement of an append to the follower's showing it. */
  readonly lagUnderLoad: Spread;
  readonly lagIdle: Spread;
  readonly throughput: Throughput;
  readonly catchUp: CatchUp;
  /** One append at a time, as its client sees it: at the leader, and in turns at a service without replication. */
  readonly lone: Spread;
  readonly loneAlone: Spread;
  /** What the leader says of these: seconds of the append and of the read-back, in all, in milliseconds on average. */
  readonly loneInJournal: { readonly append: number; readonly readBack: number };
}

/** @param times number of leaders and of primaries that are killed */
export async function measure(times: number, seed: number): Promise<Measured> {
  const rig = await Rig.start({ dist: DIST });
  try {
    const scene = new Measurement(rig, seed);
    const machine = describeMachine();
    const alone = await startAlone(rig);
    const { lone, loneAlone, loneInJournal } = await scene.lone(alone);
    const throughput = await measureThroughput(rig, alone);
    await alone.stop();
    const catchUp = await measureCatchUp(rig);
    const lagIdle = await scene.lag((signal) => scene.idle(signal));
    const lagUnderLoad = await scene.lag((signal) => scene.loadFor(LOAD_MS, signal));
    const leaderKilled: number[] = [];
    const primaryPromoted: number[] = [];
    for (let i = 0; i < times; i++) {
      leaderKilled.push(await scene.killLeader());
      primaryPromoted.push(await scene.losePrimary());
    }
    return {
      ...{ machine, lone, loneAlone, loneInJournal, throughput, catchUp, lagIdle, lagUnderLoad },
      ...{ leaderKilled: spread(leaderKilled), primaryPromoted: spread(primaryPromoted) },
    };
  } finally {
    await rig.remove();
  }
}

class Measurement {
  readonly #rig: Rig;
  readonly #facts = new Facts();
  readonly #load: Load;
  readonly #seed: number;
  readonly #signer = newSigner();

  constructor(rig: Rig, seed: number) {
    this.#rig = rig;
    this.#seed = seed;
    this.#load = new Load(rig.nodes, this.#facts);
  }

  load(signal: AbortSignal): Promise<void> {
    return this.#load.work(WORKERS, new Random(this.#seed), signal);
  }

  async loadFor(milliseconds: number, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const load = this.load(stop.signal);
    await sleep(milliseconds, undefined, { signal });
    stop.abort();
    await load;
  }

  async #append(nodes: readonly Node[]): Promise<void> {
    const client = patient(nodes, this.#facts, this.#seed, AbortSignal.timeout(60_000));
    if (!(await this.#load.send(client, submission(this.#signer, newManifest())))) throw new Error("no append in 60 s");
  }

  async lone(alone: Node): Promise<Pick<Measured, "lone" | "loneAlone" | "loneInJournal">> {
    const leader = await this.#rig.leader();
    const sums = async () => {
      const text = String((await leader.ask("/metrics"))!.body);
      const of = (name: string) =>
        Number(new RegExp(`^cairnlog_replication_${name}_seconds_sum (.+)$`, "m").exec(text)![1]);
      return { append: of("append"), readBack: of("readback") };
    };
    for (let i = 0; i < LONE / 10; i++) await this.#append([leader]);
    const timed = async ({ url }: Node): Promise<number> => {
      const body = JSON.stringify(submission(this.#signer, newManifest()));
      const began = performance.now();
      const response = await fetch(`${url}/api/v1/attestations`, { method: "POST", body });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`POST /attestations: ${response.status}`);
      return performance.now() - began;
    };
    for (let i = 0; i < LONE / 10; i++) await timed(alone);
    const before = await sums();
    const [took, tookAlone]: [number[], number[]] = [[], []];
    for (let i = 0; i < LONE; i++) {
      took.push(await timed(leader));
      tookAlone.push(await timed(alone));
    }
    const after = await sums();
    const average = (name: "append" | "readBack") => round(((after[name] - before[name]) * 1000) / LONE);
    const loneInJournal = { append: average("append"), readBack: average("readBack") };
    return { lone: spread(took), loneAlone: spread(tookAlone), loneInJournal };
  }

  /** Appends now and then. */
  async idle(signal: AbortSignal): Promise<void> {
    const random = new Random(this.#seed);
    const leader = await this.#rig.leader();
    for (let i = 0; i < IDLE && !signal.aborted; i++) {
      await this.#append([leader]);
      await sleep(random.between(...IDLE_MS));
    }
  }

  /** How much later than its acknowledgement the follower shows each append that `work` makes. */
  async lag(work: (signal: AbortSignal) => Promise<void>): Promise<Spread> {
    const leader = await this.#rig.leader();
    const follower = this.#rig.nodes.find((node) => node !== leader)!;
    const known = new Set(this.#facts.receipts.keys());
    const shown: { readonly size: number; readonly at: number }[] = [];
    const stop = new AbortController();
    const looks = (async () => {
      for (; !stop.signal.aborted; await sleep(LOOK_MS)) {
        const size = (await follower.ask("/api/v1/log/sth"))?.body?.tree_size as number | undefined;
        if (size !== undefined && size !== shown.at(-1)?.size) shown.push({ size, at: performance.now() });
      }
    })();
    await work(stop.signal);
    await sleep(CALM_MS);
    stop.abort();
    await looks;
    const late: number[] = [];
    for (const [document, { leaf_index }] of this.#facts.receipts) {
      if (known.has(document)) continue;
      const seen = shown.find(({ size }) => size > leaf_index);
      if (!seen) throw new Error(`the follower does not show leaf ${leaf_index}`);
      late.push(Math.max(0, seen.at - this.#facts.answeredAt.get(document)!));
    }
    return spread(late);
  }

  async killLeader(): Promise<number> {
    const leader = await this.#rig.leader();
    return this.#underLoad(async () => {
      await leader.kill();
      return performance.now();
    });
  }

  async losePrimary(): Promise<number> {
    const { cluster } = this.#rig;
    return this.#underLoad(async () => {
      await cluster.primary.kill();
      const next = await cluster.newest();
      const began = performance.now();
      await cluster.promote(next);
      return began;
    });
  }

  /** Milliseconds from the moment that `harm` names to the next append. */
  async #underLoad(harm: () => Promise<number>): Promise<number> {
    const stop = new AbortController();
    const load = this.load(stop.signal);
    await sleep(CALM_MS);
    const since = await harm();
    const next = () => [...this.#facts.answeredAt.values()].find((at) => at > since);
    while (next() === undefined) await sleep(LOOK_MS);
    const gap = next()! - since;
    await this.#rig.restore();
    stop.abort();
    await load;
    if (this.#facts.problems.length) throw new Error(this.#facts.problems.join("\n"));
    return gap;
  }
}

const round = (value: number): number => Number(value.toFixed(1));

const spread = (values: readonly number[]): Spread => ({
  p50: round(quantile(values, 0.5)),
  p99: round(quantile(values, 0.99)),
  most: round(Math.max(...values)),
});

export function printMeasured({ machine, loneInJournal, throughput, catchUp, ...measured }: Measured): void {
  const { cpu, cpus, node, loadAverage } = machine;
  console.log(`${cpu}, ${cpus} CPUs, Node ${node}, load average ${loadAverage.join(" ")}`);
  const names: Record<keyof typeof measured, string> = {
    leaderKilled: "from the end of a leader to the next append",
    primaryPromoted: "from the command to promote to the next append",
    lagUnderLoad: "until a follower shows an append, under load",
    lagIdle: "until a follower shows an append, on an idle log",
    lone: "an append, one at a time",
    loneAlone: "an append, one at a time, without replication",
  };
  for (const [key, name] of Object.entries(names)) {
    const { p50, p99, most } = measured[key as keyof typeof measured];
    console.log(`${name}: ${p50} ms at the median, ${p99} at p99, ${most} at most`);
  }
  const { alone, replicated, share, aloneMicros, leaderMicros, followerMicros, lags } = throughput;
  console.log(
    `64 in flight: ${replicated.toFixed(0)} appends a second, ${alone.toFixed(0)} without replication, ` +
      `${spell(share, 2)} of that; ${leaderMicros.toFixed(0)} and ${aloneMicros.toFixed(0)} µs of CPU an append, ` +
      `${followerMicros.toFixed(0)} µs an entry at the follower, which shows it after ${quantile(lags, 0.5).toFixed(0)} ms ` +
      `at the median, ${quantile(lags, 0.99).toFixed(0)} at p99`,
  );
  console.log(
    `a node that starts empty, with ${catchUp.entries} entries in the journal: ${catchUp.rate.toFixed(0)} a second, ` +
      `${spell(catchUp.micros, 0)} µs of CPU for each`,
  );
  console.log(
    `the journal's part, on average: ${loneInJournal.append} ms, ${loneInJournal.readBack} ms of them for the read-back`,
  );
}
