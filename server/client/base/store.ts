/**
 * What a client remembers of a log from one run to the next: whose keys sign it, and the last head it saw. Whoever can
 * change it can make the client believe another log, so it belongs where the user's keys are.
 */
import type { Static } from "typebox";
import { ClientState } from "../../../engine/contract/service/client-state.js";

/** The schema of `State`, for stores that read it from a file or elsewhere. */
export { ClientState };
export type State = Static<typeof ClientState>;

/** Keeps the state of one log. Clients that run at the same time may share a store: each keeps what the others have noted. */
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
