/** `fetch` for commands: waits until a short rate limit ends, so that a command with a few dozen files succeeds. */
import { setTimeout as timer } from "node:timers/promises";
import { secondsAsked } from "../client/body.js";

/** Longest wait for a rate limit. A command with a longer wait fails, so that the user can decide. */
const PATIENCE_S = 60;
/** Maximum number of attempts for one request. The server decides how often it asks for another one. */
const TRIES = 5;

/**
 * A `fetch` that repeats a request after 429. It waits for the time in the answer, or for growing pauses without one.
 * @param sleep waits this many milliseconds
 */
export function patientFetch(sleep: (ms: number) => Promise<unknown> = timer): typeof fetch {
  return async (input, init) => {
    for (let tries = 1; ; tries++) {
      const response = await fetch(input, init);
      const seconds = secondsAsked(response.headers) ?? 2 ** (tries - 1);
      if (response.status !== 429 || tries === TRIES || seconds > PATIENCE_S) return response;
      await response.body?.cancel();
      console.error(`The service's limit is reached; going on in ${seconds} s.`);
      await sleep(seconds * 1000);
    }
  };
}
