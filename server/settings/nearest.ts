/** The known word that somebody probably meant. */

/** Changes of a letter that a misspelt word may be away from the one that was meant, at most. */
const MOST_CHANGES = 2;

/**
 * The known word nearest to `word`: at most two letters inserted, left out, changed or exchanged with their neighbour, and
 * fewer than half of the letters. Undefined if there is none.
 */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  let found: string | undefined;
  let least = Math.min(MOST_CHANGES, Math.ceil(word.length / 2) - 1) + 1;
  for (const candidate of known) {
    const changes = distance(word, candidate);
    if (changes >= least) continue;
    least = changes;
    found = candidate;
  }
  return found;
}

/** Optimal string alignment: Levenshtein's distance in which an exchange of two neighbours counts once. */
function distance(from: string, to: string): number {
  let [before, previous]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      let least = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + (isSame ? 0 : 1));
      const isExchange = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (isExchange) least = Math.min(least, before[j - 2]! + 1);
      row.push(least);
    }
    [before, previous] = [previous, row];
  }
  return previous[to.length]!;
}
