/** The one way in which the page asks. Nothing else of the page calls `fetch`, which waits for an answer as long as it takes. */

const LONGEST_MS = 30_000;

/** `fetch`, which fails when the answer is not whole in half a minute. Until then the page shows what it knew before. */
export const timelyFetch: typeof fetch = (input, init) =>
  fetch(input, { ...init, signal: AbortSignal.timeout(LONGEST_MS) });
