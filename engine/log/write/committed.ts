/**
 * Rows as they are on disk, for commands: those of keys are kept, since every attestation asks for its signer's, and to
 * read and unpack one takes 4 µs. Only the sequencer changes rows, and it says which (`written`).
 */

import { Recent } from "../../recent.js";
import type { RowChange } from "../../store/changeset.js";
import type { Key, KeyOf, RowOf, TableName } from "../../store/schema.js";
import type { Store } from "../../store/store.js";

/** About 1 KB each. */
const KEPT_KEYS = 4096;

export class CommittedRows implements Pick<Store, "get" | "range"> {
  readonly #store: Pick<Store, "get" | "range">;
  readonly #keys = new Recent<string, RowOf<"keys">>(KEPT_KEYS);

  constructor(store: Pick<Store, "get" | "range">) {
    this.#store = store;
  }

  get<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    if (table !== "keys") return this.#store.get(table, key);
    const fingerprint = key as KeyOf<"keys">;
    const known = this.#keys.look(fingerprint);
    if (known) return known as RowOf<T>;
    const row = this.#store.get("keys", fingerprint);
    return row && (this.#keys.keep(fingerprint, row) as RowOf<T>);
  }

  range<T extends TableName>(table: T, start: Key, end: Key): Iterable<{ key: KeyOf<T>; row: RowOf<T> }> {
    return this.#store.range(table, start, end);
  }

  /** These are on disk now. Until then the layer of their batch stands before the old ones. */
  written(changes: readonly RowChange[]): void {
    for (const { table, key } of changes) if (table === "keys") this.#keys.delete(key as KeyOf<"keys">);
  }

  /** The disk may hold anything now. */
  clear(): void {
    this.#keys.clear();
  }
}
