/**
 * The effect of growth on a log: everything measured at 20,000 entries is measured again at 1,000,000 (or `--entries`),
 * and the figure is the ratio of the large log to the small one. Costs that do not depend on the size give 1.
 *
 * Appends are measured while the log grows, and counted in signatures timed beside them, because the two sizes are
 * minutes apart. The rest is measured by new processes that open a copy of the small log and the large log in turns, in
 * the state after the last append: merges of postings may be running. `queries` also measures pages of a log at rest.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, type LogWriter, openLog, operatorKey } from "cairnlog";
import { cpuOf, signOne } from "../floors.js";
import { cpuMicros, median, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";
import { event, type Probe, type ProbeTask } from "./growthprobe.js";

const SMALL = 20_000;
const LARGE = 1_000_000;
/** Entries between two lines of progress. */
const PROGRESS = 100_000;
const BATCH = 512;
const ROUNDS = 5;
/**
 * Appends of one round; the last round of each size ends at that size. All rounds together cover several merges of
 * postings, so a mean is shown beside the median.
 */
const APPENDS = 2_000;
const IN_FLIGHT = 64;
const SIGNATURES = 2_000;

async function fill(log: LogWriter, size: number): Promise<void> {
  while (log.size < size) {
    const count = Math.min(BATCH, size - log.size);
    const before = log.size;
    await log.append(Array.from({ length: count }, (_, i) => event(before + i)));
    if (Math.floor(before / PROGRESS) !== Math.floor(log.size / PROGRESS))
      console.error(`${log.size.toLocaleString("en")} of ${size.toLocaleString("en")} entries`);
  }
}

interface AppendRounds {
  readonly cpu: number[];
  readonly signatures: number[];
}

async function measureAppends(log: LogWriter): Promise<AppendRounds> {
  const [cpu, signatures]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    signatures.push(cpuOf(signOne, SIGNATURES));
    const before = process.cpuUsage();
    let next = 0;
    const client = async () => {
      while (next < APPENDS) await log.append(event(next++));
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, client));
    cpu.push(cpuMicros(before) / APPENDS);
  }
  return { cpu, signatures };
}

async function probe(task: ProbeTask): Promise<Probe> {
  const child = fork(new URL("./growthprobe.js", import.meta.url), { execArgv: ["--expose-gc"] });
  const ended = once(child, "exit");
  child.send(task);
  const [result] = (await Promise.race([once(child, "message"), ended.then(() => [null])])) as [Probe | null];
  await ended;
  if (!result) throw new Error("a probe of the log failed");
  return result;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

export const suite: Suite = {
  summary: `growing from ${SMALL.toLocaleString("en")} to ${LARGE.toLocaleString("en")} entries: which costs grow`,
  async run({ entries = LARGE }) {
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const [warmUp, small, large] = [join(folder, "warm-up"), join(folder, "small"), join(folder, "large")];
    const pem = generatePrivateKey("ed25519");
    const signer = operatorKey(pem);
    try {
      // Otherwise the small log would pay for compiling code that the large one runs, too.
      let log = await openLog({ path: warmUp, signer });
      await fill(log, SMALL);
      await measureAppends(log);
      await log.close();

      log = await openLog({ path: large, signer });
      await fill(log, SMALL - ROUNDS * APPENDS);
      const early = await measureAppends(log);
      await log.close();
      cpSync(large, small, { recursive: true });
      log = await openLog({ path: large, signer });
      await fill(log, entries - ROUNDS * APPENDS);
      const late = await measureAppends(log);
      await log.close();

      const probes: Record<"small" | "large", Probe[]> = { small: [], large: [] };
      for (let round = 0; round < ROUNDS; round++) {
        probes.small.push(await probe({ path: small, pem }));
        probes.large.push(await probe({ path: large, pem }));
      }
      print({ early, late, probes });
      return { entries, early, late, probes };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function print(measured: {
  early: AppendRounds;
  late: AppendRounds;
  probes: Record<"small" | "large", readonly Probe[]>;
}): void {
  const { early, late, probes } = measured;
  const [few, many] = [probes.small[0]!.entries.toLocaleString("en"), probes.large[0]!.entries.toLocaleString("en")];
  const [before, after] = [ratios(early.cpu, early.signatures), ratios(late.cpu, late.signatures)];
  const line = (what: string, low: readonly number[], high: readonly number[], digits = 1) => ({
    what,
    [`${few} entries`]: spread(low, digits),
    [`${many} entries`]: spread(high, digits),
    ratio: (median(high) / median(low)).toFixed(2),
    difference: (median(high) - median(low)).toFixed(digits),
  });
  const of = (name: keyof Probe, digits?: number) => {
    const column = (size: "small" | "large") => probes[size].map((one) => one[name]!);
    return (what: string) => line(what, column("small"), column("large"), digits);
  };
  console.log(
    `\nGrowth from ${few} to ${many} entries; large to small; logs as the last append left them, merges may be under way`,
  );
  console.table([
    line("CPU µs per append", early.cpu, late.cpu),
    line("the same in signatures", before, after, 2),
    line("the same, mean of the rounds", [mean(before)], [mean(after)], 2),
    of("openMs")("opening, ms"),
    of("residentMiB")("resident after gc, MiB"),
    of("anonymousMiB")("of that not files mapped, MiB"),
    of("proofMicros")("inclusion proof, p50 µs"),
    of("firstPageMicros", 0)("by-fingerprint page 1, p50 µs"),
  ]);
  const pages = probes.large.map(({ lastPageMicros, firstPageMicros }) => lastPageMicros / firstPageMicros);
  console.log(
    `by-fingerprint at ${many} entries: page ${probes.large[0]!.lastPage} takes ${spread(pages, 2)} × page 1 ` +
      `(p50 ${median(probes.large.map(({ lastPageMicros }) => lastPageMicros)).toFixed(0)} µs)`,
  );
}
