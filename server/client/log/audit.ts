/** Audit export: the entries of a scope, a key, a document or a period, however many. */
import type { Entry } from "../../../engine/verify/index.js";
import { AuditExport, EXPORT_REACH } from "../../wire/log/audit-export.js";
import { ClientError } from "../error.js";
import type { Http } from "../http.js";
import type { AuditExportQuery } from "../types.js";
import type { Watch } from "./watch.js";

/** Which entries are exported; without any, all. */
export type AuditFilter = Partial<Omit<AuditExportQuery, "format" | "page" | "page_size">>;

const PAGE_SIZE = 1000;

export class AuditClient {
  readonly #http: Http;
  readonly #watch: Watch;

  constructor(http: Http, watch: Watch) {
    this.#http = http;
    this.#watch = watch;
  }

  /**
   * Entries that match, oldest first, each once. One question reaches 10,000 of them, so further ones begin at the moment
   * at which the last ended. Content is checked against its hashes; that none is left out, nothing shows.
   * @throws ClientError; `out-of-reach` where more than 10,000 entries have one timestamp
   */
  async *entries(filter: AuditFilter = {}): AsyncGenerator<Entry, void, undefined> {
    let last: Entry | undefined;
    for (let window = filter; ; ) {
      const before = last;
      for (let page = 1; page * PAGE_SIZE <= EXPORT_REACH; page++) {
        const query = { ...window, page, page_size: PAGE_SIZE };
        const { entries } = await this.#http.get(AuditExport, "/audit/export", query);
        for (const entry of entries as Entry[]) {
          // A window begins with the entries of the moment at which the one before it ended.
          if (last && entry.id <= last.id) continue;
          await this.#watch.checkContent(entry);
          yield entry;
          last = entry;
        }
        if (entries.length < PAGE_SIZE) return;
      }
      if (!last || last === before)
        throw new ClientError("out-of-reach", `More than ${EXPORT_REACH} entries have one timestamp.`);
      window = { ...filter, start_date: last.timestamp };
    }
  }

  /** A page of entries as the service writes CSV (RFC 4180), with a header line; not checked. @throws ClientError */
  csv(query: Partial<Omit<AuditExportQuery, "format">> = {}): Promise<string> {
    return this.#http.text("/audit/export", { ...query, format: "csv" });
  }
}
