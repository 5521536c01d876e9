/**
 * Binary search.
 * @param holds monotonic: once it is true, it is true for every greater number
 * @returns the least whole number n with low <= n < high for which `holds` is true; `high` if there is none
 */
export function leastWhere(low: number, high: number, holds: (n: number) => boolean): number {
  let [from, to] = [low, high];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    if (holds(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}
