/** What the callers of a batch's commands are answered when it is on disk: refusals, values, receipts. */
import { HASH } from "../../../store/schema.js";
import type { TreeHead } from "../../../verify/tree/treehead.js";
import { formatTimestamp } from "../../clock.js";
import { SIGNING_VERSION } from "../../tree/frontier.js";
import type { Receipt } from "../executor.js";
import type { FormedBatch } from "./batch.js";

/** Answers every command of a batch that is on disk. @param keyId fingerprint of the key that signed its heads */
export function answer(batch: FormedBatch, signatures: readonly Uint8Array[], keyId: string): void {
  const timestamp = formatTimestamp(batch.headTimestamp);
  const head = (i: number): TreeHead => ({
    tree_size: batch.firstIndex + i + 1,
    root_hash: rootHex(batch.roots, i),
    signature: base64(signatures[i]!),
    timestamp,
    key_id: keyId,
    tree_version: SIGNING_VERSION,
  });
  for (const { waiting, outcome, from, to } of batch.ran) {
    if ("error" in outcome) {
      waiting.reject(outcome.error);
      continue;
    }
    const receipts: Receipt[] = [];
    for (let i = from; i < to; i++)
      receipts.push({
        log_entry_id: batch.events[i]!.id,
        leaf_index: batch.events[i]!.leafIndex,
        entry_hash: batch.entries[i]!.entryHash,
        timestamp: batch.events[i]!.timestamp,
        sth: head(i),
        json: batch.entries[i]!.json,
      });
    waiting.resolve({ value: outcome.value, receipts });
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
const base64 = (bytes: Uint8Array): string => bufferOf(bytes).toString("base64");
/** Hex of root number `i`. */
export const rootHex = (roots: Uint8Array, i: number): string =>
  bufferOf(roots).toString("hex", HASH * i, HASH * (i + 1));
