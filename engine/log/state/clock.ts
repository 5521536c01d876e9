/**
 * Time as the log writes it: whole microseconds since the epoch as a number, and `YYYY-MM-DDTHH:MM:SS.ffffffZ`. And the guard
 * of the machine's clock.
 */

import { readFileSync } from "node:fs";
import { uptime } from "node:os";
import { CairnlogError } from "../../base/error.js";
import { replaceFile, throughDraft } from "../../base/files.js";
import { Lock, tell } from "../../base/lock.js";
import { PRIVATE_FILE, writePrivateFile } from "../../store/lmdb/private.js";
import { canonicalTimestamp } from "../../verify/tree/entry.js";

/** Microseconds since the epoch. A clock may step backwards; the sequencer clamps. */
export type Clock = () => number;

/**
 * A clock that a program gave, in whole microseconds; NaN for what no timestamp can spell: a count of nanoseconds, for example,
 * or what it throws. Where the sequencer reads it, nothing may throw.
 */
export const wholeMicros =
  (clock: Clock): Clock =>
  () => {
    try {
      const micros = Math.floor(clock());
      return Number.isSafeInteger(micros) ? micros : Number.NaN;
    } catch {
      return Number.NaN;
    }
  };

/** By how many milliseconds the time of day may be elsewhere before it is believed: it is read in whole ones. */
const STEP_MS = 100;

/** Milliseconds since the epoch at which the monotonic clock began, as far as the time of day is right. */
let origin = performance.timeOrigin;

const isElsewhere = (observed: number): boolean => Math.abs(observed - origin) > STEP_MS;

/**
 * The time of day, in the microseconds of the monotonic clock, which alone has them. It follows when the time of day is
 * set, and after the machine has slept, of which the monotonic clock knows nothing.
 */
export const systemClock: Clock = () => {
  const elapsed = performance.now();
  if (isElsewhere(Date.now() - elapsed)) {
    // Observed again: the process may have had to wait between the two readings.
    const observed = Date.now() - performance.now();
    if (isElsewhere(observed)) origin = observed;
  }
  return Math.floor((origin + elapsed) * 1000);
};

/** @throws CairnlogError `clock-suspect` for a moment that a given clock did not know */
export function checkMoment(micros: number): void {
  if (Number.isNaN(micros))
    throw new CairnlogError("clock-suspect", "`clock` must give microseconds since the epoch. Nothing is written.");
}

let lastMillisecond = Number.NaN;
let lastPrefix = "";

/** The canonical form of a timestamp; the milliseconds of a batch are mostly the same, so their text is kept. */
export function formatTimestamp(micros: number): string {
  const millisecond = Math.floor(micros / 1000);
  if (millisecond !== lastMillisecond) {
    lastMillisecond = millisecond;
    lastPrefix = new Date(millisecond).toISOString().slice(0, -1);
  }
  return `${lastPrefix}${String(micros - millisecond * 1000).padStart(3, "0")}Z`;
}

/** Inverse of `formatTimestamp`, for texts in the canonical form. */
export function parseTimestamp(text: string): number {
  return Date.parse(`${text.slice(0, 23)}Z`) * 1000 + Number(text.slice(23, 26));
}

/**
 * Version 1 bound the timestamp of an entry to nothing, so its spelling is whatever some writer used: ISO 8601, extended form,
 * a date, or date and time with `T` or a space between them, the offset left out or not.
 */
const LENIENT =
  /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d))?(?:[.,](\d{1,6})\d*)?\s?([Zz]|[+-]\d\d(?::?\d\d)?)?)?$/;

/**
 * The instant of an entry's timestamp, canonical form. Beyond what a version 2 hash can cover, a missing offset is read
 * as UTC, a missing time of day as its beginning, and decimals after the sixth are dropped. Undefined for any other text.
 */
export function instantOf(timestamp: string): string | undefined {
  const canonical = canonicalTimestamp(timestamp);
  if (canonical !== undefined) return canonical;
  const match = LENIENT.exec(timestamp);
  if (!match) return undefined;
  const [, date, minutes = "00:00", seconds = "00", fraction, offset = "Z"] = match;
  return canonicalTimestamp(`${date}T${minutes}:${seconds}${fraction ? `.${fraction}` : ""}${spelled(offset)}`);
}

/** Microseconds of a stored entry's timestamp. A text that names no instant gives 0; no writer appends one. */
export function microsOf(timestamp: string): number {
  const instant = instantOf(timestamp);
  return instant === undefined ? 0 : parseTimestamp(instant);
}

function spelled(offset: string): string {
  if (offset.length === 1) return "Z";
  const digits = offset.slice(1).replace(":", "").padEnd(4, "0");
  return `${offset[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
}

// Keeps a wrong clock out of the log. Times on a log never go back: one entry under a clock that is a year ahead would hold
// every later entry at that time for a year. So the writer compares the time of day with a clock that nobody sets, and takes
// nothing on while the time of day has jumped ahead.
//
// The other clock is the time since the machine was started, which also counts sleep. What both said when they agreed last
// is kept in a small file beside the log, so a restart compares as exactly as a process that goes on. After a restart of the
// machine, or without the file, there is nothing to compare with. Then the time must be plausible: at most `MAX_GAP_MICROS`
// after the newest time that is known.
//
// A clock that jumps back does no harm, because no entry is earlier than the one before it.
//
// It belongs to the writer's thread. If we crash here: the file is replaced as a whole, and an old one is as good.

const MICROS = 1_000_000;
/** By how much the time of day may jump ahead. Services that set clocks slowly stay far below it. */
const MAX_STEP_MICROS = 300 * MICROS;
/** How long a log may have been out of use if no other clock can tell. */
const MAX_GAP_MICROS = 31 * 86_400 * MICROS;
/** How often the clocks are compared when nothing is appended. */
const COMPARE_MS = 60_000;
/** How often the file is read while the clock is not believed: the operator's confirmation comes through it. */
const READ_MS = 500;

/** The clocks of a machine. */
interface MachineClocks {
  /** The time of day, in microseconds. */
  readonly day: Clock;
  /** Microseconds of a clock that nobody sets; it may stop while the machine sleeps. */
  readonly monotonic: () => number;
  /** Microseconds since the machine was started, sleep included. Slower to read. */
  readonly uptime: () => number;
  /** Differs after each start of the machine; null if that cannot be known. */
  readonly boot: string | null;
}

const machineClocks = (): MachineClocks => ({
  day: systemClock,
  monotonic: () => performance.now() * 1000,
  uptime: () => uptime() * MICROS,
  boot: bootId(),
});

function bootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim() || null;
  } catch {
    return null;
  }
}

/** What the clocks said at one moment. */
interface ClockRecord {
  /** Time of day, microseconds. */
  readonly time: number;
  readonly uptime: number;
  readonly boot: string | null;
}

/** From where the time of day is reckoned. */
interface Base {
  readonly time: number;
  readonly monotonic: number;
  readonly uptime: number;
  /** By how much the time of day may be ahead of what is reckoned. */
  readonly slack: number;
}

export class ClockGuard {
  readonly #file: string;
  readonly #clocks: MachineClocks;
  #base: Base;
  /** A reading that was found right. */
  #checked: number;
  #refusal: CairnlogError | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  readonly #writing = new Lock();
  /** Called when the clock is no longer believed, and with null when it is again. */
  observer: ((refusal: CairnlogError | null) => void) | null = null;

  /** @param file where the comparison is kept */
  constructor(file: string, clocks: MachineClocks = machineClocks()) {
    this.#file = file;
    this.#clocks = clocks;
    this.#checked = clocks.day();
    this.#base = this.#rebase(this.#checked);
  }

  /**
   * Reckons from what was known before this process.
   * @param newest the newest time on the log, in microseconds; 0 for an empty log
   */
  begin(newest: number): void {
    this.#base = this.#before(newest);
  }

  /** Begins, goes on comparing while nothing is appended, and keeps the file up to date. @param newest as for `begin` */
  start(newest: number): void {
    this.begin(newest);
    this.#keep();
    this.#timer = setInterval(() => this.#keep(), COMPARE_MS).unref();
  }

  /** Compares once more, and resolves when the file is written. */
  async stop(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#keep();
    await this.#writing.settled();
  }

  /** Why the time of day is not believed now; null if it is. Asked before each batch, so it only reads two clocks then. */
  get refusal(): CairnlogError | null {
    const { day, monotonic } = this.#clocks;
    const now = day();
    const refusal = now - this.#reckoned(monotonic()) <= this.#base.slack ? null : this.#doubt(now);
    if (!refusal) this.#checked = now;
    if ((refusal === null) !== (this.#refusal === null)) {
      this.#refusal = refusal;
      if (this.observer) tell(this.observer, refusal);
    }
    return refusal;
  }

  /** The time of day, after `refusal` was null. A jump since then is not taken. */
  readonly now: Clock = () => {
    const now = this.#clocks.day();
    return now - this.#checked > MAX_STEP_MICROS ? this.#checked : now;
  };

  #reckoned(monotonic: number): number {
    return this.#base.time + (monotonic - this.#base.monotonic);
  }

  /** The time of day is ahead of the clock that stops while the machine sleeps. */
  #doubt(now: number): CairnlogError | null {
    const { uptime, boot } = this.#clocks;
    const since = uptime();
    const ahead = now - (this.#base.time + (since - this.#base.uptime));
    if (ahead <= this.#base.slack) {
      this.#rebase(now);
      return null;
    }
    if (performance.now() - this.#readAt >= READ_MS) {
      this.#readAt = performance.now();
      const record = readClockRecord(this.#file);
      if (record && isOfBoot(record, boot, since) && Math.abs(now - reckonedBy(record, since)) <= MAX_STEP_MICROS) {
        this.#rebase(now);
        return null;
      }
    }
    return clockSuspect(now, ahead);
  }

  #rebase(time: number, slack = MAX_STEP_MICROS): Base {
    const { monotonic, uptime } = this.#clocks;
    this.#base = { time, monotonic: monotonic(), uptime: uptime(), slack };
    return this.#base;
  }

  #before(newest: number): Base {
    const { day, monotonic, uptime, boot } = this.#clocks;
    const record = readClockRecord(this.#file);
    const since = uptime();
    if (record && isOfBoot(record, boot, since))
      return {
        time: record.time,
        uptime: record.uptime,
        monotonic: monotonic() - (since - record.uptime),
        slack: MAX_STEP_MICROS,
      };
    const now = day();
    const known = Math.max(newest, record?.time ?? 0);
    if (!known) return this.#rebase(now);
    // A machine without a clock of its own starts in the past, and is set right later.
    if (now < known) return this.#rebase(known, MAX_GAP_MICROS);
    return this.#rebase(now - known <= MAX_GAP_MICROS ? now : known);
  }

  /** Reckons from now on, and says so in the file, if the clocks agree. */
  #keep(): void {
    if (this.refusal) return;
    const { day, uptime, boot } = this.#clocks;
    const [time, since] = [day(), uptime()];
    const ahead = time - (this.#base.time + (since - this.#base.uptime));
    if (ahead > this.#base.slack || ahead < -MAX_STEP_MICROS) return;
    this.#rebase(time);
    const text = recordText({ time, uptime: since, boot });
    // The disk is full, or the folder gone: appends say so.
    this.#writing.run(() => replaceFile(this.#file, text, PRIVATE_FILE, false)).catch(() => {});
  }
}

/** The file in which a log at `path` keeps what its clocks said. */
export const clockFile = (path: string): string => `${path}/clock.json`;

/** What `cairnlog operator clock` shows. */
export interface ClockComparison {
  /** The time of day. */
  readonly clock: string;
  /** What it should be by the clock that nobody sets; null if there is nothing to compare with. */
  readonly expected: string | null;
  /** When both were compared last; null if they never were. */
  readonly compared_at: string | null;
}

/** Compares the time of day with what a log at `path` has kept. */
export function compareClocks(path: string, clocks: MachineClocks = machineClocks()): ClockComparison {
  const record = readClockRecord(clockFile(path));
  const since = clocks.uptime();
  return {
    clock: formatTimestamp(clocks.day()),
    expected:
      record && isOfBoot(record, clocks.boot, since) ? formatTimestamp(Math.floor(reckonedBy(record, since))) : null,
    compared_at: record ? formatTimestamp(record.time) : null,
  };
}

/**
 * Takes the time of day for right: the log at `path` is written again by it, at once if a process has it open.
 * @throws the file system's error
 */
export function acceptClock(path: string, clocks: MachineClocks = machineClocks()): void {
  const file = clockFile(path);
  const text = recordText({ time: clocks.day(), uptime: clocks.uptime(), boot: clocks.boot });
  throughDraft(file, (draft) => writePrivateFile(draft, text));
}

const recordText = ({ time, uptime, boot }: ClockRecord): string =>
  `${JSON.stringify({ time: formatTimestamp(time), uptime_seconds: uptime / MICROS, boot })}\n`;

/** Undefined if there is none that is whole. */
function readClockRecord(file: string): ClockRecord | undefined {
  try {
    const { time, uptime_seconds, boot } = JSON.parse(readFileSync(file, "utf8"));
    const record = { time: parseTimestamp(time), uptime: uptime_seconds * MICROS, boot };
    return Number.isFinite(record.time) && Number.isFinite(record.uptime) ? record : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the machine has not been started again since. */
const isOfBoot = (record: ClockRecord, boot: string | null, uptime: number): boolean =>
  boot !== null && record.boot === boot && record.uptime <= uptime;

const reckonedBy = (record: ClockRecord, uptime: number): number => record.time + (uptime - record.uptime);

function clockSuspect(now: number, ahead: number): CairnlogError {
  const [says, should] = [now, now - ahead].map((micros) => formatTimestamp(Math.floor(micros)));
  return new CairnlogError(
    "clock-suspect",
    `The clock of this machine says ${says}, and should say about ${should}. Nothing is written until it agrees again. If it is right: cairnlog operator clock --accept.`,
  );
}
