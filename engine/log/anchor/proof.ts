/** How far an anchoring proof has come: what it proves, and what calendars still owe it. */
import { type OtsTimestamp, otsCommitments, parseOtsFile } from "../../verify/ots/ots.js";
import type { AnchorChange } from "./commands.js";

/** A message that some calendar has promised to see into Bitcoin, with no way to a block below it. */
export interface OpenPromise {
  readonly message: Uint8Array;
  /** Who promised: what the proof says, which is what some calendar said. */
  readonly uris: readonly string[];
}

/** The promises of a proof that no calendar has kept yet. @throws CairnlogError when it is not a `.ots` file */
export function openPromises(proof: Uint8Array): OpenPromise[] {
  return [...parseOtsFile(proof).timestamp.nodes()].flatMap((node) => {
    const uris = node.attestations.flatMap((attestation) => (attestation.kind === "pending" ? [attestation.uri] : []));
    return uris.length && !isConfirmed(node) ? [{ message: node.message, uris }] : [];
  });
}

/** How far a proof has come. @throws CairnlogError when it is not a `.ots` file */
export function statusOf(proof: Uint8Array): AnchorChange["status"] {
  return isConfirmed(parseOtsFile(proof).timestamp) ? "confirmed" : "pending";
}

/** Whether `proof`, which may come from anybody, is a `.ots` file about this digest. */
export function isProofOf(proof: Uint8Array, digest: Uint8Array): boolean {
  try {
    const { hash, timestamp } = parseOtsFile(proof);
    return hash === "sha256" && Buffer.compare(timestamp.message, digest) === 0;
  } catch {
    return false;
  }
}

const isConfirmed = (node: OtsTimestamp): boolean => otsCommitments(node).some(({ kind }) => kind === "bitcoin");
