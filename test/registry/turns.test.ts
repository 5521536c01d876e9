/** Turns of the event loop: one piece of work each, in order. */
import { expect, test, vi } from "vitest";
import { Pieces, turn } from "#cairnlog/engine/base/turns.js";

const immediate = () => new Promise((resolve) => setImmediate(resolve));

test("of all that waits one runs in a turn, first come first", async () => {
  const notes: string[] = [];
  const work = Promise.all(["a", "b", "c"].map((name) => turn().then(() => notes.push(name))));
  for (const expected of ["a", "ab", "abc"]) {
    await immediate();
    expect(notes.join("")).toBe(expected);
  }
  await work;
  // The same again, when nothing waits any more.
  await turn();
});

test("long work asks for a turn when it has worked for a while, short work never", async () => {
  // The clock of the test: a machine that is busy with other things would make short work long.
  let now = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
  const pieces = new Pieces();
  expect(pieces.rest()).toBeNull();
  now += 10;
  const rest = pieces.rest();
  expect(rest).toBeInstanceOf(Promise);
  await rest;
  expect(pieces.rest()).toBeNull();
  clock.mockRestore();
});
