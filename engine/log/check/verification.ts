/** Verification of the log that a view shows, on worker threads, beside live appends. It belongs to the thread of the view. */

import { CairnlogError } from "../../base/error.js";
import { createPool, type Pool } from "../../crypto/pool/pool.js";
import type { Operators } from "../operator/operators.js";
import type { Projection } from "../state/projection.js";
import { type VerifyOptions, type VerifyReport, verifyLog } from "./verify.js";

/** Entries that `newest` looks at: eight batches of the largest size. */
const NEWEST = 4096;

interface VerificationParts {
  readonly path: string;
  /** Without it, each run starts threads of its own, which let all others go first. */
  readonly pool?: Pool | undefined;
  readonly mapSize?: number | undefined;
  readonly projection: Pick<Projection, "checksEvents">;
}

/** The log: number of entries, and whose heads these are. */
interface Verified {
  readonly size: number;
  readonly operators: Operators;
}

export class LogVerification {
  readonly #parts: VerificationParts;
  readonly #log: Verified;
  #running: Promise<VerifyReport> | null = null;
  readonly #unended = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(parts: VerificationParts, log: Verified) {
    this.#parts = parts;
    this.#log = log;
  }

  /**
   * Re-derives everything from the stored payloads, as of now. Calls at one time share one run, with the options of the
   * first.
   */
  all(options: Pick<VerifyOptions, "workers"> = {}): Promise<VerifyReport> {
    this.#running ??= this.#from(0, options).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Like `all`, for the newest entries alone. */
  newest(): Promise<VerifyReport> {
    return this.#from(Math.max(0, this.#log.size - NEWEST));
  }

  async #from(from: number, options: Pick<VerifyOptions, "workers"> = {}): Promise<VerifyReport> {
    const run = this.#verify(from, options);
    this.#unended.add(run);
    try {
      return await run;
    } finally {
      this.#unended.delete(run);
    }
  }

  async #verify(from: number, options: Pick<VerifyOptions, "workers">): Promise<VerifyReport> {
    const { path, pool, mapSize, projection } = this.#parts;
    const { size, operators } = this.#log;
    const target = { path, from, size, operators: operators.chain, checksEvents: projection.checksEvents === true };
    const { signal } = this.#closing;
    // Its threads end with the run: they hold a log open, and cannot get back the priority that they give up.
    const own = pool ? null : createPool(options.workers);
    try {
      const what = { ...target, ...(mapSize !== undefined && { mapSize }), ...(own && { yields: true }) };
      return await verifyLog(pool ?? own!, what, { ...options, signal });
    } finally {
      await own?.close();
    }
  }

  /** Breaks off the verification that runs. */
  stop(): void {
    this.#closing.abort(new CairnlogError("closed", "The log is closed."));
  }

  /** Like `stop`; resolves when nothing runs any more. */
  async close(): Promise<void> {
    this.stop();
    await Promise.allSettled(this.#unended);
  }
}
