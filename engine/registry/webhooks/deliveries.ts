/**
 * The outbox: which entries must still be delivered to which subscription, and when the next attempt is. A row is
 * written in the transaction of its entry, so no crash can separate them. It is removed after the delivery succeeded,
 * was given up, or lost its subscription.
 */

import { formatTimestamp, parseTimestamp } from "../../log/clock.js";
import type { LoggedEvent, PrivateWriter } from "../../log/write/projection.js";
import type { DeliveryRow, WebhookRow } from "../../store/rows.js";
import type { WebhookEvent } from "../../verify/contract.js";

/** Seconds from each failed attempt to the next; after the last one a delivery is given up. */
export const RETRY_DELAYS_S = [5, 30, 120, 600, 3_600, 21_600, 86_400];
/**
 * A delay may be longer by up to this fraction, so that endpoints that failed together are not tried together again.
 */
const MAX_JITTER = 0.2;
/** Failed attempts in a row, of one or several deliveries, after which an endpoint is tried only once an hour. */
export const UNHEALTHY_AFTER = 10;
const PROBE_INTERVAL_S = 3_600;
/**
 * Maximum number of rows for one subscription. Beyond it, new events are not queued until there is room: they are in
 * the log, and an endpoint that never answers must not fill the disk.
 */
export const MAX_WAITING = 10_000;

/** The result of an attempt. */
export interface Outcome {
  readonly webhookId: number;
  readonly entryId: number;
  /** The delivery's `attempt` at the time; an outcome that is reported twice counts once. */
  readonly attempt: number;
  readonly isDelivered: boolean;
  /**
   * When the attempt ended, canonical form, by the clock that decides when the next one is due. This is not the log's
   * time: after its clock has stepped back, the log's time stands still, and nothing would be tried until the clock has
   * caught up.
   */
  readonly at: string;
  /** Random, from 0 to 1. It is part of the input because a command must be deterministic. */
  readonly jitter: number;
}

/** The key range of one subscription's rows. */
export const deliveriesOf = (webhookId: number): [[number, number], [number, number]] => [
  [webhookId, 0],
  [webhookId, Number.MAX_SAFE_INTEGER],
];

/** Queues `event` for a subscription, unless the subscription has too many deliveries waiting. Part of a command. */
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

/** Removes an existing delivery. Part of a command. */
export function removeDelivery(state: PrivateWriter, key: [webhookId: number, entryId: number]): void {
  const [webhookId] = key;
  state.put("outbox", key, undefined);
  const count = (state.get("outboxCounts", webhookId)?.count ?? 0) - 1;
  state.put("outboxCounts", webhookId, count > 0 ? { count } : undefined);
}

/**
 * Records the result of one attempt. Part of a command.
 * @returns the consequence of a failure; undefined for a success, and for an outcome that was recorded before
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
  // A probe of an unhealthy endpoint before the delivery's own time says nothing about the delivery.
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
 * Whether a delivery may be tried now. If it is due later than its delay is long, the clock has stepped back since, and
 * the delivery does not wait until the clock has caught up.
 */
export function isDue({ attempt, next_attempt_at }: DeliveryRow, now: string): boolean {
  if (next_attempt_at === null || next_attempt_at <= now) return true;
  return next_attempt_at > after(now, RETRY_DELAYS_S[attempt - 1]! * (1 + MAX_JITTER));
}

/** Whether an endpoint may be tried now, with the same rule for a clock that has stepped back. */
export function mayTry({ next_probe_at }: Pick<WebhookRow, "next_probe_at">, now: string): boolean {
  return next_probe_at === null || next_probe_at <= now || next_probe_at > after(now, PROBE_INTERVAL_S);
}

const after = (timestamp: string, seconds: number): string =>
  formatTimestamp(parseTimestamp(timestamp) + Math.round(seconds * 1_000_000));
