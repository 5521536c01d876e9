/** The file that names the logs of a witness, in both of its forms. */
import { describe, expect, test } from "vitest";
import { parseWitnessedLogs } from "#cairnlog/server/witness/logs.js";
import { newMlDsaSigner, newNoteSigner, unknownVkey } from "../verify/note/notes.js";

const [one, two, again, witness] = [
  newNoteSigner("log.example/1"),
  newNoteSigner("log.example/2"),
  newNoteSigner("log.example/1"),
  newNoteSigner("w", 4),
];
const read = (text: string) =>
  [...parseWitnessedLogs(text)].map(([origin, { keys }]) => [origin, keys.map(({ id }) => id)]);
const id = ({ keyId }: { keyId: Buffer }) => keyId.toString("hex");

describe("lines of a policy", () => {
  test("name logs, each with one key or several", () => {
    const text = `# a comment\n\n\tlog  ${one.vkey}\thttps://log.example/1 \nlog ${two.vkey}\nlog ${again.vkey}`;
    expect(read(text)).toEqual([
      [one.name, [id(one), id(again)]],
      [two.name, [id(two)]],
    ]);
    expect(read("")).toEqual([]);
  });
});

describe("a list of the witness network", () => {
  test("names logs, and those with another origin", () => {
    const text = `# a comment\nlogs/v0\n\nvkey ${one.vkey}\nqpd 86400\ncontact a b c\n\nvkey ${two.vkey}\norigin a name\ncontact\n`;
    expect(read(text)).toEqual([
      [one.name, [id(one)]],
      ["a name", [id(two)]],
    ]);
  });
});

test("frozen says in both forms where the log above it has ended", () => {
  const ends = (text: string) => [...parseWitnessedLogs(text).values()].map(({ end }) => end);
  expect(ends(`log ${one.vkey}\n frozen\t12 \nlog ${two.vkey}`)).toEqual([12, null]);
  expect(ends(`logs/v0\nvkey ${one.vkey}\norigin a\nfrozen 12\nvkey ${two.vkey}`)).toEqual([12, null]);
  // Each key of a log may be followed by it, or one of them.
  expect(ends(`log ${one.vkey}\nlog ${again.vkey}\nfrozen 12`)).toEqual([12]);
  expect(ends(`log ${one.vkey}\nfrozen 12\nlog ${again.vkey}`)).toEqual([12]);
  expect(ends(`log ${one.vkey}\nfrozen 12\nlog ${again.vkey}\nfrozen 12`)).toEqual([12]);
});

test("keys of ML-DSA-44 are known, and those of unknown types are passed over, with a log that has no other", () => {
  const pq = newMlDsaSigner("log.example/2");
  const unknown = [unknownVkey("log.example/1"), unknownVkey("log.example/3", 2)];
  const known = [
    [one.name, [id(one)]],
    [pq.name, [id(pq)]],
  ];
  expect(read([...unknown, one.vkey, pq.vkey].map((vkey) => `log ${vkey}`).join("\n"))).toEqual(known);
  expect(read(["logs/v0", ...[...unknown, one.vkey, pq.vkey].map((vkey) => `vkey ${vkey}`)].join("\n"))).toEqual(known);
});

test.each([
  ["another word", `logs ${one.vkey}`, "Line 1"],
  ["no key", "# log\nlog", "Line 2"],
  ["too many words", `log ${one.vkey} https://log.example now`, "Line 1"],
  ["a key that is none", "\nlog log.example", "Line 2"],
  ["the key of a witness", `log ${witness.vkey}`, "the key of a witness"],
  ["a key twice", `log ${one.vkey}\nlog ${one.vkey}`, "two keys"],
  ["a list that begins with an origin", "logs/v0\norigin a", "begins with vkey"],
  ["a list with an empty origin", `logs/v0\nvkey ${one.vkey}\norigin`, "Line 3"],
  [
    "a list with another word",
    `logs/v0\nvkey ${one.vkey}\nlog ${two.vkey}`,
    "Line 3 of the file of logs: log is not a word",
  ],
  ["a list with its first line twice", "logs/v0\nlogs/v0", "Line 2"],
  ["an end of no log", "frozen 12", "Line 1"],
  ["an end at no size", `log ${one.vkey}\nfrozen 0`, "Line 2"],
  ["an end without a size", `log ${one.vkey}\nfrozen`, "Line 2"],
  ["an end with more", `log ${one.vkey}\nfrozen 12 13`, "Line 2"],
  ["a log with two ends", `log ${one.vkey}\nfrozen 12\nlog ${again.vkey}\nfrozen 13`, "two ends"],
])("%s is refused", (_, text, sentence) => {
  expect(() => parseWitnessedLogs(text)).toThrow(
    expect.objectContaining({ code: "invalid-input", message: expect.stringContaining(sentence) }),
  );
});
