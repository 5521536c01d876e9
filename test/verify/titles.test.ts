/** Words of titles: what is one, and which words of a query find it. */
import { expect, test } from "vitest";
import { hasTitleWords, soughtWords, titleWords } from "#cairnlog/engine/verify/events/titles.js";

const wordsOf = (document_title: string) => [...titleWords({ document_title })];

test.each([
  ["Annual Report 2026.pdf", ["annual", "report", "2026", "pdf"]],
  ["snake_case-and/paths", ["snake", "case", "and", "paths"]],
  ["Über-STRASSE", ["uber", "strasse"]],
  ["Straße ẞ", ["strasse", "ss"]],
  ["ΟΔΥΣΣΕΎΣ Ὀδυσσεύς οδος", ["οδυσσευσ", "οδοσ"]],
  ["İstanbul ISPARTA", ["istanbul", "isparta"]],
  ["Zeit\u00adung\u200b \u2066A\u2069B", ["zeitung", "ab"]],
  ["שָׁלוֹם-עֶרֶב مُحَمَّد", ["שלום", "ערב", "محمد"]],
  ["か\u3099く ガク", ["がく", "く", "ガク", "ク"]],
  ["हिन्दी में", ["हिन्दी", "में"]],
  ["ﬁne Ｗｉｄｅ", ["fine", "wide"]],
  ["e\u0301te\u0301 été", ["ete"]],
  ["the the The", ["the"]],
  ["東京都 2号", ["東京都", "京都", "都", "2", "号"]],
  ["!?—", []],
  ["", []],
])("%j has the words %j", (title, words) => expect(wordsOf(title)).toEqual(words));

test("the title of a document and the name of a key count, other members and other types do not", () => {
  expect([...titleWords({ document_title: "a b", pseudonym: "b c", title: "d" })]).toEqual(["a", "b", "c"]);
  expect([...titleWords({ document_title: 7, pseudonym: ["a"] })]).toEqual([]);
});

test("32 words of an entry count, however many it has", () => {
  const title = Array.from({ length: 100 }, (_, i) => `w${i}`).join(" ");
  expect(wordsOf(title)).toEqual(title.split(" ").slice(0, 32));
  expect(wordsOf("漢".repeat(500))).toHaveLength(32);
  expect([...titleWords({ document_title: "字".repeat(500) })].at(-1)).toHaveLength(500 - 31);
});

test.each([
  ["rep ann", true],
  ["REPORT.PDF", true],
  ["annual report 2026", true],
  ["port", false],
  ["annual invoice", false],
  ["reports", false],
])("whether %j finds the title: %j", (query, finds) => {
  expect(hasTitleWords({ document_title: "Annual Report 2026.pdf" }, soughtWords(query))).toBe(finds);
});

test.each([
  ["Straße", ["STRASSE", "strass", "straß", "STRAẞE"]],
  ["ΟΔΟΣ ονείρων", ["οδος", "οδοσ", "ὁδός", "ΟΔΟΣ ΟΝΕΙΡΩΝ"]],
  ["Donau\u00addampf\u00adschiff", ["donaudampf", "Donau\u00addampfschiff"]],
  ["Gödel, Escher", ["godel", "Go\u0308del", "GÖDEL"]],
  ["A\u0338da", ["ada"]],
])("%j is found by each of %j", (document_title, queries) => {
  for (const query of queries) expect(hasTitleWords({ document_title }, soughtWords(query)), query).toBe(true);
});

test("in a script without spaces every part of a title is found", () => {
  const found = (query: string) => hasTitleWords({ document_title: "東京都の年次報告" }, soughtWords(query));
  expect([found("京都"), found("年次"), found("年次報告"), found("京東")]).toEqual([true, true, true, false]);
});
