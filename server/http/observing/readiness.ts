/** Whether an append would succeed now. */

import { CairnlogError } from "../../../engine/base/error.js";
import { verifySync } from "../../../engine/crypto/keys/signatures.js";
import type { OperatorKey } from "../../../engine/crypto/signer/operator-key.js";
import type { Log } from "../../../engine/log/log.js";
import type { LogWriter } from "../../../engine/log/writer.js";
import { decodeBase64, treeHeadMessage } from "../../../engine/verify/index.js";
import { HttpError } from "../route/problems.js";

/** A text that cannot be the message of a tree head, which begins with 64 hexadecimal characters. */
const PROBE = Buffer.from("service.readiness.probe.v1");
/** Milliseconds for which a result is reused. Probes have no rate limit, and each costs two signatures. */
const VERDICT_MS = 1_000;
/** Bytes of free disk below which the operator is warned. */
const LOW_FREE_BYTES = 1024 * 1024 * 1024;

/** Seconds by which the newest time on the log may be ahead of the clock before the operator is warned. */
const LOG_AHEAD_S = 300;
/** Commits of a read that stays open: the files grow meanwhile, by up to some 30 KB a commit. */
const OLD_READER_COMMITS = 10_000;

export interface ReadinessParts {
  readonly log: Pick<Log, "size" | "frozen" | "operators" | "treeHead" | "failure">;
  readonly operator: OperatorKey;
  /** True for a mirror. A mirror appends nothing, so it only needs a valid head. */
  readonly isReadOnly?: boolean;
  /** Names of the front ends that do not answer. */
  readonly stuck: () => readonly string[];
  /** Bytes free on the disk of the log. */
  readonly freeBytes: () => number;
  /** Bytes of free disk below which appends are refused. */
  readonly minFreeBytes: number;
  /** Commits since the moment that the oldest open read of the log's files shows. */
  readonly oldestReader?: () => number;
  /** Whether clock and log are believed, and the disk can be written; absent where nothing is appended. */
  readonly writer?:
    | Pick<LogWriter, "clockRefusal" | "secondsAhead" | "refuted" | "lastFailure" | "tryWriting">
    | undefined;
  /** At a node of a replicated log: whether it leads, and why it is of no use now. */
  readonly node?: { leads(): boolean; trouble(): string | null } | undefined;
  /** What else the operator should know, while appends succeed: sentences. */
  readonly warnings?: () => readonly string[];
}

export class Readiness {
  readonly #parts: ReadinessParts;
  #verdict: Promise<readonly string[]> | null = null;
  #until = 0;

  constructor(parts: ReadinessParts) {
    this.#parts = parts;
  }

  /**
   * Checks the conditions of an append, at most once a second.
   * @returns warnings for the operator
   * @throws HttpError 503 with the reason why an append would fail
   */
  check(): Promise<readonly string[]> {
    // A monotonic clock, because the time of day may be set back and the result would then be reused for too long.
    if (!this.#verdict || performance.now() >= this.#until) {
      this.#until = performance.now() + VERDICT_MS;
      this.#verdict = this.#examine();
    }
    return this.#verdict;
  }

  /**
   * Whether this process can still use the log.
   * @throws HttpError 503 with the reason why it ends
   */
  checkAlive(): void {
    checkAlive(this.#parts.log);
  }

  async #examine(): Promise<readonly string[]> {
    const { log, freeBytes, minFreeBytes, isReadOnly = false } = this.#parts;
    this.checkAlive();
    if (!this.#hasValidHead()) throw unready("The newest entry has no valid tree head.");
    const stuck = this.#parts.stuck();
    if (stuck.length) throw unready(`Threads that serve HTTP do not answer: ${stuck.join(", ")}.`);
    const { node } = this.#parts;
    const trouble = node?.trouble();
    if (trouble) throw unready(trouble);
    // Nothing is appended here, or to this log any more, and all is served.
    if (isReadOnly || log.frozen || node?.leads() === false) return [];
    const { writer } = this.#parts;
    const disbelief = writer?.refuted ?? writer?.clockRefusal;
    if (disbelief) throw unready(disbelief.message);
    await this.#checkSigning();
    const free = freeBytes();
    const space = `${Math.floor(free / 1024 / 1024)} MiB are free on the disk of the data directory.`;
    if (free < minFreeBytes) throw unready(`Only ${space}`);
    // There may be no more appends, so this has to find out whether the disk can be written again.
    if (writer?.lastFailure)
      await writer.tryWriting().catch(() => {
        throw unready("The newest batch could not be written, and nothing can be written now.");
      });
    const oldest = this.#parts.oldestReader?.() ?? 0;
    const reader = `A read of the log's files has been open for ${oldest} commits, so they grow. cairnlog_store_oldest_reader_commits shows when it ends.`;
    return [
      ...(free < LOW_FREE_BYTES ? [space] : []),
      ...(oldest > OLD_READER_COMMITS ? [reader] : []),
      ...((writer?.secondsAhead ?? 0) > LOG_AHEAD_S ? [logAhead(writer!.secondsAhead)] : []),
      ...(this.#parts.warnings?.() ?? []),
    ];
  }

  #hasValidHead(): boolean {
    const { log } = this.#parts;
    if (!log.size) return true;
    const head = log.treeHead();
    const signature = head && decodeBase64(head.signature);
    if (!signature) return false;
    const key = log.operators.keyAt(head.tree_size);
    return verifySync(key, treeHeadMessage(head.root_hash, head.tree_size, head.timestamp), signature);
  }

  /** @throws HttpError 503; a signer behind a socket says why */
  async #checkSigning(): Promise<void> {
    const { operator } = this.#parts;
    let signature: Uint8Array | undefined;
    try {
      [signature] = await operator.sign([PROBE]);
    } catch (error) {
      const why = error instanceof CairnlogError ? ` ${error.message}` : "";
      throw unready(`The operator key cannot sign.${why}`);
    }
    if (!signature || !verifySync(operator.public, PROBE, signature)) throw unready("The operator key cannot sign.");
  }
}

/** @throws HttpError 503 with the reason why this process can no longer use the log, and ends */
export function checkAlive({ failure }: Pick<Log, "failure">): void {
  if (failure) throw unready(failure.message);
}

const logAhead = (seconds: number): string =>
  `The newest time on the log is ${Math.floor(seconds)} seconds ahead of the clock, so each entry gets that time until the clock has caught up. If the clock is right, an entry was made while it was wrong; what can be done is in docs/operating.md, "The clock jumps".`;

const unready = (why: string): HttpError => new HttpError("not-ready", why, { "retry-after": "10" });
