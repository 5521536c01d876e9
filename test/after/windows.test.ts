/**
 * Counts in windows of time: a window begins with the first use after the one before, not at its end. One that began at the
 * old end would be over too soon, and let twice as much pass.
 */
import { expect, test } from "vitest";
import { appendEvents } from "#cairnlog/engine/log/state/commands.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { Tries } from "#cairnlog/engine/registry/access/tries.js";
import { takeFromQuota } from "#cairnlog/engine/registry/shared/quota.js";
import { openTestLog } from "../log/harness.js";
import { runIn } from "../log/inline.js";

const SECOND = 1_000_000;
const HOUR_S = 3_600;
/** Uses that pass in a window. */
const LIMIT = 2;
const events = [{ event_type: "note", payload: { text: "a payload" } }];
const BYTES = Buffer.byteLength(JSON.stringify(events[0]!.payload));

/** One use. @throws when the window is used up */
type Use = () => Promise<unknown>;

const quota =
  (hours: number) =>
  (log: LogWriter): Use =>
  () =>
    runIn(log, (transaction) =>
      takeFromQuota(transaction, ["claim-bytes", "a key"], LIMIT, { amount: 1, hours, unit: "" }),
    );

const WINDOWS: readonly [name: string, seconds: number, (log: LogWriter, clock: () => number) => Use][] = [
  ["a quota of an hour", HOUR_S, quota(1)],
  ["a quota of a day", 24 * HOUR_S, quota(24)],
  [
    "a budget of bytes",
    24 * HOUR_S,
    (log) => () => log.execute(appendEvents, { events }, { client: "192.0.2.1", isReached: false }),
  ],
  [
    "wrong tries",
    900,
    (_, clock) => {
      const tries = new Tries({ limit: LIMIT, windowSeconds: 900, clock });
      return async () => void tries.take("a name");
    },
  ],
];

test.each(WINDOWS)("%s: each window begins with its first use, however long nobody came", async (_, seconds, open) => {
  let now = Date.parse("2026-01-01T00:00:00Z") * 1000;
  const clock = () => now;
  const { log } = await openTestLog({ clock, budgets: { perAddress: LIMIT * BYTES, fromStrangers: null } });
  const use = open(log, clock);
  const refused = () => expect(use()).rejects.toMatchObject({ retryAfter: expect.any(Number) });
  for (const idle of [1, 1.5, 2.9, 1.1]) {
    for (let uses = 0; uses < LIMIT; uses++) await use();
    await refused();
    // To the last second of this window.
    now += (seconds - 1) * SECOND;
    await refused();
    now += (seconds * (idle - 1) + 1) * SECOND;
  }
});
