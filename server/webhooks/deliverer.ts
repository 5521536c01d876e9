/**
 * Delivers what the log records to the endpoints of subscriptions. It reads the log behind the appends, which write
 * nothing for it, and finds what each subscription is to be told; `attempts.ts` tells it.
 *
 * If we crash here, a subscription begins again at its cursor: what was delivered and not recorded is delivered twice.
 */

import { Pieces, turn } from "../../engine/base/turns.js";
import { type Clock, systemClock } from "../../engine/log/state/clock.js";
import type { Webhooks } from "../../engine/registry/webhooks/webhooks.js";
import type { WebhookRow } from "../../engine/store/schema/rows.js";
import type { Logger } from "../process/logger.js";
import { AddressPlaces, type FreePlaces } from "./address-places.js";
import { Attempts, type Leisure } from "./attempts.js";
import { BackgroundWork, type Schedule, systemSchedule } from "./background-work.js";
import { LogWalk } from "./log-walk.js";
import { OwnerKeys } from "./owner-keys.js";
import { WalkMark } from "./recording.js";
import type { Send } from "./send.js";
import { SubscriptionLane } from "./subscription-lane.js";

/** Owners whose keys are looked at in one command; each has at most twenty subscriptions. */
const OWNERS_AT_ONCE = 16;
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

type Changes = readonly { readonly key: number; readonly row: WebhookRow | undefined }[];

export class Deliverer {
  readonly #webhooks: Webhooks;
  readonly #logger: Logger;
  readonly #leisure: Leisure;
  readonly #lanes = new Map<number, SubscriptionLane>();
  readonly #attempts: Attempts;
  readonly #owners: OwnerKeys;
  #walk: LogWalk | null = null;
  /** Changes of subscriptions that were not considered yet; null if any may have changed. */
  #changes: { key: number; row: WebhookRow | undefined }[] | null = null;
  #isReading = false;
  /** Whether the log may have grown, or subscriptions may have changed, since the last look. */
  #isAwake = false;
  /** When the next step of reading may begin, by the monotonic clock. */
  #restUntil = 0;
  readonly #mark: WalkMark;
  readonly #unhealthy = new Set<number>();
  readonly #work: BackgroundWork;
  #unwatch: () => void = () => {};

  constructor(parts: DelivererParts) {
    const {
      clock = systemClock,
      schedule = systemSchedule,
      random = Math.random,
      places = new AddressPlaces(),
      leisure = LEISURE,
    } = parts;
    const { webhooks, send, logger } = parts;
    this.#webhooks = webhooks;
    this.#logger = logger;
    this.#leisure = leisure;
    this.#work = new BackgroundWork(schedule, logger);
    this.#mark = new WalkMark(webhooks.outbox, this.#work);
    const wake = () => this.#wake();
    this.#attempts = new Attempts({
      ...{ webhooks, send, places, logger, clock, schedule, leisure, random, work: this.#work, wake },
      refill: (lane) => this.#walk!.refill(lane),
    });
    this.#owners = new OwnerKeys(webhooks, clock, schedule, wake);
  }

  /** Number of successful attempts since the start. */
  get delivered(): number {
    return this.#attempts.delivered;
  }

  get failed(): number {
    return this.#attempts.failed;
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
      this.#attempts.pump();
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
      this.#walk = new LogWalk(this.#webhooks, begins, (lane) => this.#attempts.found(lane));
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
    this.#attempts.look(lane);
  }

  #end(lane: SubscriptionLane): void {
    this.#attempts.end(lane);
    this.#lanes.delete(lane.id);
    this.#owners.remove(lane);
    this.#walk!.leave(lane);
    if (lane.waiting) this.#work.run(this.#clear(lane.id));
  }

  /** Removes the waiting deliveries of a subscription that has ended. */
  async #clear(id: number): Promise<void> {
    for (let hasMore = true; hasMore && !this.#work.isStopped; )
      await this.#work.tried(async () => {
        hasMore = await this.#webhooks.outbox.clear(id);
      });
  }
}
