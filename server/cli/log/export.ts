/**
 * `cairnlog export`: writes any number of entries to a file. Each page begins after the last entry of the previous
 * page.
 */

import { pipeline } from "node:stream/promises";
import { csvHeader, csvLine } from "../../../engine/registry/auditexport.js";
import type { Entry } from "../../../engine/verify/index.js";
import { connect, type ServiceAccess, ServiceError, serverOf } from "../connection/service.js";
import { streamNew } from "../files/whole-file.js";
import { subcommand, text, textOr } from "../line/subcommand.js";
import { none, required, UsageError } from "../line/usage.js";
import { interruptible } from "../terminal/interrupt.js";
import { printableJson, steerless } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";

const PAGE_SIZE = 1000;
/** The end of an entry in JSON, and of its line. */
const HELD = "}\n".length;

interface Page {
  readonly entries: readonly Entry[];
  readonly total: number;
}

export const exportLog = subcommand({
  forms: ["--out FILE"],
  about: `Writes entries, oldest first: as NDJSON (one entry a line, as the log serves them) or as CSV.
FILE may be - for standard output.`,
  options: {
    server: text("URL", "address of the service (default: CAIRNLOG_SERVER, or else that of cairnlog config)"),
    out: text("FILE", "a new file"),
    format: textOr("ndjson|csv", "ndjson", "one entry a line, or a table"),
    scope: text("SCOPE", "all (if absent), keys, attestations, endorsements, claims, requests"),
    fingerprint: text("FP", "entries that name this key"),
    "document-hash": text("HASH", "entries about this document"),
    "start-date": text("WHEN", "entries from then on: a date, or a date-time"),
    "end-date": text("WHEN", "entries until then; a date includes its whole day"),
  },
  examples: "cairnlog export --out log.ndjson",
  async run(operands, values) {
    none(operands);
    const service = connect(serverOf(values.server));
    const out = required(values.out, "--out");
    const isCsv = values.format === "csv";
    if (!isCsv && values.format !== "ndjson") throw new UsageError("--format must be ndjson or csv");
    const filters = new URLSearchParams();
    for (const name of ["scope", "fingerprint", "document-hash", "start-date", "end-date"] as const)
      if (values[name] !== undefined) filters.set(name.replace("-", "_"), values[name]);

    let count = 0;
    // The last line ends when all are written. What is broken off ends within a line, and no import takes that.
    async function* text(signal?: AbortSignal) {
      let held = isCsv ? csvHeader() : "";
      for await (const entries of pages(service, filters, signal)) {
        held += entries.map((entry) => (isCsv ? printableCsv(entry) : `${printableJson(entry)}\n`)).join("");
        yield held.slice(0, -HELD);
        held = held.slice(-HELD);
        count += entries.length;
      }
      yield held;
    }
    if (out === "-") await pipeline(() => text(), process.stdout, { end: false });
    else {
      await interruptible((signal) => streamNew(out, () => text(signal), signal));
      console.error(`${count} entries in ${out}`);
    }
    return 0;
  },
});

/** A line of CSV without characters that could control a terminal. The JSON of its payload keeps its value. */
const printableCsv = (entry: Entry): string => `${steerless(csvLine(entry).trimEnd())}\r\n`;

/**
 * Every entry that the filters select, in order, each once. A page is requested while the previous one is written.
 * @throws ServiceError, also where the last page is of a node that has fewer entries than the first one showed
 */
async function* pages(
  service: ServiceAccess,
  filters: URLSearchParams,
  signal: AbortSignal | undefined,
): AsyncIterable<readonly Entry[]> {
  const query = new URLSearchParams([...filters, ["page_size", `${PAGE_SIZE}`]]);
  let count = 0;
  let first: number | undefined;
  let progress: ReturnType<typeof startProgress> | undefined;
  try {
    for (;;) {
      const { entries, total } = await service.get<Page>(`/audit/export?${query}`, signal);
      first ??= total;
      progress ??= startProgress("Exporting:", first);
      yield entries;
      count += entries.length;
      progress.update(count);
      const last = entries.at(-1);
      if (!last || entries.length < PAGE_SIZE) break;
      query.set("after_id", `${last.id}`);
    }
    if (count < first) throw new ServiceError(`The service showed ${count} entries and says that there are ${first}.`);
  } finally {
    progress?.end();
  }
}
