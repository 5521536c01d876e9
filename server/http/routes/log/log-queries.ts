/** Finding entries: filters, search, by fingerprint, audit trail. Every list is oldest first. */
import { CairnlogError } from "../../../../engine/error.js";
import type { Log } from "../../../../engine/log/log.js";
import type { Criteria } from "../../../../engine/log/read/query.js";
import type { Keys } from "../../../../engine/registry/keys/keys.js";
import { PageQuery } from "../../../wire/common.js";
import { AuditTrailQuery, EntryPage, FingerprintParams, LogQuery } from "../../../wire/log/log.js";
import { dateRange } from "../../dates.js";
import { type Route, route } from "../../route.js";
import { type Answer, jsonList } from "../../transport/answer.js";

/** Parts of one comma-separated parameter: each is a search of its own. */
const MAX_PARTS = 32;

export function logQueryRoutes(log: Log, keys: Keys): Route[] {
  return [
    route({
      method: "GET",
      path: "/api/v1/log",
      summary: "Entries, all or those that match event types, tags and a search term",
      query: LogQuery,
      answer: EntryPage,
      limit: "general",
      handle: ({ query }) =>
        entryPage(log, query, {
          ...parts("event_type", query.event_type, (eventTypes) => ({ eventTypes })),
          ...parts("tags", query.tags, (tags) => ({ tags })),
          ...(query.search === undefined ? {} : { search: query.search }),
        }),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/by-fingerprint/{fingerprint}",
      summary: "Entries that name a key in any of the six fingerprint fields",
      params: FingerprintParams,
      query: PageQuery,
      answer: EntryPage,
      refusals: [404],
      limit: "general",
      handle({ params, query }) {
        const { fingerprint } = params;
        // An imported history may name keys that it never registered; only what nothing names is unknown.
        if (log.find({ fingerprint }, 0, 0).total === 0) keys.find(fingerprint);
        return entryPage(log, query, { fingerprint });
      },
    }),
    route({
      method: "GET",
      path: "/api/v1/log/audit-trail",
      summary: "Entries about a key or a document, or of a period; all that is given must hold",
      query: AuditTrailQuery,
      answer: EntryPage,
      limit: "general",
      handle({ query }) {
        const { fingerprint, document_hash: document, start_date, end_date } = query;
        if ([fingerprint, document, start_date, end_date].every((value) => value === undefined))
          throw new CairnlogError(
            "invalid-input",
            "Give at least one of fingerprint, document_hash, start_date and end_date.",
          );
        return entryPage(log, query, {
          ...(fingerprint === undefined ? {} : { fingerprint }),
          ...(document === undefined ? {} : { document }),
          ...parts("tags", query.tags, (tags) => ({ tags })),
          ...dateRange(log, start_date, end_date),
        });
      },
    }),
  ];
}

function entryPage(log: Log, { page, per_page }: { page: number; per_page: number }, criteria: Criteria): Answer {
  const { entries, total } = log.find(criteria, (page - 1) * per_page, per_page);
  return jsonList("entries", entries, { page, per_page, total });
}

/** A comma-separated parameter as criteria. White space belongs to its part: stored tags are not stripped either. */
function parts(name: string, text: string | undefined, criteria: (parts: string[]) => Criteria): Criteria {
  if (text === undefined) return {};
  const list = text.split(",").filter((part) => part !== "");
  if (list.length >= 1 && list.length <= MAX_PARTS) return criteria(list);
  const message = `It must name 1 to ${MAX_PARTS}, separated by commas.`;
  throw new CairnlogError("invalid-input", `/${name}: ${message}`, { details: [{ path: `/${name}`, message }] });
}
