/**
 * Anchoring of a real log through well-behaved calendars: the rows that are written, the proofs that are served, and
 * how an anchor is confirmed.
 */
import { EventEmitter, once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import type { LogOptions } from "#cairnlog/engine/log/start.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { otsCommitments, parseOtsFile } from "#cairnlog/engine/verify/ots/ots.js";
import { Anchoring } from "#cairnlog/server/anchoring/anchoring.js";
import { openFaultyLog, openTestLog } from "../log/harness.js";
import { confirmation, startCalendar, type TestCalendar } from "./calendar.js";

const HOUR = 3_600_000_000;
const DAY = 24 * HOUR;
const START = Date.parse("2025-01-01T00:00:00Z") * 1000;
const logger = pino({ level: "silent" });
const note = (n: number) => ({ event_type: "note", payload: { n, tags: ["note"] } });

const anchoringOf = (
  log: LogWriter,
  calendars: readonly TestCalendar[],
  more: Partial<ConstructorParameters<typeof Anchoring>[0]> = {},
) => new Anchoring({ log, writer: log, calendars: calendars.map(({ url }) => url), logger, ...more });

async function world(calendarCount: number, options: Partial<LogOptions> = {}) {
  const calendars = await Promise.all(Array.from({ length: calendarCount }, startCalendar));
  const time = { now: START };
  const clock = () => time.now;
  const { log, path } = await openTestLog({ clock, ...options });
  for (let n = 0; n < 3; n++) await log.append(note(n));
  return { log, path, calendars, time, clock, anchoring: anchoringOf(log, calendars, { clock }) };
}

function commitments(proof: string | undefined) {
  return otsCommitments(parseOtsFile(Buffer.from(proof!, "base64")).timestamp);
}

/** Asserts that no hashed, proven or derived data has changed. */
async function expectWhole(log: LogWriter): Promise<void> {
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: log.size, errors: [], warnings: [] });
  expect(log.stateDifferences()).toEqual([]);
}

describe("anchoring", () => {
  test("gives the newest entry a proof over its hash, promised by every calendar", async () => {
    const { log, calendars, anchoring } = await world(2);
    const before = log.entry(3)!;
    const answer = await anchoring.anchor();
    expect(answer).toMatchObject({ anchored_entry_id: 3, entry_hashes: before.entry_hashes });
    const file = parseOtsFile(Buffer.from(answer.ots_proof, "base64"));
    expect(file.hash).toBe("sha256");
    expect(Buffer.from(file.timestamp.message).toString("hex")).toBe(before.entry_hash);
    const uris = calendars.map(({ url }) => url).sort();
    const promises = otsCommitments(file.timestamp).map((each) => (each.kind === "pending" ? each.uri : each.kind));
    expect(promises.sort()).toEqual(uris);
    for (const { requests } of calendars) {
      expect(requests).toMatchObject([
        { method: "POST", path: "/digest", accept: "application/vnd.opentimestamps.v1" },
      ]);
      expect(requests[0]!.body).toHaveLength(32);
      // The calendar gets no hash of the log.
      expect(requests[0]!.body.toString("hex")).not.toBe(before.entry_hash);
    }
    expect(log.entry(3)).toEqual({ ...before, ots_proof: answer.ots_proof });
    await expectWhole(log);
  });

  test("is joined to the entry wherever it is served, as its last member, and nowhere else", async () => {
    const { log, anchoring } = await world(1);
    const bare = log.entryJson(3)!.toString();
    const { ots_proof } = await anchoring.anchor();
    await log.append(note(3));
    const joined = `${bare.slice(0, -1)},"ots_proof":"${ots_proof}"}`;
    expect(log.entryJson(3)!.toString()).toBe(joined);
    for (const criteria of [{}, { tags: ["note"] }]) {
      const texts = log.find(criteria, 0, 10).entries.map(String);
      expect(texts[2]).toBe(joined);
      expect(texts.filter((text) => text.includes("ots_proof"))).toHaveLength(1);
    }
    expect(log.inclusionProof(2).entry_hash).toBe(log.entry(3)!.entry_hash);
    await expectWhole(log);
  });

  test("asked for again gives the same proof and asks nobody; calls at one time share one run", async () => {
    const { calendars, anchoring } = await world(1);
    const [one, two] = await Promise.all([anchoring.anchor(), anchoring.anchor()]);
    expect(two).toEqual(one);
    expect(await anchoring.anchor()).toEqual(one);
    expect(calendars[0]!.requests).toHaveLength(1);
  });

  test("of an entry whose newest promise is a day old asks again, and keeps all promises", async () => {
    const { calendars, anchoring, time, log } = await world(1);
    const one = await anchoring.anchor();
    time.now += DAY;
    const two = await anchoring.anchor();
    expect(calendars[0]!.requests).toHaveLength(2);
    expect(commitments(one.ots_proof)).toHaveLength(1);
    expect(commitments(two.ots_proof)).toHaveLength(2);
    expect(log.anchors.row(2)).toMatchObject({
      anchored_at: "2025-01-01T00:00:00.000000Z",
      updated_at: "2025-01-02T00:00:00.000000Z",
      status: "pending",
    });
    expect(log.anchors.totals).toEqual({ newest: 2, pending: 1, confirmed: 0 });
    time.now += DAY - 1;
    expect(await anchoring.anchor()).toEqual(two);
    time.now += 1;
    expect(commitments((await anchoring.anchor()).ots_proof)).toHaveLength(3);
    expect(calendars[0]!.requests).toHaveLength(3);
  });

  test("by several at once: every promise that was answered is stored", async () => {
    const { log, calendars, clock } = await world(5);
    await Promise.all(calendars.map((calendar) => anchoringOf(log, [calendar], { clock }).anchor()));
    const uris = commitments(log.entry(3)!.ots_proof).map((each) => (each.kind === "pending" ? each.uri : each.kind));
    expect(uris.sort()).toEqual(calendars.map(({ url }) => url).sort());
  });

  test("of an entry whose proof grows while calendars are asked again answers what is stored, with all of it", async () => {
    const { log, calendars, time, clock } = await world(3);
    const [answering, silent, other] = calendars as [TestCalendar, TestCalendar, TestCalendar];
    const anchoring = anchoringOf(log, [answering, silent], { clock });
    await anchoring.anchor();
    time.now += DAY;
    silent.misbehave = () => null;
    const asked = silent.requests.length;
    const again = anchoring.anchor();
    await silent.seen(asked + 1);
    await anchoringOf(log, [other], { clock }).anchor();
    const promised = [answering.url, answering.url, silent.url, other.url];
    await silent.close();
    const { ots_proof } = await again;
    expect(log.entry(3)!.ots_proof).toBe(ots_proof);
    const uris = commitments(ots_proof).map((each) => (each.kind === "pending" ? each.uri : each.kind));
    expect(uris.sort()).toEqual(promised.sort());
  });

  test("of an empty log, or without calendars, is refused and writes nothing", async () => {
    const { log } = await openTestLog();
    await expect(anchoringOf(log, []).anchor()).rejects.toMatchObject({
      code: "precondition-failed",
      message: "No entries to anchor",
    });
    await log.append(note(0));
    await expect(anchoringOf(log, []).anchor()).rejects.toMatchObject({ code: "calendars-unavailable" });
    expect(log.entry(1)).not.toHaveProperty("ots_proof");
  });

  test("is kept over a restart, and so is what is still to be asked", async () => {
    const { log, path, calendars, anchoring, clock } = await world(1);
    const { ots_proof } = await anchoring.anchor();
    const head = log.head();
    await log.close();
    const { log: again } = await openTestLog({ path, clock });
    expect(again.head()).toEqual(head);
    expect(again.entry(3)!.ots_proof).toBe(ots_proof);
    expect(again.entry(2)).not.toHaveProperty("ots_proof");
    const reopened = anchoringOf(again, calendars, { clock });
    expect(reopened.status()).toMatchObject({ anchored_entry_id: 3, proof_status: "pending" });
    calendars[0]!.height = 800_000;
    await reopened.upgrade();
    expect(reopened.status()).toMatchObject({ anchored_entry_id: 3, proof_status: "confirmed" });
    await expectWhole(again);
  });
});

describe("the status", () => {
  test("tells what is anchored, and when it is due: after a day or 1000 entries, if there is anything", async () => {
    const { log, anchoring, time } = await world(1);
    const none = { anchored_entry_id: null, anchored_at: null, proof_status: "none" };
    expect(anchoring.status()).toEqual({ ...none, entries_since_anchor: 3, anchor_due: false });
    time.now += DAY;
    expect(anchoring.status()).toMatchObject({ entries_since_anchor: 3, anchor_due: true });
    await anchoring.anchor();
    const anchored = { anchored_entry_id: 3, anchored_at: "2025-01-02T00:00:00.000000Z", proof_status: "pending" };
    expect(anchoring.status()).toEqual({ ...anchored, entries_since_anchor: 0, anchor_due: false });
    time.now += DAY;
    expect(anchoring.status().anchor_due).toBe(false);
    await log.append(note(3));
    expect(anchoring.status()).toEqual({ ...anchored, entries_since_anchor: 1, anchor_due: true });
    await anchoring.anchor();
    await log.append(Array.from({ length: 999 }, (_, n) => note(n)));
    expect(anchoring.status()).toMatchObject({ entries_since_anchor: 999, anchor_due: false });
    await log.append(note(0));
    expect(anchoring.status()).toMatchObject({ entries_since_anchor: 1000, anchor_due: true });
  });

  test("a proof that comes later is no new anchor: what is due stays due", async () => {
    const { log, calendars, anchoring, time } = await world(1);
    await anchoring.anchor();
    const { anchored_at } = anchoring.status();
    time.now += DAY;
    await log.append(note(3));
    calendars[0]!.height = 800_000;
    await anchoring.upgrade();
    expect(anchoring.status()).toMatchObject({ anchored_at, proof_status: "confirmed", anchor_due: true });
  });

  test("of an empty log", async () => {
    const { log } = await openTestLog();
    const status = { anchored_entry_id: null, anchored_at: null, proof_status: "none" };
    expect(anchoringOf(log, []).status()).toEqual({ ...status, entries_since_anchor: 0, anchor_due: false });
  });
});

describe("an upgrade", () => {
  test("puts the way to the block into the same proof; while there is none, nothing changes", async () => {
    const { log, calendars, anchoring, time } = await world(1);
    const [calendar] = calendars;
    const { ots_proof } = await anchoring.anchor();
    await anchoring.upgrade();
    expect(calendar!.requests).toMatchObject([{ method: "POST" }, { method: "GET", accept: /opentimestamps/ }]);
    expect(log.entry(3)!.ots_proof).toBe(ots_proof);
    calendar!.height = 800_000;
    time.now += HOUR;
    await anchoring.upgrade();
    const upgraded = log.entry(3)!.ots_proof;
    expect(commitments(upgraded)).toMatchObject([{ kind: "pending" }, { kind: "bitcoin", height: 800_000 }]);
    expect(log.anchors.row(2)).toMatchObject({ status: "confirmed", anchored_at: "2025-01-01T00:00:00.000000Z" });
    expect(log.anchors.totals).toEqual({ newest: 2, pending: 0, confirmed: 1 });
    expect([...log.anchors.unsettled()]).toEqual([]);
    expect(log.anchors.oldestPending()).toBeNull();
    const asked = calendar!.requests.length;
    time.now += DAY;
    await anchoring.upgrade();
    expect(calendar!.requests).toHaveLength(asked);
    expect((await anchoring.anchor()).ots_proof).toBe(upgraded);
    await expectWhole(log);
  });

  test("goes on to the other calendars' proofs after the first, for a week", async () => {
    const { log, calendars, anchoring, time } = await world(3);
    await anchoring.anchor();
    const blocks = () => commitments(log.entry(3)!.ots_proof).filter(({ kind }) => kind === "bitcoin").length;
    calendars[0]!.height = 800_000;
    await anchoring.upgrade();
    expect(blocks()).toBe(1);
    expect(log.anchors.row(2)!.status).toBe("confirmed");
    time.now += HOUR;
    calendars[1]!.height = 800_001;
    await anchoring.upgrade();
    expect(blocks()).toBe(2);
    expect([...log.anchors.unsettled()]).toHaveLength(1);
    time.now += 7 * DAY;
    await anchoring.upgrade();
    expect([...log.anchors.unsettled()]).toEqual([]);
    calendars[2]!.height = 800_002;
    time.now += 7 * DAY;
    await anchoring.upgrade();
    expect(blocks()).toBe(2);
  });

  test("of promises that are not kept is asked for ever more rarely, each by its age, and their age is told", async () => {
    const { log, calendars, anchoring, time } = await world(1);
    for (let n = 4; n <= 6; n++) {
      await anchoring.anchor();
      await log.append(note(n));
    }
    for (let hour = 0; hour < 24 * 60; hour++) {
      await anchoring.upgrade();
      time.now += HOUR;
    }
    const asked = new Map<string, number>();
    for (const { method, path } of calendars[0]!.requests)
      if (method === "GET") asked.set(path, (asked.get(path) ?? 0) + 1);
    expect(asked.size).toBe(3);
    for (const count of asked.values()) {
      expect(count).toBeGreaterThan(20);
      expect(count).toBeLessThan(80);
    }
    expect(log.anchors.oldestPending()).toBe("2025-01-01T00:00:00.000000Z");
    calendars[0]!.height = 900_000;
    time.now += 30 * DAY;
    await anchoring.upgrade();
    expect(anchoring.status()).toMatchObject({ proof_status: "confirmed" });
  });

  test("does not wait for a clock that has stepped back to be there again", async () => {
    const { calendars, anchoring, time } = await world(1);
    time.now += 365 * DAY;
    await anchoring.anchor();
    await anchoring.upgrade();
    expect(calendars[0]!.requests).toHaveLength(2);
    time.now -= 365 * DAY;
    await anchoring.upgrade();
    expect(calendars[0]!.requests).toHaveLength(3);
  });

  test("asks any configured calendar when a promise names none of them, and never the address in it", async () => {
    const { log, calendars, anchoring } = await world(1);
    const stranger = await startCalendar();
    calendars[0]!.calledAs = stranger.url;
    await anchoring.anchor();
    calendars[0]!.height = stranger.height = 800_000;
    await anchoring.upgrade();
    expect(stranger.requests).toEqual([]);
    expect(log.anchors.row(2)!.status).toBe("confirmed");
  });

  test.each(["", "/", "//"])(
    "asks a calendar about its own promises alone, with %j at the end of its address",
    async (end) => {
      const { calendars, anchoring } = await world(2);
      for (const calendar of calendars) calendar.calledAs = calendar.url + end;
      await anchoring.anchor();
      await anchoring.upgrade();
      for (const { requests } of calendars) expect(requests.map(({ method }) => method)).toEqual(["POST", "GET"]);
    },
  );

  test("that finds no proof of one entry at a calendar asks it for the others in the same round", async () => {
    const { log, calendars, anchoring } = await world(1);
    await anchoring.anchor();
    await log.append(note(4));
    await anchoring.anchor();
    const answers = [{ status: 404, body: "" }, { body: confirmation(800_000) }];
    calendars[0]!.misbehave = () => answers.shift()!;
    await anchoring.upgrade();
    expect(log.anchors.totals).toMatchObject({ confirmed: 1, pending: 1 });
  });

  test("takes nothing from a proof that has grown while calendars were asked", async () => {
    const { log, calendars, time, clock } = await world(3);
    const [answering, silent, other] = calendars as [TestCalendar, TestCalendar, TestCalendar];
    const anchoring = anchoringOf(log, [answering, silent], { clock, timeoutMs: 1_000 });
    await anchoring.anchor();
    time.now += DAY;
    answering.height = 100;
    silent.misbehave = () => null;
    const asked = silent.requests.length;
    const upgrading = anchoring.upgrade();
    await silent.seen(asked + 1);
    await anchoringOf(log, [other], { clock }).anchor();
    await upgrading;
    const uris = commitments(log.entry(3)!.ots_proof).map((each) => each.kind === "pending" && each.uri);
    expect(uris).toContain(other.url);
  });

  test("reads nothing of the log while calendars are asked, so that its file takes used pages again", async () => {
    const { log, calendars, anchoring, time } = await world(1);
    await anchoring.anchor();
    await log.append(note(4));
    await anchoring.anchor();
    time.now += DAY;
    const calendar = calendars[0]!;
    calendar.misbehave = () => null;
    const asked = calendar.requests.length;
    const upgrading = anchoring.upgrade();
    await calendar.seen(asked + 1);
    for (let n = 5; n < 15; n++) await log.append(note(n));
    expect(log.diskUsage.oldestReader).toBeLessThan(3);
    await calendar.close();
    await upgrading;
  });

  test("has stopped when a proof that is being written is on disk", async () => {
    const { log, calendars, anchoring, time, clock } = await world(1);
    await anchoring.anchor();
    time.now += DAY;
    calendars[0]!.height = 100;
    const steps = new EventEmitter();
    const execute: LogWriter["execute"] = async (...command) => {
      steps.emit("writing");
      await once(steps, "may write");
      return log.execute(...command);
    };
    const stopping = anchoringOf(log, calendars, { clock, writer: { execute } });
    const writing = once(steps, "writing");
    const upgraded = stopping.upgrade();
    await writing;
    let isStopped = false;
    const stopped = stopping.stop().then(() => {
      isStopped = true;
    });
    await setImmediate();
    expect(isStopped).toBe(false);
    steps.emit("may write");
    await Promise.all([stopped, upgraded]);
    expect(log.anchors.totals.confirmed).toBe(1);
  });

  test("runs in the background until it is stopped", async () => {
    const { log, calendars, anchoring } = await world(1);
    await anchoring.anchor();
    anchoring.start(1);
    await calendars[0]!.seen(2);
    calendars[0]!.height = 800_000;
    // The clock stands still, so every round asks.
    await expect.poll(() => log.anchors.totals.confirmed).toBe(1);
    await anchoring.stop();
    await log.close();
  });
});

test("a proof takes the place of the one that its maker has read, and of no other", async () => {
  const { log } = await world(0);
  const [one, two, three] = [1, 2, 3].map((byte) => ({
    proof: Uint8Array.of(byte),
    status: "pending" as const,
    isSettled: false,
  }));
  // Both are sent before either is on disk.
  const outcomes = [log.anchors.replace(log, 2, undefined, one!), log.anchors.replace(log, 2, undefined, two!)];
  expect(await Promise.all(outcomes)).toEqual([true, false]);
  expect(await log.anchors.replace(log, 2, two!.proof, three!)).toBe(false);
  expect([...log.anchors.row(2)!.proof]).toEqual([1]);
  expect(await log.anchors.replace(log, 2, one!.proof, { ...three!, status: "confirmed", isSettled: true })).toBe(true);
  expect([...log.anchors.row(2)!.proof]).toEqual([3]);
  expect(log.anchors.totals).toEqual({ newest: 2, pending: 0, confirmed: 1 });
  expect(await log.anchors.replace(log, 0, undefined, one!)).toBe(true);
  expect(log.anchors.totals).toEqual({ newest: 2, pending: 1, confirmed: 1 });
  expect([...log.anchors.unsettled()].map(({ leafIndex }) => leafIndex)).toEqual([0]);
});

describe("a disk that fails", () => {
  test.each(["not persisted", "persisted anyway"] as const)("while a proof is written, %s", async (fate) => {
    const calendar = await startCalendar();
    const { log, faults } = await openFaultyLog();
    await log.append(note(0));
    faults.plan = [fate];
    const anchoring = anchoringOf(log, [calendar]);
    await expect(anchoring.anchor()).rejects.toMatchObject({ code: "storage-failed" });
    // The next command reads the disk again.
    await log.append(note(1));
    expect("ots_proof" in log.entry(1)!).toBe(fate === "persisted anyway");
    expect(log.anchors.totals.pending).toBe(fate === "persisted anyway" ? 1 : 0);
    expect(await anchoring.anchor()).toMatchObject({ anchored_entry_id: 2 });
    await expectWhole(log);
  });
});
