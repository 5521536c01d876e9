/** Receipts of attestations: of a new entry, and of the entry that an earlier submission made. */
import type * as contract from "../../contract/signing/attestations.js";
import type { Value } from "../../contract/types.js";
import type { Receipt } from "../../log/state/executor.js";
import type { AttestationEvent } from "../../verify/bundle/format.js";
import { normaliseContentHash, type SignedMembers } from "../../verify/events/manifest.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { recordedAttestation } from "../events/attestations.js";
import { attestationEvent, type SignedAttestation } from "./commands.js";

export type AttestationReceipt = Value<typeof contract.AttestationReceipt>;

/** @param names what of the submission the signature covers */
export function newReceipt(
  { content }: SignedAttestation,
  pseudonym: string,
  { timestamp, log_entry_id, leaf_index, entry_hash, sth }: Receipt,
  names: SignedMembers,
): AttestationReceipt {
  return {
    attestation: recordedAttestation(attestationEvent(content, timestamp)),
    fingerprint: content.key.fingerprint,
    pseudonym,
    log_entry_id,
    leaf_index,
    entry_hash,
    manifest_hash: content.manifest_hash,
    sth,
    duplicate: false,
    signed: names,
  };
}

/**
 * @param event payload of `entry`
 * @param sth the head of the size that ends with it
 * @param names what of the submission the signature covers
 */
export function earlierReceipt(
  event: AttestationEvent,
  pseudonym: string,
  { id, entry_hash }: Pick<Entry, "id" | "entry_hash">,
  leafIndex: number,
  sth: TreeHead | null,
  names: SignedMembers,
): AttestationReceipt {
  return {
    attestation: recordedAttestation(event),
    fingerprint: event.signer_key_fingerprint,
    pseudonym,
    log_entry_id: id,
    leaf_index: leafIndex,
    entry_hash,
    manifest_hash: normaliseContentHash(event.manifest_hash)!.slice("sha256:".length),
    sth,
    duplicate: true,
    signed: names,
  };
}
