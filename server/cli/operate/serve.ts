/** `cairnlog serve`: runs the service until it is told to stop. */
import type { CairnlogError } from "../../../engine/error.js";
import { FAILED_EXIT_CODE } from "../../failure.js";
import { describeSettings, startServer } from "../../index.js";
import { printableJson } from "../terminal/printable.js";
import { readArguments, type Subcommand } from "../usage.js";
import { settingsOf } from "./environment.js";

/** Milliseconds in which those who wait are answered when the log has failed. */
const FAREWELL_MS = 500;
/** Seconds after which a service that was told to stop is ended in any case; those who supervise it wait longer. */
const STOP_SECONDS = 10;

const settingLines = describeSettings().map(({ name, fallback, about }) => `  ${name} (${fallback})\n      ${about}`);

const OPTIONS = {
  data: { type: "string" },
  "read-only": { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

export const serve: Subcommand = {
  help: `cairnlog serve [--data DIR] [--read-only] [--json]

Runs the service and prints where it listens, the fingerprint of the operator key and the data directory;
with --json as one line of JSON. SIGINT or SIGTERM ends it after everything accepted is answered, within
${STOP_SECONDS} seconds; a second one ends it at once. Certificates are read at the start: restart it for new ones.

Options:
  --data DIR   the data directory, instead of SERVICE_DATA_DIR
  --read-only  serve the mirror that cairnlog monitor keeps there (DIR/mirror of its --state), also while it goes on;
               without a private key, and refusing every write. The same as SERVICE_READ_ONLY=on
  --json       say where it listens as one line of JSON

It is set up by environment variables; defaults in parentheses:
${settingLines.join("\n")}

Exit codes: 0 ended as told; 1 could not start, or could not end in time; 2 the command or a setting was not understood;
74 a write to the log failed, so the service ended: see failure.json in the data directory, and start it again.

Example:
  PORT=8080 SERVICE_DATA_DIR=/var/lib/cairnlog cairnlog serve`,
  options: OPTIONS,
  async run(argv) {
    const { values } = readArguments(argv, OPTIONS);
    const server = await startServer(
      settingsOf({
        ...process.env,
        ...(values.data === undefined ? {} : { SERVICE_DATA_DIR: values.data }),
        ...(values["read-only"] ? { SERVICE_READ_ONLY: "on" } : {}),
      }),
    );
    const stop = stopSignal();
    const { url, operatorFingerprint, dataDir } = server;
    console.log(
      values.json
        ? printableJson({ url, operator_fingerprint: operatorFingerprint, data_dir: dataDir })
        : `listening on ${url}\noperator ${operatorFingerprint}\ndata ${dataDir}`,
    );
    const failure = await Promise.race([stop, server.failed]);
    if (failure) await fail(failure);
    const late = setTimeout(abandon, STOP_SECONDS * 1000);
    await server.close();
    clearTimeout(late);
    return 0;
  },
};

/**
 * Ends the process when its log has failed. Nothing is closed: that would call LMDB, whose memory may be damaged. Whoever
 * waits has been answered by then.
 */
async function fail({ message }: CairnlogError): Promise<never> {
  // Timers of the service still read the log, and are told that it failed.
  process.on("uncaughtException", () => {}).on("unhandledRejection", () => {});
  console.error(`cairnlog: ${message}`);
  await new Promise((resolve) => setTimeout(resolve, FAREWELL_MS));
  process.exit(FAILED_EXIT_CODE);
}

/** Nothing that was acknowledged is lost: that is on disk. */
function abandon(): never {
  console.error("cairnlog: the service did not end in time, and was ended");
  process.exit(1);
}

/** Resolves at the first SIGINT or SIGTERM; the second one ends the process at once. */
function stopSignal(): Promise<null> {
  return new Promise((resolve) => {
    const stop = () => {
      process.off("SIGINT", stop).off("SIGTERM", stop);
      resolve(null);
    };
    process.on("SIGINT", stop).on("SIGTERM", stop);
  });
}
