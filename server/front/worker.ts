/**
 * The thread of a front end. It opens the log to follow the writer, serves, and ends when it is told to.
 *
 * A thread that ends with an open uWebSockets.js app takes the process with it (libuv aborts, because its handles are open).
 * So whatever nobody caught closes the app first; then the thread ends, and the writer's thread makes another.
 */
import { type MessagePort, workerData } from "node:worker_threads";
import { closeAll } from "../../engine/base/closing.js";
import { importPublicKey } from "../../engine/crypto/keys/spki.js";
import type { OperatorKey } from "../../engine/crypto/signer/operator-key.js";
import { openLogFollower } from "../../engine/log/log.js";
import { projection } from "../../engine/registry/events/projection.js";
import { servedRegistry } from "../../engine/registry/registry.js";
import type { AllowedSigner } from "../../engine/verify/index.js";
import { Delay } from "../http/observing/measures.js";
import { checkAlive } from "../http/observing/readiness.js";
import { chooseTransport } from "../http/servers/choose.js";
import type { Services } from "../http/services.js";
import type { TlsFiles } from "../http/transport/tls.js";
import { openingOf } from "../opening/opening.js";
import { createLogger, type LineLevel, sinkOf } from "../process/logger.js";
import { stderrLines } from "../process/stderr.js";
import { roleIn } from "../replication/role.js";
import type { Settings } from "../settings/settings.js";
import { Front } from "./front.js";
import { sharedLimits } from "./limits.js";
import { faultOf } from "./messages.js";
import { SharedState } from "./shared-state.js";
import { type FrontOrder, WriterPort } from "./writerport.js";

/** What a front end is told at its start. */
export interface FrontData {
  readonly settings: Settings;
  /** From 0 on. */
  readonly number: number;
  readonly count: number;
  /** PEM of the operator's public key. */
  readonly operatorKey: string;
  readonly metricsType: string;
  /** The role of a node of a replicated log; null for a service that is alone. */
  readonly role: SharedArrayBuffer | null;
  /** The key of the checkpoints at `/tlog/`. */
  readonly vkey: string | null;
  /** Of the limits that all front ends count against; null when nothing is limited. */
  readonly limits: SharedArrayBuffer | null;
  readonly tls: TlsFiles | null;
  readonly maxConnections: number;
  /** The list of those who may write, as `readWriters` gives it. */
  readonly listed: readonly AllowedSigner[] | null;
  /** Whether the lines of its log go to the writer's thread, which has a logger of the embedding program. */
  readonly forwardsLog: boolean;
  /** Counts lines of the log that could not be written. */
  readonly droppedLines: SharedArrayBuffer;
  readonly sharedState: SharedArrayBuffer;
  /** Messages of the feed that were sent before. */
  readonly fed: number;
  /** To the writer's thread. */
  readonly port: MessagePort;
}

/** Milliseconds from one sign of life to the next. */
const BEAT_MS = 500;

const data = workerData as FrontData;
const sharedState = new SharedState(data.sharedState);
const writer = new WriterPort(data.port, sharedState, data.fed);
const { calls } = writer;
const { settings } = data;
stderrLines(data.droppedLines);
const logger = createLogger(settings.logLevel, data.forwardsLog ? sinkOf(forward) : undefined);

/** Details are plain data. If one is an error, its text and stack arrive, and its class does not. */
function forward(level: LineLevel, details: object, sentence: string): void {
  writer.send({ kind: "log", level, details, sentence });
}

function operatorOf(): OperatorKey {
  const key = importPublicKey(data.operatorKey);
  return { fingerprint: key.fingerprint, public: key, sign: calls.operator.sign };
}

/** The bytes that one of `count` front ends may hold for its clients: at least one body, if all together may hold that. */
const shareOf = ({ maxBodyBytes, maxPendingBytes }: Settings, count: number): number =>
  Math.max(Math.min(maxBodyBytes, maxPendingBytes), Math.floor(maxPendingBytes / count));

/** Opens the log and everything over it. @throws CairnlogError as `openLogFollower` and `chooseTransport` do */
async function open() {
  const operator = operatorOf();
  const opening = openingOf(settings, operator, data.listed);
  const log = openLogFollower({
    path: opening.path,
    projection,
    operatorKey: operator.public.pem,
    writer: {
      enqueue: (command, input, resolve, reject, payer) => writer.enqueue(command, input, resolve, reject, payer),
      signHead: calls.log.signHead,
      verify: calls.verification.report,
    },
  });
  writer.follow((message) => log.follow(message));
  const registry = servedRegistry(log, opening, calls);
  const services: Services = {
    ...calls,
    readiness: { ...calls.readiness, checkAlive: () => checkAlive(log) },
    metrics: { ...calls.metrics, contentType: data.metricsType },
    tlog: { ...calls.tlog, vkey: data.vkey },
    replication: data.role && { ...calls.replication, role: roleIn(data.role) },
  };
  const front = new Front({
    settings,
    registry,
    operator,
    services,
    chosen: await chooseTransport(settings.transport),
    limits: sharedLimits(settings, data.limits),
    tls: data.tls,
    maxConnections: data.maxConnections,
    maxPendingBytes: shareOf(settings, data.count),
    connectionCount: { addConnections: (change) => sharedState.addConnections(data.number, change) },
    catchUp: () => writer.catchUp(),
    logger,
  });
  return { front, registry };
}

const delay = new Delay();
const beat = setInterval(() => sharedState.beat(data.number), BEAT_MS);

let opened: Awaited<ReturnType<typeof open>> | undefined;
/** It may be told to close before it is open. */
const opening = open();

/** Ends the thread, in any state. */
function fail(error: unknown): void {
  opened?.front.abandon();
  sharedState.end(data.number);
  // What keeps it from starting: as an `error` of the thread, a coded error would arrive without its class.
  writer.send({ kind: "failed", fault: faultOf(error) });
  // Thrown again where nobody catches it any more, so that the thread ends and the writer's thread gets an `error`.
  process.removeAllListeners("uncaughtException").removeAllListeners("unhandledRejection");
  throw error;
}
process.on("uncaughtException", fail).on("unhandledRejection", fail);

/** Nothing keeps the thread alive after this. */
function end(): void {
  clearInterval(beat);
  delay.close();
  sharedState.end(data.number);
  writer.close();
}

async function obey(order: FrontOrder): Promise<void> {
  if (order.kind === "abandon") {
    opened?.front.abandon();
    end();
    return;
  }
  if (order.kind === "writers") {
    // At once, where requests may be waiting for it.
    const { registry } = opened ?? (await opening);
    registry.writers.renew(order.listed);
    return;
  }
  const { front, registry } = await opening;
  if (order.kind === "report") {
    writer.send({ kind: "report", report: { figures: front.figures, lateness: delay.take() } });
  } else if (order.kind === "listen") {
    const { host, port, isShared } = order;
    writer.send({ kind: "listening", port: await front.listen(host, port, isShared) });
  } else if (order.kind === "renew") {
    front.renewCertificate();
    writer.send({ kind: "renewed" });
  } else {
    try {
      await closeAll(
        () => front.close(),
        () => registry.close(),
      );
    } catch (error) {
      logger.error({ err: error }, "a front end failed while it closed");
    }
    end();
  }
}

writer.obey((order) => {
  obey(order).catch((error: unknown) => writer.send({ kind: "failed", fault: faultOf(error) }));
});
opened = await opening;
writer.send({ kind: "opened" });
