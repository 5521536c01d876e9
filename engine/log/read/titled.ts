/** The conditions of a search by the words of titles: each word of the query must begin a word of a title. */
import { CairnlogError } from "../../base/error.js";
import { POSTING } from "../../store/schema/schema.js";
import { foldedAsBefore, hasTitleWords, soughtWords } from "../../verify/events/titles.js";
import { membersIn } from "../../verify/events/withheld.js";
import { type CandidatePostings, type SearchCondition, text } from "./candidates.js";

export interface TitleSources {
  /** Postings that hold words of titles. @throws CairnlogError `indexing` */
  titles(): readonly CandidatePostings[];
  /** Whether some titles are filed only as an older version folded their words. They are found as that version found them. */
  readonly hasEarlierTitles?: boolean;
}

/**
 * What an entry must have to match `title`: a condition for each word.
 * @throws CairnlogError `invalid-input` for a text without a word
 */
export function titleConditions(sources: TitleSources, title: string): SearchCondition[] {
  const words = soughtWords(title);
  if (!words.length) throw refused("It must have a letter or a digit.");
  const earlier = sources.hasEarlierTitles ? soughtWords(title, foldedAsBefore) : [];
  // What is one word now may have been several words before. One of those alone would find too much.
  const isSame = earlier.length === words.length;
  return words.map((word, i) => {
    const before = earlier[i];
    return {
      ranges: [
        text(POSTING.titleWord, word),
        ...(before === undefined ? [] : [{ ...text(POSTING.earlierTitleWord, before), ...(isSame ? {} : UNCERTAIN) }]),
      ],
      postings: () => sources.titles(),
      matches: (entry) =>
        hasTitleWords(membersIn(entry), [word]) ||
        (before !== undefined && isSame && hasTitleWords(membersIn(entry), [before], foldedAsBefore)),
      tooMany: () => refused("Too many titles match. Give more of it."),
      isServedWhole: false,
    };
  });
}

const UNCERTAIN = { certain: false };

function refused(message: string): CairnlogError {
  return new CairnlogError("invalid-input", `/title: ${message}`, { details: [{ path: "/title", message }] });
}
