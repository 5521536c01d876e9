/**
 * The batch: entries as they will be served, with their digests and tree heads, as one row. Writing this row is the
 * commit; everything else on disk about these entries is derived from it.
 *
 * Layout (little-endian): u8 format · u8 tree version of the heads (0: no heads, imported history) · u16 signature
 * length · u32 count · u32 end offset of each entry · 32-byte digest of each entry · [32-byte key id · for each entry:
 * 32-byte root, f64 timestamp in microseconds, signature] · entries as UTF-8 JSON.
 *
 * Format 1 is what the journal, its records and backups carry. On disk a batch has format 2, in which the entries are in
 * shorthand (`shorthand.ts`); logs of versions before format 5 of the tables have batches of format 1, too.
 */
import { CairnlogError } from "../../base/error.js";
import { HASH } from "./schema.js";
import { expanded, shorten } from "./shorthand.js";

/** Number of events after which a batch is closed: about 10 ms of work for the sequencer. */
export const BATCH_EVENTS = 512;
/**
 * Bytes of entries after which a batch is closed. A record of the journal holds a batch, and is completely in memory.
 */
export const BATCH_BYTES = 4 * 2 ** 20;

const FORMAT = 1;
const STORED_FORMAT = 2;
/** Bytes before the ends of the entries. */
export const BATCH_HEADER = 8;
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

/** Entries, each one JSON document, one after the other, in the memory in which their row is made. */
export interface JoinedEntries {
  /** Room for everything that stands before the entries in their row, then the entries. May have more bytes at its end. */
  readonly bytes: Buffer;
  /** Where the first entry begins. */
  readonly start: number;
  /** Where each entry ends, counted from `start`. */
  readonly ends: Uint32Array;
}

/** The bytes of entry number `i`, without a copy. */
export const joinedEntry = ({ bytes, start, ends }: JoinedEntries, i: number): Buffer =>
  bytes.subarray(start + (i ? ends[i - 1]! : 0), start + ends[i]!);

/** The heads of a batch that was appended: their time is the same. */
interface JoinedHeads extends Omit<BatchHeads, "heads"> {
  /** The root of each size, 32 bytes each. */
  readonly roots: Uint8Array;
  /** Microseconds. */
  readonly timestamp: number;
  /** All signatures, which have the same length. */
  readonly signatures: Uint8Array;
}

/** The number of entries in a packed batch. */
export const batchCount = (packed: Buffer): number => packed.readUInt32LE(4);

/** Room for one more character, so that a text with other characters than ASCII shows by the bytes that it takes. */
const SPARE_BYTES = 4;
/** Signatures by Ed25519 and P-256 have 64 bytes. With longer ones, by RSA, the entries of a batch are copied once more. */
const USUAL_SIGNATURE = 64;

/** The bytes of entries that are given as texts. */
export function joinEntries(texts: readonly string[]): JoinedEntries {
  const ends = new Uint32Array(texts.length);
  // Most entries are ASCII, which takes as many bytes as it has characters, so nothing has to be measured beforehand.
  let units = 0;
  for (const text of texts) units += text.length;
  const start = entriesBegin(texts.length, USUAL_SIGNATURE);
  const bytes = Buffer.allocUnsafeSlow(start + units + SPARE_BYTES);
  let end = 0;
  for (let i = 0; i < texts.length; i++) {
    if (bytes.write(texts[i]!, start + end, "utf8") !== texts[i]!.length) return joinMeasured(texts, start);
    end += texts[i]!.length;
    ends[i] = end;
  }
  return { bytes, start, ends };
}

/** Like `joinEntries`, for texts with any characters. */
function joinMeasured(texts: readonly string[], start: number): JoinedEntries {
  let end = 0;
  const ends = Uint32Array.from(texts, (text) => {
    end += Buffer.byteLength(text, "utf8");
    return end;
  });
  const bytes = Buffer.allocUnsafeSlow(start + end);
  // One by one: all of one append together may be longer than V8 lets a text be.
  for (const [i, text] of texts.entries()) bytes.write(text, start + (i ? ends[i - 1]! : 0), "utf8");
  return { bytes, start, ends };
}

/**
 * Packs a batch that was appended: one head for each entry. The result has the same form as that of `packBatch`. It is made
 * in the memory of the entries, around them, and must not be written to: receipts have views of it. With a copy, an append of
 * 1 KiB took 1.2 KB more memory outside V8's heap.
 */
export function packJoined({ bytes, start, ends }: JoinedEntries, digests: Uint8Array, heads: JoinedHeads): Buffer {
  const count = ends.length;
  const { treeVersion, keyId, roots, timestamp, signatures } = heads;
  const signatureLength = signatures.length / count;
  const end = start + ends[count - 1]!;
  const entriesAt = entriesBegin(count, signatureLength);
  const hasRoom = entriesAt <= start;
  const row = hasRoom ? bytes.subarray(start - entriesAt, end) : Buffer.allocUnsafe(entriesAt + end - start);
  if (!hasRoom) bytes.copy(row, entriesAt, start, end);
  let at = layOut(row, count, digests, { treeVersion, keyId, signatureLength }) + HASH;
  // Copied by hand: for so few bytes, a view and a call of `set` would take several times as long.
  for (let i = 0, from = 0, signed = 0; i < count; i++) {
    for (const to = at + HASH; at < to; ) row[at++] = roots[from++]!;
    at = row.writeDoubleLE(timestamp, at);
    for (const to = at + signatureLength; at < to; ) row[at++] = signatures[signed++]!;
  }
  for (let i = 0; i < count; i++) row.writeUInt32LE(ends[i]!, BATCH_HEADER + 4 * i);
  return row;
}

/** What the row of a batch says of all its heads. */
type SharedByHeads = Omit<BatchHeads, "heads"> & { readonly signatureLength: number };

/** Writes everything but the heads' own parts, the entries and their ends. @returns where the heads begin */
function layOut(row: Buffer, count: number, digests: Uint8Array, heads: SharedByHeads | null): number {
  const digestsAt = BATCH_HEADER + 4 * count;
  const headsAt = digestsAt + HASH * count;
  row[0] = FORMAT;
  row[1] = heads?.treeVersion ?? 0;
  row.writeUInt16LE(heads?.signatureLength ?? 0, 2);
  row.writeUInt32LE(count, 4);
  row.set(digests, digestsAt);
  if (heads) row.set(heads.keyId, headsAt);
  return headsAt;
}

/** Where the entries of a row begin; without a length of signatures, one that has no heads. */
const entriesBegin = (count: number, signatureLength?: number): number =>
  BATCH_HEADER + (4 + HASH) * count + (signatureLength === undefined ? 0 : HASH + headLength(signatureLength) * count);

/** Packs entries (each one JSON document) and, unless history is being imported, one head for each of them. */
export function packBatch(entries: readonly Uint8Array[], digests: Uint8Array, heads: BatchHeads | null): Buffer {
  const count = entries.length;
  const signatureLength = heads?.heads[0]?.signature.length ?? 0;
  const size = entries.reduce((sum, entry) => sum + entry.length, 0);
  const entriesAt = entriesBegin(count, heads ? signatureLength : undefined);
  const row = Buffer.allocUnsafe(entriesAt + size);
  const headsAt = layOut(row, count, digests, heads && { ...heads, signatureLength });
  if (heads) {
    let at = headsAt + HASH;
    for (const head of heads.heads) {
      if (head.signature.length !== signatureLength) throw new RangeError("signatures of one batch differ in length");
      row.set(head.root, at);
      row.writeDoubleLE(head.timestamp, at + HASH);
      row.set(head.signature, at + HASH + 8);
      at += headLength(signatureLength);
    }
  }
  let end = 0;
  entries.forEach((entry, i) => {
    row.set(entry, entriesAt + end);
    end += entry.length;
    row.writeUInt32LE(end, BATCH_HEADER + 4 * i);
  });
  return row;
}

/** A packed batch as it is stored: everything before the entries stays what it is, but for the ends of the entries. */
export function storedBatch(packed: Buffer): Buffer {
  const { count, digestsAt, headsAt, entriesAt } = layoutOf(packed)!;
  const ends = Uint32Array.from({ length: count }, (_, i) => packed.readUInt32LE(BATCH_HEADER + 4 * i));
  const short = shorten(packed.subarray(entriesAt), ends, packed.subarray(digestsAt, headsAt));
  return withEntries(packed, entriesAt, STORED_FORMAT, short.ends, short.bytes);
}

/** A row whose parts before the entries are those of another one. */
function withEntries(row: Buffer, entriesAt: number, format: number, ends: Uint32Array, entries: Uint8Array): Buffer {
  const made = Buffer.allocUnsafeSlow(entriesAt + entries.length);
  row.copy(made, 0, 0, entriesAt);
  made[0] = format;
  for (let i = 0; i < ends.length; i++) made.writeUInt32LE(ends[i]!, BATCH_HEADER + 4 * i);
  made.set(entries, entriesAt);
  return made;
}

/** Number of a batch's entries, and where its parts begin. */
interface Layout {
  readonly treeVersion: number;
  readonly signatureLength: number;
  readonly count: number;
  readonly digestsAt: number;
  readonly headsAt: number;
  readonly entriesAt: number;
}

/** What the first bytes of a batch say; null if it is not in a format that this version reads. */
export function layoutOf(head: Buffer): Layout | null {
  const isKnown = head[0] === FORMAT || head[0] === STORED_FORMAT;
  if (head.length < BATCH_HEADER || !isKnown || head[1]! > MAX_TREE_VERSION) return null;
  const treeVersion = head[1]!;
  const signatureLength = head.readUInt16LE(2);
  const count = head.readUInt32LE(4);
  const digestsAt = BATCH_HEADER + 4 * count;
  const headsAt = digestsAt + HASH * count;
  const entriesAt = entriesBegin(count, treeVersion ? signatureLength : undefined);
  return { treeVersion, signatureLength, count, digestsAt, headsAt, entriesAt };
}

/** Bytes of one head. */
const headLength = (signatureLength: number): number => HASH + 8 + signatureLength;

/** The stored part of a head, and what it shares with the others of its batch; both null if there is none. */
export interface StoredHead {
  readonly info: HeadInfo | null;
  readonly record: HeadRecord | null;
}

const NO_HEAD: StoredHead = { info: null, record: null };

/**
 * The head of entry number `i` of a batch.
 * @param read returns bytes of the row, as many as there are; undefined if it cannot be read, and so returns this
 */
export function storedHead(
  read: (at: number, length: number) => Buffer | undefined,
  i: number,
): StoredHead | undefined {
  const layout = layoutOf(read(0, BATCH_HEADER) ?? Buffer.alloc(0));
  if (!layout) return undefined;
  const { treeVersion, headsAt, signatureLength } = layout;
  if (treeVersion === 0) return NO_HEAD;
  const length = headLength(signatureLength);
  const keyId = read(headsAt, HASH);
  const head = read(headsAt + HASH + length * i, length);
  if (!keyId || !head) return undefined;
  return { info: { treeVersion: treeVersion as 1 | 2, keyId }, record: headRecord(head) };
}

const headRecord = (head: Buffer): HeadRecord => ({
  root: head.subarray(0, HASH),
  timestamp: head.readDoubleLE(HASH),
  signature: head.subarray(HASH + 8),
});

/** A view of a batch, packed or stored. It returns slices of `row`, which are valid as long as `row` is. */
export class Batch {
  readonly firstIndex: number;
  readonly count: number;
  readonly #row: Buffer;
  readonly #layout: Layout;

  /** @throws CairnlogError `corrupt-log` if the row is not a batch of a known format. */
  constructor(firstIndex: number, row: Buffer) {
    const layout = layoutOf(row);
    if (!layout)
      throw new CairnlogError("corrupt-log", `The batch at leaf ${firstIndex} is not in a format this version reads.`);
    this.firstIndex = firstIndex;
    this.count = layout.count;
    this.#row = row;
    this.#layout = layout;
    if (row.length < layout.entriesAt || row.length !== layout.entriesAt + this.#end(this.count - 1))
      throw new CairnlogError("corrupt-log", `The batch at leaf ${firstIndex} is cut short.`);
  }

  /** Its bytes as it was packed, not to be written to. */
  get packed(): Buffer {
    return this.#row[0] === FORMAT ? this.#row : this.packedWith(() => undefined);
  }

  /** Its bytes as if it had been packed with other entries. @param other the JSON in place of an entry's; undefined if it stays */
  packedWith(other: (i: number) => Uint8Array | undefined): Buffer {
    const ends = new Uint32Array(this.count);
    let end = 0;
    const entries = Array.from({ length: this.count }, (_, i) => {
      const entry = other(i) ?? this.entry(i);
      end += entry.length;
      ends[i] = end;
      return entry;
    });
    return withEntries(this.#row, this.#layout.entriesAt, FORMAT, ends, Buffer.concat(entries));
  }

  #end(i: number): number {
    return i < 0 ? 0 : this.#row.readUInt32LE(BATCH_HEADER + 4 * i);
  }

  /** Entry number `i` of the batch, as JSON. */
  entry(i: number): Buffer {
    const bytes = this.#stored(i);
    const json = this.#expanded(bytes, i);
    return json === bytes ? bytes : Buffer.from(json);
  }

  /** Entry number `i` as text. */
  text(i: number): string {
    const { buffer, byteOffset, length } = this.#expanded(this.#stored(i), i);
    return Buffer.from(buffer, byteOffset, length).toString("utf8");
  }

  #stored(i: number): Buffer {
    return this.#row.subarray(this.#layout.entriesAt + this.#end(i - 1), this.#layout.entriesAt + this.#end(i));
  }

  #expanded(bytes: Buffer, i: number): Uint8Array {
    const from = this.#layout.digestsAt + HASH * Math.max(0, i - 1);
    return expanded(bytes, this.#row.subarray(from, this.#layout.digestsAt + HASH * (i + 1)));
  }

  /** Hash of entry number `i`, hex. */
  digest(i: number): string {
    return this.#row.toString("hex", this.#layout.digestsAt + HASH * i, this.#layout.digestsAt + HASH * (i + 1));
  }

  /** Entry hashes of the whole batch, 32 bytes each. */
  get digests(): Buffer {
    return this.#row.subarray(this.#layout.digestsAt, this.#layout.headsAt);
  }

  /** Tree version and signer of the heads; null for imported history, which has no heads. */
  get headInfo(): HeadInfo | null {
    if (this.#layout.treeVersion === 0) return null;
    const keyId = this.#row.subarray(this.#layout.headsAt, this.#layout.headsAt + HASH);
    return { treeVersion: this.#layout.treeVersion as 1 | 2, keyId };
  }

  /** The head of tree size `firstIndex + i + 1`, or null if there is none. */
  head(i: number): HeadRecord | null {
    if (this.#layout.treeVersion === 0) return null;
    const { headsAt, signatureLength } = this.#layout;
    const at = headsAt + HASH + headLength(signatureLength) * i;
    return headRecord(this.#row.subarray(at, at + headLength(signatureLength)));
  }
}
