/** Format 3: rows of keys say whether an entry took a signature of the key's own. */
import { actingKey } from "../../verify/keys/possession.js";
import type { KindedEvent } from "../../verify/kinds.js";
import type { Store } from "../contract.js";
import type { KeyRow } from "../rows.js";

/** Rows written in one transaction. */
const CHUNK = 1_000;
const FINGERPRINT_LENGTH = "sha256:".length + 64;

/**
 * Gives every row of a key its `proven`, as a rebuild would: true for keys that acted after they were registered. No
 * entry of an older format has a signature of possession. If we crash in between, the next run starts from the
 * beginning, and the rows that were already written are right.
 */
export async function addProven(store: Store): Promise<void> {
  let changed = new Map<string, KeyRow>();
  const write = async () => {
    const rows = [...changed.values()].map((row) => ({ table: "keys", key: row.fingerprint, row }) as const);
    const after = store.position().sequence;
    await store.commit({ after, position: null, batches: [], rows, tiles: [] });
    changed = new Map();
  };

  let last: string | undefined;
  for (;;) {
    const window = { offset: last === undefined ? 0 : 1, limit: CHUNK };
    const rows = [...store.range("keys", last, undefined, window)];
    if (!rows.length) break;
    for (const { key, row } of rows) changed.set(key, { ...row, proven: row.proven ?? false });
    await write();
    last = rows.at(-1)!.key;
  }

  for (let index = 0, batch = store.batchAt(0); batch; index += batch.count, batch = store.batchAt(index)) {
    for (let i = 0; i < batch.count; i++) {
      const event = JSON.parse(batch.text(i)) as KindedEvent & { readonly id: number };
      const fingerprint = actingKey(event);
      // LMDB's keys are short, and imported history may hold any text.
      const row = fingerprint?.length === FINGERPRINT_LENGTH ? store.get("keys", fingerprint) : undefined;
      if (row && !row.proven && row.log_entry_id < event.id) changed.set(row.fingerprint, { ...row, proven: true });
    }
    if (changed.size) await write();
  }
}
