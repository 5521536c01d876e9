/** Verifies a whole log: the snapshot at the start, in stretches, on the pool, while appends continue. */

import { CairnlogError } from "../../base/error.js";
import { checkWorkers, createPool, type Pool } from "../../crypto/pool/pool.js";
import type { Operators } from "../operator/operators.js";
import type { Projection } from "../state/projection.js";
import type { ChunkReport, ChunkTask, Finding } from "./chunk.js";

/** Entries of one task: about a fifth of a second of work, mostly for signatures of heads. */
const CHUNK_ENTRIES = 4096;
/** Maximum number of reported findings of each kind, in case the whole log is damaged. */
const MAX_FINDINGS = 1000;

const CHUNK_MODULE = new URL("./verify-chunk.js", import.meta.url);

export interface VerifyReport {
  readonly valid: boolean;
  /** Size of the snapshot that was verified. */
  readonly entry_count: number;
  /** At most 1000 of each, in log order. */
  readonly errors: readonly Finding[];
  readonly warnings: readonly Finding[];
}

interface VerifyTarget extends Omit<ChunkTask, "from" | "to"> {
  /** Leaf index of the first entry that is looked at; 0 if absent. */
  readonly from?: number;
}

interface VerifyOptions {
  /** Called with the number of entries checked so far. */
  readonly progress?: (checked: number) => void;
  /** Stops it after the running stretches; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Workers of the pool that it takes at most; all of them if absent. */
  readonly workers?: number;
}

/**
 * Derives chain, ids, timestamps, both trees, tiles and every stored head of the entries from `target.from` to
 * `target.size` again.
 */
export async function verifyLog(
  pool: Pool,
  target: VerifyTarget,
  { progress, signal, workers = pool.workers }: VerifyOptions = {},
): Promise<VerifyReport> {
  const { from: first = 0, size } = target;
  const chunks = Math.ceil((size - first) / CHUNK_ENTRIES);
  checkWorkers(workers);
  checkWorkers(pool.workers);
  /** Of stretches that are done while one before them is not. */
  const waiting = new Map<number, ChunkReport>();
  const [errors, warnings]: [Finding[], Finding[]] = [[], []];
  let taken = 0;
  let next = 0;
  let checked = 0;
  // One stretch for each worker at a time, so that the pool's queue stays free for signatures.
  const drain = async () => {
    while (next < chunks) {
      signal?.throwIfAborted();
      const number = next++;
      const from = first + number * CHUNK_ENTRIES;
      const to = Math.min(size, from + CHUNK_ENTRIES);
      waiting.set(number, await pool.run<ChunkReport>(CHUNK_MODULE, "verifyChunk", { ...target, from, to }));
      // Each report is let go in its turn. Together, those of a damaged log would hold several findings for each entry.
      for (let report = waiting.get(taken); report; report = waiting.get(taken)) {
        errors.push(...report.errors.slice(0, MAX_FINDINGS - errors.length));
        warnings.push(...report.warnings.slice(0, MAX_FINDINGS - warnings.length));
        waiting.delete(taken++);
      }
      checked += to - from;
      progress?.(checked);
    }
  };
  await Promise.all(Array.from({ length: Math.min(workers, pool.workers, chunks) }, drain));
  return { valid: errors.length === 0, entry_count: size, errors, warnings };
}

// Verification of the log that a view shows, on worker threads, beside live appends. It belongs to the thread of the view.

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
