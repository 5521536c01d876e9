/** Everything of a service that there is only where it is a node of a replicated log (`SERVICE_REPLICATION`). */

import { CairnlogError } from "../engine/base/error.js";
import type { OperatorKey } from "../engine/crypto/signer/operator-key.js";
import { PostgresJournal } from "../engine/journal/postgres/journal.js";
import type { Checkpoints } from "../engine/log/tlog/checkpoints.js";
import type { PublishedHead } from "../engine/log/tlog/published.js";
import type { LogWriter } from "../engine/log/writer.js";
import { formatVkey } from "../engine/verify/note/key.js";
import type { Duties } from "./duties.js";
import type { Logger } from "./process/logger.js";
import { Replication, type ReplicationStatus } from "./replication/replication.js";
import { Role } from "./replication/role.js";
import { bindingSettings, checkSettings, VKEY } from "./replication/settings.js";
import type { Settings } from "./settings/settings.js";
import { NodeTlog } from "./tlog/replicated.js";
import { openTlogKey, tlogOrigin, verifierKeyOf } from "./tlog/tlog.js";

/** Seconds without an answer of PostgreSQL after which a leader is not ready: appends wait for it. */
const LEADER_SILENCE_S = 5;

/** The checkpoints of a node without a private key. Those of `/tlog/` it has from the leader. */
export const NO_CHECKPOINTS: Pick<Checkpoints, "newest"> = {
  async newest() {
    const message = "This node has no key that signs checkpoints. GET /api/v1/log/sth gives its tree head.";
    throw new CairnlogError("not-found", message);
  },
};

/** The journal and the role of a node, before its log is open. */
interface JoinedNode {
  readonly journal: PostgresJournal;
  readonly standing: Role;
  readonly settings: Readonly<Record<string, string>>;
  /** Whether it has neither the operator's private key nor private rows, and so never leads. */
  readonly isPublic: boolean;
}

/**
 * Looks at the journal, if PostgreSQL answers. A node starts without it, too, and joins when it does.
 * @throws CairnlogError `precondition-failed` if `pg` is not installed, or the log has other settings
 */
export async function joinNode(
  settings: Settings,
  operator: OperatorKey,
  logName: string,
  logger: Logger,
): Promise<JoinedNode | null> {
  const { replication: url, replicationVerify: verification, nodeUrl, readOnly: isPublic } = settings;
  if (url === null) return null;
  const journal = await PostgresJournal.open({ url, verification, nodeUrl, isPublic });
  const vkey = isPublic
    ? null
    : formatVkey(verifierKeyOf(openTlogKey(settings.dataDir, operator, logger), tlogOrigin(settings, logName)));
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
  return { journal, standing: new Role(), settings: binding, isPublic };
}

interface NodeParts {
  readonly joined: JoinedNode;
  readonly log: LogWriter;
  readonly duties: Duties;
  readonly published: PublishedHead;
  readonly settings: Settings;
  readonly isFollower: boolean;
  readonly logger: Logger;
}

/** A node at work. */
export class ReplicatedNode {
  readonly #replication: Replication;
  readonly #maxLagSeconds: number;
  readonly #journal: PostgresJournal;
  readonly tlog: NodeTlog;

  constructor({ joined, log, duties, published, settings, isFollower, logger }: NodeParts) {
    const { journal, standing: role } = joined;
    this.#journal = journal;
    this.#maxLagSeconds = settings.replicationMaxLagSeconds;
    this.tlog = new NodeTlog({
      log,
      // The first record has it, too, which a public follower reads before it has anything to serve.
      vkey: () => joined.settings[VKEY] ?? log.row("meta", "log")?.settings?.[VKEY] ?? null,
      published: () => duties.tlog,
      told: () => this.#replication.status.checkpoint,
      logger,
    });
    this.#replication = new Replication({
      journal,
      log,
      role,
      settings: joined.settings,
      nodeUrl: settings.nodeUrl,
      maxLagSeconds: settings.replicationMaxLagSeconds,
      isFollower: isFollower || joined.isPublic,
      logger,
      leadership: {
        begin: async () => {
          // A node that has shown more than the journal has must not sign anything else in its place.
          published.check();
          await this.tlog.stop();
          await duties.begin();
        },
        end: async () => {
          await duties.end();
          await this.tlog.stop();
          this.tlog.start();
        },
        checkpoint: async () => {
          try {
            return (await duties.tlog?.checkpoint()) ?? null;
          } catch {
            // There is none yet.
            return null;
          }
        },
      },
    });
  }

  start(): void {
    this.tlog.start();
    this.#replication.start();
  }

  get status(): ReplicationStatus {
    return this.#replication.status;
  }

  /** Has `observer` called with the seconds that each append took. */
  observe(observer: PostgresJournal["observeAppend"]): void {
    this.#journal.observeAppend = observer;
  }

  get leads(): boolean {
    return this.status.role === "leader";
  }

  /** Why this node is of no use now, as a sentence; null if it is. */
  get trouble(): string | null {
    const { trouble, isBarred, lagSeconds, role } = this.status;
    if (isBarred) return trouble;
    if (lagSeconds === null) return trouble ?? "This node has not heard of the log yet.";
    const most = role === "leader" ? LEADER_SILENCE_S : this.#maxLagSeconds;
    if (lagSeconds <= most) return null;
    return `This node has had no news of the log for ${Math.floor(lagSeconds)} seconds. ${trouble ?? ""}`.trim();
  }

  /** Gives the lead back, and ends. */
  async stop(): Promise<void> {
    await this.#replication.stop();
    await this.tlog.stop();
  }
}
