/** Places of entries in the tree that a bundle's proof leads to, also of one whose payload is withheld. */

import { attestedPayload } from "../events/attested.js";
import { checkServiceEntry } from "../events/eventcheck.js";
import { manifestHash } from "../events/manifest.js";
import { isPayloadOf, withholdingFault, withholdingIn } from "../events/withheld.js";
import { leafHash, verifyInclusion } from "../tree/merkle.js";
import { type AttestationBundle, type BundleCheck, bundleCheck, type InclusionProof } from "./format.js";

/** Whether an entry is where it says, in the tree of `proof`. */
const isIncluded = (
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

// Bundles whose entry is shown without its payload. The payload follows from manifest and attestation, so everything is checked as
// of any other; and another entry has to say that the operator withholds it.

/** A bundle whose payload is withheld, with the payload that follows from manifest and attestation; the entry's hash judges it. */
export function withPayload(bundle: AttestationBundle): AttestationBundle {
  const { manifest, attestation, entry } = bundle;
  if (entry.payload !== null) return bundle;
  const payloadOf = (signed?: string) => attestedPayload(manifest, attestation, manifestHash(manifest), signed);
  const whole = payloadOf();
  const payload = isPayloadOf(entry, whole) ? whole : payloadOf(manifestHash({ ...manifest, attestations: [] }));
  return { ...bundle, entry: { ...entry, payload } };
}

/** Of an entry without its payload: whether it is proven that the operator withholds that, and by which entry. */
export function checkWithheld({ entry, proof, withholding }: AttestationBundle): readonly BundleCheck[] {
  if (entry.payload !== null && entry.withheld_by === undefined && !withholding) return [];
  const by = withholding?.entry;
  const fault =
    withholdingFault(entry, by) ??
    checkServiceEntry(by!)[0]?.message ??
    (withholding!.leaf_index < by!.id && isIncluded(proof, by!.entry_hash, withholding!)
      ? undefined
      : "The entry that withholds it is not in the tree.");
  const [name, detail] =
    fault === undefined
      ? (["withheld", `The operator withholds this, as entry ${by!.id} says: ${withholdingIn(by!)!.reason}`] as const)
      : (["withholding", fault] as const);
  return [{ name, ok: false, detail }];
}
