/** The deliveries of one subscription, as far as the deliverer knows of them. Everything here is memory. */

import type { WebhookFilter } from "../../engine/registry/events/webhooks.js";
import { WINDOW } from "../../engine/registry/webhooks/deliveries.js";
import type { Delivery } from "../../engine/registry/webhooks/outbox.js";
import type { WebhookRow } from "../../engine/store/schema/rows.js";

/** What a lane waits for. */
type LaneState =
  /** An entry. */
  | "idle"
  /** Its turn. */
  | "ready"
  | "under way"
  /** For its outcome to be on disk: the next step depends on it. */
  | "settling"
  /** A place at an address that has as many attempts as it may have. */
  | "parked"
  /** For its timer. */
  | "resting";

export class SubscriptionLane implements WebhookFilter {
  readonly id: number;
  readonly owner: string;
  readonly events: WebhookFilter["events"];
  readonly key_fingerprint: string | null;
  readonly document_hash: string | null;
  /** Leaf index of the first entry that was not looked at; at the head of the log, the walk's position counts instead. */
  next: number;
  /** Whether it takes part in the walk that all subscriptions share. */
  isAtHead = false;
  /** Leaf indexes of selected entries whose outcome is not on disk, ascending. */
  readonly found: number[] = [];
  /** How many of these, the first ones, were tried. */
  tried = 0;
  /** Number of its rows in the outbox. */
  waiting: number;
  /** The first of these rows; null if they have to be read. */
  rows: readonly Delivery[] | null = null;
  /** Whether it has a cursor of its own on disk. */
  hasCursor: boolean;
  state: LaneState = "idle";
  /** While it rests: whether nothing may be tried before, as opposed to: there is nothing to try before. */
  isGated = false;
  /** The address at which it waits for a place, or was made ready for one; null if it does not. */
  place: string | null = null;
  /** Whether the subscription exists. */
  hasEnded = false;
  cancelTimer: () => void = () => {};

  constructor(
    id: number,
    row: WebhookRow,
    { next, waiting, hasCursor }: Pick<SubscriptionLane, "next" | "waiting" | "hasCursor">,
  ) {
    this.id = id;
    this.owner = row.owner_fingerprint;
    this.events = row.events;
    this.key_fingerprint = row.key_fingerprint;
    this.document_hash = row.document_hash;
    this.next = next;
    this.waiting = waiting;
    this.hasCursor = hasCursor;
  }

  /** Whether it may look at more entries. */
  get hasRoom(): boolean {
    return this.found.length + this.waiting < WINDOW;
  }

  /** The next entry that was found and not tried. */
  get untried(): number | undefined {
    return this.found[this.tried];
  }
}

/** Lanes by a key; those of each key in the order in which they came. */
export class LaneQueues extends Map<string, Set<SubscriptionLane>> {
  put(key: string, lane: SubscriptionLane): void {
    const lanes = this.get(key);
    if (lanes) lanes.add(lane);
    else this.set(key, new Set([lane]));
  }

  remove(key: string, lane: SubscriptionLane): void {
    const lanes = this.get(key);
    if (lanes?.delete(lane) && !lanes.size) this.delete(key);
  }
}
