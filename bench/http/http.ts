/**
 * The cost of a durable attestation in the service: CPU of all its threads, user and system, for each acknowledged
 * request, compared with the two signature operations that cannot be avoided, measured in the same process. Reads are
 * in `reads.ts`, compared with servers that only answer.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
import { cpuOf, signOne, verifyOne } from "../floors.js";
import { percentile, prepareLoad } from "../load/generator.js";
import { cpuMicros, median, ratios as ratiosOf, spread } from "../stats.js";
import type { Suite } from "../suite.js";
import { openReceiver } from "./floors.js";
import { measureReads } from "./reads.js";

const ROUNDS = 9;
/** Rounds before those that count: the JIT compilers settle after about 20,000 requests. */
const WARM_ROUNDS = 5;
/** Length of a receipt. */
const RECEIPT_BYTES = 1_400;
const REQUESTS = 4_000;
/** 1 comes last: all its code is compiled by then. */
const CONNECTIONS = [64, 256, 1];
/** Signatures timed before each round, and as many after it, because a machine's speed drifts. */
const SIGNATURES = 1_500;

/** Microseconds of CPU for verifying one client's signature and signing one tree head. */
const signatureFloor = () => cpuOf(verifyOne, SIGNATURES) + cpuOf(signOne, SIGNATURES);

/** Microseconds of CPU for receiving the same requests and answering as many bytes, with nothing in between. */
async function bareCost(port: number, requests: number, connections: number, name: string): Promise<number> {
  const load = await prepareLoad({ port, requests, connections, clients: 1, name });
  const before = process.cpuUsage();
  await load.run();
  return cpuMicros(before) / requests;
}

export const suite: Suite = {
  summary: "attestations over HTTP against verify + sign; reads against bare uWS, node:http and fastify",
  async run() {
    const dataDir = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const server = await startServer(
      readSettings({ PORT: "0", SERVICE_DATA_DIR: dataDir, SERVICE_RATE_LIMITS: "off", LOG_LEVEL: "silent" }),
    );
    const receiver = await openReceiver(RECEIPT_BYTES);
    const table: Record<string, Record<string, string>> = {};
    const results: Record<string, unknown> = {};
    try {
      for (const connections of CONNECTIONS) {
        const [floors, bare, costs, p50, p99, rates, batches]: number[][] = [[], [], [], [], [], [], []];
        const requests = connections === 1 ? REQUESTS / 10 : REQUESTS;
        for (let round = -WARM_ROUNDS; round < ROUNDS; round++) {
          const name = `${connections} connections round ${round}`;
          const load = await prepareLoad({ port: server.address.port, requests, connections, clients: 1, name });
          const floorBefore = signatureFloor();
          const batchesBefore = server.registry.writer.batches;
          const before = process.cpuUsage();
          const result = await load.run();
          const cpu = cpuMicros(before);
          const floor = (floorBefore + signatureFloor()) / 2;
          if (result.statuses[200] !== requests) throw new Error(`answers: ${JSON.stringify(result.statuses)}`);
          const received = await bareCost(receiver.port, requests, connections, name);
          if (round < 0) continue;
          floors!.push(floor);
          bare!.push(received);
          costs!.push(cpu / requests);
          p50!.push(percentile(result.latencies, 0.5));
          p99!.push(percentile(result.latencies, 0.99));
          rates!.push(requests / result.seconds);
          batches!.push(requests / (server.registry.writer.batches - batchesBefore));
        }
        const ratios = ratiosOf(costs!, floors!);
        table[`${connections} connections`] = {
          "CPU µs": spread(costs!),
          "verify + sign µs": spread(floors!),
          ratio: spread(ratios, 2),
          "bare uWS µs": spread(bare!),
          "p50 ms": median(p50!).toFixed(2),
          "p99 ms": median(p99!).toFixed(2),
          "per second": median(rates!).toFixed(0),
          "per batch": median(batches!).toFixed(1),
        };
        results[`${connections} connections`] = { floors, bare, costs, ratios, p50, p99, rates, batches };
      }
      console.log("\nA durable attestation over HTTP: CPU of the service, all threads; client processes not counted");
      console.table(table);
      return { attestations: results, reads: await measureReads(server.address.port, server.registry.log.size) };
    } finally {
      await receiver.close();
      await server.close();
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
};
