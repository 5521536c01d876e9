/**
 * Calendars that are slow, wrong or hostile: the log continues, no other address is contacted, and proofs of the other
 * calendars are kept.
 */
import { pino } from "pino";
import { describe, expect, test, vi } from "vitest";
import type { Log } from "#cairnlog/engine/log/log.js";
import { systemClock } from "#cairnlog/engine/log/state/clock.js";
import { otsCommitments, parseOtsFile } from "#cairnlog/engine/verify/ots/ots.js";
import { Anchoring } from "#cairnlog/server/anchoring/anchoring.js";
import { openTestLog } from "../log/harness.js";
import { append, attestation, bitcoin, hex, PENDING, pending } from "../verify/ots/otsbytes.js";
import { confirmation, type Misanswer, startCalendar, type TestCalendar } from "./calendar.js";

const logger = pino({ level: "silent" });
const note = (n: number) => ({ event_type: "note", payload: { n } });

/** More patience than a test has. */
const ENDLESS = 2 ** 30;

async function world(calendarCount: number, timeoutMs = 30_000) {
  const calendars = await Promise.all(Array.from({ length: calendarCount }, startCalendar));
  const { log } = await openTestLog();
  await log.append(note(0));
  const uris = calendars.map(({ url }) => url);
  let ahead = 0;
  const clock = () => systemClock() + ahead;
  // A promise is asked about again when its age has grown by an eighth. On a slow machine that may take longer than a
  // test.
  const wait = () => {
    ahead += 3_600_000_000;
  };
  return {
    log,
    calendars,
    wait,
    anchoring: new Anchoring({ log, writer: log, calendars: uris, logger, timeoutMs, clock }),
  };
}

const commitments = (log: Log, id = 1) =>
  otsCommitments(parseOtsFile(Buffer.from(log.entry(id)!.ots_proof!, "base64")).timestamp);
const END = (calendar: TestCalendar) => hex("00", pending(calendar.url));

/** Answers that are not a timestamp. */
const WRONG: [string, (calendar: TestCalendar) => Misanswer, RegExp][] = [
  ["an error", () => ({ status: 500, body: "oops" }), /answered with status 500/],
  ["not found", () => ({ status: 404, body: "nothing here" }), /answered with status 404/],
  ["garbage", () => ({ body: "<html>Welcome</html>" }), /something else than a timestamp/],
  ["nothing", () => ({ body: "" }), /something else than a timestamp/],
  ["half a timestamp", (calendar) => ({ body: END(calendar).subarray(0, -1) }), /something else than a timestamp/],
  ["more after its timestamp", (calendar) => ({ body: hex(END(calendar), "00") }), /something else than a timestamp/],
  ["too much", () => ({ body: Buffer.alloc(10_001) }), /more than 10000 bytes/],
  ["megabytes", () => ({ body: Buffer.alloc(32 << 20) }), /more than 10000 bytes/],
  ["operations nested without end", () => ({ body: hex("08".repeat(9_990)) }), /something else than a timestamp/],
  ["messages that grow", () => ({ body: hex(append(Buffer.alloc(4000)), "f3f3") }), /something else than a timestamp/],
  [
    "an address of another alphabet",
    () => ({ body: hex("00", pending("http://x/?a=1&b=%0d%0a")) }),
    /something else than a timestamp/,
  ],
  ["a length that lies", () => ({ body: hex("00", PENDING, "ffffffffffffff7f") }), /something else than a timestamp/],
  [
    "what nobody knows",
    () => ({ body: hex("00", attestation("0102030405060708", Buffer.alloc(4))) }),
    /promised nothing that is known/,
  ],
  [
    "a flood of promises",
    () => ({ body: hex(...Array.from({ length: 8 }, (_, i) => hex("ff00", pending(`p${i}`))), "00", pending("last")) }),
    /more than 8 attestations/,
  ],
  ["the way to somewhere else", () => ({ status: 302, headers: { location: "/digest" }, body: "" }), /status 302/],
];

describe.each(WRONG)("a calendar that answers with %s", (_, misanswer, reason) => {
  test("alone is told of, and nothing is written", async () => {
    const { log, calendars, anchoring } = await world(1);
    const [calendar] = calendars;
    calendar!.misbehave = () => misanswer(calendar!);
    const refusal = expect(anchoring.anchor()).rejects;
    await refusal.toMatchObject({ code: "calendars-unavailable", message: expect.stringMatching(reason) });
    expect(calendar!.requests).toHaveLength(1);
    expect(anchoring.failures).toBe(1);
    expect(log.entry(1)).not.toHaveProperty("ots_proof");
    expect(anchoring.status()).toMatchObject({ proof_status: "none", anchored_at: null });
    // What failed is not remembered.
    calendar!.misbehave = null;
    expect(await anchoring.anchor()).toMatchObject({ anchored_entry_id: 1 });
    expect(anchoring.status()).toMatchObject({ proof_status: "pending" });
  });

  test("beside another does not matter, nor later", async () => {
    const { log, calendars, wait, anchoring } = await world(2);
    const [wrong, right] = calendars;
    wrong!.misbehave = () => misanswer(wrong!);
    await anchoring.anchor();
    expect(anchoring.failures).toBe(1);
    expect(commitments(log)).toEqual([{ kind: "pending", uri: right!.url }]);
    right!.misbehave = () => misanswer(right!);
    const { ots_proof } = log.entry(1)!;
    await anchoring.upgrade();
    expect(log.entry(1)!.ots_proof).toBe(ots_proof);
    right!.misbehave = null;
    right!.height = 5;
    wait();
    await anchoring.upgrade();
    expect(anchoring.status().proof_status).toBe("confirmed");
  });
});

describe("a calendar that never answers", () => {
  test("does not hold up appends, and the entry that was newest then is the one that is anchored", async () => {
    const { log, calendars, anchoring } = await world(2);
    const [silent, right] = calendars;
    silent!.misbehave = () => null;
    const anchored = anchoring.anchor();
    await Promise.all([silent!.seen(1), right!.seen(1)]);
    for (let n = 1; n <= 100; n++) await log.append(note(n));
    expect(log.size).toBe(101);
    expect(log.entry(1)).not.toHaveProperty("ots_proof");
    await silent!.close();
    expect(await anchored).toMatchObject({ anchored_entry_id: 1 });
    expect(commitments(log)).toEqual([{ kind: "pending", uri: right!.url }]);
    expect(anchoring.status()).toMatchObject({ anchored_entry_id: 1, entries_since_anchor: 100 });
    expect(await log.verify()).toMatchObject({ valid: true });
    expect(log.stateDifferences()).toEqual([]);
  });

  test("is given up after its time", async () => {
    const { calendars, anchoring } = await world(1, 50);
    calendars[0]!.misbehave = () => null;
    await expect(anchoring.anchor()).rejects.toMatchObject({
      code: "calendars-unavailable",
      message: `No calendar answered: ${calendars[0]!.url} did not answer in 0.05 seconds.`,
    });
  });

  test("does not hold up the end of the service", async () => {
    const { log, calendars, anchoring } = await world(1, ENDLESS);
    calendars[0]!.misbehave = () => null;
    const refused = expect(anchoring.anchor()).rejects.toMatchObject({ code: "closed" });
    await calendars[0]!.seen(1);
    await anchoring.stop();
    await refused;
    await log.close();
  });

  test("nor does it while promises are being asked about", async () => {
    const { log, calendars, anchoring } = await world(1, ENDLESS);
    await anchoring.anchor();
    calendars[0]!.misbehave = () => null;
    const timers = vi.spyOn(globalThis, "setTimeout");
    anchoring.start(12_345);
    await calendars[0]!.seen(2);
    await anchoring.stop();
    await log.close();
    expect(calendars[0]!.requests).toHaveLength(2);
    // Nor is another round waited for.
    expect(timers.mock.calls.filter(([, milliseconds]) => milliseconds === 12_345_000)).toEqual([]);
    timers.mockRestore();
  });

  test("is asked once in a round, not once for every anchor", async () => {
    const { log, calendars, anchoring } = await world(2, 2_000);
    const [silent, right] = calendars;
    for (let n = 1; n <= 3; n++) {
      await anchoring.anchor();
      await log.append(note(n));
    }
    const before = silent!.requests.length;
    silent!.misbehave = () => null;
    right!.height = 5;
    await anchoring.upgrade();
    expect(silent!.requests.length - before).toBe(1);
    expect(log.anchors.totals).toMatchObject({ confirmed: 3, pending: 0 });
  });

  test("nowhere is a connection that is refused", async () => {
    const { calendars, anchoring } = await world(1);
    await calendars[0]!.close();
    await expect(anchoring.anchor()).rejects.toMatchObject({ message: expect.stringMatching(/cannot be reached\.$/) });
  });
});

describe("a hostile calendar", () => {
  test("cannot make the service contact anything else, however it promises and redirects", async () => {
    const { log, calendars, anchoring } = await world(2);
    const [hostile, right] = calendars;
    const target = await startCalendar();
    hostile!.misbehave = () => ({ body: hex("ff00", pending(`${target.url}/a`), "00", pending(target.url)) });
    await anchoring.anchor();
    const location = `${target.url}/timestamp/00`;
    hostile!.misbehave = () => ({ status: 307, headers: { location }, body: "" });
    right!.misbehave = () => ({ status: 301, headers: { location }, body: "" });
    await anchoring.upgrade();
    expect(target.requests).toEqual([]);
    expect(anchoring.status().proof_status).toBe("pending");
    expect(commitments(log)).toHaveLength(3);
  });

  test("that claims a block at once does not keep the others from being asked", async () => {
    const { log, calendars, anchoring } = await world(2);
    const [hostile, right] = calendars;
    hostile!.misbehave = () => ({ body: confirmation(1) });
    await anchoring.anchor();
    expect(anchoring.status().proof_status).toBe("confirmed");
    right!.height = 800_000;
    await anchoring.upgrade();
    const heights = commitments(log).flatMap((each) => (each.kind === "bitcoin" ? [each.height] : []));
    expect(heights.sort()).toEqual([1, 800_000]);
  });

  test.each([414, 431])(
    "that promises in the name of another what that refuses with %i leaves none of its proofs out",
    async (status) => {
      const { log, calendars, anchoring } = await world(2);
      const [hostile, right] = calendars;
      right!.tooLong = status;
      hostile!.misbehave = () => ({ body: hex(append(Buffer.alloc(4_000)), "00", pending(right!.url)) });
      await anchoring.anchor();
      await log.append(note(1));
      await anchoring.anchor();
      right!.height = 800_000;
      await anchoring.upgrade();
      expect(log.anchors.totals).toMatchObject({ confirmed: 2, pending: 0 });
    },
  );

  test("that answers with what is too deep to be added is left out", async () => {
    const { log, calendars, wait, anchoring } = await world(2);
    const [hostile, right] = calendars;
    // The maximum depth of a timestamp alone. Nonce and hash precede it in the proof.
    const deep = hex("08".repeat(255), "00", bitcoin(1));
    hostile!.misbehave = () => ({ body: deep });
    await anchoring.anchor();
    expect(commitments(log)).toEqual([{ kind: "pending", uri: right!.url }]);
    right!.misbehave = () => ({ body: deep });
    await anchoring.upgrade();
    expect(commitments(log)).toEqual([{ kind: "pending", uri: right!.url }]);
    right!.misbehave = null;
    right!.height = 800_000;
    wait();
    await anchoring.upgrade();
    expect(anchoring.status().proof_status).toBe("confirmed");
  });

  test("alone with such an answer is refused", async () => {
    const { log, calendars, anchoring } = await world(1);
    calendars[0]!.misbehave = () => ({ body: hex("08".repeat(255), "00", bitcoin(1)) });
    await expect(anchoring.anchor()).rejects.toMatchObject({ code: "calendars-unavailable" });
    expect(log.entry(1)).not.toHaveProperty("ots_proof");
  });

  test("cannot fill a proof: what does not fit is left out, and the rest stays", async () => {
    const { log, calendars, anchoring } = await world(8);
    for (const [i, calendar] of calendars.entries())
      calendar.misbehave = () => ({
        body: hex("ff00", attestation(`000000000000000${i}`, Buffer.alloc(8192)), END(calendar)),
      });
    await anchoring.anchor();
    const proof = Buffer.from(log.entry(1)!.ots_proof!, "base64");
    expect(proof.length).toBeLessThanOrEqual(65_536);
    expect(commitments(log).filter(({ kind }) => kind === "pending")).toHaveLength(7);
  });

  test("that answers a question with a new promise changes nothing", async () => {
    const { log, calendars, anchoring } = await world(1);
    const [calendar] = calendars;
    const { ots_proof } = await anchoring.anchor();
    calendar!.misbehave = () => ({ body: hex(append(Buffer.of(7)), END(calendar!)) });
    await anchoring.upgrade();
    expect(log.entry(1)!.ots_proof).toBe(ots_proof);
  });
});
