/** Webhook subscriptions as rows. */
import type { Value } from "../../contract/types.js";
import type * as contract from "../../contract/webhooks.js";
import type { StateReader } from "../../log/state/projection.js";
import type { WebhookRow } from "../../store/schema/rows.js";

/** A subscription as its owner sees it: without the secret. */
export type Webhook = Value<typeof contract.Webhook>;

/** The active subscriptions, oldest first. This is cheap, because the rows are kept in memory. */
export const subscriptions = (state: StateReader) => state.range("webhooks", 0, Number.MAX_SAFE_INTEGER);

/** Whether a key may see and end a subscription. */
export const mayManage = (row: WebhookRow, fingerprint: string, operator: string): boolean =>
  row.owner_fingerprint === fingerprint || fingerprint === operator;

export function webhookView(id: number, row: WebhookRow): Webhook {
  const { url, events, key_fingerprint, document_hash, healthy, retry_count, created_at } = row;
  return { id, url, events, key_fingerprint, document_hash, active: true, healthy, retry_count, created_at };
}
