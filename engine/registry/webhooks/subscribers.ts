/**
 * The active webhook subscriptions in memory, so that an append nobody waits for costs nothing, and what live appends add
 * to the outbox for them.
 */
import type { LoggedEvent, Projection, StateReader, StateWriter } from "../../log/write/projection.js";
import type { WebhookRow } from "../../store/schema.js";
import { selects, type WebhookFilter, webhookEvent } from "./events.js";
import { addToOutbox } from "./outbox.js";

/** What an append, or another subscription, has to know of a subscription. */
export type Subscriber = WebhookFilter & Pick<WebhookRow, "owner_fingerprint">;

export class Subscribers {
  /**
   * By webhook id, as the newest command left them; null when they are to be read. Only commands change them, as their
   * last step, and a failed batch makes this null: so it is always what the rows say at this point of the command order.
   */
  #active: Map<number, Subscriber> | null = null;
  #watcher: (webhookId: number) => void = () => {};

  /** `projection` with the outbox as an effect of live appends. */
  extend(projection: Projection): Projection {
    return {
      ...projection,
      onAppend: (event, state) => this.#record(event, state),
      onRestore: () => {
        this.#active = null;
      },
    };
  }

  /**
   * Calls `watcher` whenever there may be something new for a subscription. It may be called while a command runs: what
   * it is told of is on disk when `Outbox.flushed` has resolved, and may never be.
   */
  watch(watcher: (webhookId: number) => void): void {
    this.#watcher = watcher;
  }

  /** Says that something changed for a subscription. */
  touch(webhookId: number): void {
    this.#watcher(webhookId);
  }

  /** The active subscriptions. Part of a command. */
  active(state: StateReader): ReadonlyMap<number, Subscriber> {
    this.#active ??= new Map(
      state.range("webhooks", 0, Number.MAX_SAFE_INTEGER).map(({ key, row }) => [key, subscriber(row)]),
    );
    return this.#active;
  }

  /** Writes a subscription's row, or removes it with `undefined`. The last step of a command: nothing may refuse after. */
  put(id: number, row: WebhookRow | undefined, state: StateWriter): void {
    this.active(state);
    state.put("webhooks", id, row);
    if (row) this.#active?.set(id, subscriber(row));
    else this.#active?.delete(id);
  }

  #record(event: LoggedEvent, state: StateWriter): void {
    const active = this.active(state);
    if (!active.size) return;
    const told = webhookEvent(event);
    if (!told) return;
    for (const [id, filter] of active)
      if (selects(filter, told, event.payload) && addToOutbox(id, told, event, state)) this.touch(id);
  }
}

function subscriber({ events, key_fingerprint, document_hash, owner_fingerprint }: WebhookRow): Subscriber {
  return { events, key_fingerprint, document_hash, owner_fingerprint };
}
