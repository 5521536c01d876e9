/** The operator keys of a log that is being checked: its rows may be damaged, and the key at hand may be any of them. */

import { CairnlogError } from "../../base/error.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import type { OperatorRotationRow } from "../../store/schema/rows.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { Operators } from "../operator/operators.js";

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
