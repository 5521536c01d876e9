/** `fetch` for commands: waits until a short rate limit ends, so that a command with a few dozen files succeeds. */
import { setTimeout as timer } from "node:timers/promises";
import { requestsLeft, secondsAsked } from "../../client/base/body.js";

/** Longest wait for a rate limit. A command with a longer wait fails, so that the user can decide. */
const PATIENCE_S = 60;
/** Maximum number of attempts for one request. The server decides how often it asks for another one. */
const TRIES = 5;

export interface Patience {
  /** Whether every limit is waited for, however long it lasts. */
  readonly isEndless?: boolean;
  /** Ends the waiting. */
  readonly signal?: AbortSignal;
  /** Says that something is waited for. Absent: on stderr. */
  readonly say?: (sentence: string) => void;
}

/**
 * A `fetch` that repeats a request after 429. It waits for the time in the answer, or for growing pauses without one.
 * @param sleep waits this many milliseconds
 */
export function patientFetch(
  { isEndless = false, signal, say = console.error }: Patience = {},
  sleep: (ms: number, value: undefined, options: { signal?: AbortSignal }) => Promise<unknown> = timer,
): typeof fetch {
  return async (input, init) => {
    for (let tries = 1; ; tries++) {
      const response = await fetch(input, init);
      const seconds = secondsAsked(response.headers) ?? 2 ** (tries - 1);
      const isWaitedFor = isEndless
        ? // What is left can be used by a smaller request.
          !requestsLeft(response.headers)
        : tries < TRIES && seconds <= PATIENCE_S;
      if (response.status !== 429 || !isWaitedFor) return response;
      await response.body?.cancel();
      const until = new Date(Date.now() + seconds * 1000);
      const when = seconds <= PATIENCE_S ? `in ${seconds} s` : `at ${localTime(until)}, in ${duration(seconds)}`;
      say(`The service's limit is reached; going on ${when}.`);
      await sleep(seconds * 1000, undefined, signal ? { signal } : {});
    }
  };
}

/** The time of day, with the day if that is another one. */
function localTime(time: Date): string {
  const day = time.toDateString() === new Date().toDateString() ? "" : `${time.toDateString()} `;
  return day + time.toTimeString().slice(0, 5);
}

/** Seconds in the largest unit that fits: 5400 → "1.5 h". */
export function duration(seconds: number): string {
  const [size, unit] = seconds >= 3600 ? [3600, "h"] : seconds >= 60 ? [60, "min"] : [1, "s"];
  return `${Number((seconds / size).toFixed(1))} ${unit}`;
}
