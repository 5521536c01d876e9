/**
 * The attempts of deliveries: whose turn it is, what a lane tries next, when it may, and what follows from the outcome. Every
 * lane has one attempt at a time, so its deliveries arrive in the order of the log, but for those that failed.
 *
 * If we crash here, what was delivered and not recorded is delivered twice.
 */

import { type Clock, formatTimestamp, parseTimestamp } from "../../engine/log/state/clock.js";
import { type Attempted, type FirstAttempt, isDue, mayTry, WINDOW } from "../../engine/registry/webhooks/deliveries.js";
import type { Delivery } from "../../engine/registry/webhooks/outbox.js";
import type { DeliveryContent, Endpoint, Webhooks } from "../../engine/registry/webhooks/webhooks.js";
import type { Logger } from "../process/logger.js";
import type { FreePlaces } from "./address-places.js";
import type { BackgroundWork, Schedule } from "./background-work.js";
import { deliveryRequest } from "./message.js";
import { Outcomes } from "./recording.js";
import { ATTEMPT_TIMEOUT_MS, type Send } from "./send.js";
import { LaneQueues, OwnerTurns, type SubscriptionLane } from "./subscription-lane.js";

/** Milliseconds of work that begins attempts which may come without a pause. */
const BURST_MS = 0.5;
/** Longest wait of a timer, in milliseconds, because timers do not notice when the clock is changed. */
const MAX_WAIT_MS = 60_000;

/** How much of the writer's thread is left to others, however much there is to deliver. */
export interface Leisure {
  /** Reading the log, and beginning attempts: each pauses for this many times as long as its work took. */
  readonly ratio: number;
  /** Milliseconds from one command with outcomes to the next. Those that come meanwhile share it. */
  readonly settleMs: number;
}

interface AttemptParts {
  readonly webhooks: Webhooks;
  readonly send: Send;
  /** The places at addresses that `send` takes. */
  readonly places: FreePlaces;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly leisure: Leisure;
  /** Random numbers from 0 to 1. */
  readonly random: () => number;
  readonly work: BackgroundWork;
  /** A lane may have room for more entries. */
  readonly refill: (lane: SubscriptionLane) => void;
  /** There may be something to be read for some of them. */
  readonly wake: () => void;
}

/** What a lane tries next. */
interface Attempt {
  readonly entryId: number;
  readonly delivery: Pick<Delivery, "entry_id" | "event" | "attempt" | "created_at">;
  readonly told: DeliveryContent;
  /** Absent for a delivery that is in the outbox. */
  readonly first?: FirstAttempt;
}

export class Attempts {
  readonly #parts: AttemptParts;
  readonly #webhooks: Webhooks;
  readonly #work: BackgroundWork;
  readonly #turns = new OwnerTurns();
  /** Lanes that wait for a place at an address, by address, in the order in which they get one. */
  readonly #parked = new LaneQueues();
  readonly #outcomes: Outcomes;
  /** When the work of beginning attempts is paid for by pauses, by the monotonic clock. */
  #paidAt = 0;
  /** Whether more attempts will be begun after a pause. */
  #isPumpDue = false;
  /** Number of successful attempts since the start. */
  delivered = 0;
  failed = 0;

  constructor(parts: AttemptParts) {
    const { webhooks, places, logger, leisure, work, wake } = parts;
    this.#parts = parts;
    this.#webhooks = webhooks;
    this.#work = work;
    places.freed = (place) => {
      this.#unpark(place);
      this.pump();
    };
    this.#outcomes = new Outcomes({
      ...{ outbox: webhooks.outbox, work, logger, settleMs: leisure.settleMs },
      settled: (outcomes) => {
        for (const { lane, outcome } of outcomes) this.#settled(lane, outcome);
        this.pump();
        wake();
      },
    });
  }

  /** An entry was found for a lane. */
  found(lane: SubscriptionLane): void {
    if (lane.state === "idle" || (lane.state === "resting" && !lane.isGated)) this.#ready(lane);
  }

  /** Makes an idle lane ready if it has something to try. */
  look(lane: SubscriptionLane): void {
    if (lane.state === "idle" && !lane.hasEnded && (lane.waiting || lane.untried !== undefined)) this.#ready(lane);
  }

  /** A lane ends: it gets no attempt more. */
  end(lane: SubscriptionLane): void {
    lane.hasEnded = true;
    lane.cancelTimer();
    this.#turns.remove(lane);
    if (lane.state === "parked") this.#parked.remove(lane.place!, lane);
    else if (lane.state === "ready") this.#passOn(lane);
  }

  #ready(lane: SubscriptionLane): void {
    lane.cancelTimer();
    lane.state = "ready";
    this.#turns.add(lane);
  }

  /** Starts attempts as long as there are places for them, and the writer's thread has time for it. */
  pump(): void {
    if (this.#isPumpDue) return;
    const { ratio } = this.#parts.leisure;
    const began = performance.now();
    this.#paidAt = Math.max(this.#paidAt, began);
    for (let now = began; !this.#work.isStopped; now = performance.now()) {
      if (this.#paidAt + ratio * (now - began) > now + ratio * BURST_MS) {
        this.#resumePump();
        break;
      }
      const lane = this.#turns.take();
      if (!lane) break;
      lane.state = "idle";
      let begun = false;
      try {
        begun = this.#begin(lane);
      } catch (error) {
        this.#parts.logger.error({ err: error, webhook: lane.id }, "a webhook delivery cannot be read");
        this.#rest(lane, MAX_WAIT_MS, true);
      }
      if (begun) continue;
      this.#turns.leave(lane);
      this.#passOn(lane);
    }
    this.#paidAt += ratio * (performance.now() - began);
  }

  #resumePump(): void {
    this.#isPumpDue = true;
    this.#work.run(
      this.#work.leaveThread(this.#parts.leisure.ratio * BURST_MS).then(() => {
        this.#isPumpDue = false;
        this.pump();
      }),
    );
  }

  /** Has a lane wait for a place at an address that has none free. */
  #park(lane: SubscriptionLane, place: string): void {
    lane.state = "parked";
    lane.place = place;
    this.#parked.put(place, lane);
    this.#unpark(place);
    this.pump();
  }

  /** Makes the lane ready that has waited longest for a place at an address, if there is a place. */
  #unpark(place: string): void {
    const [lane] = this.#parked.get(place) ?? [];
    if (!lane || this.#work.isStopped || this.#parts.places.isFull(place)) return;
    this.#parked.remove(place, lane);
    this.#ready(lane);
  }

  /** A lane that was made ready for a place needs it no more, or has never taken it: the next one may. */
  #passOn(lane: SubscriptionLane): void {
    const { place } = lane;
    lane.place = null;
    if (place !== null) this.#unpark(place);
  }

  /** @returns whether an attempt was started */
  #begin(lane: SubscriptionLane): boolean {
    const endpoint = this.#webhooks.endpoint(lane.id);
    if (!endpoint) return false;
    const now = formatTimestamp(this.#parts.clock());
    if (!mayTry(endpoint, now)) {
      this.#rest(lane, until(endpoint.next_probe_at!, now), true);
      return false;
    }
    const chosen = this.#choose(lane, endpoint, now);
    if (chosen === null) return false;
    if (typeof chosen === "string") {
      this.#rest(lane, until(chosen, now), false);
      return false;
    }
    this.#work.run(this.#attempt(lane, endpoint, chosen));
    return true;
  }

  /** @returns what to try now, or the time when there will be something, or null if that is not known */
  #choose(lane: SubscriptionLane, { healthy }: Endpoint, now: string): Attempt | string | null {
    if (lane.waiting) lane.rows ??= byTime(this.#webhooks.outbox.oldest(lane.id, WINDOW));
    const rows = (lane.waiting && lane.rows) || [];
    // An unhealthy endpoint is tried for a delivery that is not due, too.
    const row = healthy ? rows.find((delivery) => isDue(delivery, now)) : rows[0];
    if (row) {
      const told = this.#webhooks.told(row.entry_id);
      if (told) return { entryId: row.entry_id, delivery: row, told };
    }
    for (let leaf = lane.untried; leaf !== undefined; leaf = lane.untried) {
      const reported = this.#webhooks.eventAt(leaf);
      const told = reported && this.#webhooks.told(reported.entry_id);
      if (told) {
        const { entry_id, event, created_at } = reported;
        const first = { event, created_at, next: leaf + 1 };
        return { entryId: entry_id, delivery: { entry_id, event, attempt: 0, created_at }, told, first };
      }
      // The operator has withheld its content since it was found.
      lane.found.splice(lane.tried, 1);
      this.#parts.refill(lane);
      this.#parts.wake();
    }
    return rows[0] ? timeOf(rows[0]) : null;
  }

  #rest(lane: SubscriptionLane, milliseconds: number, isGated: boolean): void {
    lane.state = "resting";
    lane.isGated = isGated;
    lane.cancelTimer = this.#parts.schedule(Math.min(Math.max(milliseconds, 0), MAX_WAIT_MS), () => {
      lane.state = "idle";
      this.look(lane);
      this.pump();
    });
  }

  async #attempt(
    lane: SubscriptionLane,
    endpoint: Endpoint,
    { entryId, delivery, told, first }: Attempt,
  ): Promise<void> {
    lane.state = "under way";
    const request = deliveryRequest(lane.id, delivery, told, endpoint, this.#parts.clock());
    const { isDelivered, reason, busy, isGone, retryAfter } = await this.#work.within(
      ATTEMPT_TIMEOUT_MS,
      (signal) => this.#parts.send(request, signal),
      { isDelivered: false, reason: "timeout" },
    );
    this.#turns.leave(lane);
    this.#passOn(lane);
    if (busy !== undefined && !lane.hasEnded) {
      this.#park(lane, busy);
      return;
    }
    const { attempt } = delivery;
    this.#parts.logger.debug({ webhook: lane.id, entry: entryId, attempt, isDelivered, reason }, "webhook attempt");
    if (this.#work.isStopped && !isDelivered) return;
    if (isDelivered) this.delivered++;
    else this.failed++;
    const at = formatTimestamp(this.#parts.clock());
    const outcome: Attempted = {
      ...{ webhookId: lane.id, entryId, attempt, isDelivered, at, jitter: this.#parts.random() },
      ...(first && { first }),
      ...(isGone && { isGone }),
      ...(retryAfter !== undefined && { retryAfter }),
    };
    this.#outcomes.add(lane, outcome);
    // The usual case needs not wait for the disk. If we crash before it is written, it is delivered a second time.
    const isPlain = first !== undefined && isDelivered && endpoint.retry_count === 0;
    if (first) lane.tried++;
    lane.state = isPlain ? "idle" : "settling";
    this.look(lane);
    this.pump();
  }

  #settled(lane: SubscriptionLane, { first, isDelivered }: Attempted): void {
    if (lane.hasEnded) return;
    if (first) {
      lane.found.shift();
      lane.tried--;
      lane.cursor = "kept";
    }
    if (!first || !isDelivered) {
      lane.waiting = this.#webhooks.outbox.count(lane.id);
      lane.rows = null;
    }
    if (lane.state === "settling") lane.state = "idle";
    this.#parts.refill(lane);
    this.look(lane);
  }
}

const timeOf = ({ next_attempt_at, created_at }: Delivery): string => next_attempt_at ?? created_at;

/** The longest waiting first. */
const byTime = (deliveries: readonly Delivery[]): readonly Delivery[] =>
  [...deliveries].sort((a, b) => (timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : a.entry_id - b.entry_id));

/** Milliseconds from `now` to `time`. */
const until = (time: string, now: string): number => Math.ceil((parseTimestamp(time) - parseTimestamp(now)) / 1000);
