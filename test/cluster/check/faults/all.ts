/** All faults, and how those of a round are chosen. */
import type { Random } from "../../../reliability/random.js";
import type { Fault } from "./fault.js";
import { NODE_FAULTS } from "./nodes.js";
import { SERVER_FAULTS } from "./servers.js";
import { WAY_FAULTS } from "./ways.js";

export const FAULTS: readonly Fault[] = [...NODE_FAULTS, ...SERVER_FAULTS, ...WAY_FAULTS];

/**
 * The faults of a round: each in turn, in an order that chance gives, and with every third a second one of another kind, at
 * the same time.
 */
export function* plannedFaults(random: Random, faults: readonly Fault[] = FAULTS): Generator<readonly Fault[], never> {
  for (;;) {
    const left = [...faults];
    while (left.length) {
      const [fault] = left.splice(random.below(left.length), 1) as [Fault];
      const others = faults.filter(({ kind }) => kind !== fault.kind);
      yield others.length && random.chance(1 / 3) ? [fault, random.pick(others)] : [fault];
    }
  }
}
