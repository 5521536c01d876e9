/**
 * Damage of a log's files by a power failure, a bad disk or a person: the log opens completely, or the error says what
 * is wrong.
 */
import { afterAll, beforeAll, test } from "vitest";
import { type Case, DAMAGES, DamagedLogs, expectSoundOrSaid, FILES, type Opener } from "./damages.js";

const SIZE = 150;
const logs = new DamagedLogs();
beforeAll(() => logs.build(SIZE));
afterAll(() => logs.remove());

const OPENERS: readonly Opener[] = ["writer", "reader", "backup"];
/** Each damage of each file, with the openers in turn. The long form tests all of them. */
const CASES: readonly Case[] = FILES.flatMap((file, i) =>
  Object.keys(DAMAGES).map((damage, j) => ({ file, damage, opener: OPENERS[(i + j) % OPENERS.length]! })),
);

test("no damage ends the process, and a log that opens is whole", () => {
  for (const [i, result] of logs.outcomes(CASES).entries()) expectSoundOrSaid(CASES[i]!, result, SIZE);
});
