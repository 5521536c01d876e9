/**
 * Latencies of attestations that arrive at a constant rate, and the longest turn of each thread, beside everything else that a
 * service does. A latency is counted from the scheduled time of its request, so a stall counts for all requests that it delays.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CHECKOUT, type Service, startService } from "../front/service.js";
import { percentile, prepareLoad } from "../load/generator.js";
import { median } from "../stats.js";
import { openReceivers, type Receivers } from "../strangers/receivers.js";
import type { Suite, SuiteOptions } from "../suite.js";
import { probed, takeTurnsOf } from "../turns/turns.js";
import { BESIDE, type Beside } from "./beside.js";
import { changeLog } from "./log.js";
import { checkComplete, print, QUIET, type Result, SHARES, type Share, type Tail, table } from "./report.js";

const CONNECTIONS = 64;
const WEBHOOKS = 200;

/** How much is measured. */
interface Scale {
  /** Of each log, before. */
  readonly entries: readonly number[];
  /** Requests that a service and its clients compile their code with, before anything is measured. */
  readonly warmUp: number;
  readonly shares: readonly Share[];
  readonly seconds: number;
  /** Milliseconds at the beginning of a load that do not count: its client compiles its code. */
  readonly uncountedMs: number;
  readonly rounds: number;
  readonly idleConnections: number;
}

const whole = ({ entries = 1_000_000, rounds = 3 }: SuiteOptions): Scale => ({
  entries: [0, entries],
  warmUp: 20_000,
  shares: ["third", "two thirds"],
  seconds: 8,
  uncountedMs: 2_000,
  rounds,
  idleConnections: 5_000,
});

/** Shows in half a minute that everything runs. Its figures mean nothing. */
const SHORT: Scale = {
  entries: [2_000],
  warmUp: 500,
  shares: ["two thirds"],
  seconds: 0.5,
  uncountedMs: 0,
  rounds: 1,
  idleConnections: 200,
};

interface Stage {
  readonly folder: string;
  readonly receivers: Receivers;
  readonly scale: Scale;
  readonly profile: boolean;
  readonly results: Result[];
  /** Number of loads so far: none sends what another one has sent. */
  loads: number;
}

/** A log, and what was found out about it. */
interface Ground {
  readonly dataDir: string;
  readonly entries: number;
  /** Attestations a second that the machine reaches. */
  rate: number;
  /** By rate, 99.9 % of the latencies in this round. */
  readonly quiet: Record<Share, number[]>;
  vkey: string;
}

/** Whether it can happen at one service with others. */
const isPlain = ({ settings, receivers, isLasting }: Beside): boolean => !settings && !receivers && !isLasting;

const loadOf = (stage: Stage, { port }: Service, secure: boolean) => ({
  port,
  secure,
  clients: 1,
  connections: CONNECTIONS,
  name: `tails ${++stage.loads} ${stage.folder}`,
});

/** Closed loop. @returns answers a second, when all code is compiled */
async function warmUp(stage: Stage, service: Service, secure: boolean): Promise<number> {
  const load = await prepareLoad({ ...loadOf(stage, service, secure), requests: stage.scale.warmUp });
  const { answers } = await load.run();
  const last = answers.slice(answers.length / 2);
  return (1_000 * (last.length - 1)) / (last.at(-1)!.at - last[0]!.at);
}

/** Open loop. */
async function measure(stage: Stage, service: Service, turnsAt: string, rate: number, secure: boolean): Promise<Tail> {
  const { seconds, uncountedMs } = stage.scale;
  const load = await prepareLoad({ ...loadOf(stage, service, secure), requests: Math.ceil(rate * seconds), rate });
  await takeTurnsOf(turnsAt);
  const { answers, statuses } = await load.run();
  const turns = await takeTurnsOf(turnsAt);
  const latencies = answers
    .filter(({ at }) => at > uncountedMs)
    .map(({ latency }) => latency)
    .sort((a, b) => a - b);
  const [p50, p99, p999] = [0.5, 0.99, 0.999].map((share) => percentile(latencies, share));
  const { 200: _, ...others } = statuses;
  return { p50: p50!, p99: p99!, p999: p999!, refused: Object.values(others).reduce((sum, n) => sum + n, 0), turns };
}

/**
 * One service, and what happens at it in this order, at each rate; null is nothing. It has the settings that the first one of them
 * needs.
 */
async function run(stage: Stage, ground: Ground, steps: readonly (Beside | null)[]): Promise<void> {
  const { dataDir, entries } = ground;
  const { scale } = stage;
  const folder = mkdtempSync(join(stage.folder, "beside-"));
  const { settings, receivers, secure = false } = steps[0] ?? {};
  const urls = receivers ? stage.receivers[receivers] : [];
  if (urls.length) await changeLog({ kind: "subscribe", dataDir, count: WEBHOOKS, urls });
  const made = await settings?.(folder, ground.vkey);
  const turnsAt = join(folder, "turns");
  const environment = {
    SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
    SERVICE_OTS_CALENDARS: "",
    ...made?.environment,
    ...probed(CHECKOUT, turnsAt, stage.profile),
  };
  const service = await startService({ checkout: CHECKOUT, dataDir, environment });
  try {
    const reached = await warmUp(stage, service, secure);
    ground.rate ||= reached;
    ground.vkey ||= (await (await fetch(`http://127.0.0.1:${service.port}/tlog/vkey`)).text()).trim();
    for (const share of scale.shares) {
      const rate = ground.rate * SHARES[share];
      const quiet = ground.quiet[share];
      for (const beside of steps) {
        const end = await beside?.begin({ service, dataDir, folder, idleConnections: scale.idleConnections });
        const tail = await measure(stage, service, turnsAt, rate, secure);
        const pieces = (await end?.()) ?? 0;
        if (!beside) quiet.push(tail.p999);
        // Where nothing was measured alone just before, all that was in this round counts.
        const ratio = tail.p999 / (steps[0] ? median(quiet) : quiet.at(-1)!);
        const result: Result = { entries, beside: beside?.name ?? QUIET, share, rate, ratio, pieces, ...tail };
        print(result);
        stage.results.push(result);
      }
    }
  } finally {
    await service.close();
    await made?.end();
    if (urls.length) await changeLog({ kind: "unsubscribe", dataDir });
    rmSync(folder, { recursive: true, force: true });
  }
}

export const suite: Suite = {
  summary: "latencies at a constant rate, and the longest turn of each thread, beside all else that a service does",
  async run(options) {
    const scale = options.short ? SHORT : whole(options);
    const chosen = BESIDE.filter(({ name }) => name.includes(options.only ?? ""));
    const [plain, special] = [chosen.filter(isPlain), chosen.filter((one) => !isPlain(one))];
    // Alone, beside something, alone again: other load of the machine counts on both sides.
    const services = [plain.length ? plain.flatMap((one) => [null, one]) : [null], ...special.map((one) => [one])];
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const receivers = await openReceivers();
    const stage: Stage = { folder, receivers, scale, profile: options.profile ?? false, results: [], loads: 0 };
    try {
      for (const entries of scale.entries) {
        const dataDir = join(folder, `log-${entries}`);
        mkdirSync(dataDir, { mode: 0o700 });
        await changeLog({ kind: "fill", dataDir, entries });
        const ground: Ground = { dataDir, entries, rate: 0, vkey: "", quiet: { third: [], "two thirds": [] } };
        for (let round = 0; round < scale.rounds; round++) {
          for (const share of scale.shares) ground.quiet[share] = [];
          for (const steps of services) await run(stage, ground, steps);
        }
        table(stage.results.filter((one) => one.entries === entries));
        rmSync(dataDir, { recursive: true, force: true });
      }
      const rows = (plain.length * 2 || 1) + special.length;
      checkComplete(stage.results, rows * scale.entries.length * scale.shares.length * scale.rounds);
      return stage.results;
    } finally {
      await receivers.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
