/** Verification of the log that a view shows, on worker threads, beside live appends. It belongs to the thread of the view. */
import { createPool, type Pool } from "../../crypto/pool/pool.js";
import { CairnlogError } from "../../error.js";
import type { Operators } from "../operator/operators.js";
import type { Projection } from "../write/projection.js";
import { type VerifyOptions, type VerifyReport, verifyLog } from "./verify.js";

/** Entries that `newest` looks at: eight batches of the largest size. */
const NEWEST = 4096;

export interface VerificationParts {
  readonly path: string;
  /** Without it, worker threads are started when they are needed. */
  readonly pool?: Pool | undefined;
  readonly mapSize?: number | undefined;
  readonly projection: Pick<Projection, "checksEvents">;
}

/** The log: number of entries, and whose heads these are. */
interface Verified {
  readonly size: number;
  readonly operators: Operators;
}

export class Verification {
  readonly #parts: VerificationParts;
  readonly #log: Verified;
  #ownPool: Pool | null = null;
  #running: Promise<VerifyReport> | null = null;
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
    this.#running ??= this.#verify(0, options).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Like `all`, for the newest entries alone. */
  newest(): Promise<VerifyReport> {
    return this.#verify(Math.max(0, this.#log.size - NEWEST));
  }

  async #verify(from: number, options: Pick<VerifyOptions, "workers"> = {}): Promise<VerifyReport> {
    const { path, mapSize, projection } = this.#parts;
    const { size, operators } = this.#log;
    const target = { path, from, size, operators: operators.chain, checksEvents: projection.checksEvents === true };
    const { signal } = this.#closing;
    return verifyLog(this.#pool, mapSize === undefined ? target : { ...target, mapSize }, { ...options, signal });
  }

  get #pool(): Pool {
    if (this.#parts.pool) return this.#parts.pool;
    this.#ownPool ??= createPool();
    return this.#ownPool;
  }

  /** Breaks off the verification that runs. */
  stop(): void {
    this.#closing.abort(new CairnlogError("closed", "The log is closed."));
  }

  /** Like `stop`; resolves when nothing runs any more. */
  async close(): Promise<void> {
    this.stop();
    await this.#running?.catch(() => undefined);
    await this.#ownPool?.close();
  }
}
