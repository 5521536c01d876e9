/** Watches the keys that own subscriptions: a subscription ends with its key. */
import { type Clock, formatTimestamp, parseTimestamp } from "../../engine/log/state/clock.js";
import type { Webhooks } from "../../engine/registry/webhooks/webhooks.js";
import type { Schedule } from "./background-work.js";
import type { SubscriptionLane } from "./subscription-lane.js";

/** Longest wait for the expiry of a key, in milliseconds: timers do not notice when the clock is changed. */
const MAX_WAIT_MS = 3_600_000;

interface Owner {
  readonly lanes: Set<SubscriptionLane>;
  cancelTimer: () => void;
}

export class OwnerKeys {
  readonly #webhooks: Pick<Webhooks, "ownerAt">;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  readonly #owners = new Map<string, Owner>();
  /** Owners whose keys may have ended, or may expire at another time. */
  readonly #due = new Set<string>();
  readonly #onDue: () => void;

  /** @param onDue called when a key may have expired */
  constructor(webhooks: Pick<Webhooks, "ownerAt">, clock: Clock, schedule: Schedule, onDue: () => void) {
    this.#webhooks = webhooks;
    this.#clock = clock;
    this.#schedule = schedule;
    this.#onDue = onDue;
  }

  /** A key that was there before may have ended while nobody watched, so it is checked once. */
  add(lane: SubscriptionLane): void {
    let owner = this.#owners.get(lane.owner);
    if (!owner) {
      owner = { lanes: new Set(), cancelTimer: () => {} };
      this.#owners.set(lane.owner, owner);
      this.#due.add(lane.owner);
    }
    owner.lanes.add(lane);
  }

  remove(lane: SubscriptionLane): void {
    const owner = this.#owners.get(lane.owner);
    if (!owner?.lanes.delete(lane) || owner.lanes.size) return;
    owner.cancelTimer();
    this.#owners.delete(lane.owner);
    this.#due.delete(lane.owner);
  }

  /** The key has ended, or will expire. @returns whether it owns a subscription */
  changed(fingerprint: string): boolean {
    if (!this.#owners.has(fingerprint)) return false;
    this.#due.add(fingerprint);
    return true;
  }

  /** Any key may have ended. */
  checkAll(): void {
    for (const fingerprint of this.#owners.keys()) this.#due.add(fingerprint);
  }

  /** Whether `take` has something. */
  get isDue(): boolean {
    return this.#due.size > 0;
  }

  /** Takes the ids of subscriptions whose keys have ended, of at most `limit` owners. What is sure, the command says. */
  take(limit: number): number[] {
    const ids: number[] = [];
    for (const fingerprint of this.#due) {
      if (limit-- <= 0) break;
      this.#due.delete(fingerprint);
      const owner = this.#owners.get(fingerprint)!;
      owner.cancelTimer();
      const key = this.#look(fingerprint);
      if (!key?.isActive) for (const { id } of owner.lanes) ids.push(id);
      else if (key.expires_at !== null) this.#await(fingerprint, owner, key.expires_at);
    }
    return ids;
  }

  stop(): void {
    for (const { cancelTimer } of this.#owners.values()) cancelTimer();
  }

  /** Waits until the key expires. */
  #await(fingerprint: string, owner: Owner, expires: string): void {
    const wait = Math.ceil((parseTimestamp(expires) - this.#clock()) / 1000);
    owner.cancelTimer = this.#schedule(Math.min(wait, MAX_WAIT_MS), () => {
      this.#due.add(fingerprint);
      this.#onDue();
    });
  }

  #look(fingerprint: string) {
    return this.#webhooks.ownerAt(fingerprint, formatTimestamp(this.#clock()));
  }
}
