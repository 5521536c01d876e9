/** `cairnlog serve`: runs the service until it is told to stop. */
import { describeSettings, startServer } from "../index.js";
import { settingsOf } from "./environment.js";
import { readArguments, type Subcommand } from "./usage.js";

const settingLines = describeSettings().map(({ name, fallback, about }) => `  ${name} (${fallback})\n      ${about}`);

const OPTIONS = {
  data: { type: "string" },
  "read-only": { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

export const serve: Subcommand = {
  summary: "run the service",
  help: `cairnlog serve [--data DIR] [--read-only] [--json]

Runs the service and prints where it listens, the fingerprint of the operator key and the data directory;
with --json as one line of JSON. SIGINT or SIGTERM ends it after everything accepted is answered.

Options:
  --data DIR   the data directory, instead of SERVICE_DATA_DIR
  --read-only  serve the mirror that cairnlog monitor keeps there (DIR/mirror of its --state), also while it goes on;
               without a private key, and refusing every write. The same as SERVICE_READ_ONLY=on
  --json       say where it listens as one line of JSON

It is set up by environment variables; defaults in parentheses:
${settingLines.join("\n")}

Exit codes: 0 ended as told; 1 could not start; 2 the command or a setting was not understood.

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
        ? JSON.stringify({ url, operator_fingerprint: operatorFingerprint, data_dir: dataDir })
        : `listening on ${url}\noperator ${operatorFingerprint}\ndata ${dataDir}`,
    );
    await stop;
    await server.close();
    return 0;
  },
};

/** Resolves at the first SIGINT or SIGTERM; the second one ends the process at once. */
function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      process.off("SIGINT", stop).off("SIGTERM", stop);
      resolve();
    };
    process.on("SIGINT", stop).on("SIGTERM", stop);
  });
}
