/** Audit export: all entries of a scope, a key, a document or a period. */
import { AuditExport } from "../../../engine/contract/log/audit-export.js";
import type { Entry } from "../../../engine/verify/index.js";
import { isOversized } from "../base/error.js";
import type { AuditExportQuery } from "../base/types.js";
import { Area } from "./area.js";

/** Selects the exported entries; all, if empty. */
export type AuditFilter = Partial<Omit<AuditExportQuery, "format" | "page" | "page_size">>;

/** Entries on a page, and the smaller pages that are requested if an answer is too long. */
const PAGE_SIZES = [1000, 40, 1] as const;

export class AuditClient extends Area {
  /**
   * Matching entries, oldest first, each once. Their content is checked against their hashes and the filter. Nothing
   * proves that the list is complete. Each request begins after the last received entry.
   * @throws ClientError
   */
  async *entries(filter: AuditFilter = {}): AsyncGenerator<Entry, void, undefined> {
    let after_id = filter.after_id ?? 0;
    for (let size = 0; ; ) {
      const page_size = PAGE_SIZES[size]!;
      let entries: Entry[];
      try {
        const query = { ...filter, after_id, page: 1, page_size };
        entries = (await this.http.get(AuditExport, "/audit/export", query)).entries as Entry[];
      } catch (error) {
        if (!isOversized(error) || page_size === 1) throw error;
        size++;
        continue;
      }
      for (const entry of entries) {
        await this.watch.checkListed(entry, { ...filter, after_id });
        after_id = entry.id;
        yield entry;
      }
      if (entries.length < page_size) return;
    }
  }

  /** A page of entries as CSV of the service (RFC 4180), with a header line; not verified. @throws ClientError */
  csv(query: Partial<Omit<AuditExportQuery, "format">> = {}): Promise<string> {
    return this.http.text("/audit/export", { ...query, format: "csv" });
  }
}
