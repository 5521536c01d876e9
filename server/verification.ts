/**
 * Verification of the whole log for whoever asks: `POST /api/v1/log/verify` needs no key, and one run costs seconds of a
 * core for each million entries. So the service has one run at a time, and answers with its report for a while. It belongs
 * to the writer's thread; the front ends ask there.
 */
import type { VerifyReport } from "../engine/log/check/verify.js";

/** Milliseconds for which a report is answered again while the log has not grown. */
const REPORT_LASTS_MS = 60_000;
/** Threads of one run: everybody may ask for it. */
const WORKERS = 1;

/** The log that is verified. */
interface Verifiable {
  readonly size: number;
  verify(options: { readonly workers: number }): Promise<VerifyReport>;
}

/** A report, and when it was ready, on a clock that nobody sets. */
interface Kept {
  readonly report: VerifyReport;
  readonly readyAt: number;
}

export class SharedVerification {
  readonly #log: Verifiable;
  readonly #now: () => number;
  #running: Promise<VerifyReport> | null = null;
  #kept: Kept | null = null;

  /** @param now milliseconds of a clock that never goes back */
  constructor(log: Verifiable, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#now = now;
  }

  /**
   * The report of the run that is under way; else the last one, if it is of the log's size and younger than a minute; else
   * that of a new run. A run that failed leaves no report.
   */
  report(): Promise<VerifyReport> {
    const kept = this.#kept;
    if (kept && kept.report.entry_count === this.#log.size && this.#now() - kept.readyAt < REPORT_LASTS_MS)
      return Promise.resolve(kept.report);
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #run(): Promise<VerifyReport> {
    this.#kept = null;
    const report = await this.#log.verify({ workers: WORKERS });
    this.#kept = { report, readyAt: this.#now() };
    return report;
  }
}
