/** A service that is a node of a replicated log (`SERVICE_REPLICATION`). */

import { closeAll } from "../engine/base/closing.js";
import { CairnlogError } from "../engine/base/error.js";
import type { OperatorKey } from "../engine/crypto/signer/operator-key.js";
import { PostgresJournal } from "../engine/journal/postgres/journal.js";
import { Checkpoints, defaultLogName } from "../engine/log/tlog/checkpoints.js";
import { formatVkey } from "../engine/verify/note/key.js";
import { openFront, openFronts } from "./front/fronts.js";
import { LeaderTasks } from "./leader-tasks.js";
import { mirroredOperator } from "./mirror.js";
import type { Logger } from "./process/logger.js";
import { Replication, type ReplicationStatus } from "./replication/replication.js";
import { Role } from "./replication/role.js";
import { bindingSettings, checkSettings, VKEY } from "./replication/settings.js";
import {
  claimDataDir,
  type Ground,
  ownOperator,
  registryOf,
  type Service,
  serviceOf,
  watchWriting,
} from "./service.js";
import type { Settings } from "./settings/settings.js";
import { NodeTlog } from "./tlog/replicated.js";
import { logNameOf, openTlogKey, tlogOrigin, verifierKeyOf } from "./tlog/tlog.js";

/** Seconds without an answer of PostgreSQL after which a leader is not ready: appends wait for it. */
const LEADER_SILENCE_S = 5;

/** The checkpoints of a node without a private key. Those of `/tlog/` it has from the leader. */
const NO_CHECKPOINTS: Pick<Checkpoints, "newest"> = {
  async newest() {
    const message = "This node has no key that signs checkpoints. GET /api/v1/log/sth gives its tree head.";
    throw new CairnlogError("not-found", message);
  },
};

/**
 * A node of the log that the journal at `url` decides.
 * @throws CairnlogError as `openWriter` does; `precondition-failed` if `pg` is not installed, or the log has other settings
 */
export async function openNode(ground: Ground, url: string, isFollower: boolean): Promise<Service> {
  const { settings, logger, opened } = ground;
  const { dataDir, nodeUrl, readOnly: isPublic, replicationMaxLagSeconds: maxLagSeconds } = settings;
  claimDataDir(dataDir);
  const own = isPublic ? { operator: mirroredOperator(dataDir), signer: null } : await ownOperator(ground);
  const { operator } = own;
  const { journal, binding } = await openJournal(settings, url, operator, logger);
  opened.addFoundation("the journal", () => journal.close());
  const role = new Role();
  const { registry, published, failed } = await registryOf(ground, operator, { journal, standing: role });
  const { log } = registry;
  const logName = logNameOf(settings, log);
  const refuted = (error: CairnlogError) => log.refute(error);
  const isHeld = () => journal.hasLease;
  const leaderTasks = new LeaderTasks({ settings, registry, operator, logName, logger, refuted, isHeld });
  const tlog = new NodeTlog({
    log,
    // The first record has it, too, which a public follower reads before it has anything to serve.
    vkey: () => binding[VKEY] ?? log.row("meta", "log")?.settings?.[VKEY] ?? null,
    published: () => leaderTasks.tlog,
    told: () => replication.status.checkpoint,
    logger,
  });
  const replication: Replication = new Replication({
    journal,
    log,
    role,
    settings: binding,
    nodeUrl,
    maxLagSeconds,
    // A node without the private key and the private rows never leads.
    isFollower: isFollower || isPublic,
    logger,
    leadership: {
      async begin(told) {
        // A node that has shown more than the journal has must not sign anything else in its place.
        published.check();
        await tlog.stop();
        await leaderTasks.begin(told);
      },
      async end() {
        await closeAll(
          () => leaderTasks.end(),
          () => tlog.stop(),
        );
        tlog.start();
      },
      checkpoint() {
        try {
          return leaderTasks.tlog?.checkpoint() ?? null;
        } catch {
          // There is none yet.
          return null;
        }
      },
    },
  });
  const status = () => replication.status;
  return serviceOf(ground, {
    registry,
    writer: log,
    operator,
    failed,
    leaderTasks,
    checkpoints: isPublic ? NO_CHECKPOINTS : new Checkpoints(log, operator, logName),
    tlog,
    replication: { role, status },
    readiness: {
      node: { leads: () => status().role === "leader", trouble: () => troubleOf(status(), maxLagSeconds) },
      ...(isPublic ? {} : { writer: log }),
    },
    watch(metrics) {
      metrics.watchReplication(status, journal);
      if (!isPublic) watchWriting(metrics, ground, own, log);
    },
    openFronts: (parts) => (isPublic ? openFront(parts) : openFronts(parts, log)),
    begin() {
      const parts = [() => replication.stop(), () => tlog.stop()];
      opened.addWork("replication", () => closeAll(...parts));
      tlog.start();
      replication.start();
    },
  });
}

/** The journal, and the settings that all nodes must share. A node starts without PostgreSQL, too, and joins when it answers. */
async function openJournal(settings: Settings, url: string, operator: OperatorKey, logger: Logger) {
  const { replicationVerify: verification, nodeUrl, readOnly: isPublic } = settings;
  const journal = await PostgresJournal.open({ url, verification, nodeUrl, isPublic });
  const origin = tlogOrigin(settings, settings.logName ?? defaultLogName(operator.fingerprint));
  const vkey = isPublic ? null : formatVkey(verifierKeyOf(openTlogKey(settings.dataDir, operator, logger), origin));
  const binding = bindingSettings(settings, vkey);
  try {
    checkSettings(await journal.genesis(), binding);
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "storage-failed")
      logger.warn({ reason: error.message }, "PostgreSQL does not answer; the node joins the log when it does");
    else {
      journal.close();
      throw error;
    }
  }
  return { journal, binding };
}

/** Why a node is of no use now, as a sentence; null if it is. */
function troubleOf({ trouble, isBarred, lagSeconds, role }: ReplicationStatus, maxLagSeconds: number): string | null {
  if (isBarred) return trouble;
  if (lagSeconds === null) return trouble ?? "This node has not heard of the log yet.";
  const most = role === "leader" ? LEADER_SILENCE_S : maxLagSeconds;
  if (lagSeconds <= most) return null;
  return `This node has had no news of the log for ${Math.floor(lagSeconds)} seconds. ${trouble ?? ""}`.trim();
}
