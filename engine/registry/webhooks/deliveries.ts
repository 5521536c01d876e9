/**
 * What waits in the outbox: which entries a subscription is still to be told of, and when the next attempt is. A row is
 * written in the transaction of its entry, so no crash comes between them, and leaves when the delivery succeeded, was
 * given up, or lost its subscription.
 */

import { formatTimestamp, parseTimestamp } from "../../log/clock.js";
import type { LoggedEvent, PrivateWriter } from "../../log/write/projection.js";
import type { DeliveryRow, WebhookRow } from "../../store/rows.js";
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

/** The rows of one subscription. */
export const deliveriesOf = (webhookId: number): [[number, number], [number, number]] => [
  [webhookId, 0],
  [webhookId, Number.MAX_SAFE_INTEGER],
];

/** Files `event` for a subscription, unless that has fallen too far behind to be told. Part of a command. */
export function addDelivery(
  webhookId: number,
  event: WebhookEvent,
  { id, timestamp }: LoggedEvent,
  state: PrivateWriter,
): void {
  const count = state.get("outboxCounts", webhookId)?.count ?? 0;
  if (count >= MAX_WAITING) return;
  state.put("outbox", [webhookId, id], { event, attempt: 0, next_attempt_at: null, created_at: timestamp });
  state.put("outboxCounts", webhookId, { count: count + 1 });
}

/** Removes a delivery that is there. Part of a command. */
export function removeDelivery(state: PrivateWriter, key: [webhookId: number, entryId: number]): void {
  const [webhookId] = key;
  state.put("outbox", key, undefined);
  const count = (state.get("outboxCounts", webhookId)?.count ?? 0) - 1;
  state.put("outboxCounts", webhookId, count > 0 ? { count } : undefined);
}

/**
 * Writes down how one attempt went. Part of a command.
 * @returns what came of a failure; undefined for a success, and for an outcome that was written before
 */
export function settleDelivery(
  state: PrivateWriter,
  { webhookId, entryId, attempt, isDelivered, at, jitter }: Outcome,
): { readonly becameUnhealthy: boolean; readonly gaveUp: boolean } | undefined {
  const webhook = state.get("webhooks", webhookId);
  const row = state.get("outbox", [webhookId, entryId]);
  if (!webhook || row?.attempt !== attempt) return undefined;
  if (isDelivered) {
    removeDelivery(state, [webhookId, entryId]);
    if (webhook.retry_count)
      state.put("webhooks", webhookId, { ...webhook, healthy: true, retry_count: 0, next_probe_at: null });
    return undefined;
  }
  const retry_count = webhook.retry_count + 1;
  const healthy = retry_count < UNHEALTHY_AFTER;
  const next_probe_at = healthy ? null : after(at, PROBE_INTERVAL_S);
  state.put("webhooks", webhookId, { ...webhook, healthy, retry_count, next_probe_at });
  const becameUnhealthy = webhook.healthy && !healthy;
  // A probe of an unhealthy endpoint ahead of the delivery's own time says nothing about the delivery.
  if (!isDue(row, at)) return { becameUnhealthy, gaveUp: false };
  const delay = RETRY_DELAYS_S[attempt];
  if (delay === undefined) {
    removeDelivery(state, [webhookId, entryId]);
    return { becameUnhealthy, gaveUp: true };
  }
  const next_attempt_at = after(at, delay * (1 + MAX_JITTER * jitter));
  state.put("outbox", [webhookId, entryId], { ...row, attempt: attempt + 1, next_attempt_at });
  return { becameUnhealthy, gaveUp: false };
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

const after = (timestamp: string, seconds: number): string =>
  formatTimestamp(parseTimestamp(timestamp) + Math.round(seconds * 1_000_000));
