/** The statements of the journal. Those that append hold their condition in themselves: whoever lost the lead changes nothing. */
import { isPublic } from "../../store/schema/schema.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { bodyOf, encodeRecord, type JournalRecord, recordHash } from "../record.js";
import { type RecordedChange, rowLine } from "../rows.js";
import type { Sql, SqlRow } from "./connection.js";

// A record as it is kept in tables: its body, its public rows, and its private rows, which may be removed later.

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

/** The row of `cairnlog.lead`. */
export interface Lead {
  /** Number of takeovers. */
  readonly epoch: number;
  /** Token of the takeover that has the lead; null if it was given back. */
  readonly holder: string | null;
  /** Address of the node that has it. */
  readonly url: string | null;
  /** The newest record that is visible here, which need not be decided. */
  readonly sequence: number;
  readonly hash: Buffer;
  /** Number of entries after it. */
  readonly size: number;
  /** The newest record that the leader knows to be decided. */
  readonly acked: number;
  /** Private rows of records up to this one may have been removed. */
  readonly swept: number;
  /** Changes with every sign of life. */
  readonly beat: number;
  /** Address of the node that asks for the lead. */
  readonly wanted: string | null;
  /** The newest checkpoint of the leader, as it told it. */
  readonly checkpoint: string | null;
}

export const LEAD: Sql = {
  name: "cairnlog-lead",
  text: "SELECT epoch, holder, url, sequence, hash, size, acked, swept, beat, wanted, checkpoint FROM cairnlog.lead",
};

export const leadOf = (row: SqlRow): Lead =>
  ({
    ...row,
    ...Object.fromEntries(
      ["epoch", "sequence", "size", "acked", "swept", "beat"].map((name) => [name, Number(row[name])]),
    ),
  }) as unknown as Lead;

/** The public rows of the first record. */
export const GENESIS: Sql = { text: "SELECT rows FROM cairnlog.record WHERE sequence = 1" };

/** The hash of a record. */
export const hashAt = (sequence: number): Sql => ({
  name: "cairnlog-hash",
  text: "SELECT hash FROM cairnlog.record WHERE sequence = $1",
  values: [sequence],
});

const INSERTED = `record AS (
  INSERT INTO cairnlog.record (sequence, hash, epoch, first_index, bytes, body, rows)
  SELECT $1::bigint, $2::bytea, $3::bigint, $4::bigint, octet_length($5::bytea), $5::bytea, $6::text FROM lead RETURNING 1)`;

/** A session without it would answer before any standby has the record. */
const WAITS = "current_setting('synchronous_commit') IN ('on', 'remote_apply')";

const APPEND = `WITH lead AS (
  UPDATE cairnlog.lead SET sequence = $1::bigint, hash = $2::bytea, size = $7::bigint,
    acked = greatest(acked, $8::bigint), beat = beat + 1
  WHERE epoch = $3::bigint AND holder = $9::text AND sequence = $1::bigint - 1 AND hash = $10::bytea AND ${WAITS}
  RETURNING 1),
${INSERTED}`;

/** With its private rows, in the same statement. */
const APPEND_PRIVATE = `${APPEND},
change AS (
  INSERT INTO cairnlog.private_change (sequence, rows) SELECT $1::bigint, $11::text FROM lead),
changed AS (
  SELECT * FROM lead, unnest($12::text[], $13::text[], $14::text[]) AS c (tbl, key, row)),
deleted AS (
  DELETE FROM cairnlog.private_row p USING changed c WHERE c.row IS NULL AND p.tbl = c.tbl AND p.key = c.key),
put AS (
  INSERT INTO cairnlog.private_row (tbl, key, sequence, row)
  SELECT tbl, key, $1::bigint, row FROM changed WHERE row IS NOT NULL
  ON CONFLICT (tbl, key) DO UPDATE SET sequence = excluded.sequence, row = excluded.row)`;

const COUNT = "\nSELECT count(*) AS count FROM record";

const inserted = ({ sequence, hash, epoch, firstIndex, body, publicRows }: Columns) =>
  [sequence, hash, epoch, firstIndex, body, publicRows] as const;

/** Appends a record; its answer has `count` 1, or 0 if the condition did not hold. */
export function appendRecord(columns: Columns, holder: string, acked: number): Sql {
  const { size, previous, privateRows, changes } = columns;
  const values = [...inserted(columns), size, acked, holder, previous];
  if (privateRows === null) return { name: "cairnlog-append", text: APPEND + COUNT, values };
  const { tables, keys, lines } = changes;
  return {
    name: "cairnlog-append-private",
    text: APPEND_PRIVATE + COUNT,
    values: [...values, privateRows, tables, keys, lines],
  };
}

/** Takes the lead, if nothing has changed since `seen`: a record that only begins an epoch. */
export const takeLead = (columns: Columns, seen: Lead, holder: string, url: string | null): Sql => ({
  text: `WITH lead AS (
    UPDATE cairnlog.lead SET epoch = $3::bigint, sequence = $1::bigint, hash = $2::bytea, holder = $7::text, url = $8::text,
      wanted = NULL, beat = beat + 1
    WHERE epoch = $3::bigint - 1 AND sequence = $1::bigint - 1 AND hash = $9::bytea AND beat = $10::bigint
      AND holder IS NOT DISTINCT FROM $11::text AND ${WAITS}
    RETURNING 1),
  ${INSERTED}${COUNT}`,
  values: [...inserted(columns), holder, url, columns.previous, seen.beat, seen.holder],
});

/** Leaves a mark that nobody has made before. Whoever has it has everything before it. */
export const touch = (epoch: number, holder: string, sequence: number, mark: string): Sql => ({
  text: `UPDATE cairnlog.lead SET beat = beat + 1, mark = $4::text
    WHERE epoch = $1::bigint AND holder = $2::text AND sequence = $3::bigint AND ${WAITS} RETURNING 1`,
  values: [epoch, holder, sequence, mark],
});

/**
 * What a leader tells of itself between appends. It waits for no standby: what is lost of it is told again. That holds for its
 * own transaction: a session that went on without waiting could not append, nor take the lead again.
 */
export const beat = (epoch: number, holder: string, acked: number, checkpoint: string | null): Sql => ({
  name: "cairnlog-beat",
  text: `UPDATE cairnlog.lead SET beat = beat + 1, acked = greatest(acked, $3::bigint),
    checkpoint = coalesce($4::text, checkpoint)
    WHERE epoch = $1::bigint AND holder = $2::text
    RETURNING wanted, set_config('synchronous_commit', 'local', true)`,
  values: [epoch, holder, acked, checkpoint],
});

/** Gives the lead back, so that nobody has to wait for the lease to end. */
export const release = (epoch: number, holder: string, acked: number): Sql => ({
  text: `UPDATE cairnlog.lead SET holder = NULL, beat = beat + 1, acked = greatest(acked, $3::bigint)
    WHERE epoch = $1::bigint AND holder = $2::text RETURNING 1`,
  values: [epoch, holder, acked],
});

/** Asks whoever leads to give the lead to the node with this address. */
export const want = (url: string): Sql => ({
  text: "UPDATE cairnlog.lead SET wanted = $1::text RETURNING 1",
  values: [url],
});

/**
 * Removes the private rows of records that every node but the very late has applied. Whatever it removes is told, also when
 * another node takes the lead meanwhile: a late node would take a record without its rows for a whole one.
 */
export const sweep = (epoch: number, holder: string, seconds: number): Sql => ({
  text: `WITH gone AS (
    DELETE FROM cairnlog.private_change c USING cairnlog.lead l
    WHERE l.epoch = $1::bigint AND l.holder = $2::text AND c.sequence <= l.acked
      AND c.at < clock_timestamp() - make_interval(secs => $3::double precision) RETURNING c.sequence)
  UPDATE cairnlog.lead SET swept = greatest(swept, (SELECT max(sequence) FROM gone)) WHERE EXISTS (SELECT FROM gone)`,
  values: [epoch, holder, seconds],
});

/** The record with the last batch that begins before an entry. */
export const lastBefore = (size: number): Sql => ({
  text: "SELECT sequence FROM cairnlog.record WHERE first_index < $1::bigint ORDER BY first_index DESC, sequence DESC LIMIT 1",
  values: [size],
});

/** The record with the entry at a leaf index. */
export const recordWith = (leafIndex: number): Sql => ({
  name: "cairnlog-with",
  text: `SELECT sequence, body FROM cairnlog.record WHERE first_index <= $1::bigint
    ORDER BY first_index DESC, sequence DESC LIMIT 1`,
  values: [leafIndex],
});

/** Puts another body with the same hash in the place of a record's. */
export const replaceBody = (sequence: number, body: Buffer, before: Buffer): Sql => ({
  text: `UPDATE cairnlog.record SET body = $2::bytea, bytes = octet_length($2::bytea)
    WHERE sequence = $1::bigint AND body = $3::bytea AND ${WAITS} RETURNING 1`,
  values: [sequence, body, before],
});

/** Records after one and up to another, in order, with all of their rows. Of what was swept, see the last field. */
export const recordsText = (after: number, upTo: number, isPublic: boolean): string =>
  isPublic
    ? `COPY (SELECT r.sequence, r.body, r.rows, NULL::text, l.swept FROM cairnlog.record r CROSS JOIN cairnlog.lead l
  WHERE r.sequence > ${after} AND r.sequence <= ${upTo} ORDER BY r.sequence) TO STDOUT (FORMAT binary)`
    : `COPY (SELECT r.sequence, r.body, r.rows, c.rows, l.swept FROM cairnlog.record r CROSS JOIN cairnlog.lead l
  LEFT JOIN cairnlog.private_change c ON c.sequence = r.sequence
  WHERE r.sequence > ${after} AND r.sequence <= ${upTo} ORDER BY r.sequence) TO STDOUT (FORMAT binary)`;

/**
 * The last record that fits into so many bytes, counted from the one after `after`; at least that one. And the hash of
 * record `after`, so that nobody has to ask for it by itself.
 */
export const windowEnd = (after: number, upTo: number, bytes: number): Sql => ({
  name: "cairnlog-window",
  text: `SELECT max(sequence) AS sequence, (SELECT hash FROM cairnlog.record WHERE sequence = $1::bigint) AS hash FROM (
    SELECT sequence, sum(bytes) OVER (ORDER BY sequence) AS total FROM (
      SELECT sequence, bytes FROM cairnlog.record WHERE sequence > $1::bigint AND sequence <= $2::bigint
      ORDER BY sequence LIMIT 1024) AS next) AS totals
    WHERE total <= $3::bigint OR sequence = $1::bigint + 1`,
  values: [after, upTo, bytes],
});

/** All private rows as they are now that no record after `upTo` has changed. */
export const privateRowsText = (upTo: number): string =>
  `COPY (SELECT row FROM cairnlog.private_row WHERE sequence <= ${upTo}) TO STDOUT (FORMAT binary)`;
