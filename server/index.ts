/**
 * `cairnlog/server`: the service over HTTP. Several may run in one process; `close` leaves nothing of one running.
 */

import { closeAfter } from "../engine/base/closing.js";
import type { CairnlogError } from "../engine/base/error.js";
import { createPool } from "../engine/crypto/pool/pool.js";
import { selfTest } from "../engine/crypto/selftest.js";
import type { Registry, Served } from "../engine/registry/registry.js";
import { Opened } from "./closing.js";
import { createLimits } from "./front/limits.js";
import { HttpServer } from "./http/app.js";
import { Measures } from "./http/observing/measures.js";
import { livenessRoute } from "./http/observing/probes.js";
import { NO_PAGES, requirePublicUrl } from "./http/origins.js";
import { isRefusedByBrowsers } from "./http/refused-ports.js";
import { DECLARATIONS_BELIEVED, operationRoutes, UWS_DOES_NOT_LOAD } from "./http/routes/service/health.js";
import type { ChosenTransport } from "./http/servers/choose.js";
import type { Services } from "./http/services.js";
import { checkTls, type TlsFiles } from "./http/transport/tls.js";
import type { TransportName } from "./http/transport/transport.js";
import { openMirror } from "./mirror.js";
import { readWriters } from "./opening/writers.js";
import { createLogger, type Logger, type LogSink } from "./process/logger.js";
import { connectionsWithin, WEBHOOK_FILES } from "./process/machine.js";
import { VERSION } from "./process/version.js";
import { type Ground, openWriter, type Service } from "./service.js";
import { completeSettings, type GivenSettings, type Settings } from "./settings/settings.js";
import { transportOf } from "./startcheck.js";

// The operator's own address: probes and metrics on a socket of their own, in the writer's thread, so that they answer
// however busy the front ends are, and that whoever can reach the service cannot reach them.

/** A few collectors and probes; nobody sends bodies. */
const BOUNDS = { maxConnections: 64, maxBodyBytes: 1024, maxPendingBytes: 1024 * 1024, requestTimeoutSeconds: 10 };

interface OperationsParts {
  readonly registry: Pick<Served, "credentials" | "writers" | "log">;
  readonly services: Pick<Services, "readiness" | "metrics" | "tlog" | "replication">;
  readonly chosen: ChosenTransport;
  /** Whether the log is written elsewhere. */
  readonly isReadOnly: boolean;
  readonly logger: Logger;
}

/** Plain HTTP, without rate limits. What it answers is not counted among the requests of the service. */
function openOperations({ registry, services, chosen, isReadOnly, logger }: OperationsParts): HttpServer {
  return new HttpServer({
    transport: chosen.transport,
    routes: [
      livenessRoute(() => services.readiness.checkAlive()),
      ...operationRoutes(registry, services, chosen, isReadOnly),
    ],
    pages: NO_PAGES,
    limits: null,
    trustedProxies: [],
    bounds: BOUNDS,
    tls: null,
    measures: new Measures(),
    logger,
  });
}

// The certificate of a service: whether its files can be used, and until when.

class Certificate {
  readonly files: TlsFiles;
  readonly #logger: Pick<Logger, "info" | "warn">;
  #expires = 0;

  /** @throws CairnlogError `precondition-failed` when the files cannot be used */
  constructor(files: TlsFiles, logger: Pick<Logger, "info" | "warn">) {
    this.files = files;
    this.#logger = logger;
    this.check();
  }

  /** When the certificate that was read last expires, in milliseconds. */
  get expires(): number {
    return this.#expires;
  }

  /** Reads the files again, and logs until when they serve. @throws CairnlogError as the constructor does */
  check(): void {
    const { certificate } = this.files;
    this.#expires = checkTls(this.files);
    const expires = new Date(this.#expires).toISOString();
    if (this.#expires <= Date.now()) this.#logger.warn({ certificate, expires }, "the TLS certificate has expired");
    else this.#logger.info({ certificate, expires }, "TLS");
  }
}

/** The certificate of `settings`; null without TLS. @throws CairnlogError as `Certificate` does */
function openCertificate(settings: Settings, logger: Logger): Certificate | null {
  const { tlsCertificate: certificate, tlsKey: key } = settings;
  return certificate === null || key === null ? null : new Certificate({ certificate, key }, logger);
}

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
    const maxConnections = connectionsWithin(settings.maxConnections, WEBHOOK_FILES, logger);
    const certificate = openCertificate(settings, logger);
    const tls = certificate?.files ?? null;
    const chosen = await transportOf(settings);
    const { transport, whyNotUws } = chosen;
    // Before anything is made: a list that cannot be used is a refusal.
    const listed = readWriters(settings);
    if (whyNotUws !== null) logger.warn({ reason: whyNotUws }, UWS_DOES_NOT_LOAD);
    if (isRefusedByBrowsers(settings.port)) logger.warn({ port: settings.port }, REFUSED_PORT);
    const service = await openService({ settings, listed, pool, logger, opened }, options.follow ?? false);
    const { registry, operator, services, failed } = service;
    service.metrics.watchCertificate(() => certificate?.expires ?? null);
    const limits = createLimits(settings);
    const isOwnLogger = options.logger !== undefined;
    const shown = { registry, operator, services, settings, listed };
    const fronts = service.openFronts({ ...shown, chosen, limits, tls, maxConnections, logger, isOwnLogger });
    opened.addWork("the front ends and their connections", () => fronts.close());
    let metricsUrl: string | null = null;
    if (metricsAddress) {
      const operations = openOperations({ registry, services, chosen, isReadOnly: settings.readOnly, logger });
      opened.addWork("the operator's address", () => operations.close());
      const port = await operations.listen(metricsAddress.host, metricsAddress.port);
      metricsUrl = urlOf("http", metricsAddress.host, port);
    }
    const port = await fronts.listen(host, settings.port);
    service.begin();
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
        entries: registry.log.size,
      },
      "listening",
    );
    // No warning: there may be no such credential, and /readyz says it as long as it is so.
    if (registry.credentials.believesDeclarations && !settings.readOnly) logger.info(DECLARATIONS_BELIEVED);
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
        await fronts.renewCertificate();
        return new Date(certificate.expires).toISOString();
      },
      renewWriters() {
        const renewed = readWriters(settings);
        if (!renewed) return null;
        registry.writers.renew(renewed);
        fronts.renewWriters(renewed);
        return renewed.length;
      },
      close(observe) {
        stopping ??= stop(observe);
        return stopping;
      },
    };
    async function stop(observe?: (part: string) => void): Promise<Stopped> {
      logger.info("stopping");
      const { size } = registry.log;
      const { hanging, errors } = await opened.close(stopMs, observe);
      if (errors.length > 0) throw errors[0];
      const isSettled = service.isSettled();
      if (hanging.length > 0) logger.error({ hanging, isSettled }, "stopped, and left what hangs");
      else logger.info({ entries: size }, "stopped");
      return { hanging, isSettled };
    }
  } catch (error) {
    return closeAfter(error, () => opened.close(stopMs));
  }
}

async function openService(ground: Ground, isFollower: boolean): Promise<Service> {
  const { replication, readOnly } = ground.settings;
  // Loaded only here: a log without replicas needs no PostgreSQL.
  if (replication !== null) return (await import("./node.js")).openNode(ground, replication, isFollower);
  return readOnly ? openMirror(ground) : openWriter(ground);
}

const urlOf = (scheme: string, host: string, port: number): string =>
  `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;
