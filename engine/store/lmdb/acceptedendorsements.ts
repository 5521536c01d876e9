/** Format 5: endorsements that the endorsed key has accepted are found without those that were only offered. */
import type { Store } from "../contract.js";
import type { Key } from "../schema.js";

/** Rows read, and rows written at most, in one step. */
const CHUNK = 1_000;

/**
 * Lists every accepted endorsement, as a rebuild would. If we crash in between, the next run writes the same rows again.
 */
export async function listAccepted(store: Store): Promise<void> {
  for (let last: Key | undefined; ; ) {
    const window = { offset: last === undefined ? 0 : 1, limit: CHUNK };
    const edges = [...store.range("endorsementsByEndorsed", last, undefined, window)];
    if (!edges.length) return;
    const rows = edges
      .filter(({ row }) => row.accepted_at !== null)
      .map(({ key, row }) => ({ table: "acceptedEndorsements", key, row }) as const);
    const after = store.position().sequence;
    if (rows.length) await store.commit({ after, position: null, batches: [], rows, tiles: [] });
    last = edges.at(-1)!.key;
  }
}
