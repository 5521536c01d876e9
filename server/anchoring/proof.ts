/**
 * The `.ots` file of an anchored entry, and how answers of calendars are added to it. Calendars write most of it, so an
 * addition that would exceed a limit is refused and the old content stays.
 */
import { OtsTimestamp, parseOtsFile, serialiseOtsFile } from "../../engine/verify/ots/ots.js";

/** The node whose message is sent to calendars. It reveals nothing about the digest itself. */
export function blinded(root: OtsTimestamp, nonce: Uint8Array): OtsTimestamp {
  return root.branch({ name: "append", argument: nonce }).branch({ name: "sha256" });
}

/**
 * A proof of `digest` that contains `addition` and everything in `proof` (null: nothing yet).
 * @param place the nodes of the proof to which it is added; they have the message of `addition`
 * @throws CairnlogError `invalid-input` if the proof would become too large
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
