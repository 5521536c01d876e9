/** Chains of succession that both keys of each link have signed. */
import type { StateReader } from "../../log/state/projection.js";

/** Maximum number of links of a succession chain that are followed; the holder of a key decides how long it is. */
export const MAX_SUCCESSORS = 64;

/** A key and its confirmed successors, nearest first. An unconfirmed link ends the chain: anybody can make one. */
export function* confirmedChain(state: Pick<StateReader, "get">, fingerprint: string): Iterable<string> {
  let last = fingerprint;
  yield last;
  for (let links = 0; links < MAX_SUCCESSORS; links++) {
    const next = state.get("keys", last)?.successor_fingerprint ?? null;
    if (next === null) return;
    const row = state.get("keys", next);
    // A successor without a row is an operator key. Both keys sign its rotation.
    if (row && !(row.named && row.predecessor_fingerprint === last)) return;
    yield next;
    last = next;
  }
}
