/** The conditions of a search by the words of titles: each word of the query must begin a word of a title. */
import { CairnlogError } from "../../error.js";
import { POSTING } from "../../store/schema.js";
import { hasTitleWords, soughtWords } from "../../verify/titles.js";
import { type CandidatePostings, type Condition, text } from "./candidates.js";

export interface TitleSources {
  /** Postings that hold words of titles. @throws CairnlogError `indexing` */
  titles(): readonly CandidatePostings[];
}

/**
 * What an entry must have to match `title`: a condition for each word.
 * @throws CairnlogError `invalid-input` for a text without a word
 */
export function titleConditions(sources: TitleSources, title: string): Condition[] {
  const words = soughtWords(title);
  if (!words.length) throw refused("It must have a letter or a digit.");
  return words.map((word) => ({
    ranges: [text(POSTING.titleWord, word)],
    postings: () => sources.titles(),
    matches: ({ payload }) => hasTitleWords(payload, [word]),
    tooMany: () => refused("Too many titles match. Give more of it."),
    isServedWhole: false,
  }));
}

function refused(message: string): CairnlogError {
  return new CairnlogError("invalid-input", `/title: ${message}`, { details: [{ path: "/title", message }] });
}
