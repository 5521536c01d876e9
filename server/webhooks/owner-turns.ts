/**
 * Who may try next. All attempts of the service share a fixed number of places, since each takes a descriptor and some
 * memory, and anybody can have endpoints that never answer. Owners of subscriptions take turns.
 */
import { WEBHOOK_FILES } from "../process/machine.js";
import { LaneQueues, type SubscriptionLane } from "./subscription-lane.js";

/** Attempts under way at the same time. */
const MAX_UNDER_WAY = WEBHOOK_FILES;
/** Of these, how many one owner may have. */
const MAX_OF_OWNER = MAX_UNDER_WAY / 4;

export class OwnerTurns {
  /** By owner: lanes that are ready, the first ready first. Owners in the order in which they have their next turn. */
  readonly #ready = new LaneQueues();
  /** Attempts of each owner that has some. */
  readonly #underWay = new Map<string, number>();
  #total = 0;

  add(lane: SubscriptionLane): void {
    this.#ready.put(lane.owner, lane);
  }

  remove(lane: SubscriptionLane): void {
    this.#ready.remove(lane.owner, lane);
  }

  /** The lane whose turn it is; it takes a place, to be given back by `leave`. Undefined if none may try now. */
  take(): SubscriptionLane | undefined {
    if (this.#total >= MAX_UNDER_WAY) return undefined;
    // At most four owners have all the places that they may have, so this looks at five.
    for (const [owner, lanes] of this.#ready) {
      const underWay = this.#underWay.get(owner) ?? 0;
      if (underWay >= MAX_OF_OWNER) continue;
      const [lane] = lanes;
      lanes.delete(lane!);
      this.#ready.delete(owner);
      if (lanes.size) this.#ready.set(owner, lanes);
      this.#underWay.set(owner, underWay + 1);
      this.#total++;
      return lane;
    }
    return undefined;
  }

  leave({ owner }: SubscriptionLane): void {
    const underWay = this.#underWay.get(owner)! - 1;
    if (underWay) this.#underWay.set(owner, underWay);
    else this.#underWay.delete(owner);
    this.#total--;
  }
}
