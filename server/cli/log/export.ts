/**
 * `cairnlog export`: writes the entries of a log to a file, however many: each page begins where the last one ended.
 */

import { once } from "node:events";
import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import type { Entry } from "../../../engine/verify/index.js";
import { csvHeader, csvLine } from "../../export/csv.js";
import { connect, type Service } from "../service.js";
import { startProgress } from "../terminal/progress.js";
import { readArguments, required, type Subcommand, UsageError } from "../usage.js";

const PAGE_SIZE = 1000;

interface Page {
  readonly entries: readonly Entry[];
  readonly total: number;
}

const OPTIONS = {
  server: { type: "string" },
  out: { type: "string" },
  format: { type: "string", default: "ndjson" },
  scope: { type: "string" },
  fingerprint: { type: "string" },
  "document-hash": { type: "string" },
  "start-date": { type: "string" },
  "end-date": { type: "string" },
} as const;

export const exportLog: Subcommand = {
  help: `cairnlog export --server URL --out FILE [options]

Writes entries, oldest first: as NDJSON (one entry a line, as the log serves them) or as CSV.
FILE may be - for standard output.

Options:
  --server URL             address of the service
  --out FILE               a new file
  --format ndjson|csv      default ndjson
  --scope SCOPE            all (default), keys, attestations, endorsements, claims, requests
  --fingerprint FP         entries that name this key
  --document-hash HASH     entries about this document
  --start-date, --end-date dates or date-times; a date includes its whole day

Example:
  cairnlog export --server http://127.0.0.1:8080 --out log.ndjson`,
  options: OPTIONS,
  async run(argv) {
    const { values } = readArguments(argv, OPTIONS);
    const service = connect(required(values.server, "--server"));
    const out = required(values.out, "--out");
    const isCsv = values.format === "csv";
    if (!isCsv && values.format !== "ndjson") throw new UsageError("--format must be ndjson or csv");
    const filters = new URLSearchParams();
    for (const name of ["scope", "fingerprint", "document-hash", "start-date", "end-date"] as const)
      if (values[name] !== undefined) filters.set(name.replace("-", "_"), values[name]);

    const file: Writable = out === "-" ? process.stdout : createWriteStream(out, { flags: "wx" });
    if (out !== "-") await once(file, "open");
    if (isCsv) file.write(csvHeader());
    const count = await exportEntries(service, filters, async (entries) => {
      const lines = entries.map((entry) => (isCsv ? csvLine(entry) : `${JSON.stringify(entry)}\n`));
      // No further page is asked for before this one is on its way to disk.
      if (!file.write(lines.join(""))) await once(file, "drain");
    });
    if (out !== "-") {
      file.end();
      await finished(file);
      console.error(`${count} entries in ${out}`);
    }
    return 0;
  },
};

/** Hands over every entry that the filters select, in order, each once. @returns how many */
async function exportEntries(
  service: Service,
  filters: URLSearchParams,
  write: (entries: readonly Entry[]) => Promise<void>,
): Promise<number> {
  const query = new URLSearchParams([...filters, ["page_size", `${PAGE_SIZE}`]]);
  let count = 0;
  let progress: ReturnType<typeof startProgress> | undefined;
  try {
    for (;;) {
      const { entries, total } = await service.get<Page>(`/audit/export?${query}`);
      progress ??= startProgress("Exporting:", total);
      await write(entries);
      count += entries.length;
      progress.update(count);
      const last = entries.at(-1);
      if (!last || entries.length < PAGE_SIZE) return count;
      query.set("after_id", `${last.id}`);
    }
  } finally {
    progress?.end();
  }
}
