/**
 * A log that is written elsewhere and served from here: what `cairnlog monitor` mirrors, while it runs or after. There is no
 * private key, so nothing is signed: heads are the stored ones, and the checkpoint is the log's own as it was mirrored.
 */
import { CairnlogError } from "../engine/base/error.js";
import { type OperatorKey, publicOperatorKey } from "../engine/crypto/signer/operator-key.js";
import { eraseWithheld } from "../engine/log/history/erase.js";
import { projection } from "../engine/registry/events/projection.js";
import { openRegistryReader } from "../engine/registry/registry.js";
import { failureOf } from "./failure.js";
import { openFront } from "./front/fronts.js";
import { LeaderTasks } from "./leader-tasks.js";
import { openingOf } from "./opening/opening.js";
import type { Logger } from "./process/logger.js";
import { type Ground, type Service, serviceOf, tellErasing } from "./service.js";
import { failurePath, operatorPublicKeyPath, type Settings } from "./settings/settings.js";
import { MirroredLog, readIfThere } from "./tlog/mirrored.js";
import { logNameOf } from "./tlog/tlog.js";

/** @throws CairnlogError as `mirroredOperator` and `openRegistryReader` do */
export async function openMirror(ground: Ground): Promise<Service> {
  const { settings, pool, logger, opened } = ground;
  const { dataDir } = settings;
  const operator = mirroredOperator(dataDir);
  const options = { ...openingOf(settings, operator, null), pool };
  if (settings.obeyWithholding) await obeyWithholding(settings, options.path, logger);
  const registry = await openRegistryReader(options);
  const { log } = registry;
  opened.addFoundation("the log", () => registry.close());
  const failed = failureOf(log, failurePath(dataDir), logger);
  const mirrored = new MirroredLog(log, dataDir, logger);
  opened.addFoundation("the mirror", () => mirrored.close());
  // They never begin here, and only show how far the log's own service is.
  const leaderTasks = new LeaderTasks({
    settings,
    registry,
    operator,
    logName: logNameOf(settings, log),
    logger,
    refuted() {},
  });
  return serviceOf(ground, {
    registry,
    writer: null,
    operator,
    failed,
    leaderTasks,
    checkpoints: mirrored,
    tlog: mirrored.tlog,
    replication: null,
    readiness: { isReadOnly: true },
    openFronts: openFront,
  });
}

/** The public half of the key of the log in a data directory. @throws CairnlogError `not-found`, `invalid-key` */
export function mirroredOperator(dataDir: string): OperatorKey {
  const path = operatorPublicKeyPath(dataDir);
  const pem = readIfThere(path);
  if (pem === null)
    throw new CairnlogError("not-found", `There is no ${path}: this is not the data directory of a mirror.`);
  return publicOperatorKey(pem);
}

/**
 * Takes withheld payloads from a mirror, unless a monitor writes it: then that is the monitor's to do.
 * @throws CairnlogError as `eraseWithheld` does, but `in-use`
 */
async function obeyWithholding(
  { minFreeBytes }: Settings,
  path: string,
  logger: Pick<Logger, "info" | "warn" | "error">,
): Promise<void> {
  try {
    await eraseWithheld({ path, projection, minFreeBytes, onErasing: tellErasing(logger) });
  } catch (error) {
    if (!(error instanceof CairnlogError && error.code === "in-use")) throw error;
    logger.warn({ reason: error.message }, "withheld payloads are the monitor's to erase: give it --obey-withholding");
  }
}
