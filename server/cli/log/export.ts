/**
 * `cairnlog export`: writes any number of entries to a file. Each page begins after the last entry of the previous
 * page.
 */

import { once } from "node:events";
import { createWriteStream, rmSync } from "node:fs";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { csvHeader, csvLine } from "../../../engine/registry/auditexport.js";
import type { Entry } from "../../../engine/verify/index.js";
import { connect, type ServiceAccess, serverOf } from "../connection/service.js";
import { subcommand, text, textOr } from "../line/subcommand.js";
import { none, required, UsageError } from "../line/usage.js";
import { printableJson, steerless } from "../terminal/printable.js";
import { startProgress } from "../terminal/progress.js";

const PAGE_SIZE = 1000;

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
    async function* text() {
      if (isCsv) yield csvHeader();
      for await (const entries of pages(service, filters)) {
        yield entries.map((entry) => (isCsv ? printableCsv(entry) : `${printableJson(entry)}\n`)).join("");
        count += entries.length;
      }
    }
    if (out === "-") await pipeline(text, process.stdout, { end: false });
    else {
      await writeNew(out, text);
      console.error(`${count} entries in ${out}`);
    }
    return 0;
  },
});

/** A line of CSV without characters that could control a terminal. The JSON of its payload keeps its value. */
const printableCsv = (entry: Entry): string => `${steerless(csvLine(entry).trimEnd())}\r\n`;

/** Writes a new file completely, or leaves none. @throws the file system's error, also if the file exists */
async function writeNew(path: string, text: () => AsyncIterable<string>): Promise<void> {
  const file: Writable = createWriteStream(path, { flags: "wx" });
  await once(file, "open");
  try {
    await pipeline(text, file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/** Every entry that the filters select, in order, each once. A page is requested while the previous one is written. */
async function* pages(service: ServiceAccess, filters: URLSearchParams): AsyncIterable<readonly Entry[]> {
  const query = new URLSearchParams([...filters, ["page_size", `${PAGE_SIZE}`]]);
  let count = 0;
  let progress: ReturnType<typeof startProgress> | undefined;
  try {
    for (;;) {
      const { entries, total } = await service.get<Page>(`/audit/export?${query}`);
      progress ??= startProgress("Exporting:", total);
      yield entries;
      count += entries.length;
      progress.update(count);
      const last = entries.at(-1);
      if (!last || entries.length < PAGE_SIZE) return;
      query.set("after_id", `${last.id}`);
    }
  } finally {
    progress?.end();
  }
}
