/**
 * When an imported entry says it was made. Version 1 bound the timestamp to nothing, so its spelling is whatever some
 * writer used; what rows, lists and date filters compare is the instant it means, in the one canonical spelling.
 */
import { canonicalTimestamp } from "../../verify/tree/entry.js";
import { parseTimestamp } from "./clock.js";

/** ISO 8601, extended form: a date, or date and time with `T` or a space between them, the offset left out or not. */
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

/** The same of a stored entry, in microseconds; 0 where the text means none, which no writer lets in. */
export function microsOf(timestamp: string): number {
  const instant = instantOf(timestamp);
  return instant === undefined ? 0 : parseTimestamp(instant);
}

function spelled(offset: string): string {
  if (offset.length === 1) return "Z";
  const digits = offset.slice(1).replace(":", "").padEnd(4, "0");
  return `${offset[0]}${digits.slice(0, 2)}:${digits.slice(2)}`;
}
