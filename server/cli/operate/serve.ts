/** `cairnlog serve`: runs the service until it is told to stop. */

import { relative } from "node:path";
import type { CairnlogError } from "../../../engine/base/error.js";
import { FAILED_EXIT_CODE } from "../../failure.js";
import { describeSettings, type RunningServer, type ServerOptions, startServer } from "../../index.js";
import { isStderrTerminal, stderrLines } from "../../process/stderr.js";
import { failurePath, type Settings, strangeNames } from "../../settings/settings.js";
import { flag, subcommand } from "../line/subcommand.js";
import { none, UsageError } from "../line/usage.js";
import { stopSignal } from "../terminal/interrupt.js";
import { logLines } from "../terminal/log-lines.js";
import { printableJson } from "../terminal/printable.js";
import { ENV_FILE_OPTION } from "./env-file.js";
import { SETTING_OPTIONS, settingsGiven, settingsOf } from "./environment.js";
import { hasParent, tellParent } from "./parent-connection.js";

// The end of `cairnlog serve`: in time, whatever hangs.

/** Milliseconds in which the process may end by itself when all is closed, although something works on in it. */
const LINGER_MS = 2_000;
/** The share of the time after which it exits in any case. The rest is for the exit. */
const EXIT_SHARE = 0.95;
/** Milliseconds in which it may do so if that is a standard stream that nobody reads. */
const STREAM_MS = 100;
/** Node's kinds of what standard streams wait for. */
const STREAMS = new Set(["TTYWrap", "PipeWrap", "WriteWrap"]);
/** Words for Node's kinds of what keeps a process running. */
const WORDS: Readonly<Record<string, string>> = {
  FSReqCallback: "a file operation",
  FSReqPromise: "a file operation",
  GetAddrInfoReqWrap: "the look-up of a name",
  MessagePort: "a thread",
  TCPSocketWrap: "a connection",
  Timeout: "a timer",
  Worker: "a thread",
};

/**
 * Stops the service. If parts of it hang, or if something keeps the process running after that, it says what, and exits. An exit
 * waits for the threads of the process, and one that is inside a system call, such as the look-up of a name, cannot be interrupted
 * by Node. So the parent process is told what is being closed. It kills this process if it is late.
 * @param seconds after which the process has ended in any case
 * @returns the exit code
 */
async function stopInTime(server: Pick<RunningServer, "close">, seconds: number): Promise<number> {
  const last = performance.now() + seconds * 1000 * EXIT_SHARE;
  const exit = (hanging: readonly string[], code: number): never => {
    const current = hanging.join(", ");
    tellParent({ closing: current || "the exit", exit: code });
    if (hanging.length > 0) {
      const rest = code === 0 ? "nothing that it had accepted is lost" : "writes that it had accepted are not decided";
      stderrLines().write(`cairnlog: the service was ended while this hung: ${current}; ${rest}\n`);
    }
    process.exit(code);
  };
  try {
    const { hanging, isSettled } = await server.close((closing) => tellParent({ closing }));
    if (hanging.length > 0) exit(hanging, isSettled ? 0 : 1);
    tellParent({ closing: "the exit", exit: 0 });
    return 0;
  } finally {
    const patience = Math.min(performance.now() + LINGER_MS, last);
    setInterval(() => {
      const kinds = lingering();
      if (kinds.length === 0 || performance.now() >= patience) exit(kinds, Number(process.exitCode ?? 0));
    }, STREAM_MS).unref();
  }
}

/** What keeps the process running beside standard streams, each kind once. */
function lingering(): string[] {
  const kinds = process.getActiveResourcesInfo().filter((kind) => !STREAMS.has(kind));
  return [...new Set(kinds.map((kind) => WORDS[kind] ?? kind))];
}

/** Milliseconds in which those who wait are answered when the log has failed. */
const FAREWELL_MS = 500;

const RENEWED = "SIGHUP: certificate and key were read again, for connections to come";
const NOTHING_TO_RENEW = "SIGHUP: there is no certificate to read again";
const NOT_RENEWED = "SIGHUP: the new certificate cannot be used, and the old one stays";
const WRITERS_RENEWED = "SIGHUP: the list of those who may write was read again";
const WRITERS_NOT_RENEWED = "SIGHUP: the new list of those who may write cannot be used, and the old one stays";

const settingLines = describeSettings().map(({ name, fallback, about }) => `  ${name} (${fallback})\n      ${about}`);

export const serve = subcommand({
  forms: ["[--env-file FILE] [--port PORT] [--host ADDRESS] [--data DIR] [--read-only | --follow]"],
  about: `Runs the service and prints where it listens, the fingerprint of the operator key and the data directory;
with --json as one line of JSON. SIGINT or SIGTERM ends it after everything accepted is answered, within
SERVICE_STOP_TIMEOUT_S seconds, and says what hung; a second one ends it at once. A small parent process watches the service.
SIGHUP has it read the files of the certificate and its key, and of SERVICE_WRITERS, again, unless it runs on a terminal, which sends this signal when
it is closed: then the service ends.
Its log goes to stderr: as JSON, but on a terminal as lines for people, and only warnings unless LOG_LEVEL is set.`,
  options: {
    ...SETTING_OPTIONS,
    ...ENV_FILE_OPTION,
    follow: flag(
      "as a node of a replicated log (SERVICE_REPLICATION) that never writes it, whatever happens to the others",
    ),
    // The command itself looks for it, before it loads this file.
    "no-parent": flag(
      "run without the parent process that names the signal which has ended the service, records it and kills a stop that hangs: where a supervisor is to see these itself",
    ),
    json: flag("say where it listens as one line of JSON"),
  },
  notes: `It is set up by environment variables, which cairnlog settings shows; defaults in parentheses:
${settingLines.join("\n")}

Exit codes: 0 ended as told, and nothing that it had accepted is lost; 1 could not start, or had to leave accepted
writes undecided; 2 the command or a setting was not understood;
74 a write to the log failed, or a signal that nobody asked for ended the service: see failure.json in the data directory,
and start it again.`,
  examples: "cairnlog serve --port 8080 --data /var/lib/cairnlog",
  async run(operands, values) {
    none(operands);
    for (const name of strangeNames(process.env))
      console.error(`cairnlog: ${name} is not a setting, and has no effect`);
    const settings = settingsOf({ ...process.env, ...settingsGiven(values) });
    if (values.follow && settings.replication === null)
      throw new UsageError("--follow needs SERVICE_REPLICATION: there is no other node to follow");
    const options = { follow: values.follow };
    const isWatched = process.stdout.isTTY && isStderrTerminal();
    // It begins when the rest has been done: the parent knows, and signals are listened to.
    const starting = Promise.resolve().then(() => (isWatched ? startWatched : startServer)(settings, options));
    // A terminal that is closed sends SIGHUP.
    const forget = isWatched ? () => {} : readAgainOnHangUp(starting);
    const keepsNone = settings.readOnly && settings.replication === null;
    tellParent({
      failureFile: keepsNone ? null : failurePath(settings.dataDir),
      stopMs: settings.stopTimeoutSeconds * 1000,
    });
    try {
      const server = await starting;
      const signals = ["SIGINT", "SIGTERM", ...(isWatched ? (["SIGHUP"] as const) : [])] as const;
      // A parent counts signals itself, and may pass on one that this process has got already.
      const stop = stopSignal(signals, hasParent() ? "nothing" : "ends");
      if (values.json) console.log(printableJson(placeOf(server)));
      else console.log(isWatched ? greeting(server) : described(server));
      const failure = await Promise.race([stop, server.failed]);
      if (failure) await fail(failure);
      return await stopInTime(server, settings.stopTimeoutSeconds);
    } finally {
      forget();
    }
  },
});

/** On a terminal: warnings as lines for people, unless more is asked for. */
function startWatched(settings: Settings, options: ServerOptions): Promise<RunningServer> {
  const logLevel = process.env.LOG_LEVEL ? settings.logLevel : "warn";
  return startServer({ ...settings, logLevel }, { ...options, logger: logLines((line) => stderrLines().write(line)) });
}

/** One line for people who have just started it. */
const greeting = ({ url, dataDir }: RunningServer): string =>
  `ready    ${url}/ (data in ${relative("", dataDir) || "."}; Ctrl+C stops it)`;

const placeOf = ({ url, metricsUrl, operatorFingerprint, dataDir }: RunningServer) => ({
  url,
  ...(metricsUrl === null ? {} : { metrics_url: metricsUrl }),
  operator_fingerprint: operatorFingerprint,
  data_dir: dataDir,
});

function described({ url, metricsUrl, operatorFingerprint, dataDir }: RunningServer): string {
  const metrics = metricsUrl === null ? [] : [`metrics on ${metricsUrl}/metrics`];
  return [`listening on ${url}`, ...metrics, `operator ${operatorFingerprint}`, `data ${dataDir}`].join("\n");
}

/**
 * Reads files of the settings again at each SIGHUP, also at one that comes while the service starts: certificate and key, and
 * the list of those who may write. What cannot be used is reported, and the old one stays.
 * @returns a function that ends this
 */
function readAgainOnHangUp(starting: Promise<RunningServer>): () => void {
  let last: Promise<void> = starting.then(
    () => {},
    () => {},
  );
  const renew = () => {
    last = last.then(async () => {
      const server = await starting;
      try {
        const expires = await server.renewCertificate();
        server.logger.info(expires === null ? {} : { expires }, expires === null ? NOTHING_TO_RENEW : RENEWED);
      } catch (error) {
        server.logger.error({ err: error }, NOT_RENEWED);
      }
      try {
        const keys = server.renewWriters();
        if (keys !== null) server.logger.info({ keys }, WRITERS_RENEWED);
      } catch (error) {
        server.logger.error({ err: error }, WRITERS_NOT_RENEWED);
      }
    });
  };
  process.on("SIGHUP", renew);
  return () => void process.off("SIGHUP", renew);
}

/**
 * Ends the process when its log has failed. Nothing is closed: that would call LMDB, whose memory may be damaged. Whoever
 * waits has been answered by then.
 */
async function fail({ message }: CairnlogError): Promise<never> {
  // Timers of the service still read the log, and are told that it failed.
  process.on("uncaughtException", () => {}).on("unhandledRejection", () => {});
  console.error(`cairnlog: ${message}`);
  await new Promise((resolve) => setTimeout(resolve, FAREWELL_MS));
  tellParent({ closing: "the exit", exit: FAILED_EXIT_CODE });
  process.exit(FAILED_EXIT_CODE);
}
