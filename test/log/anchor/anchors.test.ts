/** Anchors in the log itself: rows beside the entries, their totals, and the proof at the end of a served entry. */
import { describe, expect, test } from "vitest";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { openTestLog } from "../harness.js";

const note = { event_type: "note", payload: { text: "an entry }" } };
const [one, two] = [Buffer.from("a proof \0 of bytes"), Buffer.from("a longer proof")] as const;
const pending = { proof: one, status: "pending", isSettled: false } as const;
const confirmed = { proof: two, status: "confirmed", isSettled: true } as const;
const FIRST = 1_700_000_000_000_000;

/** A log of four entries and a stopped clock. */
async function openAnchored(): Promise<{ log: LogWriter; path: string; clock: { now: number } }> {
  const clock = { now: FIRST };
  const { log, path } = await openTestLog({ clock: () => clock.now });
  await log.append([note, note, note, note]);
  return { log, path, clock };
}

const at = (seconds: number) => new Date(FIRST / 1000 + seconds * 1000).toISOString().replace("Z", "000Z");
const unsettled = (log: LogWriter) => [...log.anchors.unsettled()];

test("without any there is nothing", async () => {
  const { log } = await openAnchored();
  expect(log.anchors.totals).toEqual({ newest: -1, pending: 0, confirmed: 0 });
  expect(log.anchors.row(0)).toBeUndefined();
  expect(log.anchors.oldestPending()).toBeNull();
  expect(unsettled(log)).toEqual([]);
  const json = Buffer.from(log.entryJsonAt(0)!);
  expect(log.anchors.join(0, json)).toBe(json);
  expect(log.entryAt(0)).not.toHaveProperty("ots_proof");
});

describe("an anchor", () => {
  test("comes, grows, and keeps the moment at which it came", async () => {
    const { log, path, clock } = await openAnchored();
    expect(await log.anchors.replace(log, 2, undefined, pending)).toBe(true);
    expect(log.anchors.row(2)).toEqual({ proof: one, status: "pending", anchored_at: at(0), updated_at: at(0) });
    expect(log.anchors.totals).toEqual({ newest: 2, pending: 1, confirmed: 0 });
    expect(unsettled(log)).toEqual([{ leafIndex: 2, status: "pending", anchored_at: at(0) }]);
    expect(log.anchors.oldestPending()).toBe(at(0));

    clock.now += 5_000_000;
    // The same proof again: only the status changed.
    expect(await log.anchors.replace(log, 2, one, { ...pending, status: "confirmed" })).toBe(true);
    expect(log.anchors.row(2)).toEqual({ proof: one, status: "confirmed", anchored_at: at(0), updated_at: at(0) });
    expect(log.anchors.totals).toEqual({ newest: 2, pending: 0, confirmed: 1 });
    expect(unsettled(log)).toEqual([{ leafIndex: 2, status: "confirmed", anchored_at: at(0) }]);
    expect(log.anchors.oldestPending()).toBeNull();

    expect(await log.anchors.replace(log, 2, one, confirmed)).toBe(true);
    expect(log.anchors.row(2)).toEqual({ proof: two, status: "confirmed", anchored_at: at(0), updated_at: at(5) });
    expect(log.anchors.totals).toEqual({ newest: 2, pending: 0, confirmed: 1 });
    expect(unsettled(log)).toEqual([]);
    await log.close();
    const { log: again } = await openTestLog({ path });
    expect(again.anchors.totals).toEqual({ newest: 2, pending: 0, confirmed: 1 });
    expect(again.anchors.row(2)).toMatchObject({ status: "confirmed" });
  });

  test("is not changed by a caller that has read another proof, or none", async () => {
    const { log } = await openAnchored();
    expect(await log.anchors.replace(log, 1, one, confirmed)).toBe(false);
    expect(log.anchors.row(1)).toBeUndefined();
    await log.anchors.replace(log, 1, undefined, pending);
    for (const base of [undefined, two, one.subarray(1)])
      expect(await log.anchors.replace(log, 1, base, confirmed)).toBe(false);
    expect(log.anchors.row(1)).toMatchObject({ proof: one, status: "pending" });
    expect(log.anchors.totals).toEqual({ newest: 1, pending: 1, confirmed: 0 });
  });

  test("is the last member of its entry, and of no other", async () => {
    const { log } = await openAnchored();
    const before = log.entryJsonAt(3)!.toString();
    await log.anchors.replace(log, 3, undefined, pending);
    await log.anchors.replace(log, 0, undefined, confirmed);
    expect(log.entryJsonAt(3)!.toString()).toBe(`${before.slice(0, -1)},"ots_proof":"${one.toString("base64")}"}`);
    expect(log.entryAt(0)).toMatchObject({ payload: note.payload, ots_proof: two.toString("base64") });
    expect(log.entryAt(1)).not.toHaveProperty("ots_proof");
    // The highest index, not the latest anchor.
    expect(log.anchors.totals).toEqual({ newest: 3, pending: 1, confirmed: 1 });
    expect(await log.verify()).toMatchObject({ valid: true });
  });
});

test("incomplete anchors come oldest entry first, and the time of the oldest one is reported", async () => {
  const { log, clock } = await openAnchored();
  await log.anchors.replace(log, 3, undefined, pending);
  clock.now += 1_000_000;
  await log.anchors.replace(log, 1, undefined, pending);
  await log.anchors.replace(log, 0, undefined, { ...confirmed, isSettled: false });
  expect(unsettled(log).map(({ leafIndex }) => leafIndex)).toEqual([0, 1, 3]);
  expect(log.anchors.oldestPending()).toBe(at(1));
});
