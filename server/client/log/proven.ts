/** Entries with the proof of their place in the tree. */
import {
  type Entry,
  type InclusionProof,
  leafHash,
  type TreeHead,
  verifyInclusion,
} from "../../../engine/verify/index.js";
import { differingMember, type Members } from "../base/compare.js";

/** An entry, where it lies, and the proof of that under a head that was checked. */
export interface ProvenEntry {
  readonly entry: Entry;
  readonly proof: InclusionProof;
  readonly head: TreeHead;
}

/** Where an entry lies, as receipts say it. */
export const receiptPlace = ({ entry, proof }: ProvenEntry) => ({
  log_entry_id: entry.id,
  leaf_index: proof.leaf_index,
  entry_hash: entry.entry_hash,
});

/** An entry without its anchoring proof, which may have come between one look at the entry and the next. */
export function bareEntry({ entry: { ots_proof: _, ...bare } }: ProvenEntry): Entry {
  return bare;
}

/** Whether a proof leads from its leaf to a signed head. What it says of itself must be what the head says, too. */
export function isProven(leafIndex: number, proof: InclusionProof, head: TreeHead): boolean {
  const { tree_size, root_hash, tree_version } = head;
  const claims: Members<InclusionProof> = {
    leaf_index: leafIndex,
    leaf_hash: leafHash(proof.entry_hash, tree_version),
    tree_size,
    root_hash,
    tree_version,
  };
  if (differingMember(proof, claims) !== undefined) return false;
  return verifyInclusion({
    leaf: proof.entry_hash,
    leafIndex,
    treeSize: tree_size,
    auditPath: proof.audit_path,
    rootHash: root_hash,
    treeVersion: tree_version,
  });
}
