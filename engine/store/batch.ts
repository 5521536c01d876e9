/**
 * The batch: entries as they will be served, with their digests and tree heads, as one row. Writing this row is the
 * commit; everything else on disk about these entries is derived from it.
 *
 * Layout (little-endian): u8 format · u8 tree version of the heads (0: no heads, imported history) · u16 signature
 * length · u32 count · u32 end offset of each entry · 32-byte digest of each entry · [32-byte key id · for each entry:
 * 32-byte root, f64 timestamp in microseconds, signature] · entries as UTF-8 JSON.
 */
import { CairnlogError } from "../error.js";
import { HASH } from "./schema.js";

/** Number of events after which a batch is closed: about 10 ms of work for the sequencer. */
export const BATCH_EVENTS = 512;
/**
 * Bytes of entries after which a batch is closed. A record of the journal holds a batch, and is completely in memory.
 */
export const BATCH_BYTES = 4 * 2 ** 20;

const FORMAT = 1;
const HEADER = 8;
const MAX_TREE_VERSION = 2;

/** The stored part of a tree head; its size is the entry's leaf index + 1. */
export interface HeadRecord {
  readonly root: Uint8Array;
  readonly timestamp: number;
  readonly signature: Uint8Array;
}

export interface BatchHeads {
  readonly treeVersion: 1 | 2;
  /** SHA-256 of the operator key's SPKI, 32 bytes. */
  readonly keyId: Uint8Array;
  readonly heads: readonly HeadRecord[];
}

/** The values that all heads of a batch share. */
export interface HeadInfo {
  readonly treeVersion: 1 | 2;
  /** SHA-256 of the operator key's SPKI. */
  readonly keyId: Buffer;
}

/** Packs entries (each one JSON document) and, unless history is being imported, one head for each of them. */
export function packBatch(entries: readonly Uint8Array[], digests: Uint8Array, heads: BatchHeads | null): Buffer {
  const count = entries.length;
  const signatureLength = heads?.heads[0]?.signature.length ?? 0;
  const headLength = HASH + 8 + signatureLength;
  const digestsAt = HEADER + 4 * count;
  const headsAt = digestsAt + HASH * count;
  const entriesAt = headsAt + (heads ? HASH + headLength * count : 0);
  const size = entries.reduce((sum, entry) => sum + entry.length, entriesAt);

  const row = Buffer.allocUnsafe(size);
  row[0] = FORMAT;
  row[1] = heads?.treeVersion ?? 0;
  row.writeUInt16LE(signatureLength, 2);
  row.writeUInt32LE(count, 4);
  row.set(digests, digestsAt);
  if (heads) {
    row.set(heads.keyId, headsAt);
    let at = headsAt + HASH;
    for (const head of heads.heads) {
      if (head.signature.length !== signatureLength) throw new RangeError("signatures of one batch differ in length");
      row.set(head.root, at);
      row.writeDoubleLE(head.timestamp, at + HASH);
      row.set(head.signature, at + HASH + 8);
      at += headLength;
    }
  }
  let end = 0;
  entries.forEach((entry, i) => {
    row.set(entry, entriesAt + end);
    end += entry.length;
    row.writeUInt32LE(end, HEADER + 4 * i);
  });
  return row;
}

/** A view of a packed batch. It returns slices of `row`, which are valid as long as `row` is. */
export class Batch {
  readonly firstIndex: number;
  readonly count: number;
  readonly #row: Buffer;
  readonly #treeVersion: number;
  readonly #signatureLength: number;
  readonly #digestsAt: number;
  readonly #headsAt: number;
  readonly #entriesAt: number;

  /** @throws CairnlogError `corrupt-log` if the row is not a batch of a known format. */
  constructor(firstIndex: number, row: Buffer) {
    if (row.length < HEADER || row[0] !== FORMAT || row[1]! > MAX_TREE_VERSION)
      throw new CairnlogError("corrupt-log", `The batch at leaf ${firstIndex} is not in a format this version reads.`);
    this.firstIndex = firstIndex;
    this.#row = row;
    this.#treeVersion = row[1]!;
    this.#signatureLength = row.readUInt16LE(2);
    this.count = row.readUInt32LE(4);
    this.#digestsAt = HEADER + 4 * this.count;
    this.#headsAt = this.#digestsAt + HASH * this.count;
    this.#entriesAt = this.#headsAt + (this.#treeVersion ? HASH + this.#headLength * this.count : 0);
    if (row.length < this.#entriesAt || row.length !== this.#entriesAt + this.#end(this.count - 1))
      throw new CairnlogError("corrupt-log", `The batch at leaf ${firstIndex} is cut short.`);
  }

  get #headLength(): number {
    return HASH + 8 + this.#signatureLength;
  }

  #end(i: number): number {
    return i < 0 ? 0 : this.#row.readUInt32LE(HEADER + 4 * i);
  }

  /** Entry number `i` of the batch, as JSON. */
  entry(i: number): Buffer {
    return this.#row.subarray(this.#entriesAt + this.#end(i - 1), this.#entriesAt + this.#end(i));
  }

  /** Entry number `i` as text. */
  text(i: number): string {
    return this.#row.toString("utf8", this.#entriesAt + this.#end(i - 1), this.#entriesAt + this.#end(i));
  }

  /** Hash of entry number `i`, hex. */
  digest(i: number): string {
    return this.#row.toString("hex", this.#digestsAt + HASH * i, this.#digestsAt + HASH * (i + 1));
  }

  /** Entry hashes of the whole batch, 32 bytes each. */
  get digests(): Buffer {
    return this.#row.subarray(this.#digestsAt, this.#headsAt);
  }

  /** Tree version and signer of the heads; null for imported history, which has no heads. */
  get headInfo(): HeadInfo | null {
    if (this.#treeVersion === 0) return null;
    const keyId = this.#row.subarray(this.#headsAt, this.#headsAt + HASH);
    return { treeVersion: this.#treeVersion as 1 | 2, keyId };
  }

  /** All heads; null for imported history. */
  get heads(): BatchHeads | null {
    const info = this.headInfo;
    return info && { ...info, heads: Array.from({ length: this.count }, (_, i) => this.head(i)!) };
  }

  /** The head of tree size `firstIndex + i + 1`, or null if there is none. */
  head(i: number): HeadRecord | null {
    if (this.#treeVersion === 0) return null;
    const at = this.#headsAt + HASH + this.#headLength * i;
    return {
      root: this.#row.subarray(at, at + HASH),
      timestamp: this.#row.readDoubleLE(at + HASH),
      signature: this.#row.subarray(at + HASH + 8, at + this.#headLength),
    };
  }
}
