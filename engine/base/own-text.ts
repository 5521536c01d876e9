/**
 * ASCII text in memory of its own, for what is kept. A string that was cut out of a row or a request keeps all of it alive,
 * and one that was put together keeps its parts: what is kept of a public key takes 0.6 KB of heap instead of 3.4.
 */
export const ownText = (text: string): string => Buffer.from(text, "latin1").toString("latin1");
