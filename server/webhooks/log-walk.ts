/**
 * Reads the log for the subscriptions. One walk over new entries serves all that are at the head of the log, so an entry
 * is read once, however many there are. A subscription whose window is full falls behind; when it has room again, it
 * catches up in pieces, together with those that are near it.
 */
import { Selection } from "../../engine/registry/webhooks/subscriptions.js";
import type { Reported, Webhooks } from "../../engine/registry/webhooks/webhooks.js";
import type { SubscriptionLane } from "./subscription-lane.js";

/** Milliseconds after which a step ends. It runs in the writer's thread. */
const STEP_MS = 1;
/** Entries that are read for subscriptions that are behind, in one step. */
const CATCH_UP_ENTRIES = 256;
/** A subscription that is behind looks for more when it has no more untried deliveries than this. */
const REFILL_BELOW = 16;

export class LogWalk {
  readonly #webhooks: Pick<Webhooks, "size" | "eventAt">;
  readonly #found: (lane: SubscriptionLane) => void;
  /** Leaf index of the next entry of the shared walk. */
  position: number;
  readonly #head = new Selection<SubscriptionLane>();
  /** Lanes behind the head that have room, in the order of their turns. */
  readonly #behind = new Set<SubscriptionLane>();

  /** @param found called for each lane with a new delivery; it must not throw, and be quick */
  constructor(webhooks: Pick<Webhooks, "size" | "eventAt">, position: number, found: (lane: SubscriptionLane) => void) {
    this.#webhooks = webhooks;
    this.position = position;
    this.#found = found;
  }

  /** Takes a lane in, at its place. */
  join(lane: SubscriptionLane): void {
    if (lane.next >= this.position && lane.hasRoom) {
      lane.isAtHead = true;
      this.#head.add(lane);
    } else this.refill(lane);
  }

  leave(lane: SubscriptionLane): void {
    if (lane.isAtHead) this.#head.remove(lane);
    this.#behind.delete(lane);
  }

  /** To be called when a lane may have room again. */
  refill(lane: SubscriptionLane): void {
    if (lane.isAtHead || !lane.hasRoom || lane.found.length > REFILL_BELOW) return;
    if (lane.next >= this.position) this.join(lane);
    else this.#behind.add(lane);
  }

  /** Where a lane has to begin after a restart: at its first entry whose outcome is not on disk. */
  cursorOf(lane: SubscriptionLane): number {
    return lane.found[0] ?? (lane.isAtHead ? Math.max(this.position, lane.next) : lane.next);
  }

  /**
   * Does about a millisecond of work.
   * @returns whether there is more
   * @throws CairnlogError as `Webhooks.eventAt` does; then the entry is read again in the next step
   */
  step(): boolean {
    const until = performance.now() + STEP_MS;
    const { size } = this.#webhooks;
    if (!this.#head.size) this.position = Math.max(this.position, size);
    for (; this.position < size && performance.now() < until; this.position++) {
      const { position } = this;
      const reported = this.#webhooks.eventAt(position);
      if (reported) this.#tell(this.#head, reported, position);
    }
    if (this.#behind.size) this.#catchUp(until + STEP_MS);
    return this.position < size || this.#behind.size > 0;
  }

  /** Reads some entries for the lane whose turn it is, and for all others that need them. */
  #catchUp(until: number): void {
    const [first] = this.#behind;
    const from = first!.next;
    const end = Math.min(from + CATCH_UP_ENTRIES, this.position);
    const together = new Selection<SubscriptionLane>();
    const lanes = [...this.#behind].filter(({ next }) => next >= from && next < end);
    for (const lane of lanes) together.add(lane);
    let at = from;
    try {
      for (; at < end && together.size && (at === from || performance.now() < until); at++) {
        const reported = this.#webhooks.eventAt(at);
        if (reported) this.#tell(together, reported, at);
      }
    } finally {
      for (const lane of lanes) {
        // The next turn is that of another one.
        if (!this.#behind.delete(lane)) continue;
        lane.next = Math.max(lane.next, at);
        if (lane.next < this.position) this.#behind.add(lane);
        else this.join(lane);
      }
    }
  }

  #tell(selection: Selection<SubscriptionLane>, { event, payload }: Reported, leafIndex: number): void {
    selection.select(event, payload, (lane) => {
      if (leafIndex < lane.next) return;
      lane.found.push(leafIndex);
      this.#found(lane);
      if (lane.hasRoom) return;
      selection.remove(lane);
      lane.isAtHead = false;
      lane.next = leafIndex + 1;
      this.#behind.delete(lane);
    });
  }
}
