/** Second and third stage: a formed batch in, signed, written, and its callers answered. */
import { CairnlogError } from "../../base/error.js";
import { tell } from "../../base/lock.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { type Signer, signatures } from "../../crypto/signer/operator-key.js";
import { joinedEntry, packJoined } from "../../store/schema/batch.js";
import { HASH } from "../../store/schema/schema.js";
import { treeHeadText } from "../../verify/tree/treehead.js";
import type { Applier } from "../apply/applier.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import { formatTimestamp } from "../state/clock.js";
import { EntryReceipt } from "../state/entry.js";
import type { Receipt } from "../state/executor.js";
import type { CommittedRows } from "../state/rows.js";
import type { FormedBatch, SignedHeads } from "./forming.js";

/** Second stage: a formed batch in, its signed heads out. */
export class Signing {
  readonly #signer: Signer;
  readonly #operatorKey: ServerKey;

  /** @param operatorKey the signer's public key */
  constructor(signer: Signer, operatorKey: ServerKey) {
    this.#signer = signer;
    this.#operatorKey = operatorKey;
  }

  /** @returns the heads; none for a batch without entries. @throws CairnlogError `signer-unavailable` */
  async sign({ events, roots, headTimestamp, firstIndex }: FormedBatch): Promise<SignedHeads> {
    const timestamp = formatTimestamp(headTimestamp);
    const rootTexts: string[] = [];
    if (!events.length) return { timestamp, roots: rootTexts, signatures: NO_SIGNATURES };
    const rootBytes = Buffer.from(roots.buffer, roots.byteOffset, roots.length);
    const texts: string[] = [];
    for (let i = 0; i < events.length; i++) {
      const root = rootBytes.toString("hex", HASH * i, HASH * (i + 1));
      rootTexts.push(root);
      texts.push(treeHeadText(root, firstIndex + i + 1, timestamp));
    }
    try {
      const signed = await signatures(this.#signer, this.#operatorKey, encoded(texts));
      return { timestamp, roots: rootTexts, signatures: signed };
    } catch (cause) {
      throw new CairnlogError("signer-unavailable", "The operator key cannot sign, so nothing was appended.", {
        cause,
      });
    }
  }
}

const NO_SIGNATURES = Buffer.alloc(0);

/** The bytes of ASCII texts, in one piece of memory. */
function encoded(texts: readonly string[]): Uint8Array[] {
  const joined = texts.join("");
  const bytes = Buffer.allocUnsafeSlow(joined.length);
  bytes.write(joined, "latin1");
  let end = 0;
  return texts.map(({ length }) => {
    end += length;
    return new Uint8Array(bytes.buffer, end - length, length);
  });
}

/**
 * Third stage: a signed batch in; on disk when it is through. If we crash here, the batch is there whole or not at all, and
 * nobody was told of it.
 */
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

/** Answers every command of a batch that is on disk. @param keyId fingerprint of the key that signed its heads */
export function answerBatch(batch: FormedBatch, heads: SignedHeads, keyId: string): void {
  for (const { waiting, isRefused, outcome, from, to } of batch.ran) {
    if (isRefused) {
      tell(waiting.reject, outcome);
      continue;
    }
    const receipts: Receipt[] = [];
    for (let i = from; i < to; i++) receipts.push(receipt(batch, heads, keyId, i));
    tell(waiting.resolve, { value: outcome, receipts });
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
