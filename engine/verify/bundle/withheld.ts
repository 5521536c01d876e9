/**
 * Bundles whose entry is shown without its payload. The payload follows from manifest and attestation, so everything is checked as
 * of any other; and another entry has to say that the operator withholds it.
 */
import { attestedPayload } from "../events/attested.js";
import { checkServiceEntry } from "../events/eventcheck.js";
import { manifestHash } from "../events/manifest.js";
import { isPayloadOf, withholdingFault, withholdingIn } from "../events/withheld.js";
import type { AttestationBundle } from "./format.js";
import { isIncluded } from "./inclusion.js";
import type { BundleCheck } from "./verdict.js";

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
