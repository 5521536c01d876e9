/**
 * `cairnlog/server`: the service over HTTP. Several may run in one process; `close` leaves nothing of one running.
 */
import { accessSync, constants } from "node:fs";
import { CairnlogError } from "../engine/base/error.js";
import { createPool, type Pool } from "../engine/crypto/pool/pool.js";
import { selfTest } from "../engine/crypto/selftest.js";
import { Checkpoints, defaultLogName } from "../engine/log/tlog/checkpoints.js";
import { PublishedHead } from "../engine/log/tlog/published.js";
import { openRegistry, openRegistryReader, type Registry, type RegistryOptions } from "../engine/registry/registry.js";
import { closeToOthers, writePrivateFile } from "../engine/store/lmdb/private.js";
import { freeBytes } from "../engine/store/lmdb/room.js";
import { openCertificate } from "./certificate.js";
import { Opened } from "./closing.js";
import { Duties, watchDuties } from "./duties.js";
import { checkAfterFailure, recordFailure } from "./failure.js";
import { type Fronts, openFronts } from "./front/fronts.js";
import { createLimits } from "./front/limits.js";
import { openOperations } from "./front/operations.js";
import { Metrics } from "./http/observing/metrics.js";
import { Readiness } from "./http/observing/readiness.js";
import { requirePublicUrl } from "./http/origins.js";
import { isRefusedByBrowsers } from "./http/ports.js";
import { DECLARATIONS_BELIEVED, UWS_DOES_NOT_LOAD } from "./http/routes/service/health.js";
import type { Services } from "./http/services.js";
import type { TransportName } from "./http/transport/transport.js";
import { MirroredLog, mirroredOperator, obeyWithholding, tellErasing } from "./mirror.js";
import { joinNode, NO_CHECKPOINTS, ReplicatedNode } from "./node.js";
import { openingOf } from "./opening/opening.js";
import { type OpenedOperator, openOperator } from "./opening/operator.js";
import { readWriters } from "./opening/writers.js";
import { createLogger, type Logger, type LogSink } from "./process/logger.js";
import { openFileLimit, possibleConnections, tooFewFiles } from "./process/machine.js";
import { VERSION } from "./process/version.js";
import {
  completeSettings,
  failurePath,
  type GivenSettings,
  operatorPublicKeyPath,
  publishedHeadPath,
  type Settings,
} from "./settings/settings.js";
import { transportOf } from "./startcheck.js";
import { logNameOf } from "./tlog/tlog.js";
import { SharedVerification } from "./verification.js";

export type { LogSink, WriteLine } from "./process/logger.js";
export { describeSettings, type GivenSettings, readSettings, type Settings } from "./settings/settings.js";
export type { SocketAddress } from "./settings/settingvalues.js";

export interface ServerOptions {
  /**
   * Takes the lines of the service's log that `logLevel` lets through; a logger of pino fits. Without one they go to stderr
   * as JSON.
   */
  readonly logger?: LogSink | undefined;
  /** A node of a replicated log that never writes it; false if absent. */
  readonly follow?: boolean | undefined;
}

/** A running service. */
export interface RunningServer {
  readonly address: { readonly host: string; readonly port: number };
  /** `http://host:port`; `https:` with a certificate. */
  readonly url: string;
  /** `http://host:port` of `/metrics` and `/readyz`, if they have an address of their own; null otherwise. */
  readonly metricsUrl: string | null;
  /** The HTTP library that serves. */
  readonly transport: TransportName;
  readonly operatorFingerprint: string;
  readonly dataDir: string;
  readonly registry: Registry;
  /** The service's own log. */
  readonly logger: Logger;
  /**
   * Resolves when a write to the log has failed in such a way that this process cannot use the log any more. Then every
   * request is answered with 503, and the process should end within a second, without `close`.
   */
  readonly failed: Promise<CairnlogError>;
  /**
   * Reads certificate and key again. New connections get the new certificate; open ones go on with the old one.
   * @returns when the certificate expires, ISO 8601; null without TLS, where nothing happens
   * @throws CairnlogError `precondition-failed` when the files cannot be used; then the old certificate stays
   */
  renewCertificate(): Promise<string | null>;
  /**
   * Reads the list of those who may write again, for requests to come.
   * @returns how many keys it lists; null where `writers` names no list, and nothing happens
   * @throws CairnlogError `precondition-failed`, `invalid-input` when it cannot be used; then the old list stays
   */
  renewWriters(): number | null;
  /**
   * Stops listening, answers what was accepted, closes every connection and the log. It resolves within
   * `stopTimeoutSeconds`. What hangs then is left as it is, and named; the log is left open if it may still be used. Rejects
   * with what a part throws, after the others were closed.
   * @param observe called with the name of each part before it is closed
   */
  close(observe?: (part: string) => void): Promise<Stopped>;
}

/** How a service has stopped. */
export interface Stopped {
  /** Names of the parts that did not end in time; empty after an orderly stop. */
  readonly hanging: readonly string[];
  /** Whether every command that the log had accepted is decided: on disk, or refused. */
  readonly isSettled: boolean;
}

/** The share of the time for a stop in which parts are closed. The rest is for the exit of the process. */
const CLOSING_SHARE = 0.9;
const REFUSED_PORT = "browsers, and fetch in programs, send nothing to this port: choose another one for them";
const DUTIES = "anchoring, webhooks and witnesses";

/**
 * Opens the log of `settings` and serves it; with `readOnly`, a mirror that a monitor keeps, or with `replication` too, a
 * replicated log without its private rows. Settings that are left out have
 * their defaults: `startServer({ port: 0, dataDir: "./log" })`. `readSettings(process.env)` reads them as the command does.
 * @throws CairnlogError `invalid-input` for a setting that is not valid, or missing; as `openRegistry`, `openOperator` and
 *   `openHardwareRoots` do; `precondition-failed` when it cannot listen, when the HTTP library of `settings` does not load or is not
 *   known (`loadChecked`), or when the self-test of the verifiers fails
 */
export async function startServer(given: GivenSettings, options: ServerOptions = {}): Promise<RunningServer> {
  const settings = completeSettings(given);
  requirePublicUrl(settings);
  // Before anything is opened. It takes a few milliseconds.
  selfTest();
  const { dataDir, host, metricsAddress } = settings;
  const logger = createLogger(settings.logLevel, options.logger);
  const pool = createPool(settings.workers);
  const opened = new Opened();
  opened.addFoundation("the worker pool", () => pool.close());
  const stopMs = settings.stopTimeoutSeconds * 1000 * CLOSING_SHARE;
  try {
    const maxConnections = connectionsOf(settings, logger);
    const certificate = openCertificate(settings, logger);
    const tls = certificate?.files ?? null;
    const chosen = await transportOf(settings);
    const { transport, whyNotUws } = chosen;
    // Before anything is made: a list that cannot be used is a refusal.
    const listed = settings.readOnly ? null : readWriters(settings);
    if (whyNotUws !== null) logger.warn({ reason: whyNotUws }, UWS_DOES_NOT_LOAD);
    if (isRefusedByBrowsers(settings.port)) logger.warn({ port: settings.port }, REFUSED_PORT);
    const { readOnly } = settings;
    const isMirror = readOnly && settings.replication === null;
    if (!isMirror) openDataDir(dataDir);
    const own = readOnly ? null : await ownOperator(settings, pool, logger);
    const operator = own?.operator ?? mirroredOperator(dataDir);
    const signer = own?.signer;
    if (signer) {
      opened.addFoundation("the signer", () => signer.close());
      signer.observe((trouble) => {
        if (trouble) logger.error({ code: trouble.code }, trouble.message);
        else logger.info({ signer: settings.signer }, "the signer is connected again");
      });
    }
    const logName = settings.logName ?? defaultLogName(operator.fingerprint);
    const joined = await joinNode(settings, operator, logName, logger);
    if (joined) opened.addFoundation("the journal", () => joined.journal.close());
    const opening: RegistryOptions = {
      ...openingOf(settings, operator, listed),
      pool,
      ...(joined && { replicated: joined }),
      // The operator's own nodes obey in any case.
      keepsWithheld: readOnly && !settings.obeyWithholding,
      onErasing: tellErasing(logger),
    };
    if (isMirror && settings.obeyWithholding) await obeyWithholding(opening.path, logger);
    const mirror = isMirror ? await openRegistryReader(opening) : null;
    const written = mirror ? null : await openRegistry(opening);
    const registry: Registry = (mirror ?? written)!;
    const { log } = registry;
    opened.addFoundation("the log", () => registry.close());
    if (!isMirror) await checkAfterFailure(failurePath(dataDir), log, logger);
    const failed = new Promise<CairnlogError>((resolve) => {
      log.observeFailure((failure) => {
        recordFailure(failurePath(dataDir), failure, logger);
        resolve(failure);
      });
    });
    const published = isMirror ? null : new PublishedHead(publishedHeadPath(dataDir), log);
    // A node of a replicated log may be behind what it has shown, until it leads.
    if (!joined) published?.check();
    if (published) {
      published.start();
      opened.addFoundation("the newest head shown", () => published.stop());
    }
    const mirrored = mirror && new MirroredLog(mirror.log, dataDir, logger);
    if (mirrored) opened.addFoundation("the mirror", () => mirrored.close());
    const checkpointName = logNameOf(settings, log);
    const isHeld = joined ? { isHeld: () => joined.journal.hasLease } : {};
    const duties = new Duties({
      settings,
      registry,
      operator,
      logName: checkpointName,
      logger,
      refuted: (error) => written?.log.refute(error),
      ...isHeld,
    });
    const isFollower = options.follow ?? false;
    const node =
      joined && published && written
        ? new ReplicatedNode({ joined, log: written.log, duties, published, settings, isFollower, logger })
        : null;
    if (!mirrored && !node) {
      opened.addWork(DUTIES, () => duties.close());
      await duties.begin();
    }
    const metrics = new Metrics(log);
    opened.addFoundation("the metrics", () => metrics.close());
    let fronts: Fronts | null = null;
    const readiness = new Readiness({
      log,
      operator,
      stuck: () => fronts?.stuck ?? [],
      freeBytes: () => freeBytes(dataDir),
      minFreeBytes: settings.minFreeBytes,
      oldestReader: () => log.diskUsage.oldestReader,
      isReadOnly: isMirror,
      writer: readOnly ? undefined : written?.log,
      node: node ?? undefined,
      warnings: () => duties.tlog?.warnings ?? [],
    });
    const services: Services = {
      readiness,
      metrics,
      anchoring: { anchor: () => duties.anchoring.anchor(), status: () => duties.anchoring.status() },
      verification: new SharedVerification(log),
      checkpoints: mirrored ?? (readOnly ? NO_CHECKPOINTS : new Checkpoints(log, operator, checkpointName)),
      tlog: (mirrored?.tlog ?? node?.tlog ?? duties.tlog)!,
      replication: node && joined && { role: joined.standing, status: () => node.status },
    };
    watchDuties(metrics, duties, { publishes: !mirrored, isCosigned: settings.witnesses !== null });
    if (node) metrics.watchReplication(node);
    metrics.watchCertificate(() => certificate?.expires ?? null);
    if (signer) metrics.watchSigner(signer);
    if (written && !readOnly) {
      metrics.watchClock(written.log);
      written.log.observeClock((refusal) => {
        if (refusal) logger.error({ code: refusal.code }, refusal.message);
        else logger.info("the clock is believed again");
      });
    }
    metrics.watchDisk({
      freeBytes: () => freeBytes(dataDir),
      get usage() {
        return log.diskUsage;
      },
    });
    const limits = createLimits(settings);
    const parts = {
      settings,
      registry,
      // Front ends of their own are for those that write.
      writer: readOnly ? null : (written?.log ?? null),
      operator,
      services,
      role: joined?.standing.buffer ?? null,
      chosen,
      limits,
      tls,
      maxConnections,
      listed,
      logger,
      isOwnLogger: options.logger !== undefined,
    };
    const serving = openFronts(parts);
    fronts = serving;
    metrics.watchFronts(() => serving.reports());
    opened.addWork("the front ends and their connections", () => serving.close());
    let metricsUrl: string | null = null;
    if (metricsAddress) {
      const operations = openOperations({ registry, services, chosen, isReadOnly: readOnly, logger });
      opened.addWork("the operator's address", () => operations.close());
      const port = await operations.listen(metricsAddress.host, metricsAddress.port);
      metricsUrl = urlOf("http", metricsAddress.host, port);
    }
    const port = await serving.listen(host, settings.port);
    // Before the connections: who waits for a calendar is told at once.
    opened.addWork(DUTIES, () => duties.close());
    if (node) {
      opened.addWork("replication", () => node.stop());
      node.start();
    }
    const url = urlOf(tls ? "https" : "http", host, port);
    const { fingerprint } = operator;
    logger.info(
      {
        version: VERSION,
        url,
        ...(metricsUrl === null ? {} : { metricsUrl }),
        transport: transport.name,
        operator: fingerprint,
        dataDir,
        entries: log.size,
      },
      "listening",
    );
    // No warning: there may be no such credential, and /readyz says it as long as it is so.
    if (opening.hardwareRoots?.isEmpty && !readOnly) logger.info(DECLARATIONS_BELIEVED);
    let stopping: Promise<Stopped> | null = null;
    return {
      address: { host, port },
      url,
      metricsUrl,
      transport: transport.name,
      operatorFingerprint: fingerprint,
      dataDir,
      registry,
      logger,
      failed,
      async renewCertificate() {
        if (!certificate) return null;
        certificate.check();
        await serving.renewCertificate();
        return new Date(certificate.expires).toISOString();
      },
      renewWriters() {
        const renewed = readOnly ? null : readWriters(settings);
        if (!renewed) return null;
        registry.writers.renew(renewed);
        serving.renewWriters(renewed);
        return renewed.length;
      },
      close(observe) {
        stopping ??= stop(observe);
        return stopping;
      },
    };
    async function stop(observe?: (part: string) => void): Promise<Stopped> {
      logger.info("stopping");
      const { size } = log;
      const { hanging, errors } = await opened.close(stopMs, observe);
      if (errors.length > 0) throw errors[0];
      const isSettled = written?.log.isSettled ?? true;
      if (hanging.length > 0) logger.error({ hanging, isSettled }, "stopped, and left what hangs");
      else logger.info({ entries: size }, "stopped");
      return { hanging, isSettled };
    }
  } catch (error) {
    await opened.close(stopMs);
    throw error;
  }
}

/** The operator key of a log that is written here. */
async function ownOperator(settings: Settings, pool: Pool, logger: Logger): Promise<OpenedOperator> {
  const opened = await openOperator(settings, logger, pool);
  // For people on this machine to pin; the key itself is what the log's own heads are checked with.
  writePrivateFile(operatorPublicKeyPath(settings.dataDir), opened.operator.public.pem);
  return opened;
}

/** @throws CairnlogError `storage-failed` */
function openDataDir(path: string): void {
  try {
    closeToOthers(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CairnlogError("storage-failed", `The data directory ${path} cannot be written (${code}).`, { cause });
  }
}

/** How many connections are taken. @throws CairnlogError `precondition-failed` */
function connectionsOf({ maxConnections }: Settings, logger: Logger): number {
  const possible = possibleConnections(maxConnections);
  const limit = openFileLimit();
  if (possible === 0) throw tooFewFiles(limit);
  if (possible < maxConnections)
    logger.warn(
      { maxConnections: possible, openFiles: limit },
      "fewer connections than set: too few files may be open",
    );
  return possible;
}

const urlOf = (scheme: string, host: string, port: number): string =>
  `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
