/** A log that another process writes, followed from here, with its checkpoints as they were mirrored. */
import { readFileSync } from "node:fs";
import { CairnlogError } from "../../engine/base/error.js";
import { Rfc6962Growth } from "../../engine/log/rfc6962/growth.js";
import type { LogReader } from "../../engine/log/view/reader.js";
import type { Tlog } from "../http/services.js";
import type { Logger } from "../process/logger.js";
import { checkpointPath, tlogCheckpointPath, tlogVkeyPath } from "../settings/settings.js";

/** Milliseconds that this process may be behind the one that writes. */
const REFRESH_MS = 1_000;

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
      this.#grow();
    } catch (error) {
      this.#logger.error({ err: error }, "the mirror cannot be read; what was read before is still served");
    }
  }
}

/** The text of a file; null without one. */
export function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
