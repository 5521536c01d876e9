/**
 * `fetch` for a monitor: waits until rate limits and short outages end. A server can neither fill the memory nor delay
 * an answer for ever.
 */
import { setTimeout as timer } from "node:timers/promises";
import { OversizedAnswer, readBody, secondsAsked } from "../client/base/body.js";
import { traced } from "../outgoing/traced.js";

const REQUEST_MS = 60_000;
/** Number of attempts before an outage is reported. */
const TRIES = 5;
const FIRST_PAUSE_MS = 1_000;
/** Maximum of all waiting times in one request. The default rate limit is reset every minute. */
const MAX_WAIT_MS = 15 * 60_000;

interface PatienceOptions {
  /** Aborts every wait and every request. */
  readonly signal: AbortSignal;
  /** Called with a sentence that explains a wait. */
  readonly say: (sentence: string) => void;
  /** Waits this many milliseconds. Rejects when the signal is aborted. Uses a timer, if absent. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Sends one request, each time anew; `fetch`, if absent. */
  readonly send?: typeof fetch;
  /** Time limit for one request in milliseconds; a minute, if absent. */
  readonly requestMs?: number;
}

/** A `fetch` that waits; all tries of a request are one span. It rejects as `fetch` does when it gives up, and with `OversizedAnswer`. */
export function patientFetch(options: PatienceOptions): typeof fetch {
  const { signal, say, sleep = byTheClock, requestMs = REQUEST_MS, send = (...request) => fetch(...request) } = options;
  return traced(async (input, init) => {
    let waited = 0;
    for (let failures = 0; ; ) {
      let response: Response | null = null;
      let failure: unknown;
      try {
        response = await within(requestMs, signal, async (limits) =>
          whole(await send(input, { ...init, signal: limits })),
        );
        if (!isTemporary(response.status)) return response;
      } catch (error) {
        if (signal.aborted || error instanceof OversizedAnswer) throw error;
        failure = error;
      }
      const asked = response && secondsAsked(response.headers);
      const pause = asked ? asked * 1000 : FIRST_PAUSE_MS * 2 ** failures;
      // A rate limit with a `Retry-After` does not count as a failure.
      if (response?.status !== 429 || !asked) failures++;
      waited += pause;
      if (failures === TRIES || waited > MAX_WAIT_MS) {
        if (response) return response;
        throw failure;
      }
      say(`${reason(response)}; trying again in ${pause / 1000} s.`);
      await sleep(pause, signal);
    }
  });
}

/**
 * What `work` makes of a signal that is aborted with `signal`, or after `ms` milliseconds with a `TimeoutError`. Node may
 * collect an `AbortSignal.timeout` that only `AbortSignal.any` holds, and then it never comes (nodejs/node#57736).
 */
export async function within<T>(
  ms: number,
  signal: AbortSignal,
  work: (limits: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const limits = new AbortController();
  const end = () => limits.abort(signal.reason);
  const timeout = setTimeout(() => limits.abort(new DOMException(`no answer in ${ms} ms`, "TimeoutError")), ms);
  signal.addEventListener("abort", end);
  try {
    return await work(limits.signal);
  } finally {
    clearTimeout(timeout);
    signal.removeEventListener("abort", end);
  }
}

const byTheClock = (ms: number, signal: AbortSignal): Promise<void> => timer(ms, undefined, { signal });

const isTemporary = (status: number): boolean => status === 429 || status === 502 || status === 503 || status === 504;

function reason(response: Response | null): string {
  if (!response) return "The service does not answer";
  return response.status === 429 ? "The service's limit is reached" : `The service answers ${response.status}`;
}

/** The answer with its body read, up to the maximum size. */
async function whole(response: Response): Promise<Response> {
  const { status, headers, body } = response;
  const bytes = await readBody(response);
  return new Response(body && bytes, { status, headers });
}
