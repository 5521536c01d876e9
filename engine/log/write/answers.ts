/** What the callers of a batch's commands are answered when it is on disk: refusals, values, receipts. */
import { joinedEntry } from "../../store/schema/batch.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import type { Receipt } from "../state/executor.js";
import { EntryReceipt } from "../state/receipt.js";
import type { FormedBatch, SignedHeads } from "./batch.js";

/** Answers every command of a batch that is on disk. @param keyId fingerprint of the key that signed its heads */
export function answer(batch: FormedBatch, heads: SignedHeads, keyId: string): void {
  for (const { waiting, isRefused, outcome, from, to } of batch.ran) {
    if (isRefused) {
      waiting.reject(outcome);
      continue;
    }
    const receipts: Receipt[] = [];
    for (let i = from; i < to; i++) receipts.push(receipt(batch, heads, keyId, i));
    waiting.resolve({ value: outcome, receipts });
  }
}

function receipt(
  { firstIndex, events, entries, entryHashes }: FormedBatch,
  { timestamp, roots, signatures }: SignedHeads,
  keyId: string,
  i: number,
): Receipt {
  const event = events[i]!;
  const length = signatures.length / events.length;
  return new EntryReceipt({
    log_entry_id: event.id,
    leaf_index: event.leafIndex,
    entry_hash: entryHashes[i]!,
    timestamp: event.timestamp,
    sth: {
      tree_size: firstIndex + i + 1,
      root_hash: roots[i]!,
      signature: signatures.toString("base64", length * i, length * (i + 1)),
      timestamp,
      key_id: keyId,
      tree_version: SIGNING_VERSION,
    },
    json: joinedEntry(entries, i),
  });
}
