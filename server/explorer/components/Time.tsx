/** A moment in the reader's time zone; hover and focus show it in UTC, as it is in the log. */
import { useEffect, useState } from "preact/hooks";

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const NUMBERS = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });
const TICK_MS = 1_000;
/** Units in seconds, the largest first. */
const UNITS = [
  ["year", 31_556_952],
  ["month", 2_629_746],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

interface TimeProps {
  /** ISO 8601. */
  readonly at: string;
  /** `age` shows how long ago it was, and updates itself. */
  readonly as?: "moment" | "age";
}

export function Time({ at, as = "moment" }: TimeProps) {
  const milliseconds = Date.parse(at);
  // An entry of version 1 may have any text as timestamp.
  if (Number.isNaN(milliseconds)) return <span class="time">{at}</span>;
  const local = LOCAL.format(milliseconds);
  const title = as === "age" ? `${local} · UTC ${at}` : `UTC ${at}`;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: focus shows the moment in UTC, as hovering does
    <time class="time" dateTime={at} title={title} data-tip={title} tabIndex={0}>
      {as === "age" ? <Age since={milliseconds} /> : local}
    </time>
  );
}

function Age({ since }: { readonly since: number }) {
  const now = useNow();
  return <>{ageOf(since, now)}</>;
}

/** The age in words, such as "3 minutes ago". */
export function ageOf(since: number, now: number): string {
  const seconds = Math.round((since - now) / 1000);
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  return NUMBERS.format(Math.trunc(seconds / length), unit);
}

/** Milliseconds since 1970, again every second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}
