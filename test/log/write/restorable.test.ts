import { expect, test } from "vitest";
import {
  createHistoryReader,
  MAX_ENTRY_BYTES,
  NO_PREDECESSOR,
  predecessorOf,
} from "#cairnlog/engine/log/apply/entry.js";
import { type EventInput, noProjection } from "#cairnlog/engine/log/state/projection.js";
import { openTestLog } from "../harness.js";

// What an append takes is on the log for ever: a restore of its backup, and a check of the whole log, must take it, too.

const note = (payload: object = {}) => ({ event_type: "note", payload }) as EventInput;
const long = (bytes: number) => note({ text: "x".repeat(bytes) });
const nested = (levels: number): object => (levels > 1 ? { a: nested(levels - 1) } : {});

/** The codes of the refusals of `events`; `restorable` of those that are taken. Each is appended alone, to one log. */
async function fates(events: readonly EventInput[]): Promise<string[]> {
  const { log } = await openTestLog();
  const reader = await createHistoryReader(noProjection);
  const found: string[] = [];
  for (const event of events) {
    const before = log.head();
    try {
      const { leaf_index: leafIndex, json } = await log.append(event);
      reader.read(json, before ? predecessorOf(before) : NO_PREDECESSOR, leafIndex, null);
      found.push("restorable");
    } catch (error) {
      found.push(log.size > (before?.id ?? 0) ? `recorded, though ${error}` : (error as { code: string }).code);
    }
  }
  return found;
}

test("every event that a log takes could be restored", async () => {
  const events = [
    note(),
    { event_type: "half of a pair: \ud800", payload: {} },
    { event_type: "a\u0000\u2028\u{1f600}", payload: {} },
    { event_type: "x".repeat(100_000), payload: {} },
    { event_type: "\u0000".repeat(MAX_ENTRY_BYTES / 6), payload: {} },
    note({ text: "half of a pair: \ud800" }),
    note(nested(56)),
    note(nested(57)),
    long(MAX_ENTRY_BYTES - 5_000),
    long(MAX_ENTRY_BYTES - 4_096),
    note({ text: "é".repeat(MAX_ENTRY_BYTES / 2 - 2_048) }),
    { event_type: "key_registration", payload: {} },
    { event_type: "payload_withheld", payload: {} },
  ];
  const taken = "restorable";
  const [noForm, tooLong] = ["not-i-json", "payload-too-large"];
  expect(await fates(events)).toEqual([
    ...[taken, noForm, taken, taken, tooLong, noForm, taken, noForm, taken, tooLong, tooLong],
    ...[taken, taken],
  ]);
});
