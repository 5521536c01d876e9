/**
 * `/tlog/` at a node of a replicated log. The leader publishes checkpoints and tells the others the newest; they show it
 * when their own log and its nodes reach so far.
 */
import { CairnlogError } from "../../engine/base/error.js";
import { Rfc6962Growth } from "../../engine/log/rfc6962/growth.js";
import type { LogView } from "../../engine/log/view/view.js";
import type { Tlog } from "../http/services.js";
import type { Logger } from "../process/logger.js";
import type { OpenedTlog } from "./tlog.js";

/** Milliseconds from one growth of the tree to the next. */
const GROW_MS = 500;

interface NodeTlogParts {
  readonly log: LogView;
  /** The verifier key of the checkpoints; null as long as it is not known. */
  readonly vkey: () => string | null;
  /** What this node publishes, while it leads. */
  readonly published: () => OpenedTlog | null;
  /** The newest checkpoint that the leader has told. */
  readonly told: () => string | null;
  readonly logger: Pick<Logger, "error">;
}

export class NodeTlog implements Tlog {
  readonly #parts: NodeTlogParts;
  #growth: Rfc6962Growth;
  #grown = 0;
  #shown: string | null = null;
  #stop = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #growing: Promise<void> = Promise.resolve();

  constructor(parts: NodeTlogParts) {
    this.#parts = parts;
    this.#growth = new Rfc6962Growth(parts.log.rfc6962);
  }

  get vkey(): string | null {
    return this.#parts.vkey();
  }

  /** @throws CairnlogError `not-found` without one */
  checkpoint(): string {
    const published = this.#parts.published();
    if (published) {
      this.#shown = published.checkpoint();
      return this.#shown;
    }
    const told = this.#parts.told();
    // What was told before a term of this node may be older than what it has shown in it.
    const isNewer = told !== null && (this.#shown === null || sizeOf(told) >= sizeOf(this.#shown));
    if (isNewer && sizeOf(told) <= this.#grown) this.#shown = told;
    if (this.#shown === null)
      throw new CairnlogError("not-found", "This node has no checkpoint of /tlog/ yet. The leader has the newest.");
    return this.#shown;
  }

  witnesses(): ReturnType<Tlog["witnesses"]> {
    return this.#parts.published()?.witnesses() ?? [];
  }

  /** Makes the nodes of the tree as the log grows, until `stop`: while another node publishes. */
  start(): void {
    this.#stop = new AbortController();
    // A publisher of this node may have written nodes since.
    this.#growth = new Rfc6962Growth(this.#parts.log.rfc6962);
    this.#timer = setInterval(() => this.#grow(), GROW_MS).unref();
  }

  /** Resolves when nothing is being made any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort();
    await this.#growing;
  }

  #grow(): void {
    const { log, logger } = this.#parts;
    const { size } = log;
    if (size === this.#grown) return;
    const { signal } = this.#stop;
    this.#growing = this.#growth.extend(size, signal).then(
      () => {
        this.#grown = size;
      },
      (error: unknown) => {
        if (!signal.aborted) logger.error({ err: error }, "the tree of /tlog/ cannot be made");
      },
    );
  }
}

const sizeOf = (note: string): number => Number(note.split("\n")[1]);
