/** Reads cursors and the outbox, and writes the results of the deliverer (`deliveries.ts`). */
import type { Log } from "../../log/log.js";
import type { Writer } from "../../log/state/executor.js";
import type { DeliveryRow } from "../../store/schema/rows.js";
import { type Cursor, clearOutbox, markWalk, type Settlement, settle } from "./commands.js";
import { type Attempted, deliveriesOf } from "./deliveries.js";

/** Rows removed in one command. */
const REMOVED_AT_ONCE = 500;

export interface Delivery extends DeliveryRow {
  readonly entry_id: number;
}

export class Outbox {
  readonly #log: Log;
  readonly #writer: Pick<Writer, "execute">;

  /** Use `openRegistry`. */
  constructor(log: Log, writer: Pick<Writer, "execute">) {
    this.#log = log;
    this.#writer = writer;
  }

  /** Ids of subscriptions with rows, including subscriptions that no longer exist. */
  webhookIds(): number[] {
    return this.#counts().map(({ key }) => key);
  }

  /** How far the walk that all subscriptions share has come on disk; undefined before it was first recorded. */
  get walked(): number | undefined {
    return this.#log.row("counters", "webhook-walk")?.last;
  }

  /** The cursor of a subscription that has one of its own. */
  cursor(webhookId: number): number | undefined {
    return this.#log.row("webhookCursors", webhookId)?.next;
  }

  /**
   * Records cursors, and then how far the shared walk has come.
   * @throws CairnlogError as `Log.execute` does
   */
  async mark(walked: number | null, cursors: readonly Cursor[]): Promise<void> {
    await this.#writer.execute(markWalk, { walked, cursors });
  }

  /** Number of rows of a subscription. */
  count(webhookId: number): number {
    return this.#log.row("outboxCounts", webhookId)?.count ?? 0;
  }

  #counts() {
    return this.#log.rows("outboxCounts", 0, Number.MAX_SAFE_INTEGER);
  }

  /** The deliveries of a subscription with the lowest entry ids, at most `limit`, as they are on disk. */
  oldest(webhookId: number, limit: number): Delivery[] {
    const rows = this.#log.rows("outbox", ...deliveriesOf(webhookId), { limit });
    return rows.map(({ key: [, entry_id], row }) => ({ entry_id, ...row }));
  }

  /**
   * Records the results of attempts in one command (docs/spec §16.3). A successful delivery is removed; a failed one
   * is tried again later. Ten failures in a row make a subscription unhealthy, one success makes it healthy.
   * @throws CairnlogError as `Log.execute` does
   */
  async settle(outcomes: readonly Attempted[]): Promise<Settlement> {
    const { value } = await this.#writer.execute(settle, { outcomes });
    return value;
  }

  /**
   * Removes rows of a subscription that no longer exists, a few at a time.
   * @returns whether there may be more
   * @throws CairnlogError as `Log.execute` does
   */
  async clear(webhookId: number): Promise<boolean> {
    const rows = this.#log.rows("outbox", ...deliveriesOf(webhookId), { limit: REMOVED_AT_ONCE });
    await this.#writer.execute(clearOutbox, { webhook_id: webhookId, entry_ids: rows.map(({ key: [, id] }) => id) });
    return rows.length === REMOVED_AT_ONCE;
  }
}
