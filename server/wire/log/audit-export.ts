/** Audit export. */
import Type from "typebox";
import { AUDIT_SCOPES } from "../../../engine/verify/contract.js";
import { Entry } from "./log.js";

/** Entries that one request can reach, whatever the size of its pages. */
export const EXPORT_REACH = 10_000;

export const AuditExportQuery = Type.Object({
  format: Type.Enum(["json", "csv"], { default: "json", description: "Of the answer." }),
  scope: Type.Enum(["all", ...AUDIT_SCOPES], {
    default: "all",
    description: "Which kinds of entries.",
  }),
  fingerprint: Type.Optional(Type.String({ minLength: 1, description: "Entries that name this key." })),
  document_hash: Type.Optional(Type.String({ minLength: 1, description: "Bare, or with `sha256:`." })),
  start_date: Type.Optional(Type.String({ description: "A date or a date-time with an offset." })),
  end_date: Type.Optional(Type.String({ description: "The same; a date includes its whole day." })),
  after_id: Type.Optional(
    Type.Integer({ minimum: 0, description: "Entries with a higher id only: where the last export ended." }),
  ),
  page: Type.Integer({ minimum: 1, default: 1, description: `page × page_size is at most ${EXPORT_REACH}.` }),
  page_size: Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Entries on a page." }),
});

export const AuditExport = Type.Object(
  {
    entries: Type.Array(Entry, { description: "Oldest first." }),
    page: Type.Integer({ description: "As asked for." }),
    page_size: Type.Integer({ description: "As asked for." }),
    total: Type.Integer({ description: "Entries that match, also those out of reach." }),
    truncated: Type.Boolean({ description: `Whether more than ${EXPORT_REACH} match: then go on with after_id.` }),
  },
  { title: "AuditExport" },
);

export const AuditCsv = Type.String({
  description:
    "With `format=csv`: RFC 4180, a header row first; cells that a spreadsheet would calculate are neutralised.",
});
