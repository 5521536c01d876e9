/** `GET /audit/export`: entries as JSON or CSV, generated while they are sent. */
import { CairnlogError } from "../../../../engine/base/error.js";
import { AuditCsv, AuditExport, AuditExportQuery, EXPORT_REACH } from "../../../../engine/contract/log/audit-export.js";
import type { Log } from "../../../../engine/log/log.js";
import type { Criteria } from "../../../../engine/log/read/query.js";
import { csvHeader, csvLine, type ExportScope, scopeCriteria } from "../../../../engine/registry/auditexport.js";
import type { Served } from "../../../../engine/registry/registry.js";
import type { Entry } from "../../../../engine/verify/tree/entry.js";
import { type Route, route } from "../../route/route.js";
import { StreamedAnswer } from "../../transport/answer.js";
import { dateRange, findMatches } from "./pages.js";

const CSV_TYPE = "text/csv; charset=utf-8";
/** Minimum bytes of a chunk, except the last. */
const CHUNK_BYTES = 64 * 1024;

export function auditExportRoutes(registry: Pick<Served, "log" | "queries">): Route[] {
  const { log } = registry;
  return [
    route({
      method: "GET",
      path: "/api/v1/audit/export",
      summary: "Entries of a scope, a key, a document or a period, as JSON or CSV",
      query: AuditExportQuery,
      answer: AuditExport,
      otherAnswers: { [CSV_TYPE]: AuditCsv },
      limit: "general",
      async handle({ query }) {
        const { page, page_size, format } = query;
        if (page * page_size > EXPORT_REACH)
          throw new CairnlogError(
            "invalid-input",
            `page × page_size must not pass ${EXPORT_REACH}. Narrow start_date and end_date, or go on with after_id, to reach further entries.`,
          );
        const criteria: Criteria = {
          ...scopeCriteria(query.scope as ExportScope, log),
          ...(query.fingerprint === undefined ? {} : { fingerprint: query.fingerprint }),
          ...(query.document_hash === undefined ? {} : { document: query.document_hash }),
          ...(query.after_id === undefined ? {} : { from: log.leafIndexAfter(query.after_id) }),
          ...dateRange(log, query.start_date, query.end_date),
        };
        const { indexes, total } = await findMatches(registry, criteria, { page, per_page: page_size });
        const entries = chunked(log, indexes);
        if (format === "csv") return new StreamedAnswer(csv(entries), { contentType: CSV_TYPE });
        const rest = { page, page_size, total, truncated: total > EXPORT_REACH };
        return new StreamedAnswer(jsonDocument(entries, rest), {});
      },
    }),
  ];
}

/** Stored entries in chunks, which are read on demand. */
function* chunked(log: Log, indexes: readonly number[]): Iterable<Buffer[]> {
  let chunk: Buffer[] = [];
  let bytes = 0;
  for (const leafIndex of indexes) {
    const json = log.entryJsonAt(leafIndex)!;
    chunk.push(json);
    bytes += json.length;
    if (bytes < CHUNK_BYTES) continue;
    yield chunk;
    [chunk, bytes] = [[], 0];
  }
  if (chunk.length) yield chunk;
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
  // If there are no entries, the beginning of the document has not been sent yet.
  yield Buffer.from(`${before === "," ? "" : before}],${JSON.stringify(rest).slice(1)}`);
}
