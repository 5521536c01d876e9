/**
 * Pages of a long list: the cost of page 1 and page 1000 of `by-fingerprint` in a log of 300,000 entries, while runs
 * are being merged, afterwards, and after a restart in the middle of a merge.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, type LogWriter, openLog, operatorKey } from "cairnlog";
import { median, ratios, spread } from "../stats.js";
import type { Suite } from "../suite.js";

const ENTRIES = 300_000;
const BATCH = 500;
const PER_PAGE = 50;
const PAGES = [1, 100, 1000];
const ROUNDS = 5;
/** Samples of each page in a round. */
const SAMPLES = 50;
/** Every fifth entry names this key: 60,000 entries, 1200 pages, in all runs. */
const FINGERPRINT = `sha256:${"ab".repeat(32)}`;

const event = (n: number) => ({
  event_type: n % 3 ? "note" : "report",
  payload: {
    n,
    tags: [`tag ${n % 100}`],
    signer_key_fingerprint: n % 5 ? `sha256:${n.toString(16).padStart(64, "0")}` : FINGERPRINT,
    document_hash: `sha256:${(n * 7919).toString(16).padStart(64, "0")}`,
  },
});

/** Microseconds of each page, and each as a multiple of page 1. */
function measure(log: LogWriter): Record<string, string> {
  const rounds = PAGES.map(() => [] as number[]);
  for (let round = 0; round < ROUNDS; round++) {
    const samples = PAGES.map(() => [] as number[]);
    // Pages take turns, so that other load on the machine affects all of them.
    for (let i = 0; i < SAMPLES; i++)
      for (const [p, page] of PAGES.entries()) {
        const started = performance.now();
        const { entries, total } = log.find({ fingerprint: FINGERPRINT }, (page - 1) * PER_PAGE, PER_PAGE);
        samples[p]!.push((performance.now() - started) * 1000);
        if (total >= page * PER_PAGE && entries.length !== PER_PAGE) throw new Error(`page ${page} is short`);
      }
    for (const [p, list] of samples.entries()) rounds[p]!.push(median(list));
  }
  return Object.fromEntries(
    PAGES.flatMap((page, p) => [
      [`page ${page}, µs`, spread(rounds[p]!, 0)],
      ...(p > 0 ? [[`page ${page} to 1`, spread(ratios(rounds[p]!, rounds[0]!), 2)]] : []),
    ]),
  );
}

export const suite: Suite = {
  summary: `pages of by-fingerprint in a log of ${ENTRIES.toLocaleString("en")} entries`,
  async run() {
    const path = mkdtempSync(join(tmpdir(), "cairnlog-bench-"));
    const signer = operatorKey(generatePrivateKey("ed25519"));
    const results: Record<string, Record<string, string>> = {};
    try {
      let log = await openLog({ path, signer });
      for (let n = 0; n < ENTRIES; n += BATCH) await log.append(Array.from({ length: BATCH }, (_, i) => event(n + i)));
      results["right after the last append, merges under way"] = measure(log);
      // Closing stops a merge at its next pause; opening removes what it left.
      await log.close();
      log = await openLog({ path, signer });
      results["after a restart in the middle of a merge"] = measure(log);
      await log.append(event(ENTRIES));
      await new Promise((resolve) => setTimeout(resolve, 5000));
      results["at rest"] = measure(log);
      await log.close();
    } finally {
      rmSync(path, { recursive: true, force: true });
    }
    console.log(
      `\nA page of ${PER_PAGE} by fingerprint, ${ENTRIES.toLocaleString("en")} entries, p50 of ${SAMPLES} in each of ${ROUNDS} rounds`,
    );
    console.table(results);
    return results;
  },
};
