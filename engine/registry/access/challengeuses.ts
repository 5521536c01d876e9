/**
 * What a service remembers of challenges: those that were used, and those whose answers failed. There is one
 * `ChallengeUses` for a log, in the thread of its writer, so it decides between answers that reach several front ends.
 *
 * A used challenge is a private row, written before anything is done on its strength. So neither a restart nor a takeover
 * by another node makes its proof good again. Failures are in memory: to forget them lets somebody guess a signature five
 * times more.
 */
import { CairnlogError } from "../../base/error.js";
import type { Log } from "../../log/log.js";
import type { Clock } from "../../log/state/clock.js";
import type { Writer } from "../../log/state/executor.js";
import { useChallenge, usedChallenge } from "./commands.js";

/** Failed signatures after which a challenge is taken no more. */
const MAX_FAILURES = 5;
/**
 * Challenges whose failures are counted. Anybody can make a challenge of any key fail. Beyond this number a further one is
 * not counted, and none is displaced: it may be answered more often than five times, and a signature cannot be guessed.
 */
const MAX_FAILED = 10_000;
/**
 * How long a used challenge is kept after its end, in microseconds. A clock that is set back by less does not make its proof
 * good again.
 */
const KEPT_AFTER_END = 3_600_000_000;
/** Rows that one use removes at most. More than one, so that their number falls again after many. */
const FORGOTTEN_AT_ONCE = 4;

/** How an answer to a challenge turned out. */
interface ChallengeOutcome {
  /** Random bytes of the challenge, in hex. */
  readonly id: string;
  /** Microseconds since the epoch. */
  readonly expires: number;
  /** Whether the signature was the key's. */
  readonly isValid: boolean;
}

interface Failed {
  count: number;
  /** When the challenge has expired for sure, in microseconds since the epoch. */
  readonly until: number;
}

export class ChallengeUses {
  readonly #log: Log;
  readonly #writer: Pick<Writer, "execute">;
  readonly #clock: Clock;
  readonly #lifetime: number;
  /** By id, oldest first. */
  readonly #failed = new Map<string, Failed>();
  /** The last used challenge that was given to be forgotten. */
  #forgotten: readonly [number, string] = [0, ""];

  /** Use `openRegistry`. */
  constructor(parts: {
    readonly log: Log;
    readonly writer: Pick<Writer, "execute">;
    readonly clock: Clock;
    readonly ttlSeconds: number;
  }) {
    this.#log = parts.log;
    this.#writer = parts.writer;
    this.#clock = parts.clock;
    this.#lifetime = parts.ttlSeconds * 1_000_000;
  }

  /** Number of challenges whose failures are counted. */
  get failed(): number {
    return this.#failed.size;
  }

  /**
   * Takes note of an answer. Of several valid ones only the first succeeds. Resolves when the use is on disk.
   * @throws CairnlogError `challenge-used`; `not-found` after too many failures; `forbidden` for one that failed; and as
   *   `Log.execute` does
   */
  async settle({ id, expires, isValid }: ChallengeOutcome): Promise<void> {
    if (this.#log.row("usedChallenges", [expires, id])) throw usedChallenge();
    if ((this.#failed.get(id)?.count ?? 0) >= MAX_FAILURES) throw spentChallenge();
    if (!isValid) {
      this.#count(id);
      throw new CairnlogError("forbidden", "The signature is not the key's over the nonce of this challenge.");
    }
    await this.#writer.execute(useChallenge, { challenge: [expires, id], forgotten: this.#forget() });
  }

  #count(id: string): void {
    const failed = this.#failed.get(id);
    if (failed) {
      failed.count++;
      return;
    }
    const now = this.#clock();
    for (const [oldest, { until }] of this.#failed) {
      if (until > now) break;
      this.#failed.delete(oldest);
    }
    if (this.#failed.size < MAX_FAILED) this.#failed.set(id, { count: 1, until: now + this.#lifetime });
  }

  /** Some used challenges that ended long ago. Each is given once, however many uses are on their way to the disk. */
  #forget(): [number, string][] {
    const end = this.#clock() - KEPT_AFTER_END;
    const rows = this.#log.rows("usedChallenges", [...this.#forgotten, 0], [end], { limit: FORGOTTEN_AT_ONCE });
    const keys = rows.map(({ key }) => key);
    // What a failed write left in place is found in the next round.
    this.#forgotten = keys.at(-1) ?? [0, ""];
    return keys;
  }
}

/** The error for a challenge that this service did not issue, or that is taken no more. */
export const spentChallenge = (): CairnlogError =>
  new CairnlogError(
    "not-found",
    "This service has no such challenge, or too many answers to it were wrong: ask for a new one.",
  );
