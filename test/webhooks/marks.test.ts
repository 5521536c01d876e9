/** How far the shared walk has come, on disk: whichever command the log refuses, a restart loses nothing and repeats little. */
import fc from "fast-check";
import { pino } from "pino";
import { expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { Cursor } from "#cairnlog/engine/registry/webhooks/commands.js";
import type { Outbox } from "#cairnlog/engine/registry/webhooks/outbox.js";
import type { WebhookRow } from "#cairnlog/engine/store/schema/rows.js";
import { BackgroundWork } from "#cairnlog/server/webhooks/background-work.js";
import type { LogWalk } from "#cairnlog/server/webhooks/log-walk.js";
import { WalkMark } from "#cairnlog/server/webhooks/recording.js";
import { SubscriptionLane } from "#cairnlog/server/webhooks/subscription-lane.js";

/** Entries of one round: more than those after which the walk is recorded. */
const ROUND = 5_000;
/** Subscriptions: more than one command has cursors of. */
const LANES = 300;

/** What is on disk: where the walk was recorded, and the cursors of those that have one. */
class Disk {
  walked = 0;
  readonly cursors = new Map<number, number>();
  /** What becomes of the commands to come. A write that failed may have reached the disk. */
  fates: ("done" | "refused" | "failed, but done")[] = [];
  onCommand = () => {};

  async mark(walked: number | null, cursors: readonly Cursor[]): Promise<void> {
    await undefined;
    const fate = this.fates.shift();
    const refusal = new CairnlogError("storage-full", "injected: there is no room");
    if (fate === "refused") throw refusal;
    for (const { webhook_id, next } of cursors) {
      if (next === null) this.cursors.delete(webhook_id);
      else this.cursors.set(webhook_id, next);
    }
    this.walked = walked ?? this.walked;
    this.onCommand();
    if (fate === "failed, but done") throw refusal;
  }

  /** Where a subscription begins after a restart. */
  start = (id: number): number => this.cursors.get(id) ?? this.walked;
}

const turns = async () => {
  for (let n = 0; n < 12; n++) await new Promise((resolve) => setImmediate(resolve));
};

test("whichever commands are refused, each begins after a restart at its first undelivered entry or before, and soon no other", async () => {
  const round = fc.record({
    // Of the subscriptions one in so many finds an entry, and one in so many has an endpoint that answers.
    finding: fc.integer({ min: 1, max: 3 }),
    answering: fc.integer({ min: 1, max: 3 }),
    fates: fc.array(fc.constantFrom("done", "refused", "failed, but done"), { maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(round, { minLength: 1, maxLength: 5 }), async (rounds) => {
      const disk = new Disk();
      const work = new BackgroundWork(
        (_, run) => {
          setImmediate(run);
          return () => {};
        },
        pino({ level: "silent" }),
      );
      const mark = new WalkMark(disk as unknown as Outbox, work);
      mark.begin(0);
      const lanes = new Map<number, SubscriptionLane>();
      for (let id = 1; id <= LANES; id++) {
        const lane = new SubscriptionLane(id, {} as WebhookRow, { next: 0, waiting: 0, cursor: "none" });
        // A few are behind the walk.
        lane.isAtHead = id % 7 > 0;
        lanes.set(id, lane);
      }
      let position = 0;
      const first = (lane: SubscriptionLane) => lane.found[0] ?? (lane.isAtHead ? position : lane.next);
      const walk = {
        get position() {
          return position;
        },
        cursorOf: first,
      } as LogWalk;
      const lost: number[] = [];
      disk.onCommand = () => {
        for (const lane of lanes.values()) if (disk.start(lane.id) > first(lane)) lost.push(lane.id);
      };
      for (const { finding, answering, fates } of rounds) {
        // What was found before is delivered, which writes down where the subscription goes on.
        for (const lane of lanes.values())
          for (const entry of lane.id % answering ? [] : lane.found.splice(0)) {
            disk.cursors.set(lane.id, entry + 1);
            lane.cursor = "kept";
          }
        for (const lane of lanes.values())
          if (lane.isAtHead && lane.id % finding === 0) lane.found.push(position + lane.id);
        position += ROUND;
        disk.fates = [...fates];
        mark.whenDue(walk, lanes);
        await turns();
      }
      // Nothing is left to deliver, and nothing is refused any more.
      for (const lane of lanes.values()) {
        lane.found.length = 0;
        lane.isAtHead = true;
      }
      disk.fates = [];
      for (let n = 0; n < 3; n++) {
        position += ROUND;
        mark.whenDue(walk, lanes);
        await turns();
      }
      expect(lost).toEqual([]);
      expect([disk.walked, disk.cursors.size]).toEqual([position, 0]);
    }),
    { numRuns: 15 },
  );
});
