/**
 * `fetch` for a monitor: waits out rate limits and short outages, and lets nobody who answers fill the memory or hold the
 * line for ever.
 */
import { setTimeout as timer } from "node:timers/promises";
import { OversizedAnswer, readBody, secondsAsked } from "../client/body.js";

const REQUEST_MS = 60_000;
/** Tries before an outage is somebody else's business. */
const TRIES = 5;
const FIRST_PAUSE_MS = 1_000;
/** What a service may ask to be waited for in one request, all in all: the default limit renews itself every minute. */
const MAX_WAIT_MS = 15 * 60_000;

export interface PatienceOptions {
  /** Ends every wait and every request. */
  readonly signal: AbortSignal;
  /** Told in a sentence why nothing happens for a while. */
  readonly say: (sentence: string) => void;
  /** Waits so many milliseconds, or until the signal is raised, and rejects then. By the clock when absent. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A minute when absent. */
  readonly requestMs?: number;
}

/** Rejects as `fetch` does when it gives up, and with `OversizedAnswer`. */
export function patientFetch(options: PatienceOptions): typeof fetch {
  const { signal, say, sleep = byTheClock, requestMs = REQUEST_MS } = options;
  return async (input, init) => {
    let waited = 0;
    for (let failures = 0; ; ) {
      let response: Response | null = null;
      let failure: unknown;
      try {
        const limits = AbortSignal.any([signal, AbortSignal.timeout(requestMs)]);
        response = await whole(await fetch(input, { ...init, signal: limits }));
        if (!isTemporary(response.status)) return response;
      } catch (error) {
        if (signal.aborted || error instanceof OversizedAnswer) throw error;
        failure = error;
      }
      const asked = response && secondsAsked(response.headers);
      const pause = asked ? asked * 1000 : FIRST_PAUSE_MS * 2 ** failures;
      // A limit that names its end is no outage.
      if (response?.status !== 429 || !asked) failures++;
      waited += pause;
      if (failures === TRIES || waited > MAX_WAIT_MS) {
        if (response) return response;
        throw failure;
      }
      say(`${reason(response)}; trying again in ${pause / 1000} s.`);
      await sleep(pause, signal);
    }
  };
}

const byTheClock = (ms: number, signal: AbortSignal): Promise<void> => timer(ms, undefined, { signal });

const isTemporary = (status: number): boolean => status === 429 || status === 502 || status === 503 || status === 504;

function reason(response: Response | null): string {
  if (!response) return "The service does not answer";
  return response.status === 429 ? "The service's limit is reached" : `The service answers ${response.status}`;
}

/** The answer with its body read, as far as that is bearable. */
async function whole(response: Response): Promise<Response> {
  const { status, headers, body } = response;
  const bytes = await readBody(response);
  return new Response(body && bytes, { status, headers });
}
