/**
 * Delivers what the log records to the endpoints of subscriptions. It reads the log behind the appends, which write
 * nothing for it. Every subscription has a lane of its own with one attempt at a time, so its deliveries arrive in the
 * order of the log, but for those that failed.
 *
 * If we crash here, a subscription begins again at its cursor: what was delivered and not recorded is delivered twice.
 */

import { Pieces, turn } from "../../engine/base/turns.js";
import { type Clock, formatTimestamp, parseTimestamp, systemClock } from "../../engine/log/state/clock.js";
import { type Attempted, type FirstAttempt, isDue, mayTry, WINDOW } from "../../engine/registry/webhooks/deliveries.js";
import type { Delivery } from "../../engine/registry/webhooks/outbox.js";
import type { DeliveryContent, Endpoint, Webhooks } from "../../engine/registry/webhooks/webhooks.js";
import type { WebhookRow } from "../../engine/store/schema/rows.js";
import type { Logger } from "../process/logger.js";
import { AddressPlaces, type FreePlaces } from "./address-places.js";
import { BackgroundWork, type Schedule, systemSchedule } from "./background-work.js";
import { LogWalk } from "./log-walk.js";
import { deliveryRequest } from "./message.js";
import { OwnerKeys } from "./owner-keys.js";
import { Outcomes, WalkMark } from "./recording.js";
import { ATTEMPT_TIMEOUT_MS, type Send } from "./send.js";
import { LaneQueues, OwnerTurns, SubscriptionLane } from "./subscription-lane.js";

/** Owners whose keys are looked at in one command; each has at most twenty subscriptions. */
const OWNERS_AT_ONCE = 16;
/** Milliseconds of work that begins attempts which may come without a pause. */
const BURST_MS = 0.5;
/** Longest wait of a timer, in milliseconds, because timers do not notice when the clock is changed. */
const MAX_WAIT_MS = 60_000;

/** How much of the writer's thread it leaves to others, however much there is to deliver. */
interface Leisure {
  /** Reading the log, and beginning attempts: each pauses for this many times as long as its work took. */
  readonly ratio: number;
  /** Milliseconds from one command with outcomes to the next. Those that come meanwhile share it. */
  readonly settleMs: number;
}

/** A tenth of the thread for reading, another one for attempts, and twenty commands a second. */
const LEISURE: Leisure = { ratio: 9, settleMs: 50 };

interface DelivererParts {
  readonly webhooks: Webhooks;
  readonly send: Send;
  /** The places at addresses that `send` takes. */
  readonly places?: FreePlaces;
  readonly logger: Logger;
  readonly clock?: Clock;
  readonly schedule?: Schedule;
  readonly leisure?: Leisure;
  /** Random numbers from 0 to 1. */
  readonly random?: () => number;
}

/** What a lane tries next. */
interface Attempt {
  readonly entryId: number;
  readonly delivery: Pick<Delivery, "entry_id" | "event" | "attempt" | "created_at">;
  readonly told: DeliveryContent;
  /** Absent for a delivery that is in the outbox. */
  readonly first?: FirstAttempt;
}

type Changes = readonly { readonly key: number; readonly row: WebhookRow | undefined }[];

export class Deliverer {
  readonly #webhooks: Webhooks;
  readonly #send: Send;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  readonly #random: () => number;
  readonly #leisure: Leisure;
  readonly #lanes = new Map<number, SubscriptionLane>();
  readonly #turns = new OwnerTurns();
  readonly #places: FreePlaces;
  readonly #owners: OwnerKeys;
  /** Lanes that wait for a place at an address, by address, in the order in which they get one. */
  readonly #parked = new LaneQueues();
  #walk: LogWalk | null = null;
  /** Changes of subscriptions that were not considered yet; null if any may have changed. */
  #changes: { key: number; row: WebhookRow | undefined }[] | null = null;
  #isReading = false;
  /** Whether the log may have grown, or subscriptions may have changed, since the last look. */
  #isAwake = false;
  /** When the next step of reading may begin, by the monotonic clock. */
  #restUntil = 0;
  /** When the work of beginning attempts is paid for by pauses, by the same clock. */
  #paidAt = 0;
  /** Whether more attempts will be begun after a pause. */
  #isPumpDue = false;
  readonly #outcomes: Outcomes;
  readonly #mark: WalkMark;
  readonly #unhealthy = new Set<number>();
  readonly #work: BackgroundWork;
  #unwatch: () => void = () => {};
  /** Number of successful attempts since the start. */
  delivered = 0;
  failed = 0;

  constructor(parts: DelivererParts) {
    const {
      clock = systemClock,
      schedule = systemSchedule,
      random = Math.random,
      places = new AddressPlaces(),
    } = parts;
    this.#places = places;
    places.freed = (place) => {
      this.#unpark(place);
      this.#pump();
    };
    this.#webhooks = parts.webhooks;
    this.#send = parts.send;
    this.#logger = parts.logger;
    this.#clock = clock;
    this.#schedule = schedule;
    this.#random = random;
    this.#leisure = parts.leisure ?? LEISURE;
    this.#work = new BackgroundWork(schedule, parts.logger);
    const { outbox } = parts.webhooks;
    this.#mark = new WalkMark(outbox, this.#work);
    this.#outcomes = new Outcomes({
      ...{ outbox, work: this.#work, logger: parts.logger, settleMs: this.#leisure.settleMs },
      settled: (outcomes) => {
        for (const { lane, outcome } of outcomes) this.#settled(lane, outcome);
        this.#pump();
        this.#wake();
      },
    });
    this.#owners = new OwnerKeys(parts.webhooks, clock, schedule, () => this.#wake());
  }

  /** Subscriptions whose endpoint is unhealthy. */
  get unhealthy(): number {
    return this.#unhealthy.size;
  }

  /** Deliveries that are known and were not made: those in the outbox, and those that were found in the log. */
  get waiting(): number {
    let sum = 0;
    for (const { waiting, found } of this.#lanes.values()) sum += waiting + found.length;
    return sum;
  }

  /** Entries that were not matched with subscriptions yet. */
  get unread(): number {
    return this.#walk ? this.#webhooks.size - this.#walk.position : 0;
  }

  /** Subscriptions for which not all entries of the log were looked at. */
  get behind(): number {
    let sum = 0;
    for (const { isAtHead } of this.#lanes.values()) if (!isAtHead) sum++;
    return sum;
  }

  /** Goes on where an earlier run has stopped. */
  start(): void {
    this.#unwatch = this.#webhooks.watch({
      grown: () => this.#grown(),
      changed: (changes) => this.#note(changes),
      keyChanged: (fingerprint) => {
        if (this.#owners.changed(fingerprint)) this.#wake();
      },
    });
    this.#wake();
  }

  /** Cancels running attempts without recording them, and resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.#unwatch();
    for (const lane of this.#lanes.values()) lane.cancelTimer();
    await this.#work.stop();
    // Until it has stopped, it may still begin to wait for a key.
    this.#owners.stop();
  }

  /** Called while a batch is being released. Without subscriptions, nothing has to be read. */
  #grown(): void {
    if (this.#walk && !this.#lanes.size && !this.#isReading) this.#walk.position = this.#webhooks.size;
    else this.#wake();
  }

  /** Called while a batch is being released. */
  #wake(): void {
    this.#isAwake = true;
    if (this.#isReading || this.#work.isStopped) return;
    this.#isReading = true;
    this.#work.run(this.#read());
  }

  /** Called while a batch is being released. */
  #note(changes: Changes | null): void {
    if (changes) this.#changes?.push(...changes);
    else this.#changes = null;
    this.#wake();
  }

  /** Reads the log in small steps, until there is nothing to be read. */
  async #read(): Promise<void> {
    await turn();
    while (this.#isAwake && !this.#work.isStopped) {
      const rest = this.#restUntil - performance.now();
      if (rest > 0) await this.#work.leaveThread(rest);
      this.#isAwake = false;
      await this.#work
        .tried(async () => {
          const changes = this.#changes;
          this.#changes = [];
          if (changes) this.#apply(changes);
          else await this.#open();
          await this.#endWithKeys();
          const started = performance.now();
          if (this.#work.isStopped || this.#walk?.step()) this.#isAwake = true;
          const ended = performance.now();
          this.#restUntil = ended + this.#leisure.ratio * (ended - started);
        })
        .then((isDone) => {
          if (isDone) return;
          this.#changes = null;
          this.#isAwake = true;
        });
      this.#pump();
      // Behind the mark, a subscription that has come meanwhile must have a lane with a cursor, or it would lose what was walked.
      if (this.#walk && this.#changes?.length === 0) this.#mark.whenDue(this.#walk, this.#lanes);
    }
    this.#isReading = false;
  }

  /** Reads all subscriptions: at the start, and after a failure. */
  async #open(): Promise<void> {
    const { outbox } = this.#webhooks;
    const walked = outbox.walked;
    const rows = this.#webhooks.all();
    const ids = new Set(rows.map(({ key }) => key));
    for (const lane of [...this.#lanes.values()]) if (!ids.has(lane.id)) this.#end(lane);
    const pieces = new Pieces();
    const added: SubscriptionLane[] = [];
    for (const { key, row } of rows) {
      this.#noteHealth(key, row);
      if (!this.#lanes.has(key)) added.push(this.#laneOf(key, row, walked));
      const rest = pieces.rest();
      if (rest) await rest;
    }
    for (const lane of added) this.#lanes.set(lane.id, lane);
    if (!this.#walk) {
      // Those with a cursor before the shared walk catch up with it on their own.
      const atHead = added.filter(({ next }) => next >= (walked ?? 0));
      const begins = atHead.reduce((least, { next }) => Math.min(least, next), this.#webhooks.size);
      this.#walk = new LogWalk(this.#webhooks, begins, (lane) => this.#found(lane));
      this.#mark.begin(walked);
    }
    for (const lane of added) this.#join(lane);
    this.#owners.checkAll();
    // Left over by a crash after a subscription had ended.
    for (const id of outbox.webhookIds()) if (!this.#lanes.has(id)) this.#work.run(this.#clear(id));
  }

  #apply(changes: Changes): void {
    for (const { key, row } of changes) {
      const lane = this.#lanes.get(key);
      this.#noteHealth(key, row);
      if (!row && lane) this.#end(lane);
      if (!row || lane) continue;
      const added = this.#laneOf(key, row, this.#webhooks.outbox.walked);
      this.#lanes.set(key, added);
      this.#join(added);
    }
  }

  /** Ends subscriptions whose keys have ended. */
  async #endWithKeys(): Promise<void> {
    const ids = this.#owners.take(OWNERS_AT_ONCE);
    if (this.#owners.isDue) this.#isAwake = true;
    if (!ids.length) return;
    // If the log refuses, the next look at all subscriptions begins with all of their keys (`#open`).
    for (const webhook of await this.#webhooks.endWithKey(ids))
      this.#logger.warn({ webhook, reason: "key-ended" }, "webhook has ended");
  }

  #noteHealth(id: number, row: WebhookRow | undefined): void {
    if (row && !row.healthy) this.#unhealthy.add(id);
    else this.#unhealthy.delete(id);
  }

  #laneOf(id: number, row: WebhookRow, walked: number | undefined): SubscriptionLane {
    const { outbox, size } = this.#webhooks;
    const cursor = outbox.cursor(id);
    // Versions before cursors queued everything in the outbox until they ended, so what came since is all that is left.
    const since = row.since ?? walked ?? size;
    const next = cursor ?? Math.max(walked ?? 0, since);
    return new SubscriptionLane(id, row, {
      next,
      waiting: outbox.count(id),
      cursor: cursor === undefined ? "none" : "kept",
    });
  }

  #join(lane: SubscriptionLane): void {
    this.#owners.add(lane);
    this.#walk!.join(lane);
    this.#look(lane);
  }

  #end(lane: SubscriptionLane): void {
    lane.hasEnded = true;
    lane.cancelTimer();
    this.#lanes.delete(lane.id);
    this.#turns.remove(lane);
    this.#owners.remove(lane);
    if (lane.state === "parked") this.#parked.remove(lane.place!, lane);
    else if (lane.state === "ready") this.#passOn(lane);
    this.#walk!.leave(lane);
    if (lane.waiting) this.#work.run(this.#clear(lane.id));
  }

  /** An entry was found for a lane. */
  #found(lane: SubscriptionLane): void {
    if (lane.state === "idle" || (lane.state === "resting" && !lane.isGated)) this.#ready(lane);
  }

  /** Makes an idle lane ready if it has something to try. */
  #look(lane: SubscriptionLane): void {
    if (lane.state === "idle" && !lane.hasEnded && (lane.waiting || lane.untried !== undefined)) this.#ready(lane);
  }

  #ready(lane: SubscriptionLane): void {
    lane.cancelTimer();
    lane.state = "ready";
    this.#turns.add(lane);
  }

  /** Starts attempts as long as there are places for them, and the writer's thread has time for it. */
  #pump(): void {
    if (this.#isPumpDue) return;
    const { ratio } = this.#leisure;
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
        this.#logger.error({ err: error, webhook: lane.id }, "a webhook delivery cannot be read");
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
      this.#work.leaveThread(this.#leisure.ratio * BURST_MS).then(() => {
        this.#isPumpDue = false;
        this.#pump();
      }),
    );
  }

  /** Has a lane wait for a place at an address that has none free. */
  #park(lane: SubscriptionLane, place: string): void {
    lane.state = "parked";
    lane.place = place;
    this.#parked.put(place, lane);
    this.#unpark(place);
    this.#pump();
  }

  /** Makes the lane ready that has waited longest for a place at an address, if there is a place. */
  #unpark(place: string): void {
    const [lane] = this.#parked.get(place) ?? [];
    if (!lane || this.#work.isStopped || this.#places.isFull(place)) return;
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
    const now = formatTimestamp(this.#clock());
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
      this.#walk!.refill(lane);
      this.#wake();
    }
    return rows[0] ? timeOf(rows[0]) : null;
  }

  #rest(lane: SubscriptionLane, milliseconds: number, isGated: boolean): void {
    lane.state = "resting";
    lane.isGated = isGated;
    lane.cancelTimer = this.#schedule(Math.min(Math.max(milliseconds, 0), MAX_WAIT_MS), () => {
      lane.state = "idle";
      this.#look(lane);
      this.#pump();
    });
  }

  async #attempt(
    lane: SubscriptionLane,
    endpoint: Endpoint,
    { entryId, delivery, told, first }: Attempt,
  ): Promise<void> {
    lane.state = "under way";
    const request = deliveryRequest(lane.id, delivery, told, endpoint, this.#clock());
    const { isDelivered, reason, busy, isGone, retryAfter } = await this.#work.within(
      ATTEMPT_TIMEOUT_MS,
      (signal) => this.#send(request, signal),
      { isDelivered: false, reason: "timeout" },
    );
    this.#turns.leave(lane);
    this.#passOn(lane);
    if (busy !== undefined && !lane.hasEnded) {
      this.#park(lane, busy);
      return;
    }
    const { attempt } = delivery;
    this.#logger.debug({ webhook: lane.id, entry: entryId, attempt, isDelivered, reason }, "webhook attempt");
    if (this.#work.isStopped && !isDelivered) return;
    if (isDelivered) this.delivered++;
    else this.failed++;
    const at = formatTimestamp(this.#clock());
    const outcome: Attempted = {
      ...{ webhookId: lane.id, entryId, attempt, isDelivered, at, jitter: this.#random() },
      ...(first && { first }),
      ...(isGone && { isGone }),
      ...(retryAfter !== undefined && { retryAfter }),
    };
    this.#outcomes.add(lane, outcome);
    // The usual case needs not wait for the disk. If we crash before it is written, it is delivered a second time.
    const isPlain = first !== undefined && isDelivered && endpoint.retry_count === 0;
    if (first) lane.tried++;
    lane.state = isPlain ? "idle" : "settling";
    this.#look(lane);
    this.#pump();
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
    this.#walk!.refill(lane);
    this.#look(lane);
  }

  /** Removes the waiting deliveries of a subscription that has ended. */
  async #clear(id: number): Promise<void> {
    for (let hasMore = true; hasMore && !this.#work.isStopped; )
      await this.#work.tried(async () => {
        hasMore = await this.#webhooks.outbox.clear(id);
      });
  }
}

const timeOf = ({ next_attempt_at, created_at }: Delivery): string => next_attempt_at ?? created_at;

/** The longest waiting first. */
const byTime = (deliveries: readonly Delivery[]): readonly Delivery[] =>
  [...deliveries].sort((a, b) => (timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : a.entry_id - b.entry_id));

/** Milliseconds from `now` to `time`. */
const until = (time: string, now: string): number => Math.ceil((parseTimestamp(time) - parseTimestamp(now)) / 1000);
