/** Requests of the page. */

/** A browser would wait for an answer as long as it takes, and the page would show what it knew before. */
const LONGEST_MS = 30_000;

/** `fetch`, which fails when the answer is not whole in half a minute. */
export const timelyFetch: typeof fetch = (input, init) =>
  fetch(input, { ...init, signal: AbortSignal.timeout(LONGEST_MS) });
