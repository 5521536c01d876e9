/** Places of entries in the tree that a bundle's proof leads to. */
import { leafHash, verifyInclusion } from "../tree/merkle.js";
import type { AttestationBundle, InclusionProof } from "./format.js";
import { type BundleCheck, bundleCheck } from "./verdict.js";

/** Whether an entry is where it says, in the tree of `proof`. */
export const isIncluded = (
  { tree_size, root_hash, tree_version }: InclusionProof,
  leaf: string,
  { leaf_index, audit_path }: Pick<InclusionProof, "leaf_index" | "audit_path">,
): boolean =>
  verifyInclusion({
    leaf,
    leafIndex: leaf_index,
    treeSize: tree_size,
    auditPath: audit_path,
    rootHash: root_hash,
    treeVersion: tree_version,
  });

export function checkInclusion({ entry: { entry_hash }, proof }: AttestationBundle): BundleCheck {
  const { leaf_index, tree_size, tree_version } = proof;
  return bundleCheck("inclusion", `The entry is leaf ${leaf_index} of the tree of ${tree_size} leaves.`, [
    [proof.entry_hash === entry_hash, "The proof is for an entry with another hash."],
    [proof.leaf_hash === leafHash(entry_hash, tree_version), "The proof's leaf hash is not that of the entry."],
    [leaf_index < tree_size, "The leaf index lies outside the tree."],
    [isIncluded(proof, entry_hash, proof), "The audit path does not lead from the entry to the root hash."],
  ]);
}
