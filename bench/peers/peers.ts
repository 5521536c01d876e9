/**
 * The same job by what a user would take instead: HTTP, JSON, the client's Ed25519 signature verified, an append with a
 * hash chain and a signed head for each entry, and an inclusion proof at once by GET. All contenders take turns with the
 * same requests. CPU is that of all processes of a contender, the database's too.
 */
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "../front/child.js";
import type { Sent } from "../front/generator.js";
import { CHECKOUT, startService } from "../front/service.js";
import { openStage, type Stage, takeTurns, WARM_ROUNDS } from "../front/stage.js";
import { cpuOfTrees, SETTLE_MS } from "../front/threads.js";
import { ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";
import { checkOurs, checkPeer } from "./check.js";
import { bytesByTable } from "./pages.js";
import { startPostgres } from "./pgserver.js";
import type { Kind, Listen, Listening } from "./server.js";

const ROUNDS = 7;
const ATTESTATIONS = 4_000;
/** Proofs that are asked for after each round, of entries of that round. */
const PROOFS = 2_000;
const CONNECTIONS = 64;
/** The unit in which the system counts what a file occupies. */
const BLOCK_BYTES = 512;
const OURS = "cairnlog";

/** What each lacks for the job, or does not do that cairnlog does for the same request. */
const LACKS: Readonly<Record<string, string>> = {
  [OURS]: "",
  sqlite:
    "index, registry, canonical JSON, duplicates, proofs of old heads; the tree is in memory, to be rebuilt at a start",
  postgres: "the same as sqlite",
  hypercore:
    "flushes nothing: not durable; index, registry, canonical JSON, duplicates; proofs only with its newest head",
};

interface Contender {
  readonly port: number;
  readonly pids: readonly number[];
  /** What holds its data, to be counted after it has stopped. */
  readonly folder: string;
  close(): Promise<void>;
}

/** Microseconds of CPU, attestations a second, and milliseconds from a request to its answer. */
interface Cost {
  /** Of an attestation and its proof. */
  readonly cpu: number;
  readonly appendCpu: number;
  readonly proofCpu: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/** Bytes of the files below a folder: neither holes nor space that is only set aside. */
function diskBytes(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => statSync(join(folder, name)));
  return files
    .filter((file) => file.isFile())
    .reduce((sum, { size, blocks }) => sum + Math.min(size, blocks * BLOCK_BYTES), 0);
}

async function startPeer(stage: Stage, kind: Kind): Promise<Contender | null> {
  const folder = join(stage.folder, kind);
  const server = kind === "postgres" ? await startPostgres(stage.folder) : null;
  if (kind === "postgres" && !server) return null;
  if (!server) mkdirSync(folder);
  const child = startChild(new URL("./server.js", import.meta.url));
  const listening = await child.ask<Listening>({ kind, folder } satisfies Listen);
  await checkPeer(kind, listening, stage.folder);
  return {
    port: listening.port,
    pids: server ? [child.pid, server.pid] : [child.pid],
    // Its log of writes is used again and does not grow with the entries.
    folder: server ? join(server.dataDir, "base") : folder,
    async close() {
      await child.ask("close");
      await child.close();
      await server?.close();
    },
  };
}

async function startOurs(stage: Stage): Promise<Contender> {
  const folder = join(stage.folder, OURS);
  const { pid, port, close } = await startService({ checkout: CHECKOUT, dataDir: folder });
  await checkOurs(port);
  return { port, pids: [pid], folder, close };
}

async function cpuOf(pids: readonly number[], work: () => Promise<Sent>): Promise<{ micros: number; sent: Sent }> {
  const before = cpuOfTrees(pids);
  const sent = await work();
  await sleep(SETTLE_MS);
  return { micros: cpuOfTrees(pids) - before, sent };
}

function measure({ generator }: Stage, { port, pids }: Contender): () => Promise<Cost> {
  let first = 0;
  const all = ({ statuses }: Sent, count: number) => {
    if (statuses[200] !== count) throw new Error(`answers by status: ${JSON.stringify(statuses)}`);
  };
  return async () => {
    const appends = await cpuOf(pids, () => generator.post(port, CONNECTIONS));
    all(appends.sent, ATTESTATIONS);
    const numbers = Array.from({ length: PROOFS }, (_, n) => first + n * (ATTESTATIONS / PROOFS));
    first += ATTESTATIONS;
    const proofs = await cpuOf(pids, () => generator.get(port, CONNECTIONS, "/api/v1/log/proof/", numbers));
    all(proofs.sent, PROOFS);
    const { seconds, p50, p99 } = appends.sent;
    const [appendCpu, proofCpu] = [appends.micros / ATTESTATIONS, proofs.micros / PROOFS];
    return {
      cpu: appendCpu + proofCpu,
      appendCpu,
      proofCpu,
      perSecond: ATTESTATIONS / seconds,
      p50,
      p99,
    };
  };
}

export const suite: Suite = {
  summary: "the same job on better-sqlite3, PostgreSQL and hypercore, in turns, each checked",
  async run({ rounds = ROUNDS }) {
    const stage = await openStage(rounds);
    const running = new Map<string, Contender>();
    try {
      running.set(OURS, await startOurs(stage));
      for (const kind of ["sqlite", "postgres", "hypercore"] as const) {
        const peer = await startPeer(stage, kind);
        if (peer) running.set(kind, peer);
        else console.log("PostgreSQL is not installed (Debian: apt-get install postgresql): its row is left out.");
      }
      const before = new Map([...running].map(([name, { folder }]) => [name, diskBytes(folder)]));
      const contenders = [...running].map(([name, contender]) => [name, measure(stage, contender)] as const);
      const costs: Record<string, Cost[]> = await takeTurns(rounds, Object.fromEntries(contenders), (round) =>
        stage.generator.sign({ attestations: ATTESTATIONS, name: `peers, round ${round}` }),
      );
      const entries = (WARM_ROUNDS + rounds) * ATTESTATIONS;
      const bytes = new Map<string, number>();
      for (const [name, contender] of running) {
        await contender.close();
        running.delete(name);
        bytes.set(name, (diskBytes(contender.folder) - before.get(name)!) / entries);
      }
      const column = (name: string, figure: keyof Cost) => costs[name]!.map((cost) => cost[figure]);
      console.table(
        Object.fromEntries(
          Object.keys(costs).map((name) => [
            name,
            {
              "CPU with proof, µs": spread(column(name, "cpu"), 0),
              "cairnlog's CPU / its": spread(ratios(column(OURS, "cpu"), column(name, "cpu")), 2),
              "append, µs": spread(column(name, "appendCpu"), 0),
              "proof, µs": spread(column(name, "proofCpu"), 0),
              "a second": spread(column(name, "perSecond"), 0),
              "p50, ms": spread(column(name, "p50")),
              "p99, ms": spread(column(name, "p99")),
              "bytes on disk": bytes.get(name)!.toFixed(0),
            },
          ]),
        ),
      );
      const parts = [...(await bytesByTable(join(stage.folder, OURS)))].filter(([, part]) => part >= entries);
      console.log("Where cairnlog's bytes of an attestation are:");
      console.table(Object.fromEntries(parts.map(([name, part]) => [name, { bytes: (part / entries).toFixed(0) }])));
      for (const [name, lacks] of Object.entries(LACKS))
        if (costs[name] && lacks) console.log(`${name} lacks: ${lacks}.`);
      return { costs, bytes: Object.fromEntries(bytes), lacks: LACKS };
    } finally {
      for (const contender of running.values()) await contender.close();
      await stage.close();
    }
  },
};
