/** A command that is refused after it has appended leaves nothing that is found, before and after the log was opened again. */
import { expect, test } from "vitest";
import { hashedTerm } from "#cairnlog/engine/store/postings/term.js";
import { POSTING } from "#cairnlog/engine/store/schema/schema.js";
import { openTestLog } from "../harness.js";
import { runIn } from "../inline.js";

const note = (tag: string) => ({ event_type: "note", payload: { tags: [tag] } });

test("its terms are of no entry, neither alone nor among others of its batch", async () => {
  const { log } = await openTestLog();
  const found = (tag: string) => log.postings(hashedTerm(POSTING.tag, tag)).window(0, 9);
  const refused = () =>
    runIn(log, (transaction) => {
      transaction.append(note("refused"));
      transaction.append(note("refused too"));
      throw new Error("refused by the test");
    }).catch(({ message }: Error) => message);
  const outcomes = await Promise.all([refused(), log.append(note("a")), refused(), log.append(note("b")), refused()]);
  expect([outcomes[0], outcomes[2], outcomes[4]]).toEqual(Array(3).fill("refused by the test"));
  expect(log.size).toBe(2);
  expect(["refused", "refused too", "a", "b"].map(found)).toEqual([[], [], [0], [1]]);
  await log.append(note("c"));
  expect(["refused", "refused too", "c"].map(found)).toEqual([[], [], [2]]);
});
