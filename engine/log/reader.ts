/** Reads stored entries and heads by leaf index. The last few batches read are kept, since neighbours are read together. */
import type { Batch } from "../store/batch.js";
import type { Store } from "../store/store.js";
import type { Entry } from "../verify/entry.js";
import type { TreeVersion } from "../verify/merkle.js";
import type { TreeHead } from "../verify/treehead.js";
import { formatTimestamp } from "./clock.js";

/** Batches kept; a batch is immutable, so a kept one is never stale. */
const KEPT_BATCHES = 16;

export class EntryReader {
  readonly #store: Pick<Store, "batchAt">;
  #kept: Batch[] = [];

  constructor(store: Pick<Store, "batchAt">) {
    this.#store = store;
  }

  #batch(index: number): Batch | undefined {
    const kept = this.#kept.find((batch) => index >= batch.firstIndex && index < batch.firstIndex + batch.count);
    if (kept) return kept;
    const batch = this.#store.batchAt(index);
    if (batch) this.#kept = [batch, ...this.#kept.slice(0, KEPT_BATCHES - 1)];
    return batch;
  }

  /** The entry as it is served. */
  json(index: number): Buffer | undefined {
    const batch = this.#batch(index);
    return batch?.entry(index - batch.firstIndex);
  }

  entry(index: number): Entry | undefined {
    const json = this.json(index);
    return json && (JSON.parse(json.toString("utf8")) as Entry);
  }

  /** Entry hash, hex. */
  digest(index: number): string | undefined {
    const batch = this.#batch(index);
    if (!batch) return undefined;
    const at = (index - batch.firstIndex) * 32;
    return batch.digests.toString("hex", at, at + 32);
  }

  /** The lens of the stored head of a tree size; undefined where there is none. */
  headVersion(treeSize: number): TreeVersion | undefined {
    return this.#batch(treeSize - 1)?.headInfo?.treeVersion;
  }

  /** The stored head of a tree size; undefined where there is none. */
  head(treeSize: number): TreeHead | undefined {
    const batch = this.#batch(treeSize - 1);
    const info = batch?.headInfo;
    const record = batch?.head(treeSize - 1 - batch.firstIndex);
    if (!info || !record) return undefined;
    return {
      tree_size: treeSize,
      root_hash: Buffer.from(record.root).toString("hex"),
      signature: Buffer.from(record.signature).toString("base64"),
      timestamp: formatTimestamp(record.timestamp),
      key_id: `sha256:${info.keyId.toString("hex")}`,
      tree_version: info.treeVersion,
    };
  }
}
