/** Verification of a whole log: the snapshot at its start, in stretches, on the pool, beside live appends. */
import type { Pool } from "../../crypto/pool/pool.js";
import type { ChunkReport, ChunkTask, Finding } from "./verify-chunk.js";

/** Entries a task checks: about a fifth of a second of work, nearly all of it head signatures. */
const CHUNK_ENTRIES = 4096;
/** Findings of each kind reported; a log damaged throughout needs no million sentences. */
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

export type VerifyTarget = Omit<ChunkTask, "from" | "to">;

/**
 * Re-derives chain, ids, timestamps, both trees, tiles and every stored head of the first `target.size` entries.
 * @param options.progress called with the number of entries checked so far
 * @param options.signal breaks it off after the stretches under way; it rejects with the signal's reason then
 */
export async function verifyLog(
  pool: Pool,
  target: VerifyTarget,
  { progress, signal }: { readonly progress?: (checked: number) => void; readonly signal?: AbortSignal } = {},
): Promise<VerifyReport> {
  const chunks = Math.ceil(target.size / CHUNK_ENTRIES);
  const reports: ChunkReport[] = new Array(chunks);
  let next = 0;
  let checked = 0;
  // One stretch a worker at a time: the pool's queue stays free for signatures.
  const drain = async () => {
    while (next < chunks) {
      signal?.throwIfAborted();
      const number = next++;
      const from = number * CHUNK_ENTRIES;
      const to = Math.min(target.size, from + CHUNK_ENTRIES);
      reports[number] = await pool.run<ChunkReport>(CHUNK_MODULE, "verifyChunk", { ...target, from, to });
      checked += to - from;
      progress?.(checked);
    }
  };
  await Promise.all(Array.from({ length: pool.workers }, drain));
  const errors = reports.flatMap((report) => report.errors);
  const warnings = reports.flatMap((report) => report.warnings);
  return {
    valid: errors.length === 0,
    entry_count: target.size,
    errors: errors.slice(0, MAX_FINDINGS),
    warnings: warnings.slice(0, MAX_FINDINGS),
  };
}
