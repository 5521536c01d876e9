/** Format 4: requests are listed under target and requester together, too. */
import type { RowChange } from "../changeset.js";
import type { Store } from "../contract.js";
import type { RequestCountKey, RequestList } from "../rows.js";

/** Rows written in one transaction. */
const CHUNK = 1_000;

/**
 * Lists every request under its two keys, as a rebuild would. If we crash in between, the next run writes the same rows
 * again.
 */
export async function pairRequests(store: Store): Promise<void> {
  const rows: RowChange[] = [];
  const counts = new Map<string, { readonly key: RequestCountKey; readonly row: Record<RequestList, number> }>();
  for (const { row: request } of store.range("requests")) {
    const { request_id, target_fingerprint: target, requester_fingerprint: requester, log_entry_id: id } = request;
    const pair = `${target} ${requester}`;
    const row = { all: 0, open: 0, held: 0, accepted: 0, declined: 0 };
    const count = counts.get(pair) ?? { key: ["pair", target, requester], row };
    counts.set(pair, count);
    for (const list of ["all", request.status] as const) {
      count.row[list]++;
      rows.push({ table: "requestsByPair", key: [target, requester, list, id], row: { request_id } });
    }
  }
  for (const count of counts.values()) rows.push({ table: "requestCounts", ...count });
  for (let from = 0; from < rows.length; from += CHUNK) {
    const after = store.position().sequence;
    const some = rows.slice(from, from + CHUNK);
    await store.commit({ after, position: null, batches: [], rows: some, tiles: [] });
  }
}
