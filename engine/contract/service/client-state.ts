/** What a client keeps of a log from one run to the next. */
import Type from "typebox";
import { EntryId, nullable, TreeSize } from "../common.js";
import { OperatorTerm, TreeHead } from "../log/log.js";

export const ClientState = Type.Object({
  operator_key: Type.String({ description: "PEM of the operator key that was believed first, or was pinned." }),
  head: nullable(TreeHead),
  operators: Type.Optional(
    Type.Array(OperatorTerm, { description: "The chain of operator keys, as the service last showed it." }),
  ),
  frozen: Type.Optional(
    Type.Object(
      { entry_id: EntryId, tree_size: TreeSize },
      { description: "The end of the log, once it was proven: no larger head is believed." },
    ),
  ),
});
