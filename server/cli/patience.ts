/** `fetch` for commands: waits out a rate limit that ends soon, so that a command over a few dozen files gets through. */
import { setTimeout as timer } from "node:timers/promises";
import { secondsAsked } from "../client/body.js";

/** A minute's limit is waited out; what takes longer is for people to decide. */
const PATIENCE_S = 60;
/** Times that one request is sent. Whoever answers chooses how often it says "again". */
const TRIES = 5;

/**
 * A `fetch` that asks again after 429, after the time that the answer names, or after growing pauses where it names none.
 * @param sleep waits so many milliseconds
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
