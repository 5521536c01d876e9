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
import { probed, type Turn, takeTurnsOf } from "../turns/turns.js";
import { BESIDE, type Beside, urlsOf } from "./beside.js";
import { changeLog } from "./log.js";

const ENTRIES = 1_000_000;
/** Rates, as shares of what the machine reaches with a request at a time on each connection. */
const SHARES = { third: 1 / 3, "two thirds": 2 / 3 } as const;
type Share = keyof typeof SHARES;
const CONNECTIONS = 64;
/** Requests that a service and its clients compile their code with, before anything is measured. */
const WARM_UP = 20_000;
/** Requests of the end of them that show the machine's rate. */
const SHOWN = 10_000;
const SECONDS = 8;
/** Milliseconds at the beginning of a load that do not count: its client compiles its code. */
const UNCOUNTED_MS = 2_000;
const WEBHOOKS = 200;

/** One load. */
interface Tail {
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
}

interface Stage {
  readonly folder: string;
  readonly receivers: Receivers;
  readonly options: SuiteOptions;
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
  vkey: string;
}

const QUIET: Beside = { name: "nothing" };

const loadOf = (stage: Stage, { port }: Service, secure: boolean) => ({
  port,
  secure,
  clients: 1,
  connections: CONNECTIONS,
  name: `tails ${++stage.loads} ${stage.folder}`,
});

/** Closed loop. @returns answers a second, when all code is compiled */
async function warmUp(stage: Stage, service: Service, { secure = false }: Beside): Promise<number> {
  const load = await prepareLoad({ ...loadOf(stage, service, secure), requests: WARM_UP });
  const { answers } = await load.run();
  const last = answers.slice(-SHOWN);
  return (1_000 * (last.length - 1)) / (last.at(-1)!.at - last[0]!.at);
}

/** Open loop. */
async function measure(stage: Stage, service: Service, turnsAt: string, rate: number, secure = false): Promise<Tail> {
  const load = await prepareLoad({ ...loadOf(stage, service, secure), requests: Math.ceil(rate * SECONDS), rate });
  await takeTurnsOf(turnsAt);
  const { answers, statuses } = await load.run();
  const turns = await takeTurnsOf(turnsAt);
  const latencies = answers
    .filter(({ at }) => at > UNCOUNTED_MS)
    .map(({ latency }) => latency)
    .sort((a, b) => a - b);
  const [p50, p99, p999] = [0.5, 0.99, 0.999].map((share) => percentile(latencies, share));
  const { 200: _, ...others } = statuses;
  return { p50: p50!, p99: p99!, p999: p999!, refused: Object.values(others).reduce((sum, n) => sum + n, 0), turns };
}

/** One service: attestations alone, if it has no settings of its own, and beside something, at each rate. */
async function run(stage: Stage, ground: Ground, beside: Beside): Promise<void> {
  const { dataDir, entries } = ground;
  const folder = mkdtempSync(join(stage.folder, "beside-"));
  const urls = urlsOf(stage.receivers, beside);
  if (urls.length) await changeLog({ kind: "subscribe", dataDir, count: WEBHOOKS, urls });
  const made = await beside.settings?.(folder, ground.vkey);
  const turnsAt = join(folder, "turns");
  const environment = {
    SERVICE_WEBHOOK_ALLOW_PRIVATE: "on",
    SERVICE_OTS_CALENDARS: "",
    ...made?.environment,
    ...probed(CHECKOUT, turnsAt, stage.options.profile),
  };
  const service = await startService({ checkout: CHECKOUT, dataDir, environment });
  try {
    const rate = await warmUp(stage, service, beside);
    ground.rate ||= rate;
    ground.vkey ||= (await (await fetch(`http://127.0.0.1:${service.port}/tlog/vkey`)).text()).trim();
    const isPlain = !beside.settings && !urls.length;
    for (const share of Object.keys(SHARES) as Share[]) {
      const one = async (name: string) => {
        const at = ground.rate * SHARES[share];
        const tail = await measure(stage, service, turnsAt, at, beside.secure);
        const result: Result = { entries, beside: name, share, rate: at, ...tail };
        print(result);
        stage.results.push(result);
      };
      if (isPlain) await one(QUIET.name);
      if (beside === QUIET) continue;
      const end = await beside.begin?.({ service, dataDir, folder });
      await one(beside.name);
      await end?.();
    }
  } finally {
    await service.close();
    await made?.end();
    if (urls.length) await changeLog({ kind: "unsubscribe", dataDir });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The longest turn of the threads whose name begins so. */
function longest({ turns }: Tail, isOne: (thread: string) => boolean): Turn | undefined {
  return turns.filter(({ thread }) => isOne(thread)).sort((a, b) => b.milliseconds - a.milliseconds)[0];
}

const isWriter = (thread: string) => thread === "main";
const isFront = (thread: string) => thread.startsWith("front-");
const KINDS = { writer: isWriter, front: isFront, other: (thread: string) => !isWriter(thread) && !isFront(thread) };
/** Milliseconds of a turn whose stack is printed, if there is a profile. */
const LONG_MS = 15;

function print(result: Result): void {
  const { beside, share, rate, p50, p99, p999, refused } = result;
  const turns = Object.entries(KINDS).map(([kind, isOne]) => [kind, longest(result, isOne)] as const);
  const shown = turns.map(([kind, turn]) => `${kind} ${turn?.milliseconds.toFixed(1) ?? "-"}`).join(", ");
  const times = [p50, p99, p999].map((value) => value.toFixed(1)).join(" / ");
  console.log(
    `${beside}, a ${share} (${rate.toFixed(0)}/s): ${times} ms; turns: ${shown} ms${refused ? `; ${refused} refused` : ""}`,
  );
  for (const [kind, turn] of turns)
    if (turn && turn.milliseconds > LONG_MS)
      for (const [name, ms] of turn.stack) console.log(`    ${kind} ${ms.toFixed(1).padStart(6)} ${name}`);
}

/** The results of one log, with each p99.9 beside that of the quiet log. */
function table(results: readonly Result[]): void {
  const quiet = (share: Share) =>
    median(results.filter((one) => one.share === share && one.beside === QUIET.name).map(({ p999 }) => p999));
  const groups = new Map<string, Result[]>();
  for (const one of results) {
    const name = `${one.beside}, ${one.share}`;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  console.log(`\n${results[0]?.entries.toLocaleString("en")} entries before; milliseconds; turns are processor time`);
  console.table(
    Object.fromEntries(
      [...groups].map(([name, all]) => {
        const middle = (of: (one: Result) => number) => median(all.map(of)).toFixed(1);
        const most = (isOne: (thread: string) => boolean) =>
          Math.max(...all.map((one) => longest(one, isOne)?.milliseconds ?? 0)).toFixed(1);
        return [
          name,
          {
            p50: middle(({ p50 }) => p50),
            p99: middle(({ p99 }) => p99),
            "p99.9": middle(({ p999 }) => p999),
            "/ quiet": (median(all.map(({ p999 }) => p999)) / quiet(all[0]!.share)).toFixed(2),
            "writer's turn": most(KINDS.writer),
            "front end's": most(KINDS.front),
            "another's": most(KINDS.other),
          },
        ];
      }),
    ),
  );
}

export const suite: Suite = {
  summary: "latencies at a constant rate, and the longest turn of each thread, beside all else that a service does",
  async run(options) {
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const stage: Stage = { folder, receivers: await openReceivers(), options, results: [], loads: 0 };
    const chosen = BESIDE.filter(({ name }) => name.includes(options.only ?? ""));
    try {
      for (const entries of [0, options.entries ?? ENTRIES]) {
        const dataDir = join(folder, `log-${entries}`);
        mkdirSync(dataDir, { mode: 0o700 });
        await changeLog({ kind: "fill", dataDir, entries });
        const ground: Ground = { dataDir, entries, rate: 0, vkey: "" };
        await run(stage, ground, QUIET);
        for (let round = 0; round < (options.rounds ?? 1); round++)
          for (const beside of chosen) await run(stage, ground, beside);
        table(stage.results.filter((one) => one.entries === entries));
        rmSync(dataDir, { recursive: true, force: true });
      }
      return stage.results;
    } finally {
      await stage.receivers.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
