/** Options and client for the subcommands that talk to a service. */

import { isOrigin } from "../../../engine/contract/check.js";
import { parsePublicKey } from "../../../engine/verify/index.js";
import { sparingStore } from "../../client/base/demonstration.js";
import {
  type Client,
  ClientError,
  createClient,
  type Evidence,
  type Session,
  type Signer,
  type Store,
} from "../../client/index.js";
import { type Patience, patientFetch, throughLimits } from "../../outgoing/patience.js";
import { readPublicKey } from "../files/public-key.js";
import { fileSigner } from "../files/secrets.js";
import { flag, text } from "../line/subcommand.js";
import { required, UsageError } from "../line/usage.js";
import { printable, printableJson } from "../terminal/printable.js";
import { isSystemError, systemSentence } from "../terminal/system-error.js";
import type { Styled } from "../terminal/table.js";
import { rememberedFor } from "./config-file.js";
import { checkAddress, checkUrl, namedServer, serversOf } from "./service.js";
import { StateFolder } from "./state.js";

/** Options of commands that sign nothing. */
export const READING_OPTIONS = {
  server: text(
    "URL",
    "address of the service, or those of all its nodes with commas between (default: CAIRNLOG_SERVER, or else that of cairnlog config)",
  ),
  "operator-key": text(
    "FILE.pem",
    "check everything against this operator key (default: that of cairnlog config, or else the one that was seen first)",
  ),
  state: text("DIR", "where that key, the last tree head and the session are kept (default: ~/.config/cairnlog)"),
  json: flag("answer in JSON"),
} as const;

/** Options of commands that act for a key. */
export const CONNECTION_OPTIONS = {
  key: text("KEY.pem", "your private key; it stays here (default: that of cairnlog config)"),
  "passphrase-file": text(
    "FILE",
    "the passphrase of an encrypted key; without it, the file that CAIRNLOG_PASSPHRASE_FILE names, or it is asked for",
  ),
  as: text(
    "ORIGIN",
    "how the service is known, such as https://log.example, where a tunnel or a proxy gives it another address: nothing else is signed (default: that of the address)",
  ),
  ...READING_OPTIONS,
} as const;

export interface ConnectionValues {
  readonly server?: string | undefined;
  readonly key?: string | undefined;
  readonly "passphrase-file"?: string | undefined;
  readonly as?: string | undefined;
  readonly "operator-key"?: string | undefined;
  readonly state?: string | undefined;
  readonly json?: boolean;
}

/**
 * Does `work` with a client made from the options. A renewed session is kept. Evidence against the log is written to a
 * file, and the error names the file.
 * @param isEndless whether every limit of the service is waited for, however long it lasts
 * @throws UsageError for options of the wrong form; ClientError
 */
export async function withClient<T>(
  values: ConnectionValues,
  work: (client: Client, folder: StateFolder) => Promise<T>,
  { isEndless, ...patience }: Patience & { readonly isEndless?: boolean } = {},
): Promise<T> {
  const servers = serversOf(values.server);
  const [server] = servers;
  const folder = new StateFolder(server, values.state);
  const file = keyFileOf(values);
  const signer = file === undefined ? undefined : await fileSigner(file, values["passphrase-file"]);
  const kept = keptFor(folder, signer);
  const operatorKey = values["operator-key"]
    ? readPublicKey(values["operator-key"]).pem
    : rememberedFor(server).operator_key;
  const client = createClient({
    server: servers,
    publicOrigin: publicOriginOf(values.as),
    fetch: patientFetch(throughLimits(isEndless), patience),
    store: telling(folder.store, server, operatorKey !== undefined || values.json === true, patience.say),
    signer,
    session: kept,
    operatorKey,
  });
  try {
    const result = await work(client, folder);
    if (kept && client.session && client.session !== kept) folder.saveSession(client.session);
    return result;
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    if (error.code === "no-signer" && !signer)
      throw new UsageError("--key is missing, and there is no session (cairnlog login)", { cause: error });
    const { code, message, evidence } = error;
    if (code !== "log-misbehaved" && code !== "operator-key-mismatch") throw error;
    const forget = `cairnlog config forget ${server}${values.state === undefined ? "" : ` --state ${values.state}`}`;
    // A head under another key proves nothing to others: anybody can make keys.
    if (code === "operator-key-mismatch")
      throw new ClientError(
        code,
        `${message} Ask the operator elsewhere which key is right. If it is the new one, "${forget}" forgets the old one; receipts of the old log stay valid under the old key.`,
        { cause: error },
      );
    const kept = evidence ? ` ${savedEvidence(folder, evidence)}` : "";
    const anew = ` Only if you know that a new log was started at this address: "${forget}" begins anew.`;
    throw new ClientError(code, message + kept + anew, { cause: error });
  }
}

/** The session that is kept, but for one of another key than the signer's. One of its own has taken the password of the key. */
function keptFor(folder: StateFolder, signer: Signer | undefined): Session | undefined {
  const kept = folder.loadSession();
  return !signer || parsePublicKey(signer.publicKeyPem).fingerprint === kept?.fingerprint ? kept : undefined;
}

/** Says where the evidence is; if no file takes it, what it is: the log may behave from now on. */
function savedEvidence(folder: StateFolder, evidence: Evidence): string {
  try {
    return `The evidence is in ${folder.saveEvidence(evidence)}; keep it.`;
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    return `The evidence was not written: ${systemSentence(cause)} Keep it yourself: ${printableJson(evidence)}`;
  }
}

/** The value of `--as`. @throws UsageError for what is no origin */
export function publicOriginOf(text: string | undefined): string | undefined {
  if (text === undefined || isOrigin(text)) return text;
  throw new UsageError(`--as must be an origin such as https://log.example, not ${text}`);
}

/**
 * The file of the private key: that of the option, or else the one that the config file has for the service. A command that
 * takes no key has none.
 */
function keyFileOf(values: ConnectionValues): string | undefined {
  if (!("key" in values) || values.key !== undefined) return values.key;
  const server = namedServer(values.server);
  return server === undefined ? undefined : rememberedFor(server).key;
}

/** Refuses a command that must sign, before anything is read or sent. @throws UsageError without a key */
export const requireKeyFile = (values: ConnectionValues): void => void required(keyFileOf(values), "--key");

/** A store that says on stderr when it keeps the operator key of a log for the first time. */
const telling = (store: Store, server: string, isSilent: boolean, say = (text: string) => console.error(text)): Store =>
  sparingStore(store, server, fetch, (state, isDemonstration) => {
    if (isSilent) return;
    const { fingerprint } = parsePublicKey(state.operator_key);
    say(
      isDemonstration
        ? `The log at ${server} is a demonstration: its operator key, ${fingerprint}, is not pinned.`
        : `The operator key of ${server} is ${fingerprint}. It is pinned from now on; compare it with what the operator publishes elsewhere.`,
    );
  });

/** An answer for stdout: as one line of JSON, or as text without characters that could control the terminal. */
export const reported = ({ json }: { readonly json: boolean }, answer: unknown, text: string | Styled): string =>
  json ? printableJson(answer) : typeof text === "string" ? printable(text) : text.styled;

/** Prints an answer. */
export function printAnswer(values: { readonly json: boolean }, answer: unknown, text: string | Styled): void {
  console.log(reported(values, answer, text));
}

/** Node's timers count milliseconds in 31 bits. A longer timer ends at once. */
const LONGEST_INTERVAL_S = Math.floor(2 ** 31 / 1000);

/** Seconds between two requests for the state of a service, at least one. @throws UsageError */
export function readInterval(text: string): number {
  return Math.min(LONGEST_INTERVAL_S, Math.max(1, readNumber(text, "--interval")));
}

const EXAMPLE = "https://log.example";

/** An address that an argument or option names, behind which paths are put. @throws UsageError */
export const webAddress = (text: string, name: string): string => checkAddress(text, name, EXAMPLE);

/** An address that is asked for as it is. @throws UsageError */
export const wholeAddress = (text: string, name: string): string => checkUrl(text, name, EXAMPLE);

/** The number of an entry or a leaf. @throws UsageError */
export function readNumber(text: string | undefined, name: string): number {
  const value = text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw new UsageError(`${name} must be a whole number`);
  return value;
}
