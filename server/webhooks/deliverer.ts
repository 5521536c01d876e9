/**
 * Delivers the messages in the outbox to the endpoints. Every subscription has a lane of its own, so a slow endpoint
 * delays only its own deliveries. The results of many attempts are written by one separate command; appends never wait
 * for this.
 */

import { CairnlogError } from "../../engine/error.js";
import { type Clock, formatTimestamp, parseTimestamp, systemClock } from "../../engine/log/clock.js";
import { isDue, mayTry, type Outcome } from "../../engine/registry/webhooks/deliveries.js";
import { hostOf } from "../../engine/registry/webhooks/input.js";
import type { Delivery } from "../../engine/registry/webhooks/outbox.js";
import type { Endpoint, Told, Webhooks } from "../../engine/registry/webhooks/webhooks.js";
import { turn } from "../../engine/turns.js";
import type { Logger } from "../http/observing/logger.js";
import { deliveryRequest } from "./message.js";
import type { Send } from "./send.js";

/** Time limit for one attempt in milliseconds, from resolving the name to the end of the answer. */
const ATTEMPT_TIMEOUT_MS = 10_000;
/** Simultaneous attempts of one lane. */
const LANE_WIDTH = 4;
/**
 * Simultaneous attempts to one host, from all lanes: nobody can make the service flood a host with many subscriptions.
 */
const HOST_WIDTH = 4;
/** Deliveries of a lane that are considered: this many may wait for a retry before they delay newer ones. */
const WINDOW = 100;
/** Outcomes written in one command. */
const MAX_OUTCOMES = 512;
/** Milliseconds before the log is tried again after it refused. */
const PAUSE_MS = 1_000;
/** Longest wait of a timer, in milliseconds, because timers do not notice when the clock is changed. */
const MAX_WAIT_MS = 60_000;

/** Calls `run` once after this many milliseconds, unless the returned function is called before. */
export type Schedule = (milliseconds: number, run: () => void) => () => void;

const systemSchedule: Schedule = (milliseconds, run) => {
  const timer = setTimeout(run, milliseconds);
  return () => clearTimeout(timer);
};

export interface DelivererParts {
  readonly webhooks: Webhooks;
  readonly send: Send;
  readonly logger: Logger;
  readonly clock?: Clock;
  readonly schedule?: Schedule;
  /** Random numbers from 0 to 1. */
  readonly random?: () => number;
}

/** The deliveries of one subscription. */
interface Lane {
  readonly id: number;
  /** Entry ids of attempts whose outcome has not been written. */
  readonly inFlight: Set<number>;
  cancelTimer: () => void;
}

/** The attempts to one host, from all lanes. */
interface Host {
  underWay: number;
  /** Lanes with deliveries for the host, in the order in which they get the next free place. */
  readonly waiting: Set<number>;
}

export class Deliverer {
  readonly #webhooks: Webhooks;
  readonly #send: Send;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #schedule: Schedule;
  readonly #random: () => number;
  /** Lanes by webhook id; only for subscriptions with waiting deliveries. */
  readonly #lanes = new Map<number, Lane>();
  /** Hosts by name; only those with a running attempt. */
  readonly #hosts = new Map<string, Host>();
  /** Subscriptions with changes that have not been considered yet. */
  readonly #touched = new Set<number>();
  /** Whether any subscription may have such changes. */
  #isAnyTouched = false;
  #outcomes: Outcome[] = [];
  #isFollowing = false;
  #isSettling = false;
  #isStopped = false;
  readonly #tasks = new Set<Promise<void>>();
  /** Functions that end the current waits. */
  readonly #interrupts = new Set<() => void>();
  /** Number of successful attempts since the start. */
  delivered = 0;
  failed = 0;

  constructor(parts: DelivererParts) {
    const { clock = systemClock, schedule = systemSchedule, random = Math.random } = parts;
    this.#webhooks = parts.webhooks;
    this.#send = parts.send;
    this.#logger = parts.logger;
    this.#clock = clock;
    this.#schedule = schedule;
    this.#random = random;
  }

  /** Begins with the deliveries that an earlier run left in the outbox. */
  start(): void {
    this.#webhooks.watch((ids) => this.#wake(ids));
    for (const id of this.#webhooks.outbox.webhookIds()) this.#look(id);
  }

  /** Cancels running attempts without recording them, and resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#webhooks.watch(() => {});
    for (const lane of this.#lanes.values()) lane.cancelTimer();
    for (const interrupt of [...this.#interrupts]) interrupt();
    while (this.#tasks.size) await Promise.all(this.#tasks);
  }

  #run(task: Promise<void>): void {
    const running = task.finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }

  /** Called while a batch is being released. */
  #wake(ids: readonly number[] | null): void {
    for (const id of ids ?? []) this.#touched.add(id);
    if (!ids) this.#isAnyTouched = true;
    if (this.#isFollowing || this.#isStopped) return;
    this.#isFollowing = true;
    this.#run(this.#follow());
  }

  /** Considers the changed subscriptions, after the batches of this turn of the event loop have been released. */
  async #follow(): Promise<void> {
    await turn();
    while ((this.#touched.size || this.#isAnyTouched) && !this.#isStopped)
      await this.#tried(async () => {
        if (this.#isAnyTouched) for (const id of this.#webhooks.outbox.webhookIds()) this.#touched.add(id);
        this.#isAnyTouched = false;
        for (const id of this.#touched) {
          this.#look(id);
          this.#touched.delete(id);
        }
      });
    this.#isFollowing = false;
  }

  /** Starts the attempts of a lane that are due, and schedules the next look at the lane. */
  #look(id: number): void {
    if (this.#isStopped) return;
    const lane = this.#lanes.get(id) ?? { id, inFlight: new Set(), cancelTimer: () => {} };
    // The end of an attempt triggers the next look. So an append to a busy or a dead lane reads no rows.
    if (lane.inFlight.size >= LANE_WIDTH) return;
    lane.cancelTimer();
    this.#lanes.set(id, lane);
    const now = formatTimestamp(this.#clock());
    const endpoint = this.#webhooks.endpoint(id);
    if (endpoint && !mayTry(endpoint, now)) {
      this.#lookAt(lane, endpoint.next_probe_at!, now);
      return;
    }
    const waiting = this.#webhooks.outbox.oldest(id, WINDOW);
    if (!endpoint && waiting.length) this.#run(this.#clear(id));
    if (!endpoint || !(waiting.length || lane.inFlight.size)) {
      this.#lanes.delete(id);
      return;
    }
    const { due, next } = select(endpoint, waiting, lane.inFlight, now);
    const host = hostOf(endpoint.url);
    for (const delivery of due) {
      const told = this.#webhooks.told(delivery.entry_id);
      // A row may be visible shortly before its entry. Then the observer of rows has not been called yet, and will be.
      if (!told) continue;
      if (!this.#enter(host, id)) break;
      this.#run(this.#attempt(lane, endpoint, delivery, told).finally(() => this.#leave(host)));
    }
    if (next !== null) this.#lookAt(lane, next, now);
  }

  /** Takes a place among the attempts to a host. If none is free, the lane waits for its turn. */
  #enter(name: string, lane: number): boolean {
    const host = this.#hosts.get(name) ?? { underWay: 0, waiting: new Set() };
    this.#hosts.set(name, host);
    if (host.underWay >= HOST_WIDTH) {
      host.waiting.add(lane);
      return false;
    }
    host.underWay++;
    return true;
  }

  /** Gives a place back. The lane that has waited longest and still has deliveries gets it. */
  #leave(name: string): void {
    const host = this.#hosts.get(name)!;
    host.underWay--;
    for (const lane of host.waiting) {
      if (host.underWay >= HOST_WIDTH) break;
      host.waiting.delete(lane);
      this.#look(lane);
    }
    if (!host.underWay) this.#hosts.delete(name);
  }

  #lookAt(lane: Lane, time: string, now: string): void {
    const wait = Math.ceil((parseTimestamp(time) - parseTimestamp(now)) / 1000);
    lane.cancelTimer = this.#schedule(Math.min(Math.max(wait, 0), MAX_WAIT_MS), () => this.#look(lane.id));
  }

  async #attempt(lane: Lane, endpoint: Endpoint, delivery: Delivery, told: Told): Promise<void> {
    const { entry_id: entryId, attempt } = delivery;
    lane.inFlight.add(entryId);
    const request = deliveryRequest(lane.id, delivery, told, endpoint, this.#clock());
    const controller = new AbortController();
    const abort = () => controller.abort();
    this.#interrupts.add(abort);
    const cancelTimeout = this.#schedule(ATTEMPT_TIMEOUT_MS, abort);
    const { isDelivered, reason } = await this.#send(request, controller.signal);
    cancelTimeout();
    this.#interrupts.delete(abort);
    this.#logger.debug({ webhook: lane.id, entry: entryId, attempt, isDelivered, reason }, "webhook attempt");
    if (this.#isStopped && !isDelivered) return;
    if (isDelivered) this.delivered++;
    else this.failed++;
    const at = formatTimestamp(this.#clock());
    this.#outcomes.push({ webhookId: lane.id, entryId, attempt, isDelivered, at, jitter: this.#random() });
    if (this.#isSettling) return;
    this.#isSettling = true;
    this.#run(this.#settle());
  }

  /** Writes outcomes until there are none; outcomes that arrive in the meantime share the next command. */
  async #settle(): Promise<void> {
    while (this.#outcomes.length) {
      const outcomes = this.#outcomes.splice(0, MAX_OUTCOMES);
      const isWritten = await this.#tried(async () => {
        const { unhealthy, givenUp } = await this.#webhooks.outbox.settle(outcomes);
        for (const webhook of unhealthy) this.#logger.warn({ webhook }, "webhook endpoint is unhealthy");
        if (givenUp) this.#logger.warn({ deliveries: givenUp }, "webhook deliveries given up");
      });
      if (!isWritten) {
        // Delivered, but not recorded: the next start delivers it again. Deliveries are made at least once.
        if (this.#isStopped) break;
        this.#outcomes.unshift(...outcomes);
        continue;
      }
      for (const { webhookId, entryId } of outcomes) this.#lanes.get(webhookId)?.inFlight.delete(entryId);
      for (const id of new Set(outcomes.map(({ webhookId }) => webhookId))) this.#look(id);
    }
    this.#isSettling = false;
  }

  /** Removes the waiting deliveries of a subscription that has ended. */
  async #clear(id: number): Promise<void> {
    for (let hasMore = true; hasMore && !this.#isStopped; )
      await this.#tried(async () => {
        hasMore = await this.#webhooks.outbox.clear(id);
      });
  }

  /** Whether `work` succeeded. If the log refused it, this pauses before it returns. */
  async #tried(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (error instanceof CairnlogError && error.code === "closed") this.#isStopped = true;
      else this.#logger.error({ err: error }, "webhook deliveries cannot be written down");
      if (!this.#isStopped) await this.#pause();
      return false;
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        this.#interrupts.delete(end);
        resolve();
      };
      const cancel = this.#schedule(PAUSE_MS, end);
      this.#interrupts.add(end);
    });
  }
}

/**
 * Selects the deliveries of a lane to try at `now`, the longest waiting first, and the time of the next look.
 * @returns `next` null if the next look should wait for the end of an attempt
 */
function select(
  endpoint: Endpoint,
  waiting: readonly Delivery[],
  inFlight: ReadonlySet<number>,
  now: string,
): { readonly due: readonly Delivery[]; readonly next: string | null } {
  const timeOf = ({ next_attempt_at, created_at }: Delivery) => next_attempt_at ?? created_at;
  const idle = waiting
    .filter(({ entry_id }) => !inFlight.has(entry_id))
    .sort((a, b) => (timeOf(a) < timeOf(b) ? -1 : timeOf(a) > timeOf(b) ? 1 : a.entry_id - b.entry_id));
  // An unhealthy endpoint gets one attempt at a time, even for a delivery that is not due.
  if (!endpoint.healthy) return { due: inFlight.size ? [] : idle.slice(0, 1), next: null };
  const due = idle.filter((delivery) => isDue(delivery, now)).slice(0, LANE_WIDTH - inFlight.size);
  const [first] = idle.filter((delivery) => !due.includes(delivery));
  const isFull = inFlight.size + due.length >= LANE_WIDTH;
  return { due, next: first && !isFull ? timeOf(first) : null };
}
