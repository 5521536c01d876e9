/**
 * `cairnlog/server`: the service over HTTP. Several may run in one process; `close` leaves nothing of one running.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HardwareRoots, openHardwareRoots } from "../engine/crypto/hardware.js";
import { type OperatorKey, openOperatorKey } from "../engine/crypto/operator-key.js";
import { createPool, type Pool } from "../engine/crypto/pool.js";
import { DEFAULT_GRAPH_BOUNDS } from "../engine/registry/graph.js";
import { openRegistry, type Registry } from "../engine/registry/registry.js";
import { Anchoring } from "./anchoring/anchoring.js";
import { HttpServer } from "./http/app.js";
import { Gate } from "./http/gate.js";
import { Limits } from "./http/limits.js";
import { createLogger } from "./http/logger.js";
import { Metrics } from "./http/metrics.js";
import { explorerRoutes } from "./http/routes/explorer.js";
import { DECLARATIONS_BELIEVED } from "./http/routes/health.js";
import { type Access, routeTable } from "./http/routes/index.js";
import { Sessions } from "./http/sessions.js";
import { MirroredLog, mirroredOperator } from "./mirror.js";
import { operatorKeyPath, operatorPublicKeyPath, type Settings } from "./settings.js";
import { Deliverer } from "./webhooks/deliverer.js";
import { httpSender } from "./webhooks/send.js";

export { describeSettings, readSettings, type Settings } from "./settings.js";

/** A running service. */
export interface RunningServer {
  readonly address: { readonly host: string; readonly port: number };
  /** `http://host:port` */
  readonly url: string;
  readonly operatorFingerprint: string;
  readonly dataDir: string;
  readonly registry: Registry;
  /** Stops listening, answers what was accepted, closes every connection and the log. */
  close(): Promise<void>;
}

/**
 * Opens the log of `settings` and serves it; with `readOnly`, a mirror that a monitor keeps.
 * @throws CairnlogError as `openRegistry`, `openOperatorKey` and `openHardwareRoots` do; `precondition-failed` when it
 *   cannot listen
 */
export async function startServer(settings: Settings): Promise<RunningServer> {
  const { dataDir, host, predicateBase, trustedProxies, maxBodyBytes } = settings;
  const logger = createLogger(settings.logLevel);
  const pool = createPool(settings.workers);
  const opened: (() => Promise<void>)[] = [() => pool.close()];
  const close = async () => {
    for (const step of opened.splice(0).reverse()) await step();
  };
  try {
    const { readOnly } = settings;
    const operator = readOnly ? mirroredOperator(dataDir) : ownOperator(settings, pool);
    const hardwareRoots = settings.hardwareRoots ? openHardwareRoots(settings.hardwareRoots) : new HardwareRoots();
    const registry = await openRegistry({
      path: join(dataDir, "log"),
      operator,
      pool,
      readOnly,
      predicateBase,
      hardwareRoots,
      challengeTtlSeconds: settings.challengeTtlSeconds,
      passwordTries: settings.passwordTries,
      endorsementActivationDelaySeconds: settings.endorsementActivationDelaySeconds,
      trust: {
        anchors: settings.trustAnchors,
        baseCapacity: settings.endorsementBaseCapacity,
        minTrust: settings.endorsementMinTrust,
      },
      graphs: {
        bounds: { ...DEFAULT_GRAPH_BOUNDS, seconds: settings.graphTimeoutSeconds },
        cacheSeconds: settings.graphCacheSeconds,
      },
      ...(settings.rateLimits ? {} : { claimReveals: null }),
      requestQuota: settings.rateLimits ? settings.requestQuota : null,
      policyQuota: settings.rateLimits ? settings.policyQuota : null,
      webhookAllowPrivate: settings.webhookAllowPrivate,
    });
    opened.push(() => registry.close());
    const deliverer = new Deliverer({
      webhooks: registry.webhooks,
      send: httpSender({ allowPrivate: settings.webhookAllowPrivate }),
      logger,
    });
    const mirrored = readOnly ? new MirroredLog(registry.log, dataDir, logger) : null;
    if (mirrored) opened.push(async () => mirrored.close());
    else {
      deliverer.start();
      opened.push(() => deliverer.stop());
    }
    const metrics = new Metrics(registry.log);
    metrics.watchDeliveries(deliverer, registry.webhooks.outbox);
    const anchoring = new Anchoring({ log: registry.log, calendars: settings.otsCalendars, logger });
    const access = accessOf(settings, registry, operator);
    const logName = settings.logName ?? undefined;
    const routes = [
      ...routeTable(registry, operator, metrics, access, anchoring, logName, mirrored),
      ...(settings.explorer ? explorerRoutes() : []),
    ];
    const http = new HttpServer({ routes, limits: limitsOf(settings), trustedProxies, maxBodyBytes, metrics, logger });
    const port = await http.listen(host, settings.port);
    opened.push(() => http.close());
    if (!readOnly) anchoring.start(settings.otsUpgradeIntervalSeconds);
    // Before the connections: who waits for a calendar is told at once.
    opened.push(() => anchoring.stop());
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
    logger.info({ url, operator: operator.fingerprint, dataDir, entries: registry.log.size }, "listening");
    if (hardwareRoots.isEmpty && !readOnly) logger.warn(DECLARATIONS_BELIEVED);
    return { address: { host, port }, url, operatorFingerprint: operator.fingerprint, dataDir, registry, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The operator key of a log that is written here, made on first use. */
function ownOperator(settings: Settings, pool: Pool): OperatorKey {
  mkdirSync(settings.dataDir, { recursive: true });
  const operator = openOperatorKey(operatorKeyPath(settings), pool);
  // For people on this machine to pin; the key itself is what the log's own heads are checked with.
  writeFileSync(operatorPublicKeyPath(settings.dataDir), operator.public.pem);
  return operator;
}

function accessOf({ sessionTtlSeconds: ttlSeconds }: Settings, registry: Registry, operator: OperatorKey): Access {
  const { challenges, keys } = registry;
  const sessions = new Sessions({ operator, keys, ttlSeconds });
  return { sessions, gate: new Gate({ challenges, sessions, keys, operator }) };
}

function limitsOf(settings: Settings): Limits | null {
  if (!settings.rateLimits) return null;
  return new Limits({
    general: settings.rateLimitGeneral,
    "key-registration": settings.rateLimitKeyRegistration,
    attestation: settings.rateLimitAttestation,
    "endorsement-offer": settings.rateLimitEndorsementOffer,
    "claim-reveal": settings.rateLimitClaimReveal,
    anchoring: settings.rateLimitAnchoring,
  });
}
