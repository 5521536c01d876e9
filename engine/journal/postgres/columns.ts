/** A record as it is kept in tables: its body, its public rows, and its private rows, which may be removed later. */
import { isPublic } from "../../store/schema/schema.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { bodyOf, encodeRecord, type JournalRecord, recordHash } from "../record.js";
import { type RecordedChange, rowLine } from "../rows.js";

export interface Columns {
  readonly sequence: number;
  readonly epoch: number;
  readonly firstIndex: number;
  /** Number of entries after the record. */
  readonly size: number;
  readonly previous: Buffer;
  readonly hash: Buffer;
  readonly body: Buffer;
  /** Lines, or null if there are none. */
  readonly publicRows: string | null;
  readonly privateRows: string | null;
  /** Of each private row that changes: its table, its key, and its line; null for one that is deleted. */
  readonly changes: {
    readonly tables: readonly string[];
    readonly keys: readonly string[];
    readonly lines: readonly (string | null)[];
  };
}

/** @param count number of entries in the record's batch */
export function columnsOf(record: JournalRecord, count: number): Columns {
  const { sequence, epoch, firstIndex, previous, rows } = record;
  const bytes = encodeRecord(record);
  const secret = rows.filter(({ table }) => !isPublic(table));
  return {
    sequence,
    epoch,
    firstIndex,
    size: firstIndex + count,
    previous: Buffer.from(previous),
    hash: Buffer.from(recordHash(bytes)),
    body: bodyOf(bytes),
    publicRows: textOf(rows.filter(({ table }) => isPublic(table))),
    privateRows: textOf(secret),
    changes: {
      tables: secret.map(({ table }) => table),
      keys: secret.map(({ key }) => canonicalJson(key)),
      lines: secret.map((change) => (change.row === undefined ? null : rowLine(change))),
    },
  };
}

const textOf = (rows: readonly RecordedChange[]): string | null =>
  rows.length ? rows.map((row) => `${rowLine(row)}\n`).join("") : null;
