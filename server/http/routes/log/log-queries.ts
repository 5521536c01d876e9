/** Finding entries: filters, search, by fingerprint, audit trail. Lists are ordered from oldest to newest. */
import { CairnlogError } from "../../../../engine/base/error.js";
import {
  AuditTrailQuery,
  EntryPage,
  FingerprintParams,
  FingerprintQuery,
  LogQuery,
} from "../../../../engine/contract/log/log.js";
import type { Criteria } from "../../../../engine/log/read/query.js";
import type { Served } from "../../../../engine/registry/registry.js";
import { type Route, route } from "../../route/route.js";
import { dateRange, entryPage } from "./pages.js";

/** Maximum number of parts of a comma-separated parameter. Each part is a separate search. */
const MAX_PARTS = 32;

export function logQueryRoutes(registry: Pick<Served, "log" | "queries" | "keys">): Route[] {
  const { log, keys } = registry;
  return [
    route({
      method: "GET",
      path: "/api/v1/log",
      summary: "Entries, all or those that match event types, tags, a search term and words of a title or name",
      query: LogQuery,
      answer: EntryPage,
      limit: "general",
      handle: ({ query }) =>
        entryPage(registry, query, {
          ...eventTypeCriteria(query.event_type),
          ...tagCriteria(query.tags),
          ...(query.search === undefined ? {} : { search: query.search }),
          ...(query.title === undefined ? {} : { title: query.title }),
        }),
    }),
    route({
      method: "GET",
      path: "/api/v1/log/by-fingerprint/{fingerprint}",
      summary: "Entries that name a key in any of the six fingerprint fields",
      params: FingerprintParams,
      query: FingerprintQuery,
      answer: EntryPage,
      refusals: [404],
      limit: "general",
      handle({ params, query }) {
        const { fingerprint } = params;
        // Imported history may name keys that it never registered. A key is unknown only if no entry names it.
        if (log.find({ fingerprint }, 0, 0).total === 0) keys.find(fingerprint);
        return entryPage(registry, query, { fingerprint });
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
        return entryPage(registry, query, {
          ...(fingerprint === undefined ? {} : { fingerprint }),
          ...(document === undefined ? {} : { document }),
          ...tagCriteria(query.tags),
          ...dateRange(log, start_date, end_date),
        });
      },
    }),
  ];
}

/**
 * Any of the types that commas separate, or the one type that is the whole text: a predicate URL may contain commas.
 */
function eventTypeCriteria(text: string | undefined): Criteria {
  const list = parts("event_type", text);
  return list ? { eventTypes: text!.includes(",") ? [...list, text!] : list } : {};
}

/** All of the tags that commas separate, or the one tag that is the whole text. */
function tagCriteria(text: string | undefined): Criteria {
  const tags = parts("tags", text);
  return tags ? { tags, ...(text!.includes(",") ? { orTag: text! } : {}) } : {};
}

/** The parts between commas. White space belongs to a part, because stored tags keep theirs, too. */
function parts(name: string, text: string | undefined): string[] | undefined {
  const list = text?.split(",").filter((part) => part !== "");
  if (!list || (list.length >= 1 && list.length <= MAX_PARTS)) return list;
  const message = `It must name 1 to ${MAX_PARTS}, separated by commas.`;
  throw new CairnlogError("invalid-input", `/${name}: ${message}`, { details: [{ path: `/${name}`, message }] });
}
