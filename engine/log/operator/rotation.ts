/**
 * Rotations in the log: the entry that hands the log from one operator key to the next, and the row that is derived from
 * it. A row is written for every entry of this kind. Whether it counts follows from the first key of the log: `operators.ts`.
 */

import { CairnlogError } from "../../base/error.js";
import { verifySync } from "../../crypto/keys/signatures.js";
import { importPublicKey, type ServerKey } from "../../crypto/keys/spki.js";
import type { OperatorRotationRow } from "../../store/schema/rows.js";
import { decodeBase64 } from "../../verify/bytes/encoding.js";
import { type PayloadOf, payloadMisfit } from "../../verify/events/kinds.js";
import { rotationMessage } from "../../verify/tree/operators.js";
import type { DerivedWriter, LoggedEvent } from "../state/projection.js";
import type { Tree } from "../tree/tree.js";

export const OPERATOR_ROTATION = "operator_key_rotation";

/** What an entry says of a rotation; undefined for an entry that is none. Imported history may hold anything. */
export function rotationOf(event: LoggedEvent): OperatorRotationRow | undefined {
  if (event.event_type !== OPERATOR_ROTATION || payloadMisfit(event) !== undefined) return undefined;
  const payload = event.payload as PayloadOf<typeof OPERATOR_ROTATION>;
  return {
    entry_id: event.id,
    timestamp: event.timestamp,
    old_fingerprint: payload.old_fingerprint,
    old_public_key: payload.old_public_key,
    fingerprint: payload.fingerprint,
    public_key: payload.public_key,
    tree_size: payload.tree_size,
    root_hash: payload.root_hash,
    old_key_signature: payload.old_key_signature,
    new_key_signature: payload.new_key_signature,
  };
}

/** Writes the row of a rotation. */
export function applyRotation(event: LoggedEvent, state: DerivedWriter): void {
  const row = rotationOf(event);
  if (row) state.put("operatorRotations", event.leafIndex, row);
}

/**
 * Checks a rotation away from the key `old`, and gives the new key.
 * @param leafIndex of its entry
 * @param tree of version 2, with at least the entries before it
 * @throws CairnlogError `invalid-input`, `invalid-key`; `invalid-signature` when one of the keys has not signed it
 */
export function checkRotation(row: OperatorRotationRow, old: ServerKey, leafIndex: number, tree: Tree): ServerKey {
  const { tree_size, root_hash, public_key, fingerprint, old_public_key } = row;
  const refuse = (why: string) => {
    throw new CairnlogError("invalid-input", `The rotation of the operator key does not hold: ${why}`);
  };
  if (tree_size !== leafIndex)
    refuse(`it is about the first ${tree_size} entries, but stands behind the first ${leafIndex}.`);
  if (root_hash !== tree.rightEdge(tree_size).rootHex)
    refuse(`its root is not that of the first ${tree_size} entries.`);
  if (old_public_key !== old.pem) refuse("the old public key is not the one that its fingerprint names.");
  const key = importPublicKey(public_key);
  if (key.fingerprint !== fingerprint || key.pem !== public_key)
    refuse("the new public key is not the one that its fingerprint names.");
  const message = rotationMessage(row);
  for (const [signer, signature] of [
    [old, row.old_key_signature],
    [key, row.new_key_signature],
  ] as const) {
    const bytes = decodeBase64(signature);
    if (!bytes || !verifySync(signer, message, bytes))
      throw new CairnlogError(
        "invalid-signature",
        `The rotation of the operator key is not signed by ${signer.fingerprint}.`,
      );
  }
  return key;
}
