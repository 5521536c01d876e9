/** Time as the log writes it: whole microseconds since the epoch as a number, and `YYYY-MM-DDTHH:MM:SS.ffffffZ`. */
import { canonicalTimestamp } from "../../verify/tree/entry.js";

/** Microseconds since the epoch. A clock may step backwards; the sequencer clamps. */
export type Clock = () => number;

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
