/** `cairnlog witness`: cosigns the checkpoints of logs until it is told to stop. */
import { resolve } from "node:path";
import { isNoteName } from "../../../engine/verify/index.js";
import { FAILED_EXIT_CODE } from "../../failure.js";
import { createLogger } from "../../process/logger.js";
import { type RunningWitness, startWitness, type WitnessSettings } from "../../witness/server.js";
import { WITNESS_ALGORITHMS } from "../../witness/signer.js";
import { flag, subcommand, text, textOr, type Values } from "../line/subcommand.js";
import { none, required, UsageError } from "../line/usage.js";
import { printableJson } from "../terminal/printable.js";

/** Milliseconds in which those who wait are answered when a row could not be written. */
const FAREWELL_MS = 500;
const MAX_PORT = 65_535;

const OPTIONS = {
  data: text("DIR", "where the rows and the key are kept. Never replace it by an older copy"),
  logs: text("FILE", "the logs whose checkpoints are cosigned"),
  name: text("NAME", "name of the witness in its cosignatures: a host and path that you own. Never change it"),
  key: text(
    "FILE.pem",
    "its private key, which must sign nothing else (default: DIR/witness.pem, made if it does not exist)",
  ),
  algorithm: textOr(
    "NAME",
    "ed25519",
    "of its key: ed25519, or ml-dsa-44, which quantum computers are not known to break",
  ),
  host: textOr("ADDRESS", "127.0.0.1", "address to listen on"),
  port: textOr("PORT", "8081", "TCP port; 0 takes a free one"),
  prefix: textOr("PATH", "", "what stands before /add-checkpoint in its URL, such as /witness"),
  "tls-cert": text("FILE", "its certificate and chain in PEM, for HTTPS"),
  "tls-key": text("FILE", "the private key of the certificate"),
  json: flag("say where it listens as one line of JSON"),
} as const;

export const witness = subcommand({
  forms: ["--data DIR --logs FILE --name NAME"],
  about: `Cosigns checkpoints of other logs over HTTP (c2sp.org/tlog-witness), each only if it is consistent with all that were cosigned
before, and prints the address and the verifier key. The newest cosigned checkpoint of each log is on disk before the
cosignature is given out. SIGHUP reads the file of logs, certificate and key again; SIGINT or SIGTERM ends it. docs/witness.md says more.

The file of logs has a line "log VKEY" for each key of a log, or is a log list of the witness network (logs/v0).`,
  options: OPTIONS,
  notes: `Exit codes: 0 ended as told; 1 could not start; 2 the command was not understood; ${FAILED_EXIT_CODE} a row could not be written.`,
  examples: "cairnlog witness --data /var/lib/witness --logs logs.txt --name witness.example/w1",
  async run(positionals, values) {
    none(positionals);
    const starting = startWitness(settingsOf(values), createLogger("warn"));
    // Also at one that comes while it starts: what it has read by then may be old.
    const reload = () => void starting.then(readAgain, () => {});
    process.on("SIGHUP", reload);
    try {
      const running = await starting;
      const { url, vkey, logs } = running;
      // Whoever reads the line may send a signal at once: it must find its handler.
      const ended = untilTold(running);
      console.log(values.json ? printableJson({ url, vkey, logs }) : `listening on ${url}\nvkey ${vkey}\nlogs ${logs}`);
      return await ended;
    } finally {
      process.off("SIGHUP", reload);
    }
  },
});

type Given = Values<typeof OPTIONS>;

/** @throws UsageError */
function settingsOf(values: Given): WitnessSettings {
  const name = required(values.name, "--name");
  if (!isNoteName(name)) throw new UsageError("--name has no spaces, control characters and plus signs");
  const { prefix, "tls-cert": certificate, "tls-key": key } = values;
  if (!/^(?:\/[A-Za-z0-9._~-]+)*$/.test(prefix))
    throw new UsageError("--prefix is a path such as /witness, of letters, digits and . _ ~ -");
  if ((certificate === undefined) !== (key === undefined))
    throw new UsageError("--tls-cert and --tls-key must be given together");
  const algorithm = WITNESS_ALGORITHMS.find((known) => known === values.algorithm);
  if (!algorithm) throw new UsageError(`--algorithm is ${WITNESS_ALGORITHMS.join(" or ")}`);
  const port = /^\d{1,5}$/.test(values.port) ? Number(values.port) : Number.NaN;
  if (!(port <= MAX_PORT)) throw new UsageError(`--port must be a whole number from 0 to ${MAX_PORT}`);
  return {
    dataDir: resolve(required(values.data, "--data")),
    keyFile: values.key,
    algorithm,
    logsFile: required(values.logs, "--logs"),
    name,
    host: values.host,
    port,
    prefix,
    tls: certificate === undefined || key === undefined ? null : { certificate, key },
    transport: null,
  };
}

/** Reads the files again. What cannot be used keeps nothing else from being read. */
function readAgain(running: RunningWitness): void {
  const attempt = (work: () => void, otherwise: string) => {
    try {
      work();
    } catch (error) {
      console.error(`cairnlog: ${otherwise}. ${(error as Error).message}`);
    }
  };
  attempt(() => running.reload(), "the logs stay as they were");
  attempt(() => running.renewCertificate(), "the old certificate stays");
}

/** Serves until a signal comes or a row could not be written. @returns the exit code */
async function untilTold(running: RunningWitness): Promise<number> {
  let stop = () => {};
  const told = new Promise<null>((resolve) => {
    stop = () => {
      process.off("SIGINT", stop).off("SIGTERM", stop);
      resolve(null);
    };
    process.on("SIGINT", stop).on("SIGTERM", stop);
  });
  const failure = await Promise.race([told, running.failed]);
  if (failure) {
    // Nothing is closed: that would call LMDB, whose memory may be damaged.
    console.error(`cairnlog: ${failure.message}`);
    await new Promise((resolve) => setTimeout(resolve, FAREWELL_MS));
    process.exit(FAILED_EXIT_CODE);
  }
  await running.close();
  return 0;
}
