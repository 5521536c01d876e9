/**
 * The `.ots` file of an anchored entry, as bytes: how it grows by what calendars answer, and what is still missing in it.
 * Calendars write most of it, so an addition that would break a limit is refused and what was there stays.
 */
import type { AnchorChange } from "../../engine/log/anchors.js";
import { OtsTimestamp, otsCommitments, parseOtsFile, serialiseOtsFile } from "../../engine/verify/ots.js";

/** A message that some calendar has promised to see into Bitcoin, with no way to a block below it. */
export interface OpenPromise {
  readonly message: Uint8Array;
  /** Who promised: what the proof says, which is what some calendar said. */
  readonly uris: readonly string[];
}

/** The node whose message calendars get to see: of the digest itself they learn nothing. */
export function blinded(root: OtsTimestamp, nonce: Uint8Array): OtsTimestamp {
  return root.branch({ name: "append", argument: nonce }).branch({ name: "sha256" });
}

/**
 * A proof of `digest` that says `addition` too, beside all that `proof` says (null: nothing yet).
 * @param place the nodes of the proof at which to add; they have the message that `addition` is about
 * @throws CairnlogError `invalid-input` when the proof would become too large
 */
export function extended(
  proof: Uint8Array | null,
  digest: Uint8Array,
  addition: OtsTimestamp,
  place: (root: OtsTimestamp) => readonly OtsTimestamp[],
): Uint8Array {
  const root = proof ? parseOtsFile(proof).timestamp : new OtsTimestamp(digest);
  for (const node of place(root)) node.merge(addition);
  return serialiseOtsFile({ hash: "sha256", timestamp: root });
}

/** The nodes of a tree that have this message. */
export function nodesOf(root: OtsTimestamp, message: Uint8Array): OtsTimestamp[] {
  return [...root.nodes()].filter((node) => Buffer.compare(node.message, message) === 0);
}

/** The promises of a proof that no calendar has kept yet. */
export function openPromises(proof: Uint8Array): OpenPromise[] {
  return [...parseOtsFile(proof).timestamp.nodes()].flatMap((node) => {
    const uris = node.attestations.flatMap((attestation) => (attestation.kind === "pending" ? [attestation.uri] : []));
    return uris.length && !isConfirmed(node) ? [{ message: node.message, uris }] : [];
  });
}

/** How far a proof has come. */
export function statusOf(proof: Uint8Array): AnchorChange["status"] {
  return isConfirmed(parseOtsFile(proof).timestamp) ? "confirmed" : "pending";
}

const isConfirmed = (node: OtsTimestamp): boolean => otsCommitments(node).some(({ kind }) => kind === "bitcoin");
