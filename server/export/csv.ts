/**
 * Entries as CSV (RFC 4180). Cells that a spreadsheet would run as a formula are neutralised: their first character is
 * whoever submitted the entry's choice.
 */
import { stringify } from "csv-stringify/sync";
import { EXPORT_COLUMNS, exportRecord } from "../../engine/registry/auditexport.js";
import type { Entry } from "../../engine/verify/entry.js";

const FORMAT = { record_delimiter: "windows", escape_formulas: true } as const;

export const csvHeader = (): string => stringify([[...EXPORT_COLUMNS]], FORMAT);

/** One line, with its line end. */
export const csvLine = (entry: Entry): string => stringify([exportRecord(entry)], FORMAT);
