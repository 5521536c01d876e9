/** `cairnlog import`: begins a log with entries that were made elsewhere. */
import { createReadStream, fstatSync, openSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { CairnlogError } from "../../../engine/base/error.js";
import { replaceFile } from "../../../engine/base/files.js";
import { type ImportReport, importEntries } from "../../../engine/log/history/import.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { makePrivateFolder, PRIVATE_FILE } from "../../../engine/store/lmdb/private.js";
import { openOperator } from "../../opening/operator.js";
import { operatorPublicKeyPath } from "../../settings/settings.js";
import { flag, subcommand, text } from "../line/subcommand.js";
import { UsageError } from "../line/usage.js";
import { printable, printableJson } from "../terminal/printable.js";
import { formatBytes, startProgress } from "../terminal/progress.js";
import { settingsAt } from "./environment.js";

/** Bytes of the file read at a time. */
const PIECE_BYTES = 2 ** 20;
/** Warnings that are printed; `--json` gives more. */
const SHOWN_WARNINGS = 20;

export const importLog = subcommand({
  forms: ["FILE [--data DIR]"],
  about: `Takes over entries, oldest first and one a line, as GET /api/v1/log serves them and cairnlog export writes them. FILE
may be - for standard input. The log must be empty or not there yet, and the service must not be running.

Every entry is checked: its hash (chain version 1 or 2) and its digests, its link to the entry before, ids that ascend,
the order of version 2 timestamps. The first line that is wrong is named, and nothing is imported then. Ids, timestamps,
hashes, chain versions and anchoring proofs stay as they are; the operator key signs one head, that of all of them.`,
  options: {
    data: text(
      "DIR",
      "data directory (default: SERVICE_DATA_DIR, else ./data); the operator key is behind SERVICE_SIGNER, in SERVICE_OPERATOR_KEY, or in operator.pem there, which is created when there is none",
    ),
    json: flag("print the report as one line of JSON"),
  },
  notes:
    "Exit codes: 0 imported; 1 refused, the log is empty as before; 2 the command or a setting was not understood.",
  examples: "cairnlog import history.ndjson --data /var/lib/cairnlog",
  async run(positionals, values) {
    const [file, more] = positionals;
    if (file === undefined) throw new UsageError("name the FILE to import, or - for standard input");
    if (more !== undefined) throw new UsageError(`${more} is one argument too many`);
    const settings = settingsAt(values);
    // Opened first: a file that cannot be read must leave no data directory behind.
    const { source, total } = opened(file);
    makePrivateFolder(settings.dataDir);
    const { operator, signer } = await openOperator(settings, {
      warn: (_, sentence) => console.error(`cairnlog: ${sentence}`),
    });
    const bar = startProgress("imported", total, formatBytes);
    let report: ImportReport;
    try {
      const { dataDir, minFreeBytes } = settings;
      const target = { path: join(dataDir, "log"), signer: operator, projection, minFreeBytes };
      report = await importEntries(target, source, {
        progress: ({ bytes }) => bar.update(bytes),
        placing: () => replaceFile(operatorPublicKeyPath(dataDir), operator.public.pem, PRIVATE_FILE),
      });
    } finally {
      bar.end();
      await signer?.close();
    }
    if (values.json) {
      const place = { operator_fingerprint: operator.fingerprint, data_dir: settings.dataDir };
      console.log(printableJson({ ...report, ...place }));
    } else console.log(described(report, settings.dataDir));
    return 0;
  },
});

/** What is read, and its size if that is known. @throws CairnlogError; the file system's error */
function opened(file: string): { readonly source: Readable; readonly total: number | null } {
  if (file === "-") return { source: process.stdin, total: null };
  const fd = openSync(file, "r");
  const stat = fstatSync(fd);
  if (stat.isDirectory()) throw new CairnlogError("invalid-input", `${file} is a directory, not a file.`);
  const source = createReadStream(file, { fd, highWaterMark: PIECE_BYTES });
  return { source, total: stat.isFile() ? stat.size : null };
}

function described(
  { entry_count, last_id, last_hash, warnings, warning_count }: ImportReport,
  dataDir: string,
): string {
  const shown = warnings
    .slice(0, SHOWN_WARNINGS)
    .map(({ line, id, message }) => `line ${line}, entry ${id}: ${message}`);
  const rest = warning_count - shown.length;
  return printable(
    [
      `imported ${entry_count} entries into ${dataDir}`,
      `last entry ${last_id}, ${last_hash}`,
      ...shown.map((text) => `warning: ${text}`),
      ...(rest > 0 ? [`and ${rest} more warnings`] : []),
    ].join("\n"),
  );
}
