/** Where a log ends and the next one begins. */
import Type from "typebox";
import { EntryId, HexHash, LeafIndex, nullable, Successor, Timestamp, TreeSize } from "../common.js";
import { TreeHead } from "./log.js";

const Reason = Type.String({ minLength: 1, maxLength: 500, description: "Why the log was frozen." });

export const FreezeLog = Type.Object(
  { reason: Reason, successor: Type.Optional(nullable(Successor)) },
  { title: "FreezeLog", description: "The last words of the log." },
);

export const LogFrozen = Type.Object(
  {
    log_entry_id: EntryId,
    leaf_index: LeafIndex,
    entry_hash: HexHash,
    sth: TreeHead,
  },
  { title: "LogFrozen", description: "The last entry of the log, and the head over it." },
);

/** How a log ended. */
export const END = {
  entry_id: EntryId,
  tree_size: TreeSize,
  timestamp: Timestamp,
  reason: Type.String({ description: "Why." }),
  successor: nullable(Successor),
};

export const Shards = Type.Object(
  { frozen: nullable(Type.Object(END, { description: "How the log ended; null while it may grow." })) },
  { title: "Shards", description: "What the log says of its end. The entry says the same, and can be proven." },
);
