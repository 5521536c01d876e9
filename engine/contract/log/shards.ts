/** Where a log ends and the next one begins. */
import Type from "typebox";
import { OPERATOR_REASON } from "../../verify/keys/contract.js";
import { EntryId, nullable, optional, PLACE, Successor, Timestamp, TreeSize } from "../common.js";
import { TreeHead } from "./log.js";

const Reason = Type.String({
  minLength: OPERATOR_REASON.min,
  maxLength: OPERATOR_REASON.max,
  description: "Why the log was frozen.",
});

export const FreezeLog = Type.Object(
  { reason: Reason, successor: optional(Successor) },
  { title: "FreezeLog", description: "The last words of the log." },
);

export const LogFrozen = Type.Object(
  {
    ...PLACE,
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

const Predecessor = Type.Object(
  {
    entry_id: EntryId,
    url: Type.String({ description: "Its address, as a client calls it." }),
    operator_key: Type.String({ description: "PEM of the key that signed its last head." }),
    tree_head: TreeHead,
  },
  { description: "The frozen log from which this one goes on; null for a log that began by itself." },
);

export const Shards = Type.Object(
  {
    predecessor: nullable(Predecessor),
    frozen: nullable(Type.Object(END, { description: "How the log ended; null while it may grow." })),
  },
  {
    title: "Shards",
    description:
      "What the log says of its beginning and its end. Its first and its last entry say the same, and can be proven.",
  },
);
