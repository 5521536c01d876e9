/**
 * Verifying a whole log of 50,000 entries: CPU of all threads compared with the necessary work, which is hashing every
 * entry, the root of every size, and one signature check per size; and the rate of appends at the same time.
 */
import { hash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, type LogWriter, openLog, operatorKey } from "cairnlog";
import { entryPreimage } from "cairnlog/verify";
import { kernel } from "cairnlog/wasm";
import { verifyHead } from "../floors.js";
import { cpuMicros, median, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";

const ENTRIES = 50_000;
const BATCH = 512;
const ROUNDS = 5;
/**
 * The floor is measured on this many of the last entries. It grows in proportion, except for the height of the tree.
 */
const FLOOR_ENTRIES = 4_000;
const IN_FLIGHT = 64;
const WINDOW_MS = 600;

const event = (n: number) => ({
  event_type: "note",
  payload: { n, text: "all entries are of about one length; ".repeat(16) },
});

/** Microseconds of CPU an entry for the bare work, on bytes that are in memory. */
function floorOf(log: LogWriter): () => number {
  const from = ENTRIES - FLOOR_ENTRIES;
  const entries = Array.from({ length: ENTRIES }, (_, i) => log.entry(i + 1)!);
  const preimages = entries.slice(from).map((entry) => entryPreimage(entry));
  const digests = Buffer.from(entries.map(({ entry_hash }) => entry_hash).join(""), "hex");
  const older = digests.subarray(0, 32 * from);
  const newer = digests.subarray(32 * from);
  const peaks = ([1, 2] as const).map((version) => ({
    version,
    peaks: kernel.extend(0, new Uint8Array(), older, version, false).peaks,
  }));
  const signed = log.treeHead(ENTRIES)!.tree_version;
  return () => {
    const before = process.cpuUsage();
    for (const preimage of preimages) hash("sha256", preimage, "hex");
    for (const { version, peaks: at } of peaks) kernel.extend(from, at, newer, version, version === signed);
    for (let i = 0; i < FLOOR_ENTRIES; i++) verifyHead();
    return cpuMicros(before) / FLOOR_ENTRIES;
  };
}

/** Appends for a while, with as many in flight as under load; returns the number a second. */
async function appendRate(log: LogWriter, isOver: () => boolean = () => false): Promise<number> {
  const started = performance.now();
  let appended = 0;
  const client = async () => {
    for (; performance.now() - started < WINDOW_MS && !isOver(); appended++) await log.append(event(appended));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  return appended / ((performance.now() - started) / 1000);
}

/** Append rates while verifications run one after the other, until enough windows were completely within one. */
async function ratesBeside(log: LogWriter): Promise<number[]> {
  const rates: number[] = [];
  while (rates.length < ROUNDS) {
    let isOver = false;
    const verified = log.verify().finally(() => {
      isOver = true;
    });
    while (!isOver && rates.length < ROUNDS) {
      const rate = await appendRate(log, () => isOver);
      // If the verification ended within a window, part of the window was at rest.
      if (!isOver) rates.push(rate);
    }
    if (!(await verified).valid) throw new Error("the log does not verify");
  }
  return rates;
}

export const suite: Suite = {
  summary: `verifying a log of ${ENTRIES.toLocaleString("en")} entries against bare hashing and signature checks`,
  async run() {
    const path = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const log = await openLog({ path, signer: operatorKey(generatePrivateKey("ed25519")) });
    const [costs, floors, seconds]: [number[], number[], number[]] = [[], [], []];
    const atRest: number[] = [];
    let beside: number[] = [];
    try {
      for (let n = 0; n < ENTRIES; n += BATCH)
        await log.append(Array.from({ length: Math.min(BATCH, ENTRIES - n) }, (_, i) => event(n + i)));
      const floor = floorOf(log);
      floor();
      for (let round = 0; round < ROUNDS; round++) {
        floors.push(floor());
        const before = process.cpuUsage();
        const started = performance.now();
        const { valid, entry_count } = await log.verify();
        if (!valid || entry_count !== ENTRIES) throw new Error("the log does not verify");
        costs.push(cpuMicros(before) / ENTRIES);
        seconds.push((performance.now() - started) / 1000);
      }
      await appendRate(log);
      // At rest before and after, so that neither growth of the log nor drift of the machine favours one side.
      for (let window = 0; window < 3; window++) atRest.push(await appendRate(log));
      beside = await ratesBeside(log);
      for (let window = 0; window < 3; window++) atRest.push(await appendRate(log));
    } finally {
      await log.close();
      rmSync(path, { recursive: true, force: true });
    }
    console.log(`\nVerification of ${ENTRIES.toLocaleString("en")} entries, CPU of all threads, an entry`);
    console.table({
      "verify, µs": spread(costs),
      "hashing + one signature check, µs": spread(floors),
      ratio: spread(ratios(costs, floors), 2),
      seconds: spread(seconds),
    });
    const rest = median(atRest);
    console.log(`Appends with ${IN_FLIGHT} in flight beside a verification, windows of ${WINDOW_MS} ms`);
    console.table({
      "a second at rest": spread(atRest, 0),
      "a second beside a verification": spread(beside, 0),
      "share of the rate at rest": spread(
        beside.map((rate) => rate / rest),
        2,
      ),
    });
    return { entries: ENTRIES, costs, floors, seconds, atRest, beside };
  },
};
