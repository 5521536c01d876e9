/**
 * The `.ots` file of an anchored entry, as bytes: how it grows by what calendars answer.
 * Calendars write most of it, so an addition that would break a limit is refused and what was there stays.
 */
import { OtsTimestamp, parseOtsFile, serialiseOtsFile } from "../../engine/verify/ots/ots.js";

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
