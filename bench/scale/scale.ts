/**
 * What ten times as many entries cost: searches, proofs, and the memory of a backup and a restore, with 300,000 and
 * 3,000,000 entries, or a tenth of `--entries` and as many. The logs are at rest, as some seconds after the last append.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, type OperatorKey, openHistory, openLog, operatorKey } from "cairnlog";
import { median, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";
import { event } from "./entries.js";
import { type At, measureReads, type ProofFigures, type SearchFigures, type Size } from "./reads.js";
import { measureRestore, type Restore } from "./restore.js";

const ENTRIES = 3_000_000;
const ROUNDS = 7;
/** Shows in half a minute that everything runs. Its figures mean nothing. */
const SHORT = { entries: 20_000, rounds: 1 };
/** The larger log to the smaller. */
const GROWTH = 10;
const BATCH = 1_000;
/** Entries between two lines of progress. */
const PROGRESS = 250_000;

/** Appends until the log has `size` entries, and waits until its postings are merged. */
async function fill(path: string, signer: OperatorKey, size: number): Promise<void> {
  const log = await openLog({ path, signer });
  while (log.size < size) {
    const before = log.size;
    await log.append(Array.from({ length: Math.min(BATCH, size - before) }, (_, i) => event(before + i)));
    if (Math.floor(before / PROGRESS) !== Math.floor(log.size / PROGRESS))
      console.error(`${log.size.toLocaleString("en")} of ${size.toLocaleString("en")} entries`);
  }
  await log.close();
  const history = await openHistory({ path, operatorKey: signer.public.pem });
  await history.settled();
  await history.close();
}

export const suite: Suite = {
  summary: `searches, proofs and restores at ${ENTRIES.toLocaleString("en")} entries by those at a tenth of them`,
  async run({ short, only = "", ...options }) {
    const { entries = ENTRIES, rounds = ROUNDS } = { ...(short ? SHORT : {}), ...options };
    const sizes = { small: Math.floor(entries / GROWTH), large: entries };
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const dataDirs = { small: join(folder, "small"), large: join(folder, "large") };
    const logs = { small: join(dataDirs.small, "log"), large: join(dataDirs.large, "log") };
    const pem = generatePrivateKey("ed25519");
    const signer = operatorKey(pem);
    const wants = (part: string) => part.includes(only);
    try {
      mkdirSync(dataDirs.large);
      writeFileSync(join(dataDirs.large, "operator.pem"), pem);
      await fill(logs.large, signer, sizes.small);
      cpSync(dataDirs.large, dataDirs.small, { recursive: true });
      await fill(logs.large, signer, sizes.large);
      const reads = await measureReads({
        paths: logs,
        operatorKey: signer.public.pem,
        rounds,
        searches: wants("searches"),
        proofs: wants("proofs"),
      });
      printSearches(reads.searches, sizes);
      printProofs(reads.proofs, sizes);
      if (!wants("restores")) return { sizes, ...reads };
      const restores = { small: await measureRestore(dataDirs.small), large: await measureRestore(dataDirs.large) };
      printRestores(restores, sizes);
      return { sizes, ...reads, restores };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

type Sizes = Readonly<Record<Size, number>>;

const named = (sizes: Sizes, size: Size): string => sizes[size].toLocaleString("en");

function printSearches(searches: Record<string, SearchFigures>, sizes: Sizes): void {
  if (!Object.keys(searches).length) return;
  console.log("\nSearches, CPU ms");
  const count = (matches: number | null) => matches?.toLocaleString("en") ?? "refused";
  console.table(
    Object.entries(searches).map(([search, { matches, ms }]) => ({
      search,
      [`matches in ${named(sizes, "small")}`]: count(matches.small),
      [named(sizes, "large")]: count(matches.large),
      [`ms in ${named(sizes, "small")}`]: spread(ms.small, 2),
      [`ms in ${named(sizes, "large")}`]: spread(ms.large, 2),
      ratio: median(ratios(ms.large, ms.small)).toFixed(1),
    })),
  );
}

function printProofs(proofs: Record<string, ProofFigures>, sizes: Sizes): void {
  const rows = Object.entries(proofs).flatMap(([proof, figures]) =>
    (["small", "large"] as const).map((size) => {
      const { head, old }: Record<At, number[]> = figures[size];
      return {
        proof,
        entries: named(sizes, size),
        "at the head, µs": spread(head),
        "at old sizes, µs": spread(old),
        ratio: spread(ratios(old, head), 2),
      };
    }),
  );
  if (!rows.length) return;
  console.log("\nProofs at sizes all over the log, and at its head, CPU µs");
  console.table(rows);
}

function printRestores(restores: Record<Size, Restore>, sizes: Sizes): void {
  console.log("\nA backup and its restore by the command, most memory in MiB");
  console.table(
    (["small", "large"] as const).flatMap((size) =>
      Object.entries(restores[size]).map(([run, { seconds, own, mapped, resident }]) => ({
        run,
        entries: named(sizes, size),
        seconds: seconds.toFixed(0),
        own: own.toFixed(0),
        "pages of files": mapped.toFixed(0),
        together: resident.toFixed(0),
      })),
    ),
  );
}
