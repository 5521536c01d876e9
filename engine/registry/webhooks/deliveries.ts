/**
 * What is on disk about deliveries. Entries that were not tried yet take no rows: they are in the log, behind the
 * subscription's cursor. A delivery that failed has a row in the outbox, until it succeeds, is given up, or loses its
 * subscription. Cursor and outbox change in one transaction, so no crash can lose a delivery between them.
 */

import { formatTimestamp, parseTimestamp } from "../../log/state/clock.js";
import type { Transaction } from "../../log/state/commands.js";
import type { PrivateWriter } from "../../log/state/projection.js";
import type { DeliveryRow, WebhookRow } from "../../store/schema/rows.js";
import type { EndedReason, WebhookEvent } from "../../verify/keys/contract.js";
import { endSubscription } from "./subscriptions.js";

/** Seconds from each failed attempt to the next; after the last one a delivery is given up. */
const RETRY_DELAYS_S = [5, 30, 120, 600, 3_600, 21_600, 86_400];
/**
 * A delay may be longer by up to this fraction, so that endpoints that failed together are not tried together again.
 */
const MAX_JITTER = 0.2;
/** Failed attempts in a row, of one or several deliveries, after which an endpoint is tried only once an hour. */
const UNHEALTHY_AFTER = 10;
const PROBE_INTERVAL_S = 3_600;
/** Seconds since the first of a row of failed attempts after which the next failure ends an unhealthy subscription. */
const FAILING_ENDS_AFTER_S = 7 * 86_400;
/**
 * Maximum number of undelivered deliveries of one subscription that are looked at: those in the outbox, and those that
 * were found in the log. When there are so many, its cursor waits.
 */
export const WINDOW = 64;

/** The first attempt at an entry. */
export interface FirstAttempt {
  readonly event: WebhookEvent;
  readonly created_at: string;
  /** The subscription's cursor after it: all entries before are settled, too. */
  readonly next: number;
}

/** The result of an attempt. */
export interface Attempted {
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
  /** Absent for a delivery that is in the outbox. */
  readonly first?: FirstAttempt;
  /** Whether the endpoint said that it is gone for good. */
  readonly isGone?: true;
  /** Seconds for which the endpoint asked to be left alone: at most a day. */
  readonly retryAfter?: number;
}

/** What followed from a failed attempt. */
interface Failure {
  readonly becameUnhealthy?: true;
  readonly gaveUp?: true;
  /** Why the subscription has ended. */
  readonly ended?: EndedReason;
}

/** The key range of one subscription's rows. */
export const deliveriesOf = (webhookId: number): [[number, number], [number, number]] => [
  [webhookId, 0],
  [webhookId, Number.MAX_SAFE_INTEGER],
];

/** Writes a delivery that has failed. Part of a command. */
function putDelivery(state: PrivateWriter, key: [webhookId: number, entryId: number], row: DeliveryRow): void {
  if (!state.get("outbox", key)) {
    const count = state.get("outboxCounts", key[0])?.count ?? 0;
    state.put("outboxCounts", key[0], { count: count + 1 });
  }
  state.put("outbox", key, row);
}

/** Removes a delivery, if it is in the outbox. Part of a command. */
export function removeDelivery(state: PrivateWriter, key: [webhookId: number, entryId: number]): void {
  if (!state.get("outbox", key)) return;
  const [webhookId] = key;
  state.put("outbox", key, undefined);
  const count = (state.get("outboxCounts", webhookId)?.count ?? 0) - 1;
  state.put("outboxCounts", webhookId, count > 0 ? { count } : undefined);
}

/** The delivery that an outcome is about, as it was before the attempt; undefined if the outcome was recorded before. */
function tried(state: PrivateWriter, { webhookId, entryId, attempt, first }: Attempted): DeliveryRow | undefined {
  if (!first) {
    const row = state.get("outbox", [webhookId, entryId]);
    return row?.attempt === attempt ? row : undefined;
  }
  const { event, created_at, next } = first;
  if ((state.get("webhookCursors", webhookId)?.next ?? 0) >= next) return undefined;
  return { event, attempt: 0, next_attempt_at: null, created_at };
}

/**
 * Records the result of one attempt. Part of a command.
 * @returns the consequences of a failure; none for a success, and for an outcome that was recorded before
 */
export function settleDelivery(transaction: Transaction, outcome: Attempted): Failure {
  const { webhookId, entryId, isDelivered, first } = outcome;
  const webhook = transaction.get("webhooks", webhookId);
  const row = webhook && tried(transaction, outcome);
  if (!row) return {};
  if (first) transaction.put("webhookCursors", webhookId, { next: first.next });
  if (!isDelivered) return fail(transaction, webhook, row, outcome);
  removeDelivery(transaction, [webhookId, entryId]);
  const restored = { healthy: true, retry_count: 0, next_probe_at: null, failing_since: null };
  if (webhook.retry_count) transaction.put("webhooks", webhookId, { ...webhook, ...restored });
  return {};
}

/** Records a failed attempt. @param row the delivery before it */
function fail(transaction: Transaction, webhook: WebhookRow, row: DeliveryRow, outcome: Attempted): Failure {
  const { webhookId, entryId, attempt, at, jitter, isGone, retryAfter = 0 } = outcome;
  const retry_count = webhook.retry_count + 1;
  const healthy = retry_count < UNHEALTHY_AFTER;
  const failing_since = webhook.failing_since ?? at;
  // Few failures say little, though the first is long ago: the clock may have been set, or the service was away.
  const isFailing = !healthy && after(failing_since, FAILING_ENDS_AFTER_S) <= at;
  const ended = isGone ? "gone" : isFailing ? "failing" : undefined;
  if (ended) {
    endSubscription(transaction, webhookId, webhook, ended);
    return { ended };
  }
  const probe_after_s = Math.max(healthy ? 0 : PROBE_INTERVAL_S, retryAfter);
  const next_probe_at = probe_after_s ? after(at, probe_after_s) : null;
  const failed = { ...webhook, healthy, retry_count, next_probe_at, probe_after_s, failing_since };
  transaction.put("webhooks", webhookId, failed);
  const failure: Failure = webhook.healthy && !healthy ? { becameUnhealthy: true } : {};
  // A probe of an unhealthy endpoint before the delivery's own time says nothing about the delivery.
  if (!isDue(row, at)) return failure;
  const delay = RETRY_DELAYS_S[attempt];
  if (delay === undefined) {
    removeDelivery(transaction, [webhookId, entryId]);
    return { ...failure, gaveUp: true };
  }
  const next_attempt_at = after(at, delay * (1 + MAX_JITTER * jitter));
  putDelivery(transaction, [webhookId, entryId], { ...row, attempt: attempt + 1, next_attempt_at });
  return failure;
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
export function mayTry(
  { next_probe_at, probe_after_s = PROBE_INTERVAL_S }: Pick<WebhookRow, "next_probe_at" | "probe_after_s">,
  now: string,
): boolean {
  return next_probe_at === null || next_probe_at <= now || next_probe_at > after(now, probe_after_s);
}

const after = (timestamp: string, seconds: number): string =>
  formatTimestamp(parseTimestamp(timestamp) + Math.round(seconds * 1_000_000));
