/** What time a log takes for its entries, as the time of day, the machine and the process are set, sleep and start again. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { acceptClock, ClockGuard, clockFile, compareClocks, microsOf } from "#cairnlog/engine/log/state/clock.js";
import { openTestLog } from "./harness.js";

const MAX_GAP_MICROS = 31 * 86_400 * 1_000_000;

const SECOND = 1_000_000;
const HOUR = 3_600 * SECOND;
const YEAR = 365 * 24 * HOUR;
const MORNING = Date.parse("2026-03-01T08:00:00Z") * 1000;

/** A machine whose clocks the test sets. */
class Machine {
  readonly path = mkdtempSync(join(tmpdir(), "cairnlog-"));
  #day = MORNING;
  #uptime = 100 * SECOND;
  #monotonic = 0;
  boot = "first";
  /** The newest time on the log. */
  newest = MORNING;

  /** Time passes. */
  pass(micros: number): void {
    this.#day += micros;
    this.#uptime += micros;
    this.#monotonic += micros;
  }

  /** Time passes, and the clock of the processes stands still. */
  sleep(micros: number): void {
    this.#day += micros;
    this.#uptime += micros;
  }

  /** The time of day is set. */
  step(micros: number): void {
    this.#day += micros;
  }

  /** The machine is off for so long, and its clock is off by `wrong` afterwards. */
  restart(off: number, wrong = 0): void {
    this.#day += off + wrong;
    this.#uptime = 20 * SECOND;
    this.boot += "x";
  }

  get day(): number {
    return this.#day;
  }

  get clocks() {
    const start = this.#monotonic;
    return {
      day: () => this.#day,
      monotonic: () => this.#monotonic - start,
      uptime: () => this.#uptime,
      boot: this.boot,
    };
  }
}

const machines: Machine[] = [];
const guards: ClockGuard[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const guard of guards.splice(0)) await guard.stop();
  for (const { path } of machines.splice(0)) rmSync(path, { recursive: true });
});

function machine(): Machine {
  const made = new Machine();
  machines.push(made);
  return made;
}

/** A process that writes the log: begun, or begun again. */
function process(of: Machine): ClockGuard {
  const guard = new ClockGuard(clockFile(of.path), of.clocks);
  guard.start(of.newest);
  guards.push(guard);
  return guard;
}

/** What happens to a log with an entry of the morning → whether the clock is believed afterwards. */
const HISTORIES: readonly (readonly [string, boolean, (of: Machine) => Promise<ClockGuard>])[] = [
  ["time passes", true, async (of) => passed(process(of), of, 30 * HOUR)],
  ["the clock jumps ahead by five minutes", true, async (of) => stepped(process(of), of, 300 * SECOND)],
  ["the clock jumps ahead by more", false, async (of) => stepped(process(of), of, 301 * SECOND)],
  ["the clock jumps ahead by a year", false, async (of) => stepped(process(of), of, YEAR)],
  ["the clock jumps back", true, async (of) => stepped(process(of), of, -YEAR)],
  ["it jumps back, and is set right", true, async (of) => stepped(stepped(process(of), of, -YEAR), of, YEAR)],
  ["it jumps ahead, and is set right", true, async (of) => stepped(stepped(process(of), of, YEAR), of, -YEAR)],
  [
    "the machine sleeps for a night",
    true,
    async (of) => {
      const guard = process(of);
      of.sleep(9 * HOUR);
      return guard;
    },
  ],
  [
    "it is a year ahead after a sleep",
    false,
    async (of) => {
      const guard = process(of);
      of.sleep(9 * HOUR);
      return stepped(guard, of, YEAR);
    },
  ],
  ["a start after a weekend", true, (of) => restarted(of, () => of.pass(60 * HOUR))],
  ["a start with a clock an hour ahead", false, (of) => restarted(of, () => of.step(HOUR))],
  ["a start after the machine was off for a weekend", true, (of) => restarted(of, () => of.restart(60 * HOUR))],
  ["a machine that starts a year ahead", false, (of) => restarted(of, () => of.restart(HOUR, YEAR))],
  [
    "a machine that starts in 1970, and is set right",
    true,
    async (of) => {
      const guard = await restarted(of, () => of.restart(HOUR, -56 * YEAR));
      expect(guard.refusal).toBeNull();
      return stepped(guard, of, 56 * YEAR);
    },
  ],
  [
    "a machine that starts in 1970, and is set to next year",
    false,
    async (of) => stepped(await restarted(of, () => of.restart(HOUR, -56 * YEAR)), of, 57 * YEAR),
  ],
  ["a log of an older version after a week", true, async (of) => processAfter(of, MORNING - 7 * 24 * HOUR)],
  [
    "a log that was out of use for longer than a month",
    false,
    async (of) => processAfter(of, MORNING - MAX_GAP_MICROS - 1),
  ],
  ["a log that is ahead of the clock", true, async (of) => processAfter(of, MORNING + YEAR)],
  ["a log that is new", true, async (of) => processAfter(of, 0)],
  [
    "the file is damaged by a power failure",
    true,
    async (of) => {
      await process(of).stop();
      writeFileSync(clockFile(of.path), "");
      of.restart(HOUR);
      return process(of);
    },
  ],
];

function processAfter(of: Machine, newest: number): ClockGuard {
  of.newest = newest;
  return process(of);
}

function stepped(guard: ClockGuard, of: Machine, micros: number): ClockGuard {
  of.step(micros);
  return guard;
}

function passed(guard: ClockGuard, of: Machine, micros: number): ClockGuard {
  of.pass(micros);
  return guard;
}

async function restarted(of: Machine, meanwhile: () => void): Promise<ClockGuard> {
  await process(of).stop();
  meanwhile();
  return process(of);
}

test.each(HISTORIES)("%s: believed %s", async (_, isBelieved, history) => {
  const of = machine();
  const guard = await history(of);
  if (isBelieved) {
    expect(guard.refusal).toBeNull();
    expect(guard.now()).toBe(of.day);
  } else {
    expect(guard.refusal).toMatchObject({ code: "clock-suspect" });
    expect(guard.refusal!.message).toMatch(/cairnlog operator clock --accept/);
  }
  // What it says holds after another start, too.
  await guard.stop();
  expect(process(of).refusal === null).toBe(isBelieved);
});

test("a clock that is not believed is when it agrees again, or its operator says so", async () => {
  const of = machine();
  const guard = process(of);
  const told: (string | null)[] = [];
  guard.observer = (refusal) => told.push(refusal?.code ?? null);
  of.step(YEAR);
  expect(guard.refusal?.code).toBe("clock-suspect");
  of.step(-YEAR);
  expect(guard.refusal).toBeNull();
  of.step(YEAR);
  expect(guard.refusal?.code).toBe("clock-suspect");
  await expect
    .poll(() => compareClocks(of.path, of.clocks))
    .toMatchObject({
      clock: "2027-03-01T08:00:00.000000Z",
      expected: "2026-03-01T08:00:00.000000Z",
    });
  acceptClock(of.path, of.clocks);
  await expect.poll(() => guard.refusal).toBeNull();
  expect(told).toEqual(["clock-suspect", null, "clock-suspect", null]);
  // It was accepted as it is, not for ever.
  of.step(HOUR);
  expect(guard.refusal?.code).toBe("clock-suspect");
});

test("a jump between the look at the clock and the time of an entry is not taken", () => {
  const of = machine();
  const guard = process(of);
  expect(guard.refusal).toBeNull();
  of.step(YEAR);
  expect(guard.now()).toBe(MORNING);
});

test("the file is not kept up while the clock is not believed", async () => {
  const of = machine();
  const guard = process(of);
  of.step(YEAR);
  await guard.stop();
  expect(JSON.parse(readFileSync(clockFile(of.path), "utf8"))).toEqual({
    time: "2026-03-01T08:00:00.000000Z",
    uptime_seconds: 100,
    boot: "first",
  });
});

test("a log refuses appends under a clock that jumped, and has no entry of that time", async () => {
  const { log, path } = await openTestLog();
  await log.append({ event_type: "a", payload: {} });
  const now = Date.now.bind(Date);
  vi.spyOn(Date, "now").mockImplementation(() => now() + YEAR / 1000);
  await expect(log.append({ event_type: "b", payload: {} })).rejects.toMatchObject({ code: "clock-suspect" });
  await expect(log.signHead()).rejects.toMatchObject({ code: "clock-suspect" });
  expect(log.clockRefusal?.code).toBe("clock-suspect");
  expect(log.size).toBe(1);
  vi.restoreAllMocks();
  const { timestamp } = await log.append({ event_type: "c", payload: {} });
  expect(microsOf(timestamp)).toBeLessThan((Date.now() + 1000) * 1000);
  expect(log.secondsAhead).toBe(0);
  await log.close();
  expect(existsSync(clockFile(path))).toBe(true);
});

test("a clock that a caller gives is the caller's", async () => {
  let now = MORNING;
  const { log, path } = await openTestLog({ clock: () => now });
  await log.append({ event_type: "a", payload: {} });
  now += YEAR;
  await log.append({ event_type: "b", payload: {} });
  expect(log.clockRefusal).toBeNull();
  now -= YEAR;
  expect(log.secondsAhead).toBe(YEAR / SECOND);
  await log.close();
  expect(existsSync(clockFile(path))).toBe(false);
});
