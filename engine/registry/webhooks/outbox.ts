/**
 * The outbox: which entries each webhook subscription is still to be told of. A row is written in the transaction of its
 * entry, so no crash comes between them, and leaves when the delivery succeeded, was given up, or lost its subscription.
 */
import { formatTimestamp, parseTimestamp } from "../../log/clock.js";
import type { Log } from "../../log/log.js";
import type { LoggedEvent, StateWriter } from "../../log/write/projection.js";
import type { Transaction } from "../../log/write/transaction.js";
import type { DeliveryRow, WebhookRow } from "../../store/schema.js";
import type { WebhookEvent } from "../../verify/contract.js";

/** Seconds from each failed attempt to the next; after the last one a delivery is given up. */
export const RETRY_DELAYS_S = [5, 30, 120, 600, 3_600, 21_600, 86_400];
/** By how much of itself a delay may be longer: endpoints that failed together are not tried together again. */
const MAX_JITTER = 0.2;
/** Failed attempts in a row, of whatever deliveries, after which an endpoint is tried once an hour only. */
export const UNHEALTHY_AFTER = 10;
const PROBE_INTERVAL_S = 3_600;
/**
 * Rows kept for one subscription. One that has fallen further behind is not told of what comes until there is room: what
 * it misses is in the log, and an endpoint that never answers must not fill the disk.
 */
export const MAX_WAITING = 10_000;
/** Rows removed in one command. */
const REMOVED_AT_ONCE = 500;

export interface Delivery extends DeliveryRow {
  readonly entry_id: number;
}

/** How an attempt went. */
export interface Outcome {
  readonly webhookId: number;
  readonly entryId: number;
  /** Of the delivery when it was tried; an outcome that comes twice counts once. */
  readonly attempt: number;
  readonly isDelivered: boolean;
  /**
   * When it ended, canonical form, by the clock that says when the next one is due. That is not the log's time, which
   * stands still after its clock has stepped back: for as long as it was ahead, nothing would be tried again.
   */
  readonly at: string;
  /** 0 to 1, by chance: chosen outside, so that the command is deterministic. */
  readonly jitter: number;
}

/** What outcomes led to, for those who watch. */
export interface Settlement {
  /** Subscriptions that have become unhealthy. */
  readonly unhealthy: readonly number[];
  /** Deliveries that will not be tried again. */
  readonly givenUp: number;
}

const rangeOf = (webhookId: number): [[number, number], [number, number]] => [
  [webhookId, 0],
  [webhookId, Number.MAX_SAFE_INTEGER],
];

/**
 * Files `event` for a subscription. Part of the command that appends it.
 * @returns false when the subscription has fallen too far behind to be told
 */
export function addToOutbox(
  webhookId: number,
  event: WebhookEvent,
  { id, timestamp }: LoggedEvent,
  state: StateWriter,
): boolean {
  const count = state.get("outboxCounts", webhookId)?.count ?? 0;
  if (count >= MAX_WAITING) return false;
  state.put("outbox", [webhookId, id], { event, attempt: 0, next_attempt_at: null, created_at: timestamp });
  state.put("outboxCounts", webhookId, { count: count + 1 });
  return true;
}

export class Outbox {
  readonly #log: Log;

  /** Use `openRegistry`. */
  constructor(log: Log) {
    this.#log = log;
  }

  /** Resolves when everything that was added before is on disk. @throws CairnlogError as `Log.execute` does */
  async flushed(): Promise<void> {
    // An answer is released when all that came before it is on disk, even the answer of a command that does nothing.
    await this.#log.execute(() => undefined);
  }

  /** Subscriptions with rows, those that no longer exist included. */
  webhookIds(): number[] {
    return this.#counts().map(({ key }) => key);
  }

  /** Rows in all. */
  get size(): number {
    return this.#counts().reduce((sum, { row }) => sum + row.count, 0);
  }

  #counts() {
    return this.#log.rows("outboxCounts", 0, Number.MAX_SAFE_INTEGER);
  }

  /** The deliveries of a subscription with the lowest entry ids, at most `limit`, as they are on disk. */
  oldest(webhookId: number, limit: number): Delivery[] {
    const rows = this.#log.rows("outbox", ...rangeOf(webhookId), { limit });
    return rows.map(({ key: [, entry_id], row }) => ({ entry_id, ...row }));
  }

  /**
   * Writes down how attempts went, all in one command (`api.md`, webhooks): what was delivered leaves; what was not is
   * tried again later; ten failures in a row make a subscription unhealthy, one success makes it healthy.
   * @throws CairnlogError as `Log.execute` does
   */
  async settle(outcomes: readonly Outcome[]): Promise<Settlement> {
    const { value } = await this.#log.execute((transaction) => {
      const results = outcomes.map((outcome) => settle(transaction, outcome));
      return {
        unhealthy: outcomes.flatMap(({ webhookId }, i) => (results[i]?.becameUnhealthy ? [webhookId] : [])),
        givenUp: results.filter((result) => result?.gaveUp).length,
      };
    });
    return value;
  }

  /**
   * Removes rows of a subscription that no longer exists, a few at a time.
   * @returns whether there may be more
   * @throws CairnlogError as `Log.execute` does
   */
  async clear(webhookId: number): Promise<boolean> {
    const rows = this.#log.rows("outbox", ...rangeOf(webhookId), { limit: REMOVED_AT_ONCE });
    await this.#log.execute((transaction) => {
      for (const { key } of rows) if (transaction.get("outbox", key)) remove(transaction, key);
    });
    return rows.length === REMOVED_AT_ONCE;
  }
}

/**
 * Whether a delivery may be tried. One that is further away than its delay is long was put off by a clock that has
 * stepped back since, and does not wait until that shows the same again.
 */
export function isDue({ attempt, next_attempt_at }: DeliveryRow, now: string): boolean {
  if (next_attempt_at === null || next_attempt_at <= now) return true;
  return next_attempt_at > after(now, RETRY_DELAYS_S[attempt - 1]! * (1 + MAX_JITTER));
}

/** Whether an endpoint may be tried, of which the same is true. */
export function mayTry({ next_probe_at }: Pick<WebhookRow, "next_probe_at">, now: string): boolean {
  return next_probe_at === null || next_probe_at <= now || next_probe_at > after(now, PROBE_INTERVAL_S);
}

function settle(
  transaction: Transaction,
  { webhookId, entryId, attempt, isDelivered, at, jitter }: Outcome,
): { readonly becameUnhealthy: boolean; readonly gaveUp: boolean } | undefined {
  const webhook = transaction.get("webhooks", webhookId);
  const row = transaction.get("outbox", [webhookId, entryId]);
  if (!webhook || row?.attempt !== attempt) return undefined;
  if (isDelivered) {
    remove(transaction, [webhookId, entryId]);
    if (webhook.retry_count)
      transaction.put("webhooks", webhookId, { ...webhook, healthy: true, retry_count: 0, next_probe_at: null });
    return undefined;
  }
  const retry_count = webhook.retry_count + 1;
  const healthy = retry_count < UNHEALTHY_AFTER;
  const next_probe_at = healthy ? null : after(at, PROBE_INTERVAL_S);
  transaction.put("webhooks", webhookId, { ...webhook, healthy, retry_count, next_probe_at });
  const becameUnhealthy = webhook.healthy && !healthy;
  // A probe of an unhealthy endpoint ahead of the delivery's own time says nothing about the delivery.
  if (!isDue(row, at)) return { becameUnhealthy, gaveUp: false };
  const delay = RETRY_DELAYS_S[attempt];
  if (delay === undefined) {
    remove(transaction, [webhookId, entryId]);
    return { becameUnhealthy, gaveUp: true };
  }
  const next_attempt_at = after(at, delay * (1 + MAX_JITTER * jitter));
  transaction.put("outbox", [webhookId, entryId], { ...row, attempt: attempt + 1, next_attempt_at });
  return { becameUnhealthy, gaveUp: false };
}

function remove(transaction: Transaction, key: [number, number]): void {
  const [webhookId] = key;
  transaction.put("outbox", key, undefined);
  const count = (transaction.get("outboxCounts", webhookId)?.count ?? 0) - 1;
  transaction.put("outboxCounts", webhookId, count > 0 ? { count } : undefined);
}

const after = (timestamp: string, seconds: number): string =>
  formatTimestamp(parseTimestamp(timestamp) + Math.round(seconds * 1_000_000));
