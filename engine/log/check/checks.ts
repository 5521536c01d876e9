/** What a check of a log takes from its rows: contradictions between private ones, and the operator keys. */

import { CairnlogError } from "../../base/error.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import type { OperatorRotationRow } from "../../store/schema/rows.js";
import type { Store } from "../../store/store.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { Operators } from "../operator/operators.js";

export type PrivateRows = Pick<Store, "get" | "keys" | "range">;

/** The end of a log. After an import with gaps between ids, the last id is greater than the size. */
export interface LogExtent {
  readonly size: number;
  /** Id of the newest entry; 0 on an empty log. */
  readonly lastId: number;
}

/** Yields a sentence for each fault among private rows. */
export type PrivateCheck = (rows: PrivateRows, end: LogExtent) => Iterable<string>;

// Checks that the tables of anchors agree: the totals and the open work must match the anchors.

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

// The operator keys of a log that is being checked: its rows may be damaged, and the key at hand may be any of them.

/**
 * The keys that the rotations of a log tell. The stored fingerprint of the first key counts if the oldest head bears it
 * out. If not, the chain is followed back from the key at hand.
 * @param rotations rows of all entries that record one, in order
 * @param stored fingerprint of the first key, as the log's meta row has it; undefined if it cannot be read
 * @param oldest the oldest head of the log
 */
export function operatorsFrom(
  rotations: readonly OperatorRotationRow[],
  stored: string | undefined,
  oldest: TreeHead | undefined,
  key: ServerKey,
): Operators {
  const known = Operators.of(key);
  for (const first of [stored, firstBefore(rotations, key.fingerprint)]) {
    if (typeof first !== "string") continue;
    try {
      const operators = Operators.linked(rotations, first, known);
      if (!oldest || operators.keyAt(oldest.tree_size).fingerprint === oldest.key_id) return operators;
    } catch (error) {
      // Another log's key, or a row with a key that cannot be parsed: the check of its entry says so.
      if (!(error instanceof CairnlogError)) throw error;
    }
  }
  return known;
}

/** The key from which the rotations lead to this one. */
function firstBefore(rotations: readonly OperatorRotationRow[], fingerprint: string): string {
  return [...rotations]
    .reverse()
    .reduce((later, row) => (row.fingerprint === later ? row.old_fingerprint : later), fingerprint);
}
