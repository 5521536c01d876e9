/**
 * Third stage: a signed batch in; on disk when it is through. If we crash here, the batch is there whole or not at all, and
 * nobody was told of it.
 */
import { type BatchHeads, packBatch } from "../../../store/batch.js";
import { HASH } from "../../../store/schema.js";
import type { Applier } from "../../apply/applier.js";
import { SIGNING_VERSION } from "../../tree/frontier.js";
import type { CommittedRows } from "../committed.js";
import type { FormedBatch } from "./batch.js";

export class Writing {
  readonly #applier: Applier;
  readonly #committed: CommittedRows;
  readonly #keyId: Buffer;
  readonly #published: (size: number) => void;
  /** Batches that were written since the start. */
  batches = 0;

  /**
   * @param keyId fingerprint of the key that signs the heads
   * @param published called when entries up to `size` are on disk, before anyone is told
   */
  constructor(applier: Applier, committed: CommittedRows, keyId: string, published: (size: number) => void) {
    this.#applier = applier;
    this.#committed = committed;
    this.#keyId = Buffer.from(keyId.slice("sha256:".length), "hex");
    this.#published = published;
  }

  /**
   * @returns false for a batch that changes nothing
   * @throws CairnlogError `storage-failed`: it may be on disk all the same
   */
  async write(batch: FormedBatch, signatures: readonly Uint8Array[]): Promise<boolean> {
    const { firstIndex, tiles, layer, events } = batch;
    const size = firstIndex + events.length;
    const { recorded, derived } = layer.split();
    const packed = this.#pack(batch, signatures);
    if (!packed && !recorded.length && !derived.length) return false;
    const made = { rows: derived, tiles, terms: layer.terms, size };
    await this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made);
    this.batches++;
    if (packed) this.#published(size);
    this.#committed.written(layer);
    return true;
  }

  #pack({ entries, digests, roots, headTimestamp }: FormedBatch, signatures: readonly Uint8Array[]): Buffer | null {
    if (!entries.length) return null;
    const heads: BatchHeads = {
      treeVersion: SIGNING_VERSION,
      keyId: this.#keyId,
      heads: signatures.map((signature, i) => ({
        root: roots.subarray(HASH * i, HASH * (i + 1)),
        timestamp: headTimestamp,
        signature,
      })),
    };
    return packBatch(
      entries.map(({ json }) => json),
      digests,
      heads,
    );
  }
}
