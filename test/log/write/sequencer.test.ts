/** Times of commands and heads, the limit of waiting commands, reports about batches, and an unreadable disk. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { appendEvents, type Command, type PlainEvent } from "#cairnlog/engine/log/state/commands.js";
import type { BatchReport } from "#cairnlog/engine/log/state/executor.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { openFaultyLog, openTestLog, testOperator } from "../harness.js";
import { runIn } from "../inline.js";

const releases: (() => void)[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  // A failed test must not leave a log that cannot be closed.
  for (const release of releases.splice(0)) release();
});

const event = { event_type: "note", payload: {} };
const NOON = Date.UTC(2026, 0, 1, 12) * 1000;
/** The time this number of microseconds after noon. */
const at = (micros: number) => `2026-01-01T12:00:00.${String(micros).padStart(6, "0")}Z`;

/** A clock that returns these moments in turn, in microseconds after noon, and then repeats the last one. */
function clockOf(...moments: number[]): () => number {
  return () => NOON + (moments.length > 1 ? moments.shift()! : moments[0]!);
}

const turns = async (count = 5) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** A promise that resolves when `release` is called. */
function held() {
  let release = () => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  releases.push(release);
  return { until, release };
}

describe("moments", () => {
  test("within a batch no command is earlier than the one before it, and no head than its entries", async () => {
    // The first moment is that of the log's creation, the last one that of the head.
    const { log } = await openTestLog({ clock: clockOf(0, 500, 300, 700, 600, 650) });
    const receipts = await Promise.all([0, 1, 2, 3].map(() => log.append(event)));
    expect(log.batches).toBe(1);
    expect(receipts.map(({ timestamp }) => timestamp)).toEqual([at(500), at(500), at(700), at(700)]);
    expect(receipts.map(({ sth }) => sth.timestamp)).toEqual([at(700), at(700), at(700), at(700)]);
  });

  test("no entry is earlier than the head before it, over a restart, too", async () => {
    const { log, path } = await openTestLog({ clock: clockOf(0, 100, 900) });
    expect(await log.append(event)).toMatchObject({ timestamp: at(100), sth: { timestamp: at(900) } });
    await log.close();
    const { log: again } = await openTestLog({ path, clock: clockOf(200) });
    expect(await again.append(event)).toMatchObject({ timestamp: at(900), sth: { timestamp: at(900) } });
    await again.close();
    const { log: last } = await openTestLog({ path, clock: clockOf(901, 902) });
    expect(await last.append(event)).toMatchObject({ timestamp: at(901), sth: { timestamp: at(902) } });
  });

  test("a command that is refused does not move the time", async () => {
    const { log } = await openTestLog({ clock: clockOf(0, 900, 100) });
    const refused = runIn(log, () => {
      throw new Error("refused");
    });
    const appended = log.append(event);
    await expect(refused).rejects.toThrow("refused");
    expect(await appended).toMatchObject({ timestamp: at(100), sth: { timestamp: at(100) } });
  });

  test("what a command without events saw is not later than what comes after it", async () => {
    const { log } = await openTestLog({ clock: clockOf(0, 900, 100) });
    const [{ value }, { timestamp }] = await Promise.all([
      runIn(log, (transaction) => transaction.timestamp),
      log.append(event),
    ]);
    expect([value, timestamp]).toEqual([at(900), at(900)]);
  });
});

describe("waiting", () => {
  test("16,384 commands may wait where nobody says otherwise, and the next one is refused at once", async () => {
    const { log } = await openTestLog();
    const accepted = Array.from({ length: 16_384 }, (_, n) => runIn(log, () => n));
    expect(log.queued).toBe(16_384);
    await expect(runIn(log, () => -1)).rejects.toMatchObject({ code: "overloaded" });
    expect(log.queued).toBe(16_384);
    const values = (await Promise.all(accepted)).map(({ value }) => value);
    expect(values).toEqual(Array.from(values, (_, n) => n));
    expect(log.queued).toBe(0);
    await expect(runIn(log, () => "again")).resolves.toMatchObject({ value: "again" });
  });

  test("while a batch is on its way, the 128th command makes the next one worth forming", async () => {
    const { log, faults } = await openFaultyLog();
    const { until, release } = held();
    faults.hold = until;
    const appends = [log.append(event)];
    await turns();
    for (let n = 0; n < 127; n++) appends.push(log.append(event));
    await turns();
    expect(log.queued).toBe(127);
    appends.push(log.append(event));
    await turns();
    expect(log.queued).toBe(0);
    release();
    await Promise.all(appends);
    expect(log.batches).toBe(2);
  });

  test("fewer are formed as soon as the disk is free", async () => {
    const { log, faults } = await openFaultyLog();
    const { until, release } = held();
    faults.hold = until;
    const first = log.append(event);
    await turns();
    const second = log.append(event);
    await turns();
    expect(log.queued).toBe(1);
    release();
    await Promise.all([first, second]);
    expect([log.queued, log.batches]).toEqual([0, 2]);
  });
});

describe("callbacks instead of a promise", () => {
  const refusing = { name: "inline", run: () => refuse() };
  const refuse = () => {
    throw new Error("refused");
  };

  test("each is called once, when the disk has the batch, in the order of the commands", async () => {
    const { log, faults } = await openFaultyLog();
    const { until, release } = held();
    faults.hold = until;
    const answers: unknown[] = [];
    const enqueue = (command: Command<{ readonly events: readonly PlainEvent[] }, void>) =>
      log.enqueue(
        command,
        { events: [event] },
        ({ receipts }) => answers.push([log.size, receipts[0]!.leaf_index]),
        (error) => answers.push((error as Error).message),
      );
    enqueue(appendEvents);
    enqueue(refusing);
    enqueue(appendEvents);
    await turns();
    expect(answers).toEqual([]);
    release();
    await expect.poll(() => answers.length, { interval: 1 }).toBe(3);
    await turns();
    expect(answers).toEqual([[2, 0], "refused", [2, 1]]);
  });

  test("a command that is not accepted is refused at once", async () => {
    const { log } = await openTestLog({ queueLimit: 1 });
    const codes: unknown[] = [];
    const enqueue = (refused: (error: unknown) => void) =>
      log.enqueue(appendEvents, { events: [event] }, () => {}, refused);
    const note = (error: unknown) => codes.push((error as { code: string }).code);
    enqueue(note);
    enqueue(note);
    expect(codes).toEqual(["overloaded"]);
    const closing = log.close();
    enqueue(note);
    expect(codes).toEqual(["overloaded", "closed"]);
    await closing;
    expect(codes).toHaveLength(2);
  });
});

describe("the report of a batch", () => {
  test("has its entries and the seconds of each stage, and comes when it is on disk", async () => {
    let milliseconds = 1_000;
    vi.spyOn(performance, "now").mockImplementation(() => milliseconds);
    const signer = {
      ...testOperator,
      sign: (messages: readonly Uint8Array[]) => {
        milliseconds += 500;
        return testOperator.sign(messages);
      },
    };
    const { log, faults } = await openFaultyLog({ signer, clock: () => NOON });
    const reports: [BatchReport, number][] = [];
    log.observeBatches((report) => reports.push([report, log.size]));
    const slow = () =>
      runIn(log, (transaction) => {
        milliseconds += 250;
        transaction.append(event);
        transaction.append(event);
      });
    const { until, release } = held();
    faults.hold = until;
    const appends = [slow(), log.append(event)];
    await expect.poll(() => faults.begun, { interval: 1 }).toBe(2);
    milliseconds += 2_000;
    release();
    await Promise.all(appends);
    expect(reports).toEqual([[{ entries: 3, forming: 0.25, signing: 0.5, writing: 2 }, 3]]);
    // Nothing was appended, so there is nothing to report.
    await runIn(log, () => null);
    expect(reports).toHaveLength(1);
  });

  test("the time for which a signed batch waits for the disk is none of its own", async () => {
    let milliseconds = 1_000;
    vi.spyOn(performance, "now").mockImplementation(() => milliseconds);
    const { log, faults } = await openFaultyLog({ clock: () => NOON });
    const reports: BatchReport[] = [];
    log.observeBatches((report) => reports.push(report));
    const { until, release } = held();
    faults.hold = until;
    const appends = [log.append(event)];
    await turns();
    for (let n = 0; n < 128; n++) appends.push(log.append(event));
    await turns();
    milliseconds += 4_000;
    release();
    await Promise.all(appends);
    expect(reports).toEqual([
      { entries: 1, forming: 0, signing: 0, writing: 4 },
      { entries: 128, forming: 0, signing: 0, writing: 0 },
    ]);
  });

  test("nothing is reported of a batch that failed", async () => {
    const { log, faults } = await openFaultyLog();
    await log.append(event);
    const reports: BatchReport[] = [];
    log.observeBatches((report) => reports.push(report));
    faults.plan = ["persisted anyway"];
    await expect(log.append(event)).rejects.toMatchObject({ code: "storage-failed" });
    expect(reports).toEqual([]);
    expect(log.size).toBe(2);
  });
});

describe("a disk that cannot be read after a write failed", () => {
  async function brokenLog(): Promise<{ log: LogWriter; mend: () => void; outcomes: PromiseSettledResult<unknown>[] }> {
    const { log, faults } = await openFaultyLog();
    await log.append(event);
    const { until, release } = held();
    faults.hold = until;
    faults.plan = ["not persisted"];
    const failing = log.append(event);
    await turns();
    // It waits for the batch that will fail.
    const waiting = log.append(event);
    await turns();
    expect(log.queued).toBe(1);
    const broken = vi.spyOn(faults, "beforeReading").mockImplementation(() => {
      throw new Error("injected: unreadable");
    });
    release();
    const outcomes = await Promise.allSettled([failing, waiting]);
    return { log, mend: () => broken.mockRestore(), outcomes };
  }
  const unreadable = {
    code: "storage-failed",
    message: "The data directory cannot be read.",
    cause: expect.objectContaining({ message: "injected: unreadable" }),
  };

  test("everybody who waits is answered, and the next command tries again", async () => {
    const { log, mend, outcomes } = await brokenLog();
    expect(outcomes).toEqual([
      { status: "rejected", reason: expect.objectContaining({ code: "storage-failed" }) },
      { status: "rejected", reason: expect.objectContaining(unreadable) },
    ]);
    expect(log.queued).toBe(0);
    for (let tries = 0; tries < 2; tries++) await expect(log.append(event)).rejects.toMatchObject(unreadable);
    expect(log.size).toBe(1);
    mend();
    expect(await log.append(event)).toMatchObject({ leaf_index: 1, sth: { tree_size: 2 } });
    expect(await log.verify()).toMatchObject({ valid: true, entry_count: 2 });
  });

  test("the log can be closed", async () => {
    const { log } = await brokenLog();
    const last = log.append(event);
    const closing = log.close();
    await expect(last).rejects.toMatchObject(unreadable);
    await closing;
    await expect(log.append(event)).rejects.toMatchObject({ code: "closed" });
  });
});

test("closing waits for a log that reads its disk again", async () => {
  const { log, faults } = await openFaultyLog();
  await log.append(event);
  faults.plan = ["persisted anyway"];
  const failing = log.append(event);
  const failed = expect(failing).rejects.toMatchObject({ code: "storage-failed" });
  const closing = log.close().then(() => log.size);
  await failed;
  expect(await closing).toBe(2);
});
