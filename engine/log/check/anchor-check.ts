/** Checks that the tables of anchors agree: the totals and the open work must match the anchors. */
import type { LogExtent, PrivateRows } from "./private-check.js";

/** Yields a sentence for each contradiction. */
export function* checkAnchors(rows: PrivateRows, { size }: LogExtent): Iterable<string> {
  const totals = { newest: -1, pending: 0, confirmed: 0 };
  for (const { key, row } of rows.range("anchors")) {
    if (key >= size) yield `anchors ${key}: entry ${key + 1} is anchored, but the log has ${size} entries.`;
    totals.newest = key;
    totals[row.status]++;
    if (row.status === "pending" && !rows.get("anchorWork", key))
      yield `anchors ${key}: it waits for its block, but anchorWork has no row for it.`;
  }
  const stored = rows.get("anchorTotals", "log") ?? { newest: -1, pending: 0, confirmed: 0 };
  if (stored.newest !== totals.newest || stored.pending !== totals.pending || stored.confirmed !== totals.confirmed)
    yield `anchorTotals: ${JSON.stringify(stored)} is stored, but the anchors make ${JSON.stringify(totals)}.`;
  for (const { key, row } of rows.range("anchorWork")) {
    const anchor = rows.get("anchors", key);
    if (anchor?.status !== row.status || anchor.anchored_at !== row.anchored_at)
      yield `anchorWork ${key}: it does not match the anchor.`;
  }
}
