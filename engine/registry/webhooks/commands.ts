/**
 * The commands that create and end subscriptions and record the results of deliveries. They write private rows, and no
 * entries.
 */
import { CairnlogError } from "../../base/error.js";
import { parseTimestamp } from "../../log/state/clock.js";
import { define, type Transaction } from "../../log/state/commands.js";
import type { WebhookRow } from "../../store/schema/rows.js";
import type { EndedReason } from "../../verify/keys/contract.js";
import { requireActive } from "../events/keys.js";
import { type Attempted, removeDelivery, settleDelivery } from "./deliveries.js";
import { hostOf, type WebhookDraft } from "./input.js";
import {
  endSubscription,
  hasOwnerEnded,
  mayManage,
  removeSubscription,
  subscriptions,
  type Webhook,
  webhookView,
} from "./subscriptions.js";

/** Maximum number of active subscriptions of one key. */
const MAX_PER_KEY = 20;
/**
 * Maximum number of subscriptions to one host, for all keys together. One entry causes no more requests to a receiver
 * than this.
 */
const MAX_PER_HOST = 100;
/** Maximum number of subscriptions of all keys together that no anchor reaches. */
const MAX_OF_STRANGERS = 5_000;
/** Maximum number of new subscriptions of an address in 24 hours. */
export const DEFAULT_WEBHOOKS_PER_ADDRESS = 20;
const ADDRESS_WINDOW_S = 86_400;

/** The consequences of some outcomes, for metrics and logs. */
export interface Settlement {
  /** Subscriptions that have become unhealthy. */
  readonly unhealthy: readonly number[];
  /** Number of deliveries that will not be tried again. */
  readonly givenUp: number;
  /** Subscriptions that have ended: their endpoints are gone. */
  readonly ended: readonly { readonly webhook: number; readonly reason: EndedReason }[];
}

/** Who subscribes. */
interface Subscriber {
  readonly owner_fingerprint: string;
  /** Whether an anchor reaches the key. */
  readonly is_reached: boolean;
  /** The client's address as limits count it; null for a program that embeds the log. */
  readonly address: string | null;
  /** Maximum number of new subscriptions of an address in 24 hours; null for any number. */
  readonly per_address: number | null;
}

/**
 * @throws CairnlogError `key-not-active`; `precondition-failed` if the key, the host, the address, or all keys together that no anchor reaches
 *   have the maximum number of subscriptions
 */
export const subscribe = define(
  "webhook.subscribe",
  (
    transaction: Transaction,
    { subscription, ...subscriber }: Subscriber & { readonly subscription: WebhookDraft },
  ): Webhook => {
    const { owner_fingerprint, is_reached } = subscriber;
    requireActive(transaction, owner_fingerprint);
    checkRoom(transaction, subscriber, subscription.host);
    countAddress(transaction, subscriber);
    const id = (transaction.get("counters", "webhook")?.last ?? 0) + 1;
    const row: WebhookRow = {
      ...subscription,
      owner_fingerprint,
      healthy: true,
      retry_count: 0,
      next_probe_at: null,
      created_at: transaction.timestamp,
      since: transaction.size,
      ...(is_reached && { is_reached }),
    };
    transaction.put("counters", "webhook", { last: id });
    transaction.put("webhooks", id, row);
    return webhookView(id, row);
  },
);

/**
 * Removes the subscription's row, including its secret, and its cursor.
 * @returns the subscription as it was, no longer active
 * @throws CairnlogError `not-found` if the key may not see a subscription with this id
 */
export const deactivate = define(
  "webhook.deactivate",
  (
    transaction: Transaction,
    input: { readonly id: number; readonly fingerprint: string; readonly operator_fingerprint: string },
  ): Webhook => {
    const row = transaction.get("webhooks", input.id);
    if (!row || !mayManage(row, input.fingerprint, input.operator_fingerprint))
      throw new CairnlogError("not-found", `There is no active webhook ${input.id} of this key.`);
    removeSubscription(transaction, input.id);
    return { ...webhookView(input.id, row), active: false };
  },
);

/**
 * Records the results of attempts (docs/spec §16.3). A successful delivery is removed; a failed one is tried again
 * later. Ten failures in a row make a subscription unhealthy, one success makes it healthy. A failure after seven days of
 * failures ends it, and so does an endpoint that says that it is gone.
 */
export const settle = define(
  "outbox.settle",
  (transaction: Transaction, { outcomes }: { readonly outcomes: readonly Attempted[] }): Settlement => {
    const unhealthy: number[] = [];
    const ended: { webhook: number; reason: EndedReason }[] = [];
    let givenUp = 0;
    for (const outcome of outcomes) {
      const failure = settleDelivery(transaction, outcome);
      if (failure.becameUnhealthy) unhealthy.push(outcome.webhookId);
      if (failure.gaveUp) givenUp++;
      if (failure.ended) ended.push({ webhook: outcome.webhookId, reason: failure.ended });
    }
    return { unhealthy, givenUp, ended };
  },
);

/**
 * Ends those of the subscriptions whose key has ended, with a notification.
 * @returns the ids of those that were ended
 */
export const endWithKey = define(
  "webhook.end-with-key",
  (transaction: Transaction, { ids }: { readonly ids: readonly number[] }): readonly number[] =>
    ids.filter((id) => {
      const row = transaction.get("webhooks", id);
      if (!row || !hasOwnerEnded(transaction, row.owner_fingerprint)) return false;
      endSubscription(transaction, id, row, "key-ended");
      return true;
    }),
);

/** Removes deliveries of a subscription that has ended. */
export const clearOutbox = define(
  "outbox.clear",
  (transaction: Transaction, input: { readonly webhook_id: number; readonly entry_ids: readonly number[] }): void => {
    for (const entryId of input.entry_ids) removeDelivery(transaction, [input.webhook_id, entryId]);
  },
);

/** The cursor of a subscription. */
export interface Cursor {
  readonly webhook_id: number;
  /** Null: as far as the shared walk. */
  readonly next: number | null;
}

/**
 * Records how far the walk that all subscriptions share has come, and cursors. Those of subscriptions that have
 * undelivered entries before `walked` must be on disk before this: a crash would lose these entries.
 */
export const markWalk = define(
  "webhook.mark-walk",
  (
    transaction: Transaction,
    { walked, cursors }: { readonly walked: number | null; readonly cursors: readonly Cursor[] },
  ): void => {
    if (walked !== null) transaction.put("counters", "webhook-walk", { last: walked });
    for (const { webhook_id, next } of cursors) {
      if (!transaction.get("webhooks", webhook_id)) continue;
      const known = transaction.get("webhookCursors", webhook_id);
      // An outcome that was recorded in the meantime may have moved it on.
      if (next === null ? known : !known || known.next < next)
        transaction.put("webhookCursors", webhook_id, next === null ? undefined : { next });
    }
  },
);

function checkRoom(transaction: Transaction, subscriber: Subscriber, host: string): void {
  const { owner_fingerprint: owner, is_reached } = subscriber;
  let ofOwner = 0;
  let ofHost = 0;
  let ofStrangers = 0;
  for (const { row } of subscriptions(transaction)) {
    if (row.owner_fingerprint === owner) ofOwner++;
    if ((row.host ?? hostOf(row.url)) === host) ofHost++;
    if (!row.is_reached) ofStrangers++;
  }
  if (ofOwner >= MAX_PER_KEY) throw tooMany(`This key has ${MAX_PER_KEY} webhooks. Delete one first.`);
  if (ofHost >= MAX_PER_HOST) throw tooMany(`There are ${MAX_PER_HOST} webhooks to ${host}, and no more are taken.`);
  if (!is_reached && ofStrangers >= MAX_OF_STRANGERS)
    throw tooMany(
      `There are ${MAX_OF_STRANGERS} webhooks of keys that no trust anchor of this log reaches, and no more are taken.`,
    );
}

/** Counts a new subscription for its address. The row outlives restarts, and is the same for all front ends. */
function countAddress(transaction: Transaction, { address, per_address }: Subscriber): void {
  if (address === null || per_address === null) return;
  const now = parseTimestamp(transaction.timestamp);
  const row = transaction.get("quotas", ["webhook", address]);
  const isOver = !row || parseTimestamp(row.started_at) + ADDRESS_WINDOW_S * 1_000_000 <= now;
  const { started_at, used } = isOver ? { started_at: transaction.timestamp, used: 0 } : row;
  if (used >= per_address)
    throw tooMany(`This address has made ${per_address} webhooks in 24 hours. It may make more tomorrow.`);
  transaction.put("quotas", ["webhook", address], { started_at, used: used + 1 });
}

const tooMany = (why: string): CairnlogError => new CairnlogError("precondition-failed", why);
