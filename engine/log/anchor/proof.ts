/** The state of an anchoring proof: what it proves already, and which promises of calendars are open. */
import { type OtsTimestamp, otsCommitments, parseOtsFile } from "../../verify/ots/ots.js";
import type { AnchorChange } from "./commands.js";

/** A message that a calendar has promised to put into Bitcoin; the proof does not lead to a block yet. */
export interface OpenPromise {
  readonly message: Uint8Array;
  /**
   * Addresses of the calendars that promised, according to the proof. A calendar wrote them, so they are not trusted.
   */
  readonly uris: readonly string[];
}

/** The open promises of a proof. @throws CairnlogError if it is not a `.ots` file */
export function openPromises(proof: Uint8Array): OpenPromise[] {
  return [...parseOtsFile(proof).timestamp.nodes()].flatMap((node) => {
    const uris = node.attestations.flatMap((attestation) => (attestation.kind === "pending" ? [attestation.uri] : []));
    return uris.length && !isConfirmed(node) ? [{ message: node.message, uris }] : [];
  });
}

/** The state of a proof. @throws CairnlogError if it is not a `.ots` file */
export function statusOf(proof: Uint8Array): AnchorChange["status"] {
  return isConfirmed(parseOtsFile(proof).timestamp) ? "confirmed" : "pending";
}

/** Whether `proof` is a `.ots` file about this digest. The proof may come from an attacker. */
export function isProofOf(proof: Uint8Array, digest: Uint8Array): boolean {
  try {
    const { hash, timestamp } = parseOtsFile(proof);
    return hash === "sha256" && Buffer.compare(timestamp.message, digest) === 0;
  } catch {
    return false;
  }
}

const isConfirmed = (node: OtsTimestamp): boolean => otsCommitments(node).some(({ kind }) => kind === "bitcoin");
