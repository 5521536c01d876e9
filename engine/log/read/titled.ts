/**
 * Finding entries by the words of titles: each word of the query must begin a word of one. The word that the fewest entries
 * have is walked first; where the others have many more, the entries are read instead.
 */
import { CairnlogError } from "../../error.js";
import type { Postings } from "../../store/postings/postings.js";
import { POSTING } from "../../store/schema.js";
import type { Entry } from "../../verify/entry.js";
import { hasTitleWords, soughtWords } from "../../verify/titles.js";
import { addMatches, type Candidates, type Slices, word } from "./candidates.js";

export interface TitleSources {
  /** Postings that hold words of titles. */
  titles(): readonly Pick<Postings, "list" | "range" | "rangeCount">[];
  readonly size: number;
  entry(leafIndex: number): Entry | undefined;
}

/** A word whose postings are at most so many times those of the rarest word is walked, too: a posting costs a tenth of an entry. */
const WALKED = 8;
/** Entries read between two pauses. */
const READ_STEPS = 128;

/**
 * Leaf indexes of the entries, ascending, each once.
 * @throws CairnlogError `invalid-input` for a text without a word, and if all of its words match too much; `indexing`
 */
export function* titledIndexes(sources: TitleSources, title: string): Slices<number[]> {
  const words = soughtWords(title);
  if (!words.length) throw refused("It must have a letter or a digit.");
  const counted = words
    .map((text) => {
      const range = word(POSTING.titleWord, text);
      return { text, range, count: countOf(sources, range) };
    })
    .sort((a, b) => a.count - b.count);
  const least = counted[0]!.count;
  const walked = counted.filter(({ count }) => count <= least * WALKED);
  let found: Set<number> | undefined;
  for (const { text, range } of walked) {
    const having = yield* havingWord(sources, text, range);
    found = found ? new Set([...found].filter((index) => having.has(index))) : having;
  }
  const indexes = [...Float64Array.from(found!).sort()];
  const unwalked = counted.slice(walked.length).map(({ text }) => text);
  if (!unwalked.length) return indexes;
  const matching: number[] = [];
  for (const [i, index] of indexes.entries()) {
    if (hasTitleWords(sources.entry(index)!.payload, unwalked)) matching.push(index);
    if (i % READ_STEPS === READ_STEPS - 1) yield;
  }
  return matching;
}

const countOf = (sources: TitleSources, { low, high }: Candidates): number =>
  sources.titles().reduce((sum, postings) => sum + postings.rangeCount(low, high), 0);

function* havingWord(sources: TitleSources, text: string, range: Candidates): Slices<Set<number>> {
  const found = new Set<number>();
  const { size } = sources;
  const sought = {
    matches: ({ payload }: Entry) => hasTitleWords(payload, [text]),
    tooMany: () => refused("Too many titles match. Give more of it."),
    boundsTerms: true,
  };
  for (let i = 0; i < sources.titles().length; i++) {
    // Looked up again after a pause: the backlog may have got other runs.
    const postings = {
      list: (term: string) => sources.titles()[i]!.list(term),
      range: (low: string, high: string) => sources.titles()[i]!.range(low, high),
    };
    yield* addMatches({ postings, size, entry: (index) => sources.entry(index) }, range, sought, found);
  }
  return found;
}

function refused(message: string): CairnlogError {
  return new CairnlogError("invalid-input", `/title: ${message}`, { details: [{ path: "/title", message }] });
}
