/** Entries as they are served: always the same bytes, for any number and order of requests. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { openTestLog } from "../harness.js";

test("an entry that is kept is the entry", async () => {
  const { log } = await openTestLog();
  const events = Array.from({ length: 400 }, (_, i) => ({
    event_type: "note",
    payload: { i, text: "x".repeat(i % 50 ? i : 6_000) },
  }));
  await log.append(events);
  const plain = events.map((_, index) => Buffer.from(log.entryJsonAt(index)!));
  plain.forEach((json, index) => {
    expect(JSON.parse(json.toString()).payload).toEqual(events[index]!.payload);
  });
  fc.assert(
    fc.property(fc.array(fc.nat(events.length - 1), { maxLength: 600 }), (indexes) => {
      for (const index of indexes) expect(log.entryJsonAt(index)!.equals(plain[index]!)).toBe(true);
    }),
  );
  await log.close();
});
