/**
 * `fetch` that waits until rate limits and outages end, and then sends its request again. A server can neither fill the
 * memory nor, with a time limit, delay an answer for ever.
 */
import { setTimeout as timer } from "node:timers/promises";
import { OversizedAnswer, readBody, requestsLeft, secondsAsked } from "../client/base/body.js";

/** Number of attempts, unless the server says when limits end. */
const TRIES = 5;
const FIRST_PAUSE_MS = 1_000;
/** Longest wait of a command for one rate limit. With a longer wait it fails, so that the user can decide. */
const LONGEST_LIMIT_MS = 60_000;
/** Maximum of all waiting times of a monitor in one request. The default rate limit is reset every minute. */
const LONGEST_OUTAGE_MS = 15 * 60_000;
const TEMPORARY: readonly number[] = [429, 502, 503, 504];

/**
 * Begins a request. The function that it returns is called after each attempt, with null if there was no answer.
 * @returns milliseconds until the next attempt; null for the last one
 */
type Persistence = () => (response: Response | null) => number | null;

/** Waits for rate limits alone, up to a minute each. @param isEndless whether every limit is waited for, however long it lasts */
export const throughLimits =
  (isEndless = false): Persistence =>
  () => {
    let tries = 0;
    return (response) => {
      if (response?.status !== 429) return null;
      const { headers } = response;
      const pause = pauseAfter(response, tries++);
      // What is left can be used by a smaller request.
      const isWaitedFor = isEndless ? !requestsLeft(headers) : tries < TRIES && pause <= LONGEST_LIMIT_MS;
      return isWaitedFor ? pause : null;
    };
  };

/** Waits for rate limits and short outages. A rate limit with a `Retry-After` does not count as an attempt. */
export const throughOutages: Persistence = () => {
  let failures = 0;
  let waited = 0;
  return (response) => {
    if (response && !TEMPORARY.includes(response.status)) return null;
    const pause = pauseAfter(response, failures);
    if (response?.status !== 429 || secondsAsked(response.headers) === undefined) failures++;
    waited += pause;
    return failures === TRIES || waited > LONGEST_OUTAGE_MS ? null : pause;
  };
};

/** The time that the server asks for, or else growing pauses. */
const pauseAfter = (response: Response | null, failures: number): number => {
  const asked = response && secondsAsked(response.headers);
  return asked ? asked * 1000 : FIRST_PAUSE_MS * 2 ** failures;
};

export interface Patience {
  /** Aborts every wait and every request. */
  readonly signal?: AbortSignal | undefined;
  /** Called with a sentence that explains a wait. Absent: it is written to stderr. */
  readonly say?: ((sentence: string) => void) | undefined;
  /** Waits this many milliseconds. Rejects when the signal is aborted. Uses a timer, if absent. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Sends one request, each time anew; `fetch`, if absent. */
  readonly send?: typeof fetch | undefined;
  /** Time limit for one attempt in milliseconds; none, if absent. */
  readonly requestMs?: number;
}

/**
 * A `fetch` that waits. It rejects as `fetch` does when it gives up, with a `TimeoutError` if the last attempt had no answer in
 * time, and with `OversizedAnswer`. Answers have been read to their ends.
 */
export function patientFetch(begin: Persistence, patience: Patience = {}): typeof fetch {
  const { signal = new AbortController().signal, say = console.error, sleep = byTheClock, requestMs } = patience;
  const { send = (...request) => fetch(...request) } = patience;
  return async (input, init) => {
    const pauseBehind = begin();
    for (;;) {
      let response: Response | null = null;
      let failure: unknown;
      try {
        response = await within(requestMs, signal, async (limits) =>
          whole(
            await send(input, { ...init, signal: limits }),
            isOfBundle(input instanceof Request ? input.url : `${input}`),
          ),
        );
      } catch (error) {
        if (signal.aborted || error instanceof OversizedAnswer) throw error;
        failure = error;
      }
      const pause = pauseBehind(response);
      if (pause === null) {
        if (response) return response;
        throw failure;
      }
      say(`${reason(response)}; trying again ${when(pause / 1000)}.`);
      await sleep(pause, signal);
    }
  };
}

/**
 * What `work` makes of a signal that is aborted with `signal`, or after `ms` milliseconds with a `TimeoutError`. Node may
 * collect an `AbortSignal.timeout` that only `AbortSignal.any` holds, and then it never comes (nodejs/node#57736).
 */
async function within<T>(
  ms: number | undefined,
  signal: AbortSignal,
  work: (limits: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const limits = new AbortController();
  const end = () => limits.abort(signal.reason);
  const late = () => limits.abort(new DOMException(`no answer in ${ms} ms`, "TimeoutError"));
  const timeout = ms === undefined ? undefined : setTimeout(late, ms);
  signal.addEventListener("abort", end);
  try {
    return await work(limits.signal);
  } finally {
    clearTimeout(timeout);
    signal.removeEventListener("abort", end);
  }
}

/** The longest that a timer can wait, in milliseconds: 24 days. One that should wait longer ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Waits this many milliseconds, 24 days at most. Rejects when the signal is aborted. */
export const byTheClock = (ms: number, signal: AbortSignal): Promise<void> =>
  timer(Math.min(ms, LONGEST_TIMER_MS), undefined, { signal });

function reason(response: Response | null): string {
  if (!response) return "The service does not answer";
  return response.status === 429 ? "The service's limit is reached" : `The service answers ${response.status}`;
}

/** Whether there may be a bundle of published entries at an address. */
const isOfBundle = (url: string): boolean => url.includes("/entries/") && !url.includes("/tile/entries/");

/** The answer with its body read, up to the maximum size. */
async function whole(response: Response, isBundle: boolean): Promise<Response> {
  const { status, headers, body } = response;
  const bytes = await readBody(response, isBundle);
  return new Response(body && bytes, { status, headers });
}

/** After how many seconds something happens, and at what time if that is not soon. */
function when(seconds: number): string {
  if (seconds <= 60) return `in ${seconds} s`;
  const time = new Date(Date.now() + seconds * 1000);
  const day = time.toDateString() === new Date().toDateString() ? "" : `${time.toDateString()} `;
  return `at ${day}${time.toTimeString().slice(0, 5)}, in ${duration(seconds)}`;
}

/** Seconds in the largest unit that fits: 5400 → "1.5 h". */
export function duration(seconds: number): string {
  const [size, unit] = seconds >= 3600 ? [3600, "h"] : seconds >= 60 ? [60, "min"] : [1, "s"];
  return `${Number((seconds / size).toFixed(1))} ${unit}`;
}
