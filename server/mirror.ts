/**
 * A log that is written elsewhere and served from here: what `cairnlog monitor` mirrors, while it runs or after. There is no
 * private key, so nothing is signed: heads are the stored ones, and the checkpoint is the log's own as it was mirrored.
 */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../engine/base/error.js";
import { type OperatorKey, publicOperatorKey } from "../engine/crypto/signer/operator-key.js";
import { eraseWithheld } from "../engine/log/history/erase.js";
import { Rfc6962Growth } from "../engine/log/rfc6962/growth.js";
import type { LogReader } from "../engine/log/view/reader.js";
import { projection } from "../engine/registry/events/projection.js";
import { openRegistryReader } from "../engine/registry/registry.js";
import { Duties } from "./duties.js";
import { failureOf } from "./failure.js";
import { openFront } from "./front/fronts.js";
import type { Tlog } from "./http/services.js";
import { openingOf } from "./opening/opening.js";
import type { Logger } from "./process/logger.js";
import { type Ground, type Service, serviceOf, tellErasing } from "./service.js";
import {
  checkpointPath,
  failurePath,
  operatorPublicKeyPath,
  tlogCheckpointPath,
  tlogVkeyPath,
} from "./settings/settings.js";
import { logNameOf } from "./tlog/tlog.js";

/** Milliseconds that this process may be behind the one that writes. */
const REFRESH_MS = 1_000;

/** @throws CairnlogError as `mirroredOperator` and `openRegistryReader` do */
export async function openMirror(ground: Ground): Promise<Service> {
  const { settings, pool, logger, opened } = ground;
  const { dataDir } = settings;
  const operator = mirroredOperator(dataDir);
  const options = { ...openingOf(settings, operator, null), pool };
  if (settings.obeyWithholding) await obeyWithholding(options.path, logger);
  const registry = await openRegistryReader(options);
  const { log } = registry;
  opened.addFoundation("the log", () => registry.close());
  const failed = failureOf(log, failurePath(dataDir), logger);
  const mirrored = new MirroredLog(log, dataDir, logger);
  opened.addFoundation("the mirror", () => mirrored.close());
  // They never begin here, and only show how far the log's own service is.
  const duties = new Duties({ settings, registry, operator, logName: logNameOf(settings, log), logger, refuted() {} });
  return serviceOf(ground, {
    registry,
    writer: null,
    operator,
    failed,
    duties,
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
async function obeyWithholding(path: string, logger: Pick<Logger, "info" | "warn" | "error">): Promise<void> {
  try {
    await eraseWithheld({ path, projection, onErasing: tellErasing(logger) });
  } catch (error) {
    if (!(error instanceof CairnlogError && error.code === "in-use")) throw error;
    logger.warn({ reason: error.message }, "withheld payloads are the monitor's to erase: give it --obey-withholding");
  }
}

export class MirroredLog {
  readonly #log: LogReader;
  readonly #dataDir: string;
  readonly #logger: Pick<Logger, "error">;
  readonly #timer: NodeJS.Timeout;
  readonly #growth: Rfc6962Growth;
  /** Entries for which the nodes of the RFC 6962 tree are made. */
  #grown = 0;
  readonly #closing = new AbortController();
  /** The log as a C2SP transparency log, with the checkpoints of the log's own service. */
  readonly tlog: Tlog;

  /** Follows what is written to `log`, which was opened to be read, until it is closed. */
  constructor(log: LogReader, dataDir: string, logger: Pick<Logger, "error">) {
    this.#log = log;
    this.#dataDir = dataDir;
    this.#logger = logger;
    this.#timer = setInterval(() => this.#refresh(), REFRESH_MS);
    this.#growth = new Rfc6962Growth(log.rfc6962);
    this.tlog = {
      // The monitor may write it later.
      get vkey() {
        return readIfThere(tlogVkeyPath(dataDir))?.trim() ?? null;
      },
      checkpoint: () => this.#tlogCheckpoint(),
      witnesses: () => [],
    };
    this.#grow();
  }

  /**
   * The newest checkpoint that was mirrored.
   * @throws CairnlogError `not-found` without one, or while it is ahead of the entries shown here
   */
  async newest(): Promise<string> {
    const note = readIfThere(checkpointPath(this.#dataDir));
    // A reader must never see a head that is behind a checkpoint it has seen.
    if (note === null || Number(note.split("\n")[1]) > this.#log.size)
      throw new CairnlogError("not-found", "This mirror has no checkpoint. GET /api/v1/log/sth gives its tree head.");
    return note;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#closing.abort();
  }

  /** @throws CairnlogError `not-found` without one, or while the tree does not reach so far */
  #tlogCheckpoint(): string {
    const note = readIfThere(tlogCheckpointPath(this.#dataDir));
    if (note === null || Number(note.split("\n")[1]) > this.#grown)
      throw new CairnlogError("not-found", "This mirror has no checkpoint of /tlog/ yet.");
    return note;
  }

  /** Makes the nodes of the RFC 6962 tree for what is shown, in the background. */
  #grow(): void {
    const { size } = this.#log;
    this.#growth.extend(size, this.#closing.signal).then(
      () => {
        this.#grown = size;
      },
      (error: unknown) => {
        if (!this.#closing.signal.aborted) this.#logger.error({ err: error }, "the tree of /tlog/ cannot be made");
      },
    );
  }

  #refresh(): void {
    try {
      this.#log.refresh();
      if (this.#log.size > this.#grown) this.#grow();
    } catch (error) {
      this.#logger.error({ err: error }, "the mirror cannot be read; what was read before is still served");
    }
  }
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
