/** What a client keeps of a log from one run to the next. */
import Type from "typebox";
import { nullable } from "./common.js";
import { OperatorTerm, TreeHead } from "./log/log.js";

export const ClientState = Type.Object({
  operator_key: Type.String({ description: "PEM of the operator key that was believed first, or was pinned." }),
  head: nullable(TreeHead),
  operators: Type.Optional(
    Type.Array(OperatorTerm, { description: "The chain of operator keys, as the service last showed it." }),
  ),
});
