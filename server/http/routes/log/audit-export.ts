/** `GET /audit/export`: entries as JSON or CSV, made while they are sent. */
import { CairnlogError } from "../../../../engine/error.js";
import type { Log } from "../../../../engine/log/log.js";
import type { Criteria } from "../../../../engine/log/read/query.js";
import { type ExportScope, scopeCriteria } from "../../../../engine/registry/auditexport.js";
import type { Entry } from "../../../../engine/verify/entry.js";
import { csvHeader, csvLine } from "../../../export/csv.js";
import { AuditCsv, AuditExport, AuditExportQuery, EXPORT_REACH } from "../../../wire/log/audit-export.js";
import { dateRange } from "../../dates.js";
import { type Route, route } from "../../route.js";
import { StreamedAnswer } from "../../transport/answer.js";

const CSV_TYPE = "text/csv; charset=utf-8";
/** Entries per chunk: some 100 KB. */
const CHUNK_ENTRIES = 64;

export function auditExportRoutes(log: Log): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/audit/export",
      summary: "Entries of a scope, a key, a document or a period, as JSON or CSV",
      query: AuditExportQuery,
      answer: AuditExport,
      otherAnswers: { [CSV_TYPE]: AuditCsv },
      limit: "general",
      handle({ query }) {
        const { page, page_size, format } = query;
        if (page * page_size > EXPORT_REACH)
          throw new CairnlogError(
            "invalid-input",
            `page × page_size must not pass ${EXPORT_REACH}. Narrow start_date and end_date, or go on with after_id, to reach further entries.`,
          );
        const criteria: Criteria = {
          ...scopeCriteria(query.scope as ExportScope),
          ...(query.fingerprint === undefined ? {} : { fingerprint: query.fingerprint }),
          ...(query.document_hash === undefined ? {} : { document: query.document_hash }),
          ...(query.after_id === undefined ? {} : { from: log.leafIndexAfter(query.after_id) }),
          ...dateRange(log, query.start_date, query.end_date),
        };
        const { indexes, total } = log.match(criteria, (page - 1) * page_size, page_size);
        const entries = chunked(log, indexes);
        if (format === "csv") return new StreamedAnswer(csv(entries), { contentType: CSV_TYPE });
        const rest = { page, page_size, total, truncated: total > EXPORT_REACH };
        return new StreamedAnswer(jsonDocument(entries, rest), {});
      },
    }),
  ];
}

/** Stored entries, read when they are wanted. */
function* chunked(log: Log, indexes: readonly number[]): Iterable<Buffer[]> {
  for (let at = 0; at < indexes.length; at += CHUNK_ENTRIES)
    yield indexes.slice(at, at + CHUNK_ENTRIES).map((leafIndex) => log.entryJsonAt(leafIndex)!);
}

function* csv(chunks: Iterable<Buffer[]>): Iterable<Buffer> {
  yield Buffer.from(csvHeader());
  for (const chunk of chunks)
    yield Buffer.from(chunk.map((json) => csvLine(JSON.parse(json.toString("utf8")) as Entry)).join(""));
}

function* jsonDocument(chunks: Iterable<Buffer[]>, rest: Readonly<Record<string, unknown>>): Iterable<Buffer> {
  let before = '{"entries":[';
  for (const chunk of chunks) {
    const parts = chunk.flatMap((json, i) => [Buffer.from(i ? "," : before), json]);
    before = ",";
    yield Buffer.concat(parts);
  }
  // An export of nothing has not begun yet.
  yield Buffer.from(`${before === "," ? "" : before}],${JSON.stringify(rest).slice(1)}`);
}
