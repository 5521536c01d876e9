/** The end of a log whose entries are published: `log_frozen` is the last entry that it may have (`docs/spec/log.md`, §3.12). */
import { utf8 } from "../../../engine/verify/bytes/encoding.js";
import type { PayloadOf } from "../../../engine/verify/events/kinds.js";
import { canonicalJson, type Entry, formatTlogProof } from "../../../engine/verify/index.js";
import { ClientError } from "../base/error.js";
import type { LogEnd } from "../base/types.js";
import type { AuthenticTiles } from "../log/authentic.js";
import { FULL_TILE } from "../log/served.js";
import type { BundledEntry } from "./bundle.js";

/** An entry that is in the tree of the checkpoint. */
export interface PublishedEntry {
  readonly entry: Entry;
  readonly leafIndex: number;
}

/** A log goes on behind the entry that froze it. */
export class GoesOn extends ClientError {
  readonly frozen: PublishedEntry;

  constructor(frozen: PublishedEntry, treeSize: number) {
    super(
      "log-misbehaved",
      `Entry ${frozen.entry.id} froze the log at ${frozen.leafIndex + 1} leaves, and a signed checkpoint has ${treeSize}.`,
    );
    this.frozen = frozen;
  }
}

/** How the log ended, if its newest entry froze it; null otherwise. @param newest verified */
export function logEndOf(newest: Entry | undefined, treeSize: number): LogEnd | null {
  if (newest?.event_type !== "log_frozen" || newest.payload === null) return null;
  const { reason, successor } = newest.payload as PayloadOf<"log_frozen">;
  const { id: entry_id, timestamp } = newest;
  return { entry_id, tree_size: treeSize, timestamp, reason, successor: successor ?? null };
}

/** The misbehaviour of a tree that has more entries behind one that froze the log; undefined if it has not. */
export function goesOn(entries: readonly BundledEntry[], index: number, treeSize: number): GoesOn | undefined {
  for (const [i, { entry }] of entries.entries()) {
    const leafIndex = index * FULL_TILE + i;
    if (entry.event_type === "log_frozen" && leafIndex < treeSize - 1)
      return new GoesOn({ entry, leafIndex }, treeSize);
  }
  return undefined;
}

/**
 * A proof file (c2sp.org/tlog-proof) with an entry in it.
 * @param withholding the proof file of the entry that withholds the payload
 * @throws WrongTile; ClientError
 */
export async function proofFileIn(
  tiles: AuthenticTiles,
  checkpoint: string,
  { entry, leafIndex }: PublishedEntry,
  withholding?: string,
): Promise<string> {
  const hashes = await tiles.inclusion(leafIndex);
  return formatTlogProof({
    index: leafIndex,
    extra: utf8(canonicalJson({ ...entry, withholding })),
    hashes,
    checkpoint,
  });
}
