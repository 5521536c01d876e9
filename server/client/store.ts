/**
 * What a client remembers of a log from one run to the next: whose keys sign it, and the last head it saw. Whoever can
 * change it can make the client believe another log, so it belongs where the user's keys are.
 */
import Type, { type Static } from "typebox";
import { nullable } from "../wire/common.js";
import { OperatorTerm, TreeHead } from "../wire/log/log.js";

/** The schema of `State`, for stores that read it from a file or elsewhere. */
export const ClientState = Type.Object({
  operator_key: Type.String({ description: "PEM of the operator key that was believed first, or was pinned." }),
  head: nullable(TreeHead),
  operators: Type.Optional(
    Type.Array(OperatorTerm, { description: "The chain of operator keys, as the service last showed it." }),
  ),
});
export type State = Static<typeof ClientState>;

/** Keeps the state of one log. Clients that run at the same time may share a store; the last `save` wins. */
export interface Store {
  /** Undefined before the first `save`. */
  load(): Promise<State | undefined>;
  save(state: State): Promise<void>;
}

/** A store that lasts as long as the process. */
export function memoryStore(): Store {
  let kept: State | undefined;
  return {
    load: async () => kept,
    save: async (state) => {
      kept = state;
    },
  };
}
