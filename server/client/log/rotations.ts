/**
 * Rotations of the operator key that the service shows, held against the log itself: the entries that a rotation is about
 * must be the beginning of the tree of a newer head, and the entry that records it must be the leaf behind them.
 */
import type { OperatorKeys, TreeHead } from "../../../engine/verify/index.js";
import type { Expected } from "./expected.js";

/** A rotation, and what shows that the log has it. */
export interface ShownRotation {
  /** What was signed about the entries before it, in the form of a head. */
  readonly before: TreeHead;
  readonly entryId: number;
  readonly leafIndex: number;
  /** What the entry must say. */
  readonly expected: Expected;
}

/** The rotations of `shown` that are not in `known`, oldest first. */
export function newRotations(shown: OperatorKeys, known: OperatorKeys | null): readonly ShownRotation[] {
  return shown.chain.flatMap((term, i) => {
    const { rotation, from_size, key_id } = term;
    if (!rotation || known?.chain[i]?.rotation) return [];
    const old = shown.chain[i - 1]!;
    const { root_hash, old_key_signature, new_key_signature, entry_id } = rotation;
    const tree_size = from_size - 1;
    const payload = {
      old_fingerprint: old.key_id,
      old_public_key: old.public_key,
      fingerprint: key_id,
      public_key: term.public_key,
      key_algorithm: term.algorithm,
      ...{ tree_size, root_hash, old_key_signature, new_key_signature },
    };
    // No key has signed this as a head: what is asked for is the head of this size and root.
    const before = { tree_size, root_hash, tree_version: 2, key_id: old.key_id, signature: "", timestamp: "" } as const;
    return [
      { before, entryId: entry_id, leafIndex: tree_size, expected: { event_type: "operator_key_rotation", payload } },
    ];
  });
}
