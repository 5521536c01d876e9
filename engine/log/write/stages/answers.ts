/** What the callers of a batch's commands are answered when it is on disk: refusals, values, receipts. */
import { joinedEntry } from "../../../store/batch.js";
import type { TreeHead } from "../../../verify/tree/treehead.js";
import { SIGNING_VERSION } from "../../tree/frontier.js";
import type { Receipt } from "../executor.js";
import type { LoggedEvent } from "../projection.js";
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
  const head: TreeHead = {
    tree_size: firstIndex + i + 1,
    root_hash: roots[i]!,
    signature: signatures.toString("base64", length * i, length * (i + 1)),
    timestamp,
    key_id: keyId,
    tree_version: SIGNING_VERSION,
  };
  return new AppendReceipt(event, entryHashes[i]!, head, joinedEntry(entries, i));
}

class AppendReceipt implements Receipt {
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly timestamp: string;
  readonly sth: TreeHead;
  readonly json: Buffer;

  constructor({ id, leafIndex, timestamp }: LoggedEvent, entryHash: string, head: TreeHead, json: Buffer) {
    this.log_entry_id = id;
    this.leaf_index = leafIndex;
    this.entry_hash = entryHash;
    this.timestamp = timestamp;
    this.sth = head;
    this.json = json;
  }

  /** For `JSON.stringify`. */
  toJSON(): object {
    const { json, ...rest } = this;
    return { ...rest, entry: JSON.parse(json.toString()) };
  }
}
