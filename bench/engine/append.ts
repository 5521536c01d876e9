/**
 * The cost of a durable append in the engine alone, without HTTP: appends a second, CPU of all threads for each, and
 * that CPU as a multiple of one Ed25519 signature over its tree head, which every append needs.
 *
 * The contenders do not give the same guarantees. Our append is on disk (fsync) with its own signed head before it is
 * acknowledged. hypercore signs each append call, writes through RocksDB and does not fsync before it resolves. Bare
 * LMDB is on disk but signs nothing, hashes nothing, and has no proofs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSettings, startServer } from "cairnlog/server";
import { cpuOf, openRawStore, signOne, verifyOne } from "../floors.js";
import { signedSubmissions } from "../load/submissions.js";
import { median, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";
import { type Appender, drive, openAppenders, PAYLOAD_BYTES } from "./appenders.js";
import { measureSigners } from "./signers.js";

const IN_FLIGHT = [1, 64, 1024];
const ROUNDS = 5;
const ROUND_MS = 500;
/** Number of signatures timed beside each round of appends. */
const SIGNATURES = 2_000;
/** Attestations, and as many floors, in one round of single attestations. */
const ATTESTATIONS = 150;
/** Attestations before the timed ones: a service that has just started runs code that is not compiled yet. */
const WARM_ATTESTATIONS = 6_000;
/** Pause between contenders, so that background work of the previous one can end. */
const PAUSE_MS = 50;

interface Rounds {
  readonly rates: number[];
  readonly cpu: number[];
  readonly signatures: number[];
  readonly perCommit: number[];
}

async function measureAppends(folder: string) {
  const { ours, peers, floors, batches, close } = await openAppenders(folder, IN_FLIGHT);
  const all: readonly Appender[] = [...ours, ...peers, ...floors];
  const measured = new Map<string, Rounds>(
    all.map(({ name }) => [name, { rates: [], cpu: [], signatures: [], perCommit: [] }]),
  );
  try {
    for (let round = 0; round <= ROUNDS; round++)
      for (const appender of all) {
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        const signature = cpuOf(signOne, SIGNATURES);
        const batchesBefore = batches();
        const { appends, rate, cpu } = await drive(appender, ROUND_MS);
        // The first round warms up compilers and caches.
        if (round === 0) continue;
        const rounds = measured.get(appender.name)!;
        rounds.rates.push(rate);
        rounds.cpu.push(cpu);
        rounds.signatures.push(signature);
        if (ours.includes(appender)) rounds.perCommit.push(appends / (batches() - batchesBefore));
      }
  } finally {
    await close();
  }
  const rows = all.map(({ name, inFlight, batch }) => {
    const { rates, cpu, signatures, perCommit } = measured.get(name)!;
    const raw = measured.get(`LMDB put + flushed, ${batch === 1 ? inFlight : batch} in flight`)!;
    return {
      contender: name,
      "appends a second": spread(rates, 0),
      "of LMDB's": median(ratios(rates, raw.rates)).toFixed(3),
      "CPU µs": spread(cpu),
      "× one signature": spread(ratios(cpu, signatures), 2),
      "per commit": perCommit.length > 0 ? median(perCommit).toFixed(1) : "",
    };
  });
  const signature = median([...measured.values()].flatMap(({ signatures }) => signatures));
  console.log(
    `\nAppends of ${PAYLOAD_BYTES}-byte payloads; one Ed25519 signature takes ${signature.toFixed(1)} µs of CPU in this run`,
  );
  console.log("cairnlog: fsync and a signed head for each append; hypercore: signed, no fsync; LMDB: fsync, unsigned");
  console.table(rows);
  return Object.fromEntries(measured);
}

/** p50 of one attestation at a time, compared with the bare work: verify, sign, put and flush. */
async function measureSingle(folder: string) {
  const settings = { PORT: "0", SERVICE_DATA_DIR: join(folder, "service"), SERVICE_RATE_LIMITS: "off" };
  const server = await startServer(readSettings({ ...settings, LOG_LEVEL: "silent" }));
  const raw = openRawStore(join(folder, "floor"));
  const bytes = Buffer.alloc(PAYLOAD_BYTES, "p");
  const timed = (ROUNDS + 1) * ATTESTATIONS;
  const submissions = signedSubmissions(timed + WARM_ATTESTATIONS, "bench");
  const [attested, floors]: [number[], number[]] = [[], []];
  try {
    for (let from = timed; from < submissions.length; from += 64)
      await Promise.all(submissions.slice(from, from + 64).map((one) => server.registry.attestations.submit(one)));
    for (let round = 0; round <= ROUNDS; round++) {
      const times: [number[], number[]] = [[], []];
      // One of ours and one floor in turns: a disk that is slow for a moment is slow for both.
      for (let i = 0; i < ATTESTATIONS; i++) {
        const number = round * ATTESTATIONS + i;
        const started = performance.now();
        await server.registry.attestations.submit(submissions[number]!);
        const between = performance.now();
        verifyOne();
        signOne();
        await raw.put(number, bytes);
        await raw.flushed;
        times[0].push((between - started) * 1000);
        times[1].push((performance.now() - between) * 1000);
      }
      if (round === 0) continue;
      attested.push(median(times[0]));
      floors.push(median(times[1]));
    }
  } finally {
    await server.close();
    await raw.close();
  }
  console.log("\nOne attestation at a time, checked, signed and on disk; p50 of each round");
  console.table({
    "attestation, µs": spread(attested, 0),
    "verify + sign + put + flushed, µs": spread(floors, 0),
    ratio: spread(ratios(attested, floors), 2),
  });
  return { attested, floors };
}

export const suite: Suite = {
  summary: "the engine's appends against one signature, hypercore and bare LMDB; attestations of many signers",
  async run() {
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    try {
      const [appends, single] = [await measureAppends(folder), await measureSingle(folder)];
      return { appends, single, signers: await measureSigners(folder) };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
