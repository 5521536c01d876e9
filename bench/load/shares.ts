/** How the clients of a load share it. */

/** Parts of a total that differ by one at most. */
export const sharesOf = (total: number, parts: number): number[] =>
  Array.from({ length: parts }, (_, i) => Math.floor((total + i) / parts));
