/**
 * The record: one commit of a log, as a journal keeps it. It holds everything that cannot be derived: a batch, private
 * rows, and the log's meta row. It does not hold derived rows, tiles and postings; they are computed when it is
 * applied.
 *
 * Records are numbered without gaps over all commits, including commits without a batch. Each record names the hash of
 * the one before it. The hash covers the digests of batch and rows, not their bytes, and the digest of a batch the hashes of its
 * payloads. So private rows can be removed from a journal (when an account is deleted), and payloads that are
 * withheld, and its chain can still be checked.
 *
 * Layout (big-endian): the head: u8 format · u48 sequence · u48 epoch · u48 first index · 32-byte hash of the record
 * before · digest of the batch (`digestOfBatch`) · SHA-256 of the rows (zeros if there are none); then SHA-256 of the head,
 * which is the record's hash · u32 length of the batch · batch (`batch.ts`) · rows (`rows.ts`, in key order, a line feed after
 * each).
 *
 * Format 1 has the SHA-256 of the batch as its digest. A record of it that has lost payloads cannot be compared with that: the
 * digest of what is left stands at its end. That shows damage; the hashes of the entries themselves are checked wherever a record
 * is applied.
 */
import { hash } from "node:crypto";
import { CairnlogError } from "../base/error.js";
import { byKey, NO_HASH } from "../store/changeset.js";
import { Batch } from "../store/schema/batch.js";
import { HASH } from "../store/schema/schema.js";
import { type RecordedChange, rowLine } from "./rows.js";

export interface JournalRecord {
  /** Number of the record; the first is 1. */
  readonly sequence: number;
  /** Hash of the record before; zeros for the first one. */
  readonly previous: Uint8Array;
  /** Epoch of the writer that made it; never below that of the record before. */
  readonly epoch: number;
  /** Number of entries before this record, which is the leaf index of the batch's first entry. */
  readonly firstIndex: number;
  /** A packed batch, or null. */
  readonly batch: Buffer | null;
  /** Rows that are not derived from entries, each at most once. */
  readonly rows: readonly RecordedChange[];
}

const FORMAT = 2;
/** Its hash covers the bytes of payloads. */
const WITH_PAYLOADS = 1;
const NUMBER_BYTES = 6;
const SEQUENCE_AT = 1;
const EPOCH_AT = SEQUENCE_AT + NUMBER_BYTES;
const FIRST_INDEX_AT = EPOCH_AT + NUMBER_BYTES;
const PREVIOUS_AT = FIRST_INDEX_AT + NUMBER_BYTES;
const BATCH_DIGEST_AT = PREVIOUS_AT + HASH;
const ROWS_DIGEST_AT = BATCH_DIGEST_AT + HASH;
const HEAD = ROWS_DIGEST_AT + HASH;
const BATCH_LENGTH_AT = HEAD + HASH;
const BODY_AT = BATCH_LENGTH_AT + 4;

const sha256 = (bytes: Uint8Array): Buffer => hash("sha256", bytes, "buffer");
const digestOf = (bytes: Uint8Array): Uint8Array => (bytes.length ? sha256(bytes) : NO_HASH);
const batchDigest = (batch: Buffer, format: number, losses?: Losses): Uint8Array =>
  batch.length && format === FORMAT ? digestOfBatch(batch, losses) : digestOf(batch);

/** What stands behind a batch that has lost payloads. */
function spellLosses(batch: Buffer, format: number, losses: Losses): Buffer {
  const left = format === WITH_PAYLOADS ? digestOfBatch(batch, losses) : Buffer.alloc(0);
  return Buffer.concat([packLosses(losses), left]);
}

/** Rows as text, in key order. */
const linesOf = (rows: readonly RecordedChange[]): Buffer =>
  Buffer.from(
    [...rows]
      .sort(byKey)
      .map((change) => `${rowLine(change)}\n`)
      .join(""),
    "utf8",
  );

/** The bytes of a record. Equal records have equal bytes, for any order of their rows and members. */
export function encodeRecord(record: JournalRecord): Buffer {
  const batch = record.batch ?? Buffer.alloc(0);
  const rows = linesOf(record.rows);
  const bytes = Buffer.allocUnsafe(BODY_AT + batch.length + rows.length);
  bytes[0] = FORMAT;
  bytes.writeUIntBE(record.sequence, SEQUENCE_AT, NUMBER_BYTES);
  bytes.writeUIntBE(record.epoch, EPOCH_AT, NUMBER_BYTES);
  bytes.writeUIntBE(record.firstIndex, FIRST_INDEX_AT, NUMBER_BYTES);
  bytes.set(record.previous, PREVIOUS_AT);
  bytes.set(batchDigest(batch, FORMAT), BATCH_DIGEST_AT);
  bytes.set(digestOf(rows), ROWS_DIGEST_AT);
  bytes.set(sha256(bytes.subarray(0, HEAD)), HEAD);
  bytes.writeUInt32BE(batch.length, BATCH_LENGTH_AT);
  bytes.set(batch, BODY_AT);
  bytes.set(rows, BODY_AT + batch.length);
  return bytes;
}

/** The hash of a record that `encodeRecord` made, or of its body. */
export const recordHash = (bytes: Uint8Array): Uint8Array => bytes.slice(HEAD, BATCH_LENGTH_AT);

/** A record without its rows, as a journal keeps it that has the rows elsewhere: the head, its hash and the batch. */
export const bodyOf = (bytes: Buffer): Buffer => bytes.subarray(0, BODY_AT + bytes.readUInt32BE(BATCH_LENGTH_AT));

/**
 * The record whose body this is, and its rows. The head vouches for the batch; what it says of rows is only compared if
 * `areComplete`: a journal may have removed private rows since.
 * @throws CairnlogError `corrupt-log`
 */
export function recordOf(
  body: Buffer,
  rows: readonly RecordedChange[],
  areComplete: boolean,
): { readonly record: JournalRecord; readonly hash: Uint8Array } {
  const { record } = readBody(body);
  const digest = body.subarray(ROWS_DIGEST_AT, HEAD);
  if (areComplete && Buffer.compare(digestOf(linesOf(rows)), digest) !== 0) throw damaged(MISMATCH);
  return { record: { ...record, rows }, hash: recordHash(body) };
}

const MISMATCH = "its hashes do not match its bytes";

/** A body, which may have lost payloads, checked. @throws CairnlogError `corrupt-log` */
function readBody(body: Buffer): { readonly record: Omit<JournalRecord, "rows">; readonly losses: Losses } {
  if (body.length < BODY_AT) throw damaged("it is cut short");
  const end = bodyOf(body).length;
  if (end < BODY_AT + body.readUInt32BE(BATCH_LENGTH_AT)) throw damaged("it is cut short");
  const batch = body.subarray(BODY_AT, end);
  const format = body[0]!;
  if (format !== FORMAT && format !== WITH_PAYLOADS) throw damaged("it is in a format that this version does not read");
  const record = {
    sequence: body.readUIntBE(SEQUENCE_AT, NUMBER_BYTES),
    previous: Buffer.from(body.subarray(PREVIOUS_AT, BATCH_DIGEST_AT)),
    epoch: body.readUIntBE(EPOCH_AT, NUMBER_BYTES),
    firstIndex: body.readUIntBE(FIRST_INDEX_AT, NUMBER_BYTES),
    batch: batch.length ? batch : null,
  };
  const behind = body.subarray(end);
  const isUncovered = format === WITH_PAYLOADS && behind.length > 0;
  const losses = readLosses(isUncovered ? behind.subarray(0, -HASH) : behind, batch);
  const isWhole =
    losses !== undefined &&
    sha256(body.subarray(0, HEAD)).equals(recordHash(body)) &&
    (isUncovered
      ? spellLosses(batch, format, losses).equals(behind)
      : Buffer.compare(batchDigest(batch, format, losses), body.subarray(BATCH_DIGEST_AT, ROWS_DIGEST_AT)) === 0);
  if (!isWhole) throw damaged(MISMATCH);
  return { record, losses };
}

/**
 * A body without the payloads of some entries. Its hash stays.
 * @param withheld the entries as they are served, by their leaf indexes
 * @returns null if it has none of these payloads
 * @throws CairnlogError `corrupt-log`
 */
export function bodyWithout(body: Buffer, withheld: ReadonlyMap<number, Buffer>): Buffer | null {
  const { record, losses } = readBody(body);
  const { firstIndex, batch } = record;
  if (!batch) return null;
  const inBatch = new Map([...withheld].map(([leafIndex, json]) => [leafIndex - firstIndex, json]));
  const without = withoutPayloads(batch, losses, inBatch);
  if (without.losses.size === losses.size) return null;
  const head = Buffer.from(body.subarray(0, BODY_AT));
  head.writeUInt32BE(without.packed.length, BATCH_LENGTH_AT);
  return Buffer.concat([head, without.packed, spellLosses(without.packed, body[0]!, without.losses)]);
}

const damaged = (why: string): CairnlogError =>
  new CairnlogError("corrupt-log", `A record of the journal is damaged: ${why}.`);

// Payloads in the batch of a record. A record's hash must stay what it is when a payload is withheld and taken from the journal. So
// it covers the hash of each payload and not its bytes, and a record that has lost some has their hashes behind its batch:
// for each u32 number of the entry in the batch, 32-byte hash.

const BEFORE = Buffer.from(',"payload":');
const BEHIND = Buffer.from(',"previous_hash":');
/** In the place of a payload that an entry has lost, or of one that has lost its name, as `spellWithheld` writes it. */
const LOST = /^(?:null|\{.*\}),"withheld_by":\d+$/s;
const ENTRY_NUMBER_BYTES = 4;
const LOSS_BYTES = ENTRY_NUMBER_BYTES + HASH;

/** Hashes of the payloads that a batch has lost, by the numbers of their entries. */
type Losses = ReadonlyMap<number, Uint8Array>;
const NO_LOSSES: Losses = new Map();

/**
 * Where the payload lies in an entry. Quotes in texts are escaped, so the first of these names is the member's own; behind the
 * payload there are hashes.
 */
function payloadIn(entry: Buffer): { readonly from: number; readonly to: number } | undefined {
  const at = entry.indexOf(BEFORE);
  const [from, to] = [at + BEFORE.length, entry.lastIndexOf(BEHIND)];
  return at < 0 || to < from ? undefined : { from, to };
}

/** SHA-256 of a packed batch with the hash of each payload in its place. Bytes that are no batch are hashed as they are. */
function digestOfBatch(packed: Buffer, losses: Losses = NO_LOSSES): Buffer {
  const batch = batchOf(packed);
  if (!batch) return sha256(packed);
  return sha256(
    batch.packedWith((i) => {
      const entry = batch.entry(i);
      const payload = payloadIn(entry);
      if (!payload) return undefined;
      const digest = losses.get(i) ?? sha256(entry.subarray(payload.from, payload.to));
      return Buffer.concat([entry.subarray(0, payload.from), digest, entry.subarray(payload.to)]);
    }),
  );
}

function batchOf(packed: Buffer): Batch | undefined {
  try {
    return new Batch(0, packed);
  } catch {
    return undefined;
  }
}

/** A batch without the payloads of some entries, and the hashes of all that it has lost. @param withheld as they are served */
function withoutPayloads(
  packed: Buffer,
  losses: Losses,
  withheld: ReadonlyMap<number, Buffer>,
): { readonly packed: Buffer; readonly losses: Losses } {
  const batch = new Batch(0, packed);
  const lost = new Map(losses);
  const shorter = batch.packedWith((i) => {
    const other = withheld.get(i);
    if (!other || lost.has(i)) return undefined;
    const entry = batch.entry(i);
    const payload = payloadIn(entry);
    if (!payload || isLost(entry)) return undefined;
    lost.set(i, sha256(entry.subarray(payload.from, payload.to)));
    return other;
  });
  return { packed: shorter, losses: lost };
}

function isLost(entry: Buffer): boolean {
  const payload = payloadIn(entry);
  return payload !== undefined && LOST.test(entry.toString("latin1", payload.from, payload.to));
}

/** The bytes behind a batch. */
const packLosses = (losses: Losses): Buffer =>
  Buffer.concat(
    [...losses].map(([i, digest]) => {
      const number = Buffer.alloc(ENTRY_NUMBER_BYTES);
      number.writeUInt32BE(i);
      return Buffer.concat([number, digest]);
    }),
  );

/** Inverse of `packLosses`; undefined for bytes that are none, or name an entry that has not lost its payload. */
function readLosses(bytes: Buffer, packed: Buffer): Losses | undefined {
  if (!bytes.length) return NO_LOSSES;
  const batch = batchOf(packed);
  if (!batch || bytes.length % LOSS_BYTES) return undefined;
  const losses = new Map<number, Uint8Array>();
  for (let at = 0; at < bytes.length; at += LOSS_BYTES) {
    const i = bytes.readUInt32BE(at);
    if (i >= batch.count || losses.has(i) || !isLost(batch.entry(i))) return undefined;
    losses.set(i, bytes.subarray(at + ENTRY_NUMBER_BYTES, at + LOSS_BYTES));
  }
  return losses;
}
