/**
 * What 64 appends in flight cost at a leader, and at a service without replication, in turns; and how late a follower is
 * meanwhile, and what an entry costs it. All of them share the machine with PostgreSQL and the load generator.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Generator } from "../../bench/front/generator.js";
import { cpuOfProcess } from "../../bench/front/threads.js";
import { median, ratios } from "../../bench/stats.js";
import { DIST } from "../reliability/planted.js";
import { Node } from "./rig/node.js";
import type { Rig } from "./rig/rig.js";
import { freePorts } from "./servers/cluster.js";

const CONNECTIONS = 64;
const TURNS = 9;
const APPENDS = 4_000;
/** Milliseconds between two looks at how far the leader and the follower are, and the longest wait for the follower. */
const LOOK_MS = 20;
const PATIENCE_MS = 60_000;

export interface Throughput {
  /** Appends a second, at the median of the turns. */
  readonly alone: number;
  readonly replicated: number;
  /** The rate at the leader over that of the service in the same turn: all turns. */
  readonly share: readonly number[];
  /** Microseconds of CPU of all threads: an append at the service, at the leader, an entry at the follower. */
  readonly aloneMicros: number;
  readonly leaderMicros: number;
  readonly followerMicros: number;
  /** Milliseconds from the moment that the leader showed a size until the follower did. */
  readonly lags: readonly number[];
}

/** A service without replication, on the same machine. */
export async function startAlone(rig: Rig): Promise<Node> {
  const folder = join(rig.cluster.folder, "alone");
  mkdirSync(folder, { mode: 0o700 });
  const [port] = await freePorts(1);
  const { SERVICE_OPERATOR_KEY: operatorKey } = (await rig.leader()).environment;
  const environment = { SERVICE_REPLICATION: "", SERVICE_NODE_URL: "" };
  const place = { name: "alone", folder, port: port!, dist: DIST, journal: "", operatorKey: operatorKey!, environment };
  const alone = new Node(place);
  await alone.start();
  return alone;
}

export async function measureThroughput(rig: Rig, alone: Node): Promise<Throughput> {
  const leader = await rig.leader();
  const follower = rig.nodes.find((node) => node !== leader)!;
  const generator = new Generator();
  const [own, replicated, lags]: [Turn[], Turn[], number[]] = [[], [], []];
  const followed: number[] = [];
  try {
    // The first turn fills caches and has code compiled, and does not count.
    for (let turn = 0; turn <= TURNS; turn++) {
      await generator.sign({ attestations: APPENDS, name: `turn ${turn}` });
      // It is looked at as often as the leader, which costs it as much.
      const lookedAt = sampleLag(alone, alone, []);
      const first = await post(generator, alone, APPENDS);
      await lookedAt();
      const late: number[] = [];
      const { cpu, result } = await cpuOfProcess(follower.pid!, async () => {
        const sampled = sampleLag(leader, follower, late);
        const posted = await post(generator, leader, APPENDS);
        await sampled();
        return posted;
      });
      if (turn === 0) continue;
      own.push(first);
      replicated.push(result);
      lags.push(...late);
      followed.push(cpu.all / APPENDS);
    }
  } finally {
    await generator.close();
  }
  const of = (turns: readonly Turn[], what: keyof Turn) => turns.map((turn) => turn[what]);
  return {
    alone: median(of(own, "rate")),
    replicated: median(of(replicated, "rate")),
    share: ratios(of(replicated, "rate"), of(own, "rate")),
    aloneMicros: median(of(own, "micros")),
    leaderMicros: median(of(replicated, "micros")),
    followerMicros: median(followed),
    lags,
  };
}

interface Turn {
  /** Appends a second. */
  readonly rate: number;
  /** Microseconds of CPU for each, of all threads. */
  readonly micros: number;
}

/** Sends what the generator has signed. @param appends number of them, each of which must be answered with success */
export async function post(generator: Generator, node: Node, appends: number): Promise<Turn> {
  const { cpu, result } = await cpuOfProcess(node.pid!, () =>
    generator.post(Number(new URL(node.url).port), CONNECTIONS),
  );
  const { seconds, statuses } = result;
  if (statuses[200] !== appends) throw new Error(`${node.name} answered ${JSON.stringify(statuses)}`);
  return { rate: appends / seconds, micros: cpu.all / appends };
}

/** How many entries a node shows; undefined if it does not answer. */
export const sizeOf = async (node: Node): Promise<number | undefined> =>
  (await node.ask("/api/v1/log/head"))?.body?.entry_count as number | undefined;

/** Looks at both until the returned function is called and the follower has everything. */
function sampleLag(leader: Node, follower: Node, into: number[]): () => Promise<void> {
  const due: { readonly size: number; readonly at: number }[] = [];
  let isOver = false;
  let newest = 0;
  let end = Number.POSITIVE_INFINITY;
  const looking = (async () => {
    for (; !isOver || due.length; await sleep(LOOK_MS)) {
      const [size, shown] = await Promise.all([sizeOf(leader), sizeOf(follower)]);
      const at = performance.now();
      while (due.length && shown !== undefined && due[0]!.size <= shown) into.push(at - due.shift()!.at);
      if (size !== undefined && size > newest) {
        newest = size;
        if (shown !== undefined && shown >= size) into.push(0);
        else due.push({ size, at });
      }
      if (at > end) throw new Error(`${follower.name} does not show ${due[0]?.size} entries`);
    }
  })();
  return async () => {
    isOver = true;
    end = performance.now() + PATIENCE_MS;
    await looking;
  };
}
