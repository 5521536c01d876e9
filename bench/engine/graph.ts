/**
 * The endorsement graph at scale: the time of a traversal of depth 3 among 100,000 keys and 300,000 endorsements, and
 * the rate of appends while traversals run, compared with the same log at rest in the same run.
 */
import { hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type RunningServer, readSettings, startServer } from "cairnlog/server";
import { claim } from "../claim.js";
import { median, quantile, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";

export type Registry = RunningServer["registry"];

const KEYS = 100_000;
const ENDORSEMENTS_EACH = 3;
const CHUNK = 5_000;
const TRAVERSALS = 400;
/** Number of waiting appends, so that batches form as under load. */
const IN_FLIGHT = 64;
const ROUND_MS = 1_000;
const ROUNDS = 5;

export const keyOf = (i: number): string => `sha256:${hash("sha256", `key ${i}`)}`;
/** The same graph in every run: a generator of whole numbers below `limit`. */
export function numbers(): (limit: number) => number {
  let state = 1;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/**
 * Writes keys and endorsements as rows, which is what a traversal reads. In the order of their keys: rows written at
 * random in large transactions would leave a list of free pages that slows down every later commit.
 * @param gates number of keys that `anchor` endorses: those of the first numbers
 */
export async function fill(
  { writer: log }: Registry,
  { each = ENDORSEMENTS_EACH, anchor, gates = 0 }: { each?: number; anchor?: string; gates?: number } = {},
): Promise<void> {
  const random = numbers();
  const time = "2024-01-01T00:00:00.000000Z";
  const key = { public_key: "", pseudonym: "someone", algorithm: "ed25519", status: "active" } as const;
  const rest = {
    expires_at: null,
    successor_fingerprint: null,
    predecessor_fingerprint: null,
    ended_at: null,
    proven: true,
  };
  const validity = { valid_until: null, offered_at: time, accepted_at: time, ended_at: null, end_kind: null };
  const edge = { category: "x-service:human_attestation", institution: null, ...validity } as const;
  const keys = Array.from({ length: KEYS }, (_, i) => keyOf(i)).sort();
  const edges = keys.flatMap((from, i) =>
    Array.from({ length: each }, (_, n) => ({
      id: 1 + i * each + n,
      from,
      to: keys[random(KEYS)]!,
    })),
  );
  for (let i = 0; i < gates; i++) edges.push({ id: 1 + KEYS * each + i, from: anchor!, to: keyOf(i) });
  await inChunks(log, keys, (transaction, from) =>
    transaction.put("keys", from, { fingerprint: from, ...key, ...rest, registered_at: time, log_entry_id: 0 }),
  );
  await inChunks(log, edges, (transaction, { id, from, to }) =>
    transaction.put("endorsementsByEndorser", [from, id], { other_fingerprint: to, ...edge }),
  );
  const byEndorsed = edges.toSorted((a, b) => (a.to < b.to ? -1 : a.to > b.to ? 1 : a.id - b.id));
  await inChunks(log, byEndorsed, (transaction, { id, from, to }) =>
    transaction.put("endorsementsByEndorsed", [to, id], { other_fingerprint: from, ...edge }),
  );
}

/** A transaction as it runs: commands are not meant to write rows of keys and endorsements, but a store takes any. */
interface Planting {
  put(table: string, key: unknown, row: unknown): void;
}

async function inChunks<T>(
  log: Registry["writer"],
  items: readonly T[],
  put: (transaction: Planting, item: T) => void,
): Promise<void> {
  for (let from = 0; from < items.length; from += CHUNK)
    await log.execute(
      {
        name: "bench.plant",
        run: (transaction) => {
          for (const item of items.slice(from, from + CHUNK)) put(transaction as unknown as Planting, item);
        },
      },
      null,
    );
}

/** Appends for a while, as fast as they are acknowledged; returns the number a second. */
async function appendRate({ writer: log }: Registry): Promise<number> {
  const until = performance.now() + ROUND_MS;
  const started = performance.now();
  let appended = 0;
  const client = async () => {
    for (; performance.now() < until; appended++) await log.append(claim(`artifact ${appended}`));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  return appended / ((performance.now() - started) / 1000);
}

/** Runs `work` while `clients` traverse the graph without pause; also returns the number of traversals that ended. */
async function besides<T>(registry: Registry, clients: number, maxDepth: number, work: () => Promise<T>) {
  let isOver = false;
  let traversals = 0;
  const random = numbers();
  const walk = async () => {
    for (; !isOver; traversals++) await registry.graphs.around(keyOf(random(KEYS)), { max_depth: maxDepth });
  };
  const walks = Array.from({ length: clients }, walk);
  const value = await work();
  isOver = true;
  await Promise.all(walks);
  return { value, traversals };
}

export const suite: Suite = {
  summary: "traversals of a graph of 100,000 keys and 300,000 endorsements, and appends beside them",
  async run() {
    const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const settings = { PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_RATE_LIMITS: "off", LOG_LEVEL: "silent" };
    // Nothing is cached, so that every request is a traversal.
    const server = await startServer(readSettings({ ...settings, SERVICE_GRAPH_CACHE_TTL_S: "0" }));
    try {
      const { registry } = server;
      await fill(registry);
      const random = numbers();
      const milliseconds: number[] = [];
      const nodes: number[] = [];
      for (let i = 0; i < TRAVERSALS; i++) {
        const started = performance.now();
        nodes.push((await registry.graphs.around(keyOf(random(KEYS)), { max_depth: 3 })).nodes.length);
        milliseconds.push(performance.now() - started);
      }
      const traversal = { p50: median(milliseconds), p99: quantile(milliseconds, 0.99), nodes: median(nodes) };

      const cases = [
        { name: "at rest", clients: 0, maxDepth: 3 },
        { name: "1 client, depth 3", clients: 1, maxDepth: 3 },
        { name: "8 clients, depth 3", clients: 8, maxDepth: 3 },
        { name: "8 clients, depth 8: 10,000 nodes each", clients: 8, maxDepth: 8 },
      ];
      const rates = cases.map(() => [] as number[]);
      const walked = cases.map(() => 0);
      await appendRate(registry);
      // Cases take turns, so that other load on the machine affects all of them.
      for (let round = 0; round < ROUNDS; round++)
        for (const [i, { clients, maxDepth }] of cases.entries()) {
          const { value, traversals } = await besides(registry, clients, maxDepth, () => appendRate(registry));
          rates[i]!.push(value);
          walked[i]! += traversals;
        }
      const rows = cases.map(({ name }, i) => ({
        traversals: name,
        "appends a second": spread(rates[i]!, 0),
        "of the rate at rest": spread(ratios(rates[i]!, rates[0]!), 2),
        "traversals a second": Math.round((walked[i]! / ROUNDS / ROUND_MS) * 1000),
      }));
      const took = `${traversal.p50.toFixed(2)} ms (p99 ${traversal.p99.toFixed(2)} ms)`;
      console.log(`\nA traversal of depth 3, alone: median ${took}, ${traversal.nodes} keys; ${TRAVERSALS} roots`);
      console.log(`Appends, ${IN_FLIGHT} waiting at any time, beside traversals; medians of ${ROUNDS} rounds`);
      console.table(rows);
      return { keys: KEYS, endorsements: KEYS * ENDORSEMENTS_EACH, traversal, rows, rates };
    } finally {
      await server.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};
