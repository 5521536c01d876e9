/**
 * Rows as text, one a line: table, key and row as canonical JSON (RFC 8785), so that a row has one spelling. This is how
 * records of the journal and backups keep the rows that follow from no entry.
 */
import { CairnlogError } from "../error.js";
import type { RowChange } from "../store/changeset.js";
import { isRecorded, type Key, type RecordedTable } from "../store/schema.js";
import { canonicalJson } from "../verify/json/canonical.js";
import { isObject } from "../verify/json/shape.js";

/** A change of a row that follows from no entry. */
export type RecordedChange = RowChange<RecordedTable>;

/**
 * A row as a line, without its end; `null` stands for a row that is deleted. Bytes are written in base64; no row has a
 * member that looks so.
 */
export function rowLine({ table, key, row }: RecordedChange): string {
  const spelled = row === undefined ? null : mapMembers(row as object, spellBytes);
  return canonicalJson([table, key, spelled]);
}

/**
 * Inverse of `rowLine`.
 * @throws CairnlogError `corrupt-log` for a line that is no row, or a row of another kind of table
 */
export function readRowLine(line: string): RecordedChange {
  const [table, key, row] = parsed(line);
  if (typeof table !== "string" || !isRecorded(table))
    throw new CairnlogError("corrupt-log", `There are rows of a table ${JSON.stringify(table)}, which is not kept so.`);
  if (!isKey(key) || !(row === null || isObject(row)))
    throw new CairnlogError("corrupt-log", `A line of the table ${table} is no row.`);
  return { table, key, row: row === null ? undefined : mapMembers(row, readBytes) };
}

function parsed(line: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(line);
    if (Array.isArray(value) && value.length === 3) return value;
  } catch {
    // No JSON: refused like any other line that is no row.
  }
  throw new CairnlogError("corrupt-log", "A line that should hold a row is damaged.");
}

const isPart = (value: unknown): value is string | number => typeof value === "string" || typeof value === "number";
const isKey = (value: unknown): value is Key => isPart(value) || (Array.isArray(value) && value.every(isPart));

const mapMembers = (row: object, map: (value: unknown) => unknown): object =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, map(value)]));

const spellBytes = (value: unknown): unknown =>
  value instanceof Uint8Array ? { base64: Buffer.from(value).toString("base64") } : value;

function readBytes(value: unknown): unknown {
  const base64 = (value as { base64?: unknown } | null)?.base64;
  return typeof base64 === "string" ? Buffer.from(base64, "base64") : value;
}
