/** Receipts of entries, made when a batch is on disk and when one is looked up again. It does nothing but hold and spell them. */
import type { TreeHead } from "../../verify/tree/treehead.js";
import type { Receipt } from "./executor.js";

export class EntryReceipt implements Receipt {
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly timestamp: string;
  readonly sth: TreeHead;
  readonly json: Buffer;

  constructor({ log_entry_id, leaf_index, entry_hash, timestamp, sth, json }: Receipt) {
    this.log_entry_id = log_entry_id;
    this.leaf_index = leaf_index;
    this.entry_hash = entry_hash;
    this.timestamp = timestamp;
    this.sth = sth;
    this.json = json;
  }

  /** For `JSON.stringify`. */
  toJSON(): object {
    const { json, ...rest } = this;
    return { ...rest, entry: JSON.parse(json.toString()) };
  }
}
