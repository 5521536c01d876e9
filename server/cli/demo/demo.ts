/** `cairnlog demo`: a service with a filled log, and a tour of it. Nothing of it is left when it ends. */
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { closeAll, closing } from "../../../engine/base/closing.js";
import { DEMONSTRATION } from "../../../engine/contract/service/health.js";
import { type GivenSettings, type RunningServer, type Settings, startServer } from "../../index.js";
import { flag, subcommand } from "../line/subcommand.js";
import { none } from "../line/usage.js";
import { LISTENING_OPTIONS, listeningEnvironment, settingsOf } from "../operate/environment.js";
import { stopSignal } from "../terminal/interrupt.js";
import { printableJson } from "../terminal/printable.js";
import { fillLog, newPeople } from "./fill-log.js";

// The tour of the demonstration, as text: what to look at, and commands to run in another terminal.

interface TourPlaces {
  /** Address of the service. */
  readonly url: string;
  /** Address of the copy of its log in which a name was changed. */
  readonly rewrittenUrl: string;
  /** Folder of keys, documents and receipts. */
  readonly folder: string;
  /** How to run the command there. */
  readonly command: string;
  readonly entries: number;
  /** Fingerprint of the key that endorses others. */
  readonly endorser: string;
}

/** Every line that begins with two spaces and `cairnlog` is a command; a test runs them all, in order. */
export const tour = ({ url, rewrittenUrl, folder, command, entries, endorser }: TourPlaces): string => `
ready    ${url}/ (a demonstration: ${entries} entries by five people; Ctrl+C ends it and removes it)

1. Look. Open ${url}/ : your browser verifies what it shows. ${url}/docs describes the API.

   In a second terminal:

  cd ${folder}
  ${command === "cairnlog" ? "# keys, documents and receipts are here" : `alias cairnlog='${command.replaceAll("'", "'\\''")}'`}
  export CAIRNLOG_SERVER=${url}

2. Check a receipt, offline. Then one of a copy of the file in which a word was changed:

  cairnlog verify notes.txt --operator-key operator.pub.pem
  cairnlog verify changed/notes.txt --operator-key operator.pub.pem     # NOT verified

3. See who is there, whom Ada's key endorses, and read a claim that only Mary's key opens:

  cairnlog keys list
  cairnlog trust graph ${endorser}
  cairnlog claim decrypt claim.json --key mary.pem

4. Catch a lie. At ${rewrittenUrl}/ the same log is served after somebody changed a name in its file:

  cairnlog monitor ${url} --state watch --once
  cairnlog monitor ${rewrittenUrl} --state watch --once     # ALARM

   Open ${rewrittenUrl}/ as well: the page says it, too.

5. Sign something yourself:

  cairnlog keygen --out me.pem
  cairnlog attest compiler.txt --key me.pem --pseudonym "Me" --type peer_review
`;

const INTRODUCTION = {
  operatorName: DEMONSTRATION,
  logDescription: "A log with invented people and documents, which shows what such a log is for.",
};
/** One thread serves: the demonstration must start quickly, and is asked by one person. */
const SETTINGS = {
  workers: 1,
  frontEnds: 0,
  logLevel: "warn",
  rateLimits: false,
  ...INTRODUCTION,
} satisfies GivenSettings;
/** A name in the log, and the one that is in its place in the rewritten copy. */
const REWRITTEN = ["Ada Lovelace", "Eva Lovelace"] as const;

export const demo = subcommand({
  forms: ["[--port PORT] [--host ADDRESS]"],
  about: `Starts a service whose log is filled (keys, endorsements, attestations, a request, an encrypted claim), and beside it one that
serves a copy of that log in which a name was changed. Prints a tour: what to look at, and commands to run in a second
terminal. Everything is in a temporary directory, which is removed when it ends: SIGINT (Ctrl+C) or SIGTERM.
The copy listens on the next port. Of the variables of serve, PORT, HOST, SERVICE_PUBLIC_URL, SERVICE_ALLOWED_HOSTS,
SERVICE_TRANSPORT and LOG_LEVEL have an effect.`,
  options: {
    ...LISTENING_OPTIONS,
    json: flag("one line of JSON instead of the tour: both addresses and the directory"),
  },
  notes: "Exit codes: 0 ended as told; 1 could not start; 2 the command was not understood.",
  examples: "cairnlog demo",
  async run(operands, values) {
    none(operands);
    const given = listeningOf({ ...process.env, ...listeningEnvironment(values) });
    // From now on: what has begun to start is removed, too.
    const stop = stopSignal(["SIGINT", "SIGTERM", "SIGHUP"]);
    const stopping = new AbortController();
    void stop.then(() => stopping.abort());
    const folder = mkdtempSync(join(tmpdir(), "cairnlog-demo-"));
    const running: RunningServer[] = [];
    const starting = start(folder, given, running, stopping.signal);
    const show = async () => {
      const started = await Promise.race([starting, stop]);
      if (!started) return;
      const { own, rewritten, endorser } = started;
      const url = given.publicUrls[0] ?? addressOf(own);
      const rewrittenUrl = given.publicUrls.map(besides)[0] ?? addressOf(rewritten);
      const files = join(folder, "files");
      const entries = own.registry.log.size;
      console.log(
        values.json
          ? printableJson({ url, rewritten_url: rewrittenUrl, folder: files, entries })
          : tour({ url, rewrittenUrl, folder: files, command: commandHere(), entries, endorser }),
      );
      await stop;
    };
    const close = () => closeAll(...running.splice(0).map((server) => () => server.close()));
    await closing(
      show,
      // Who fills the log of a service that is closed fails.
      close,
      () => starting.catch(() => {}),
      close,
      () => rmSync(folder, { recursive: true, force: true }),
    );
    return 0;
  },
});

/** Where a service is asked from this machine, also if it listens on all addresses. */
const addressOf = ({ url }: RunningServer): string => url.replace(/\/\/(?:0\.0\.0\.0|\[::\])(?=:)/, "//127.0.0.1");

/** The public address of the copy, on the port beside that of the service. */
function besides(publicUrl: string): string {
  const url = new URL(publicUrl);
  if (url.port) url.port = `${Number(url.port) + 1}`;
  return url.origin;
}

/**
 * @param running gets the services as soon as they run, so that they are closed if anything fails later
 * @throws the reason of `signal` before the next step
 */
async function start(
  folder: string,
  given: Listening,
  running: RunningServer[],
  signal: AbortSignal,
): Promise<{ own: RunningServer; rewritten: RunningServer; endorser: string }> {
  const [data, files, changed] = ["data", "files", "rewritten"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(files);
  const people = newPeople(files, given.publicUrls[0]);
  const endorser = people.ada.fingerprint;
  const { port } = given;
  const settings = {
    ...SETTINGS,
    ...given,
    dataDir: data,
    trustAnchors: [endorser],
    endorsementActivationDelaySeconds: 0,
  };
  const own = await startServer(settings);
  running.push(own);
  signal.throwIfAborted();
  await fillLog(addressOf(own), files, people);
  copyFileSync(join(data, "operator.pub.pem"), join(files, "operator.pub.pem"));
  signal.throwIfAborted();
  rewrittenCopy(data, changed, REWRITTEN);
  const rewritten = await startServer({
    ...SETTINGS,
    ...given,
    port: port && port + 1,
    publicUrls: given.publicUrls.map(besides),
    dataDir: changed,
    readOnly: true,
  });
  running.push(rewritten);
  return { own, rewritten, endorser };
}

/**
 * What a user types in another terminal and another directory to run this command: its name if a shell finds this program
 * under it, otherwise its file. npm finds it in `node_modules/.bin`, which only its own scripts and npx look into.
 */
function commandHere(): string {
  const file = realpathSync(process.argv[1]!);
  const folders = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((path) => path && !/node_modules[\\/]\.bin$/.test(path));
  const found = folders.map((path) => join(path, "cairnlog")).find((path) => existsSync(path));
  if (found !== undefined && realpathSync(found) === file) return "cairnlog";
  return `node ${/[^\w@%+=:,./-]/.test(file) ? `"${file}"` : file}`;
}

type Listening = Pick<Settings, "port" | "host" | "publicUrls" | "allowedHosts" | "transport" | "logLevel">;

/** The settings of an environment that a demonstration has, too. @throws UsageError */
function listeningOf(environment: NodeJS.ProcessEnv): Listening {
  const { port, host, publicUrls, allowedHosts, transport, logLevel } = settingsOf(environment);
  return {
    ...{ port, host, publicUrls, allowedHosts, transport },
    logLevel: environment.LOG_LEVEL ? logLevel : SETTINGS.logLevel,
  };
}

/**
 * Copies the log of a data directory, and replaces a text in its entries by another of the same length. Nothing may be
 * appended meanwhile: the file is copied as it is.
 * @param to the new data directory, which is served without a private key
 */
function rewrittenCopy(from: string, to: string, [text, other]: readonly [string, string]): void {
  mkdirSync(to, { mode: 0o700 });
  cpSync(join(from, "log"), join(to, "log"), { recursive: true });
  copyFileSync(join(from, "operator.pub.pem"), join(to, "operator.pub.pem"));
  const file = join(to, "log", "data.mdb");
  const bytes = readFileSync(file);
  const [old, wanted] = [Buffer.from(text), Buffer.from(other)];
  for (let at = bytes.indexOf(old); at !== -1; at = bytes.indexOf(old, at + old.length)) wanted.copy(bytes, at);
  writeFileSync(file, bytes);
}
