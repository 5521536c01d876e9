/** What a search, or one turn of it, may cost. */

/**
 * Postings that a search reads of one condition. The terms of a range are sorted by text, so its entries have to be read and
 * sorted before one of them can be told from the next; this bounds memory and time: 8 ms.
 */
export const REACH = 200_000;
/** Postings that a search gathers in all, 40 ns each: a title may have many words. */
export const GATHERED_IN_ALL = 4 * REACH;
/** Entries that a search reads to check conditions on them, 10 µs each. */
export const READS = 2_048;

/** How far a walk goes in one turn: some 4 ms. To make the lists again for the next one takes 0.1 ms for each. */
export const TURN = {
  /** Leaf indexes in which every list is read, for all lists together. */
  dense: 2 ** 24,
  /** More of them, if so few blocks of postings have to be read, or as much work be done, for all lists together. */
  blocks: 1_024,
};
