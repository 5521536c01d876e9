/**
 * What deliveries write down, each in few commands for many: the outcomes of attempts, and how far the walk that all
 * subscriptions share has come. If we crash before either, attempts are made again and entries read again: deliveries are made
 * at least once.
 */
import type { Cursor } from "../../engine/registry/webhooks/commands.js";
import type { Attempted } from "../../engine/registry/webhooks/deliveries.js";
import type { Outbox } from "../../engine/registry/webhooks/outbox.js";
import type { Logger } from "../process/logger.js";
import type { BackgroundWork } from "./background-work.js";
import type { LogWalk } from "./log-walk.js";
import type { SubscriptionLane } from "./subscription-lane.js";

/** Rows written in one command. Other commands of its batch wait for them. */
const MAX_AT_ONCE = 256;
/** Entries of the shared walk after which it is recorded how far it has come: a restart reads these again. */
const MARK_AFTER = 4096;

interface LaneOutcome {
  readonly lane: SubscriptionLane;
  readonly outcome: Attempted;
}

interface OutcomeParts {
  readonly outbox: Outbox;
  readonly work: BackgroundWork;
  readonly logger: Logger;
  /** Milliseconds from one command to the next. Outcomes that come meanwhile share it. */
  readonly settleMs: number;
  /** Called with outcomes that are on disk. */
  readonly settled: (outcomes: readonly LaneOutcome[]) => void;
}

/** The outcomes of attempts that are not on disk yet. */
export class Outcomes {
  readonly #parts: OutcomeParts;
  readonly #unwritten: LaneOutcome[] = [];
  #isWriting = false;

  constructor(parts: OutcomeParts) {
    this.#parts = parts;
  }

  add(lane: SubscriptionLane, outcome: Attempted): void {
    this.#unwritten.push({ lane, outcome });
    if (this.#isWriting) return;
    this.#isWriting = true;
    this.#parts.work.run(this.#write());
  }

  async #write(): Promise<void> {
    const { outbox, work, logger, settleMs, settled } = this.#parts;
    while (this.#unwritten.length) {
      const some = this.#unwritten.splice(0, MAX_AT_ONCE);
      const isWritten = await work.tried(async () => {
        const { unhealthy, givenUp, ended } = await outbox.settle(some.map(({ outcome }) => outcome));
        for (const webhook of unhealthy) logger.warn({ webhook }, "webhook endpoint is unhealthy");
        for (const ending of ended) logger.warn(ending, "webhook has ended");
        if (givenUp) logger.warn({ deliveries: givenUp }, "webhook deliveries given up");
      });
      if (!isWritten) {
        // Delivered, but not recorded: the next start delivers it again.
        if (work.isStopped) break;
        this.#unwritten.unshift(...some);
        continue;
      }
      settled(some);
      if (!work.isStopped) await work.leaveThread(settleMs);
    }
    this.#isWriting = false;
  }
}

/** How far the shared walk has come, on disk. */
export class WalkMark {
  readonly #outbox: Outbox;
  readonly #work: BackgroundWork;
  #marked = 0;
  #isMarking = false;

  constructor(outbox: Outbox, work: BackgroundWork) {
    this.#outbox = outbox;
    this.#work = work;
  }

  /** @param marked what is on disk; undefined if nothing was ever recorded */
  begin(marked: number | undefined): void {
    this.#marked = marked ?? Number.NEGATIVE_INFINITY;
  }

  whenDue(walk: LogWalk, lanes: ReadonlyMap<number, SubscriptionLane>): void {
    if (this.#isMarking || this.#work.isStopped || !lanes.size || walk.position - this.#marked < MARK_AFTER) return;
    this.#isMarking = true;
    this.#work.run(
      this.#mark(walk, lanes).finally(() => {
        this.#isMarking = false;
      }),
    );
  }

  /**
   * Records that all entries before the walk's position were matched. Subscriptions that have undelivered ones among them get
   * cursors of their own before that. Those that have none left lose theirs with it.
   */
  async #mark(walk: LogWalk, lanes: ReadonlyMap<number, SubscriptionLane>): Promise<void> {
    const walked = walk.position;
    const isBusy = (lane: SubscriptionLane) => !lane.isAtHead || lane.found.length > 0;
    const cursorless = [...lanes.values()].filter((lane) => lane.cursor !== "kept" && isBusy(lane));
    for (let from = 0; from < cursorless.length; from += MAX_AT_ONCE) {
      const some = cursorless.slice(from, from + MAX_AT_ONCE);
      for (const lane of some) lane.cursor = "unsure";
      const cursors = some.map((lane): Cursor => ({ webhook_id: lane.id, next: walk.cursorOf(lane) }));
      if (!(await this.#work.tried(() => this.#outbox.mark(null, cursors)))) return;
      for (const lane of some) lane.cursor = "kept";
    }
    const idle = [...lanes.values()].filter((lane) => lane.cursor !== "none" && !isBusy(lane)).slice(0, MAX_AT_ONCE);
    for (const lane of idle) lane.cursor = "unsure";
    const without = idle.map((lane): Cursor => ({ webhook_id: lane.id, next: null }));
    if (!(await this.#work.tried(() => this.#outbox.mark(walked, without)))) return;
    this.#marked = walked;
    // A delivery that was written down meanwhile has left a new one.
    for (const lane of idle) if (lane.cursor === "unsure") lane.cursor = "none";
  }
}
