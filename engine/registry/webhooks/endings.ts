/** How a subscription ends without its owner: its key has ended, or its endpoint is gone. Part of commands. */
import type { Transaction } from "../../log/state/commands.js";
import type { WebhookRow } from "../../store/schema/rows.js";
import type { EndedReason } from "../../verify/keys/contract.js";
import { statusAt } from "../events/status.js";

import { notifyOfWebhook } from "../requests/notifications.js";

/** Removes a subscription with its secret and its cursor. Its rows in the outbox are removed later, a few at a time. */
export function removeSubscription(transaction: Transaction, id: number): void {
  transaction.put("webhooks", id, undefined);
  if (transaction.get("webhookCursors", id)) transaction.put("webhookCursors", id, undefined);
}

/** Ends a subscription, and tells its owner. If the key was succeeded, nobody can read its inbox: its successor is told. */
export function endSubscription(transaction: Transaction, id: number, row: WebhookRow, reason: EndedReason): void {
  removeSubscription(transaction, id);
  const successor = transaction.get("keys", row.owner_fingerprint)?.successor_fingerprint;
  notifyOfWebhook(transaction, successor ?? row.owner_fingerprint, { webhook_id: id, reason });
}

/** Whether the key that owns a subscription is no longer active. Only an operator key may have no row. */
export function hasOwnerEnded(transaction: Transaction, owner: string): boolean {
  const key = transaction.get("keys", owner);
  if (key) return statusAt(key, transaction.timestamp) !== "active";
  const rotations = transaction.range("operatorRotations", 0, Number.MAX_SAFE_INTEGER);
  return rotations.some(({ row }) => row.old_fingerprint === owner);
}
