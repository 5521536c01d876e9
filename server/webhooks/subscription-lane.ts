/** The deliveries of one subscription, as far as the deliverer knows of them, and whose turn it is. Everything here is memory. */

import { WINDOW } from "../../engine/registry/webhooks/deliveries.js";
import type { Delivery } from "../../engine/registry/webhooks/outbox.js";
import type { WebhookFilter } from "../../engine/registry/webhooks/subscriptions.js";
import type { WebhookRow } from "../../engine/store/schema/rows.js";
import { WEBHOOK_FILES } from "../process/machine.js";

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

/** Whether it has a cursor of its own on disk; unsure while a command is under way, and after one that failed. */
type CursorState = "kept" | "none" | "unsure";

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
  cursor: CursorState;
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
    { next, waiting, cursor }: Pick<SubscriptionLane, "next" | "waiting" | "cursor">,
  ) {
    this.id = id;
    this.owner = row.owner_fingerprint;
    this.events = row.events;
    this.key_fingerprint = row.key_fingerprint;
    this.document_hash = row.document_hash;
    this.next = next;
    this.waiting = waiting;
    this.cursor = cursor;
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

// Who may try next. All attempts of the service share a fixed number of places, since each takes a descriptor and some
// memory, and anybody can have endpoints that never answer. Owners of subscriptions take turns.

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
