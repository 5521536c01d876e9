/**
 * `cairnlog/server`: the service over HTTP. Several may run in one process; `close` leaves nothing of one running.
 */
import { accessSync, constants, writeFileSync } from "node:fs";
import { createPool, type Pool } from "../engine/crypto/pool/pool.js";
import { CairnlogError } from "../engine/error.js";
import { PublishedHead } from "../engine/log/published.js";
import { Checkpoints, defaultLogName } from "../engine/log/tree/checkpoints.js";
import { openRegistry, openRegistryReader, type Registry, type RegistryOptions } from "../engine/registry/registry.js";
import { closeToOthers, PRIVATE_FILE } from "../engine/store/private.js";
import { freeBytes } from "../engine/store/room.js";
import { Anchoring } from "./anchoring/anchoring.js";
import { checkAfterFailure, recordFailure } from "./failure.js";
import { type Fronts, openFronts } from "./front/fronts.js";
import { createLimits } from "./front/limits.js";
import { createLogger, type Logger } from "./http/observing/logger.js";
import { Metrics } from "./http/observing/metrics.js";
import { Readiness } from "./http/observing/readiness.js";
import { DECLARATIONS_BELIEVED, UWS_DOES_NOT_LOAD } from "./http/routes/service/health.js";
import type { Services } from "./http/services.js";
import { chooseTransport } from "./http/transport/choose.js";
import { checkTls, type TlsFiles } from "./http/transport/tls.js";
import type { TransportName } from "./http/transport/transport.js";
import { openFileLimit, possibleConnections } from "./machine.js";
import { MirroredLog, mirroredOperator } from "./mirror.js";
import { openingOf } from "./opening.js";
import { type OpenedOperator, openOperator } from "./operator.js";
import { failurePath, operatorPublicKeyPath, publishedHeadPath, type Settings } from "./settings.js";
import { Deliverer } from "./webhooks/deliverer.js";
import { httpSender } from "./webhooks/send.js";

export { describeSettings, readSettings, type Settings } from "./settings.js";

/** A running service. */
export interface RunningServer {
  readonly address: { readonly host: string; readonly port: number };
  /** `http://host:port`; `https:` with a certificate. */
  readonly url: string;
  /** The HTTP library that serves. */
  readonly transport: TransportName;
  readonly operatorFingerprint: string;
  readonly dataDir: string;
  readonly registry: Registry;
  /**
   * Resolves when a write to the log has failed in such a way that this process cannot use the log any more. Then every
   * request is answered with 503, and the process should end within a second, without `close`.
   */
  readonly failed: Promise<CairnlogError>;
  /** Stops listening, answers what was accepted, closes every connection and the log. */
  close(): Promise<void>;
}

/**
 * Opens the log of `settings` and serves it; with `readOnly`, a mirror that a monitor keeps.
 * @throws CairnlogError as `openRegistry`, `openOperator` and `openHardwareRoots` do; `precondition-failed` when it
 *   cannot listen, or when the HTTP library of `settings` does not load
 */
export async function startServer(settings: Settings): Promise<RunningServer> {
  const { dataDir, host } = settings;
  const logger = createLogger(settings.logLevel);
  const pool = createPool(settings.workers);
  const opened: (() => Promise<void>)[] = [() => pool.close()];
  const close = async () => {
    for (const step of opened.splice(0).reverse()) await step();
  };
  try {
    const maxConnections = connectionsOf(settings, logger);
    const tls = tlsOf(settings, logger);
    const chosen = await chooseTransport(settings.transport);
    const { transport, whyNotUws } = chosen;
    if (whyNotUws !== null) logger.warn({ reason: whyNotUws }, UWS_DOES_NOT_LOAD);
    const { readOnly } = settings;
    const own = readOnly ? null : await ownOperator(settings, pool, logger);
    const operator = own?.operator ?? mirroredOperator(dataDir);
    const signer = own?.signer;
    if (signer) {
      opened.push(() => signer.close());
      signer.observe((trouble) => {
        if (trouble) logger.error({ code: trouble.code }, trouble.message);
        else logger.info({ signer: settings.signer }, "the signer is connected again");
      });
    }
    const opening: RegistryOptions = { ...openingOf(settings, operator), pool };
    const mirror = readOnly ? await openRegistryReader(opening) : null;
    const written = mirror ? null : await openRegistry(opening);
    const registry: Registry = (mirror ?? written)!;
    opened.push(() => registry.close());
    if (!readOnly) await checkAfterFailure(failurePath(dataDir), registry.log, logger);
    const failed = new Promise<CairnlogError>((resolve) => {
      registry.log.observeFailure((failure) => {
        recordFailure(failurePath(dataDir), failure, logger);
        resolve(failure);
      });
    });
    if (!readOnly) {
      const published = new PublishedHead(publishedHeadPath(dataDir), registry.log);
      published.check();
      published.start();
      opened.push(() => published.stop());
    }
    const deliverer = new Deliverer({
      webhooks: registry.webhooks,
      send: httpSender({ allowPrivate: settings.webhookAllowPrivate }),
      logger,
    });
    const mirrored = mirror && new MirroredLog(mirror.log, dataDir, logger);
    if (mirrored) opened.push(async () => mirrored.close());
    else {
      deliverer.start();
      opened.push(() => deliverer.stop());
    }
    const metrics = new Metrics(registry.log);
    opened.push(async () => metrics.close());
    metrics.watchDeliveries(deliverer, registry.webhooks);
    const anchoring = new Anchoring({ log: registry.log, calendars: settings.otsCalendars, logger });
    const { log } = registry;
    const logName = settings.logName ?? defaultLogName(log.operators.first.fingerprint);
    let fronts: Fronts | null = null;
    const readiness = new Readiness({
      log,
      operator,
      stuck: () => fronts?.stuck ?? [],
      freeBytes: () => freeBytes(dataDir),
      minFreeBytes: settings.minFreeBytes,
      isReadOnly: readOnly,
    });
    const checkpoints = mirrored ?? new Checkpoints(log, operator, logName);
    const services: Services = { readiness, metrics, anchoring, checkpoints };
    metrics.watchAnchoring(anchoring);
    if (signer) metrics.watchSigner(signer);
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
      writer: written?.log ?? null,
      operator,
      services,
      chosen,
      limits,
      tls,
      maxConnections,
      logger,
    };
    const serving = openFronts(parts);
    fronts = serving;
    metrics.watchFronts(() => serving.reports());
    opened.push(() => serving.close());
    const port = await serving.listen(host, settings.port);
    if (!readOnly) anchoring.start(settings.otsUpgradeIntervalSeconds);
    // Before the connections: who waits for a calendar is told at once.
    opened.push(() => anchoring.stop());
    const url = `${tls ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`;
    const { fingerprint } = operator;
    logger.info(
      { url, transport: transport.name, operator: fingerprint, dataDir, entries: registry.log.size },
      "listening",
    );
    if (opening.hardwareRoots?.isEmpty && !readOnly) logger.warn(DECLARATIONS_BELIEVED);
    return {
      address: { host, port },
      url,
      transport: transport.name,
      operatorFingerprint: fingerprint,
      dataDir,
      registry,
      failed,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The operator key of a log that is written here. */
async function ownOperator(settings: Settings, pool: Pool, logger: Logger): Promise<OpenedOperator> {
  openDataDir(settings.dataDir);
  const opened = await openOperator(settings, logger, pool);
  // For people on this machine to pin; the key itself is what the log's own heads are checked with.
  writeFileSync(operatorPublicKeyPath(settings.dataDir), opened.operator.public.pem, { mode: PRIVATE_FILE });
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
  if (possible === 0) {
    const reason = `This process may open ${limit} files, which is too few. Allow it 1024 or more (ulimit -n, LimitNOFILE).`;
    throw new CairnlogError("precondition-failed", reason);
  }
  if (possible < maxConnections)
    logger.warn(
      { maxConnections: possible, openFiles: limit },
      "fewer connections than set: too few files may be open",
    );
  return possible;
}

function tlsOf({ tlsCertificate: certificate, tlsKey: key }: Settings, logger: Logger): TlsFiles | null {
  if (certificate === null || key === null) return null;
  const expires = new Date(checkTls({ certificate, key })).toISOString();
  if (expires <= new Date().toISOString()) logger.warn({ certificate, expires }, "the TLS certificate has expired");
  else logger.info({ certificate, expires }, "TLS");
  return { certificate, key };
}
