/** Options and client for the subcommands that talk to a service. */
import { type Client, ClientError, createClient } from "../client/index.js";
import { readPublicKey } from "./identity/public-key.js";
import { fileSigner, PASSPHRASE_HELP } from "./identity/secrets.js";
import { patientFetch } from "./patience.js";
import { serverOf } from "./service.js";
import { StateFolder } from "./state.js";
import { printable, printableJson } from "./terminal/printable.js";
import { UsageError } from "./usage.js";

/** Options of commands that sign nothing. */
export const READING_OPTIONS = {
  server: { type: "string" },
  "operator-key": { type: "string" },
  state: { type: "string" },
  json: { type: "boolean", default: false },
} as const;

/** Options of commands that act for a key. */
export const CONNECTION_OPTIONS = {
  ...READING_OPTIONS,
  key: { type: "string" },
  "passphrase-file": { type: "string" },
} as const;

/** Help for these options, which follows the command's own. */
export const READING_HELP = `  --server URL             address of the service (default: CAIRNLOG_SERVER)
  --operator-key FILE.pem  check everything against this operator key; without it, the first one that is seen is believed
  --state DIR              where that key, the last tree head and the session are kept (default: ~/.config/cairnlog)
  --json                   answer in JSON`;

export const CONNECTION_HELP = `${PASSPHRASE_HELP}\n${READING_HELP}`;

export interface ConnectionValues {
  readonly server?: string | undefined;
  readonly key?: string | undefined;
  readonly "passphrase-file"?: string | undefined;
  readonly "operator-key"?: string | undefined;
  readonly state?: string | undefined;
}

/**
 * Does `work` with a client made from the options. A renewed session is kept. Evidence against the log is written to a
 * file, and the error names the file.
 * @throws UsageError for options of the wrong form; ClientError
 */
export async function withClient<T>(
  values: ConnectionValues,
  work: (client: Client, folder: StateFolder) => Promise<T>,
): Promise<T> {
  const server = serverOf(values.server);
  if (!/^https?:\/\//.test(server) || !URL.canParse(server))
    throw new UsageError(`--server must be an address such as http://127.0.0.1:8080, not ${server}`);
  const folder = new StateFolder(server, values.state);
  const signer = values.key === undefined ? undefined : await fileSigner(values.key, values["passphrase-file"]);
  const kept = folder.loadSession();
  const client = createClient({
    server,
    fetch: patientFetch(),
    store: folder.store,
    signer,
    // A command with a key needs no session, and the session may be another key's.
    session: signer ? undefined : kept,
    operatorKey: values["operator-key"] && readPublicKey(values["operator-key"]).pem,
  });
  try {
    const result = await work(client, folder);
    if (!signer && client.session && client.session !== kept) folder.saveSession(client.session);
    return result;
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    if (error.code === "no-signer" && !signer)
      throw new UsageError("--key is missing, and there is no session (cairnlog login)", { cause: error });
    const { code, message, evidence } = error;
    if (code !== "log-misbehaved" && code !== "operator-key-mismatch") throw error;
    const kept = evidence ? ` The evidence is in ${folder.saveEvidence(evidence)}; keep it.` : "";
    const anew = ` Only if you know that a new log was started at this address: remove ${folder.memoryFile} to begin anew.`;
    throw new ClientError(code, message + kept + anew, { cause: error });
  }
}

/** Prints an answer: as one line of JSON, or as text without characters that could control the terminal. */
export function report(values: { readonly json: boolean }, answer: unknown, text: string): void {
  console.log(values.json ? printableJson(answer) : printable(text));
}

/** Node's timers count milliseconds in 31 bits. A longer timer ends at once. */
const LONGEST_INTERVAL_S = Math.floor(2 ** 31 / 1000);

/** Seconds between two requests for the state of a service, at least one. @throws UsageError */
export function readInterval(text: string): number {
  return Math.min(LONGEST_INTERVAL_S, Math.max(1, readNumber(text, "--interval")));
}

/** The number of an entry or a leaf. @throws UsageError */
export function readNumber(text: string | undefined, name: string): number {
  const value = text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw new UsageError(`${name} must be a whole number`);
  return value;
}
