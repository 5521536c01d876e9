/**
 * Third stage: a signed batch in; on disk when it is through. If we crash here, the batch is there whole or not at all, and
 * nobody was told of it.
 */
import { packJoined } from "../../store/schema/batch.js";
import type { Applier } from "../apply/applier.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import type { CommittedRows } from "../state/committed.js";
import type { FormedBatch, SignedHeads } from "./batch.js";

export class Writing {
  readonly #applier: Applier;
  readonly #committed: CommittedRows;
  readonly #keyId: Buffer;
  readonly #published: (batch: FormedBatch) => void;
  /** Batches that were written since the start. */
  batches = 0;

  /**
   * @param keyId fingerprint of the key that signs the heads
   * @param published called when a batch that changes something is on disk, before anyone is told
   */
  constructor(applier: Applier, committed: CommittedRows, keyId: string, published: (batch: FormedBatch) => void) {
    this.#applier = applier;
    this.#committed = committed;
    this.#keyId = Buffer.from(keyId.slice("sha256:".length), "hex");
    this.#published = published;
  }

  /**
   * @returns false for a batch that changes nothing
   * @throws CairnlogError `storage-failed`: it may be on disk all the same
   */
  async write(batch: FormedBatch, heads: SignedHeads): Promise<boolean> {
    const { firstIndex, tiles, layer, events } = batch;
    const size = firstIndex + events.length;
    const { recorded, derived } = layer.split();
    const packed = this.#pack(batch, heads);
    if (!packed && !recorded.length && !derived.length) return false;
    const made = { rows: derived, tiles, terms: layer.terms, size };
    await this.#applier.commit({ firstIndex, batch: packed, rows: recorded }, made);
    this.batches++;
    this.#published(batch);
    this.#committed.written(layer);
    return true;
  }

  #pack({ events, entries, digests, roots, headTimestamp }: FormedBatch, { signatures }: SignedHeads): Buffer | null {
    if (!events.length) return null;
    const shared = { treeVersion: SIGNING_VERSION, keyId: this.#keyId } as const;
    return packJoined(entries, digests, { ...shared, roots, timestamp: headTimestamp, signatures });
  }
}
