/**
 * Rows as text, one on each line: table, key and row as canonical JSON (RFC 8785), so that each row has only one form.
 * Records of the journal and backups keep their rows in this form: the rows that are not derived from entries.
 */
import { CairnlogError } from "../base/error.js";
import type { RowChange } from "../store/changeset.js";
import { isRecorded, type Key, type RecordedTable } from "../store/schema/schema.js";
import { canonicalJson } from "../verify/json/canonical.js";
import { isObject } from "../verify/json/shape.js";

/** A change of a row that is not derived from entries. */
export type RecordedChange = RowChange<RecordedTable>;

/**
 * A row as a line, without its line feed; `null` stands for a deleted row. Bytes are written in base64; no row has a
 * member that could be confused with them.
 */
export function rowLine({ table, key, row }: RecordedChange): string {
  const spelled = row === undefined ? null : mapMembers(row as object, spellBytes);
  return canonicalJson([table, key, spelled]);
}

/** The rows in a text of lines. @throws CairnlogError as `readRowLine` does */
export const readLines = (text: string): RecordedChange[] => text.split("\n").slice(0, -1).map(readRowLine);

/**
 * Inverse of `rowLine`.
 * @throws CairnlogError `corrupt-log` for a line that is not a row, or a row of a table of another kind
 */
export function readRowLine(line: string): RecordedChange {
  const [table, key, row] = parsed(line);
  if (typeof table !== "string" || !isRecorded(table))
    throw new CairnlogError("corrupt-log", `Rows of the table ${JSON.stringify(table)} do not belong here.`);
  if (!isKey(key) || !(row === null || isObject(row)))
    throw new CairnlogError("corrupt-log", `A line of the table ${table} is not a row.`);
  return { table, key, row: row === null ? undefined : mapMembers(row, readBytes) };
}

function parsed(line: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(line);
    if (Array.isArray(value) && value.length === 3) return value;
  } catch {
    // Not JSON: refused like any other line that is not a row.
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
