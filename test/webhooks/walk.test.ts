/**
 * The walk over the log, for any subscriptions that come, fall behind, catch up and end: each finds what it wants once and in
 * order, and whatever has no outcome yet is found again from its cursor on. Steps end anywhere, as on a busy machine.
 */
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { WINDOW } from "#cairnlog/engine/registry/webhooks/deliveries.js";
import { WEBHOOK_EVENTS } from "#cairnlog/engine/verify/keys/contract.js";
import { LogWalk } from "#cairnlog/server/webhooks/log-walk.js";
import { SubscriptionLane } from "#cairnlog/server/webhooks/subscription-lane.js";

afterEach(() => {
  vi.restoreAllMocks();
});

/** What the entry of a leaf is told as; every fourth one is not told. */
const eventOf = (leaf: number) => (leaf % 4 ? WEBHOOK_EVENTS[(leaf * leaf) % 3] : undefined);

const commands = fc.array(
  fc.oneof(
    fc.record({ does: fc.constant("join" as const), wants: fc.nat(3), from: fc.nat(600) }),
    fc.record({ does: fc.constantFrom("settle" as const, "fail" as const), lane: fc.nat(9), count: fc.nat(70) }),
    fc.record({ does: fc.constantFrom("give up" as const, "leave" as const), lane: fc.nat(9), count: fc.constant(0) }),
    fc.record({ does: fc.constant("grow" as const), by: fc.nat(300) }),
    fc.record({ does: fc.constant("step" as const), times: fc.nat(4) }),
  ),
  { minLength: 5, maxLength: 40 },
);

test("nothing is found twice, and nothing is lost", () => {
  fc.assert(
    fc.property(
      commands,
      fc.array(fc.double({ min: 0.001, max: 1.5, noNaN: true }), { minLength: 3 }),
      (all, paces) => {
        let [now, looks] = [0, 0];
        vi.spyOn(performance, "now").mockImplementation(() => {
          now += paces[looks++ % paces.length]!;
          return now;
        });
        let size = 0;
        const told = { created_at: "", payload: {} };
        const eventAt = (leaf: number) => {
          const event = eventOf(leaf);
          return event && { event, entry_id: leaf + 1, ...told };
        };
        const walk = new LogWalk(
          {
            eventAt,
            get size() {
              return size;
            },
          },
          0,
          () => {},
        );
        /** Each with what it has from the log, and how much of that has an outcome. */
        const lanes = new Map<SubscriptionLane, { from: number; had: number[] }>();
        const chosen = (number: number) => [...lanes.keys()][number % Math.max(1, lanes.size)];
        const wanted = (lane: SubscriptionLane, from: number, to: number) =>
          Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i).filter((leaf) => {
            const event = eventOf(leaf);
            return event && (!lane.events.length || lane.events.includes(event));
          });
        const settle = (lane: SubscriptionLane, count: number, failed: number) => {
          lanes.get(lane)!.had.push(...lane.found.splice(0, count));
          lane.waiting += failed;
          walk.refill(lane);
        };
        const check = () => {
          for (const [lane, { from, had }] of lanes) {
            const cursor = walk.cursorOf(lane);
            expect(lane.found.length).toBeLessThanOrEqual(WINDOW);
            // In order and once, from the beginning on; and all before the cursor has its outcome.
            const seen = [...had, ...lane.found];
            expect(`${seen}`).toBe(`${wanted(lane, from, (seen.at(-1) ?? -1) + 1)}`);
            expect(`${had}`).toBe(`${wanted(lane, from, cursor)}`);
          }
        };
        let id = 0;
        for (const command of all) {
          const lane = "lane" in command ? chosen(command.lane) : undefined;
          if (command.does === "join") {
            const next = Math.min(command.from, size);
            const row = { owner_fingerprint: "", key_fingerprint: null, document_hash: null };
            const events = WEBHOOK_EVENTS.slice(0, command.wants);
            const joining = new SubscriptionLane(++id, { ...row, events } as never, {
              next,
              waiting: 0,
              cursor: "none",
            });
            lanes.set(joining, { from: next, had: [] });
            walk.join(joining);
          } else if (command.does === "grow") size += command.by;
          else if (command.does === "step") for (let n = 0; n < command.times; n++) walk.step();
          else if (!lane) continue;
          else if (command.does === "leave") {
            walk.leave(lane);
            lanes.delete(lane);
          } else if (command.does === "give up") {
            lane.waiting = 0;
            walk.refill(lane);
          } else {
            const count = Math.min(command.count, lane.found.length);
            settle(lane, count, command.does === "fail" ? count : 0);
          }
          check();
        }
        for (const lane of lanes.keys()) lane.waiting = 0;
        for (let hasMore = true; hasMore; ) {
          for (const lane of lanes.keys()) settle(lane, lane.found.length, 0);
          hasMore = walk.step() || [...lanes.keys()].some(({ found }) => found.length > 0);
          check();
        }
        for (const [lane, { from, had }] of lanes) expect(`${had}`).toBe(`${wanted(lane, from, size)}`);
      },
    ),
    { numRuns: 40 },
  );
});
