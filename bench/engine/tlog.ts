/**
 * What the checkpoints at `/tlog/` cost: CPU of all threads for an append with 64 in flight, while a checkpoint is published
 * every ten seconds, as by default, and while none is, by two services in turns. Also how long a service needs for its first
 * checkpoint of a log that has none of the tree's nodes, which gives the cost of the nodes alone.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningServer, readSettings, startServer } from "cairnlog/server";
import { claim } from "../claim.js";
import { cpuMicros, median, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";

const LARGE = 1_000_000;
const IN_FLIGHT = 64;
const ROUNDS = 6;
/** As long as the seconds between two checkpoints, so that each turn has one. */
const TURN_MS = 10_000;
const BATCH = 512;
const OFTEN_S = "10";
/** As good as never: within a run it does not come. */
const NEVER_S = "3600";
const POLL_MS = 2;

function start(folder: string, interval: string): Promise<RunningServer> {
  return startServer(
    readSettings({
      PORT: "0",
      SERVICE_DATA_DIR: folder,
      SERVICE_FRONT_ENDS: "0",
      SERVICE_RATE_LIMITS: "off",
      SERVICE_CHECKPOINT_INTERVAL_S: interval,
      LOG_LEVEL: "silent",
    }),
  );
}

/** Appends for a while with 64 in flight. @returns microseconds of CPU for each */
async function turn({ registry: { writer } }: RunningServer, milliseconds: number): Promise<number> {
  const before = process.cpuUsage();
  const end = performance.now() + milliseconds;
  let appends = 0;
  const client = async () => {
    while (performance.now() < end) await writer.append(claim(`artifact ${appends++}`));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  return cpuMicros(before) / appends;
}

async function measureAppends(folder: string, rounds: number) {
  const often = await start(join(folder, "often"), OFTEN_S);
  const never = await start(join(folder, "never"), NEVER_S);
  const [published, silent]: [number[], number[]] = [[], []];
  try {
    for (let round = 0; round <= rounds; round++) {
      // Each is first in every other round.
      const inTurn = round % 2 ? [often, never] : [never, often];
      for (const service of inTurn) {
        const micros = await turn(service, TURN_MS);
        // The first round warms up compilers and caches.
        if (round > 0) (service === often ? published : silent).push(micros);
      }
    }
  } finally {
    await often.close();
    await never.close();
  }
  console.log(`\nAppends with ${IN_FLIGHT} in flight, CPU µs of all threads for each`);
  console.table({
    "a checkpoint every ten seconds": spread(published, 2),
    "no checkpoint": spread(silent, 2),
    ratio: spread(ratios(published, silent), 3),
  });
  return { published, silent };
}

/** Starts a service, and stops it when its checkpoint covers the log. */
async function untilCheckpoint(folder: string) {
  const before = process.cpuUsage();
  const started = performance.now();
  const service = await start(folder, NEVER_S);
  const entries = service.registry.log.size;
  try {
    for (;;) {
      const note = await fetch(`${service.url}/tlog/checkpoint`).then((answer) => answer.text());
      if (note.split("\n")[1] === String(entries)) break;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    return { entries, ms: performance.now() - started, cpuMs: cpuMicros(before) / 1000 };
  } finally {
    await service.close();
  }
}

/** @param append CPU µs of an append without checkpoints */
async function measureBackfill(folder: string, entries: number, append: number) {
  const filled = await start(folder, NEVER_S);
  const { log, writer } = filled.registry;
  try {
    while (log.size < entries)
      await writer.append(
        Array.from({ length: Math.min(BATCH, entries - log.size) }, (_, i) => claim(`artifact ${log.size + i}`)),
      );
  } finally {
    await filled.close();
  }
  const first = await untilCheckpoint(folder);
  const later = await untilCheckpoint(folder);
  const perEntry = ((first.cpuMs - later.cpuMs) * 1000) / entries;
  console.log(`\nFrom the start of a service with ${entries.toLocaleString("en")} entries to its checkpoint`);
  console.table({
    "no node is there, ms": first.ms.toFixed(0),
    "all nodes are there, ms": later.ms.toFixed(0),
    "CPU of the nodes for an entry, µs": perEntry.toFixed(2),
    "as a share of an append": `${((100 * perEntry) / append).toFixed(2)} %`,
  });
  return { first, later, perEntry };
}

export const suite: Suite = {
  summary: "checkpoints for other tools: cost of an append, and of the first one of a large log",
  async run({ entries = LARGE, rounds = ROUNDS }) {
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    try {
      const appends = await measureAppends(folder, rounds);
      // Code that makes nodes for the first time is not compiled yet. The log that had no checkpoints has none of them.
      const warm = await untilCheckpoint(join(folder, "never"));
      console.log(
        `\nBefore that, in ${warm.ms.toFixed(0)} ms: the checkpoint of ${warm.entries} entries, as a warm-up`,
      );
      return { appends, backfill: await measureBackfill(join(folder, "large"), entries, median(appends.silent)) };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
