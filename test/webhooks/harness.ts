/**
 * Deliveries controlled by the test: a real registry on disk, a deliverer whose clock and timers the test moves, and
 * endpoints that answer as the test says.
 */
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterEach, expect } from "vitest";
import type { WebhookInput } from "#cairnlog/engine/registry/webhooks/input.js";
import type { Webhook } from "#cairnlog/engine/registry/webhooks/subscriptions.js";
import { AddressPlaces } from "#cairnlog/server/webhooks/address-places.js";
import { Deliverer } from "#cairnlog/server/webhooks/deliverer.js";
import type { DeliveryRequest } from "#cairnlog/server/webhooks/message.js";
import type { AttemptResult } from "#cairnlog/server/webhooks/send.js";
import { runIn } from "../log/inline.js";
import { nodeSigner, openWorld, registration, type World } from "../registry/world.js";

export const ACCEPTED: AttemptResult = { isDelivered: true, reason: "200" };
export const REFUSED: AttemptResult = { isDelivered: false, reason: "500" };
export const OWNER = `sha256:${"a".repeat(64)}`;

/** Maximum number of timers at one moment. */
const MAX_AT_ONCE = 1_000;

interface Timer {
  at: number;
  readonly run: () => void;
}

/** A request that an endpoint has received. */
export interface Arrival extends DeliveryRequest {
  readonly entryId: number;
  readonly webhookId: number;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

export class Post {
  readonly world: World;
  deliverer: Deliverer;
  /** The endpoint's answer. A promise that never resolves means no answer. */
  answer: (arrival: Arrival) => AttemptResult | Promise<AttemptResult> = () => ACCEPTED;
  readonly arrivals: Arrival[] = [];
  /** The places at addresses, which an answer may take and give back. */
  readonly places = new AddressPlaces();
  jitter = 0;
  /** All log lines. */
  logged = "";
  readonly #timers = new Set<Timer>();

  constructor(world: World) {
    this.world = world;
    this.deliverer = this.#newDeliverer();
  }

  #newDeliverer(): Deliverer {
    const sink = new Writable({
      write: (chunk, _, done) => {
        this.logged += chunk;
        done();
      },
    });
    return new Deliverer({
      webhooks: this.world.registry.webhooks,
      send: (request, signal) => this.#receive(request, signal),
      places: this.places,
      logger: pino({ level: "trace" }, sink),
      clock: () => this.world.now,
      schedule: (milliseconds, run) => {
        const timer = { at: this.world.now + milliseconds * 1000, run };
        this.#timers.add(timer);
        return () => this.#timers.delete(timer);
      },
      random: () => this.jitter,
      leisure: { ratio: 0, settleMs: 0 },
    });
  }

  #receive(request: DeliveryRequest, signal: AbortSignal): Promise<AttemptResult> {
    const [, webhookId, entryId] = /^msg_(\d+)_(\d+)$/.exec(request.headers["webhook-id"]!)!.map(Number);
    const arrival = { ...request, webhookId: webhookId!, entryId: entryId!, signal };
    this.arrivals.push(arrival);
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve({ isDelivered: false, reason: "timeout" }));
      void Promise.resolve(this.answer(arrival)).then(resolve);
    });
  }

  get timers(): number {
    return this.#timers.size;
  }

  /** Moves the clock forward, and runs every timer at its time. */
  pass(seconds: number): void {
    const end = this.world.now + Math.round(seconds * 1_000_000);
    let atOnce = 0;
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (!next) break;
      atOnce = next.at > this.world.now ? 0 : atOnce + 1;
      if (atOnce > MAX_AT_ONCE)
        throw new Error("timers run without end at one moment: something wakes before its time");
      this.#timers.delete(next);
      this.world.now = Math.max(this.world.now, next.at);
      next.run();
    }
    this.world.now = end;
  }

  /** Sets the clock, back if `seconds` are negative. Timers do not notice. */
  step(seconds: number): void {
    this.world.now += seconds * 1_000_000;
    for (const timer of this.#timers) timer.at += seconds * 1_000_000;
  }

  /** Waits until `condition` holds and the deliverer knows: a row is visible shortly before its writer is notified. */
  async until(condition: () => boolean): Promise<void> {
    await expect.poll(condition, { interval: 1 }).toBe(true);
    await this.quiet();
  }

  /** Waits until nothing happens without the clock. */
  async quiet(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) {
      // When this is answered, everything before it is on disk.
      await runIn(this.world.registry.log, () => undefined);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits until everything that the log has for the subscriptions was delivered, or given up. */
  async done(): Promise<void> {
    await this.quiet();
    await this.until(() => this.deliverer.unread + this.deliverer.waiting + this.deliverer.behind === 0);
  }

  subscribe(more: Partial<WebhookInput> = {}, owner = OWNER): Promise<Webhook> {
    return this.world.registry.webhooks.subscribe({ url: "https://receiver.example/", ...more }, owner);
  }

  /** Registers keys, each of which makes an entry. @returns their entry ids */
  async register(count = 1): Promise<number[]> {
    const receipts = Array.from({ length: count }, () => this.world.registry.keys.register(registration(nodeSigner())));
    return (await Promise.all(receipts)).map(({ log_entry_id }) => log_entry_id);
  }

  /** The subscription as it is on disk. */
  state(id: number): Webhook {
    return this.world.registry.webhooks.list(OWNER).find((webhook) => webhook.id === id)!;
  }

  /** Stops it. It leaves no timer. */
  async stop(): Promise<void> {
    await this.deliverer.stop();
    expect(this.timers).toBe(0);
  }

  /** Stops it, closes the registry, and starts again from the disk. */
  async restart(): Promise<void> {
    await this.stop();
    await this.world.reopen();
    this.deliverer = this.#newDeliverer();
    this.deliverer.start();
  }
}

/** Opens a registry with a running deliverer; stopped after the test. */
export async function openPost(): Promise<Post> {
  const post = new Post(await openWorld());
  post.deliverer.start();
  stops.push(() => post.stop());
  return post;
}
