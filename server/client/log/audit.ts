/** Audit export: the entries of a scope, a key, a document or a period, however many. */
import type { Entry } from "../../../engine/verify/index.js";
import { AuditExport } from "../../wire/log/audit-export.js";
import { isOversized } from "../error.js";
import type { Http } from "../http.js";
import type { AuditExportQuery } from "../types.js";
import type { Watch } from "./watch.js";

/** Which entries are exported; without any, all. */
export type AuditFilter = Partial<Omit<AuditExportQuery, "format" | "page" | "page_size">>;

/** Entries a page, and what is asked for instead when a page of them is too long to be borne. */
const PAGE_SIZES = [1000, 40, 1] as const;

export class AuditClient {
  readonly #http: Http;
  readonly #watch: Watch;

  constructor(http: Http, watch: Watch) {
    this.#http = http;
    this.#watch = watch;
  }

  /**
   * Entries that match, oldest first, each once. Content is checked against its hashes and the filter; that none is left out,
   * nothing shows. Each question begins where the last answer ended.
   * @throws ClientError
   */
  async *entries(filter: AuditFilter = {}): AsyncGenerator<Entry, void, undefined> {
    let after_id = filter.after_id ?? 0;
    for (let size = 0; ; ) {
      const page_size = PAGE_SIZES[size]!;
      let entries: Entry[];
      try {
        const query = { ...filter, after_id, page: 1, page_size };
        entries = (await this.#http.get(AuditExport, "/audit/export", query)).entries as Entry[];
      } catch (error) {
        if (!isOversized(error) || page_size === 1) throw error;
        size++;
        continue;
      }
      for (const entry of entries) {
        await this.#watch.checkListed(entry, { ...filter, after_id });
        after_id = entry.id;
        yield entry;
      }
      if (entries.length < page_size) return;
    }
  }

  /** A page of entries as the service writes CSV (RFC 4180), with a header line; not checked. @throws ClientError */
  csv(query: Partial<Omit<AuditExportQuery, "format">> = {}): Promise<string> {
    return this.#http.text("/audit/export", { ...query, format: "csv" });
  }
}
