/** Audit export. */
import Type from "typebox";
import { AUDIT_SCOPES } from "../../verify/keys/contract.js";
import { PERIOD } from "../common.js";
import { Entry } from "./log.js";

/** Number of entries that one export can reach, for any page size. */
export const EXPORT_REACH = 10_000;

export const AuditExportQuery = Type.Object({
  format: Type.Enum(["json", "csv"], { default: "json", description: "Format of the answer." }),
  scope: Type.Enum(["all", ...AUDIT_SCOPES], {
    default: "all",
    description: "The kinds of entries to export.",
  }),
  fingerprint: Type.Optional(Type.String({ minLength: 1, description: "Entries that name this key." })),
  document_hash: Type.Optional(Type.String({ minLength: 1, description: "Bare, or with `sha256:`." })),
  ...PERIOD,
  after_id: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: "Only entries with a higher id. Give the last id of the previous export.",
    }),
  ),
  page: Type.Integer({ minimum: 1, default: 1, description: `page × page_size is at most ${EXPORT_REACH}.` }),
  page_size: Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Entries on a page." }),
});

export const AuditExport = Type.Object(
  {
    entries: Type.Array(Entry, { description: "Oldest first." }),
    page: Type.Integer({ description: "As asked for." }),
    page_size: Type.Integer({ description: "As asked for." }),
    total: Type.Integer({ description: "Number of all matching entries, even if one export cannot reach them." }),
    truncated: Type.Boolean({ description: `Whether more than ${EXPORT_REACH} match; continue with after_id.` }),
  },
  { title: "AuditExport" },
);

export const AuditCsv = Type.String({
  description: "With `format=csv`: RFC 4180 with a header row. Cells that a spreadsheet would evaluate are escaped.",
});
