/**
 * A service before anybody can reach it: its log, and all that works over it. Three openers make one: `openWriter` for a log
 * that is written here alone, `openNode` for one that several nodes keep, `openMirror` for one that is written elsewhere.
 */
import { accessSync, constants } from "node:fs";
import { CairnlogError } from "../engine/base/error.js";
import type { Pool } from "../engine/crypto/pool/pool.js";
import type { OperatorKey } from "../engine/crypto/signer/operator-key.js";
import type { Erasure } from "../engine/log/history/erase.js";
import { Checkpoints } from "../engine/log/tlog/checkpoints.js";
import { PublishedHead } from "../engine/log/tlog/published.js";
import type { LogWriter } from "../engine/log/writer.js";
import { openRegistry, type Registry, type RegistryOptions } from "../engine/registry/registry.js";
import { freeBytes } from "../engine/store/lmdb/health.js";
import { closeToOthers, keepPrivateFile } from "../engine/store/lmdb/private.js";
import type { Opened } from "./closing.js";
import { checkAfterFailure, failureOf } from "./failure.js";
import { type Fronts, type FrontsParts, openFronts } from "./front/fronts.js";
import { Metrics } from "./http/observing/metrics.js";
import { Readiness, type ReadinessParts } from "./http/observing/readiness.js";
import type { Services } from "./http/services.js";
import { LeaderTasks, watchLeaderTasks } from "./leader-tasks.js";
import { openingOf } from "./opening/opening.js";
import { type OpenedOperator, openOperator } from "./opening/operator.js";
import type { Logger } from "./process/logger.js";
import { failurePath, operatorPublicKeyPath, publishedHeadPath, type Settings } from "./settings/settings.js";
import { logNameOf } from "./tlog/tlog.js";
import { SharedVerification } from "./verification.js";

/** What every opener is given. */
export interface Ground {
  readonly settings: Settings;
  /** The list of those who may write, as `readWriters` gives it. */
  readonly listed: FrontsParts["listed"];
  readonly pool: Pool;
  readonly logger: Logger;
  /** Takes all that is opened. */
  readonly opened: Opened;
}

export interface Service {
  readonly registry: Registry;
  readonly operator: OperatorKey;
  readonly services: Services;
  readonly metrics: Metrics;
  /** Resolves when a write has failed in such a way that this process cannot use the log any more. */
  readonly failed: Promise<CairnlogError>;
  openFronts(parts: FrontsParts): Fronts;
  /** To be called when they listen. */
  begin(): void;
  /** Whether every accepted command is decided: on disk, or refused. */
  isSettled(): boolean;
}

type Same = Pick<Service, "registry" | "operator" | "failed" | "openFronts">;

/** In what services differ. */
interface ServiceParts extends Same, Pick<Services, "checkpoints" | "tlog" | "replication"> {
  /** Null where another process writes the log. */
  readonly writer: LogWriter | null;
  readonly leaderTasks: LeaderTasks;
  readonly readiness: Pick<ReadinessParts, "isReadOnly" | "writer" | "node">;
  /** Shows what not every service has. */
  watch?(metrics: Metrics): void;
  /** Called when the front ends listen. */
  begin?(): void;
}

const LEADER_TASKS = "anchoring, webhooks and witnesses";

/** The service over an open log. */
export function serviceOf({ settings, opened }: Pick<Ground, "settings" | "opened">, parts: ServiceParts): Service {
  const { registry, writer, operator, leaderTasks, readiness, checkpoints, tlog, replication } = parts;
  const { log } = registry;
  const metrics = new Metrics(log, writer);
  opened.addFoundation("the metrics", () => metrics.close());
  let serving: Pick<Fronts, "stuck"> = { stuck: [] };
  const free = () => freeBytes(settings.dataDir);
  const services: Services = {
    readiness: new Readiness({
      ...readiness,
      log,
      operator,
      stuck: () => serving.stuck,
      freeBytes: free,
      minFreeBytes: settings.minFreeBytes,
      oldestReader: () => log.diskUsage.oldestReader,
      warnings: () => leaderTasks.tlog?.warnings ?? [],
    }),
    metrics,
    anchoring: { anchor: () => leaderTasks.anchoring.anchor(), status: () => leaderTasks.anchoring.status() },
    verification: new SharedVerification(log),
    checkpoints,
    tlog,
    replication,
  };
  watchLeaderTasks(metrics, leaderTasks, { publishes: !readiness.isReadOnly, isCosigned: settings.witnesses !== null });
  parts.watch?.(metrics);
  metrics.watchDisk(free, () => log.diskUsage);
  return {
    ...parts,
    services,
    metrics,
    isSettled: () => writer?.isSettled ?? true,
    openFronts(given) {
      const fronts = parts.openFronts(given);
      serving = fronts;
      metrics.watchFronts(() => fronts.reports());
      return fronts;
    },
    begin() {
      // Before the connections are closed: a request that waits for a calendar is answered at once.
      opened.addWork(LEADER_TASKS, () => leaderTasks.close());
      parts.begin?.();
    },
  };
}

/** @throws CairnlogError as `openRegistry` and `openOperator` do; `storage-failed` */
export async function openWriter(ground: Ground): Promise<Service> {
  const { settings, logger, opened } = ground;
  claimDataDir(settings.dataDir);
  const own = await ownOperator(ground);
  const { operator } = own;
  const { registry, failed } = await registryOf(ground, operator);
  const { log } = registry;
  const logName = logNameOf(settings, log);
  const refuted = (error: CairnlogError) => log.refute(error);
  const leaderTasks = new LeaderTasks({ settings, registry, operator, logName, logger, refuted });
  opened.addWork(LEADER_TASKS, () => leaderTasks.close());
  const tlog = await leaderTasks.begin();
  return serviceOf(ground, {
    registry,
    writer: log,
    operator,
    failed,
    leaderTasks,
    checkpoints: new Checkpoints(log, operator, logName),
    tlog,
    replication: null,
    readiness: { writer: log },
    watch: (metrics) => watchWriting(metrics, ground, own, log),
    openFronts: (parts) => openFronts(parts, log),
  });
}

/** @throws CairnlogError `storage-failed` */
export function claimDataDir(path: string): void {
  try {
    closeToOthers(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CairnlogError("storage-failed", `The data directory ${path} cannot be written (${code}).`, { cause });
  }
}

/** The operator key of a log that is written here. @throws CairnlogError as `openOperator` does */
export async function ownOperator({ settings, pool, logger, opened }: Ground): Promise<OpenedOperator> {
  const own = await openOperator(settings, logger, pool);
  // For people on this machine to pin; the key itself is what the log's own heads are checked with.
  keepPrivateFile(operatorPublicKeyPath(settings.dataDir), own.operator.public.pem);
  const { signer } = own;
  if (signer) {
    opened.addFoundation("the signer", () => signer.close());
    signer.observe((trouble) => {
      if (trouble) logger.error({ code: trouble.code }, trouble.message);
      else logger.info({ signer: settings.signer }, "the signer is connected again");
    });
  }
  return own;
}

/** @throws CairnlogError as `openRegistry`, `checkAfterFailure` and `PublishedHead.check` do */
export async function registryOf(
  { settings, listed, pool, logger, opened }: Ground,
  operator: OperatorKey,
  replicated?: NonNullable<RegistryOptions["replicated"]>,
) {
  const { dataDir, readOnly, obeyWithholding } = settings;
  const registry = await openRegistry({
    ...openingOf(settings, operator, listed),
    pool,
    ...(replicated && { replicated }),
    // The operator's own nodes obey in any case.
    keepsWithheld: readOnly && !obeyWithholding,
    onErasing: tellErasing(logger),
  });
  const { log } = registry;
  opened.addFoundation("the log", () => registry.close());
  await checkAfterFailure(failurePath(dataDir), log, logger);
  const failed = failureOf(log, failurePath(dataDir), logger);
  const published = new PublishedHead(publishedHeadPath(dataDir), log);
  // A node may be behind what it has shown, until it leads.
  if (!replicated) published.check();
  published.start();
  opened.addFoundation("the newest head shown", () => published.stop());
  return { registry, published, failed };
}

/** Shows, and logs, whether the log can be written. */
export function watchWriting(metrics: Metrics, { logger }: Ground, { signer }: OpenedOperator, log: LogWriter): void {
  if (signer) metrics.watchSigner(signer);
  metrics.watchClock(log);
  log.observeClock((refusal) => {
    if (refusal) logger.error({ code: refusal.code }, refusal.message);
    else logger.info("the clock is believed again");
  });
}

/** Says that payloads are taken from the disk, which may take long, or why they are not. */
export const tellErasing =
  (logger: Pick<Logger, "info" | "error">): NonNullable<Erasure["onErasing"]> =>
  (payloads, refusal) => {
    if (refusal) logger.error({ payloads, reason: refusal.message }, "withheld payloads stay on the disk");
    else logger.info({ payloads }, "taking withheld payloads from the disk");
  };
