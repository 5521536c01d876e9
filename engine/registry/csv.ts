/**
 * Entries as CSV (RFC 4180). Whoever submits an entry chooses its texts, so no cell may become a formula in a spreadsheet.
 *
 * A spreadsheet in some countries splits lines at `;`, others are told to split at tabs. They then find quotation marks in the
 * middle of a cell, which protect nothing, so each `;`, tab or line end inside a cell may begin a cell there.
 */
import { stringify } from "csv-stringify/sync";
import type { Entry } from "../verify/tree/entry.js";
import { EXPORT_COLUMNS, exportRecord } from "./auditexport.js";

/** `escape_formulas` puts an apostrophe in front of a formula at the beginning of a cell. */
const FORMAT = { record_delimiter: "windows", escape_formulas: true } as const;

/** A formula behind a place where a cell may begin. Its last four signs are those of full width. */
const INNER_FORMULA = /([;\t\r\n][ "]*)([=+\-@\uff0b\uff0d\uff1d\uff20])/g;

export const csvHeader = (): string => stringify([[...EXPORT_COLUMNS]], FORMAT);

/** One line, with its line end. */
export function csvLine(entry: Entry): string {
  const cells = exportRecord(entry);
  const payload = cells.pop() as string;
  return stringify([[...cells.map(neutral), neutralJson(payload)]], FORMAT);
}

/** An apostrophe makes text of what would be a formula. */
const neutral = (cell: string | number): string | number =>
  typeof cell === "string" ? cell.replace(INNER_FORMULA, "$1'$2") : cell;

/** In JSON the sign becomes an escape, so the value stays the same. Such a place is always inside a string. */
const neutralJson = (json: string): string =>
  json.replace(
    INNER_FORMULA,
    (_, before: string, sign: string) => `${before}\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
