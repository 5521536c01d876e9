/** Long queries in slices: several at the same time, limited in number, while other work continues. */
import { expect, it } from "vitest";
import type { Steps } from "#cairnlog/engine/base/turns.js";
import { Slices } from "#cairnlog/engine/registry/shared/slices.js";
import { failure } from "./world.js";

const idle = { queued: 0, batches: 0 };

/** Runs until `stop` returns true. Notes its beginning and its end. */
function* endless(notes: string[], name: string, stop: () => boolean): Steps<string> {
  notes.push(`${name} begins`);
  try {
    while (!stop()) yield;
    return name;
  } finally {
    notes.push(`${name} ends`);
  }
}

it("gives each query its result, or its error", async () => {
  const slices = new Slices(idle);
  const failing = function* (): Steps<never> {
    yield;
    throw new Error("no");
  };
  const [one, two] = await Promise.allSettled([slices.run(endless([], "one", () => true)), slices.run(failing())]);
  expect(one).toEqual({ status: "fulfilled", value: "one" });
  expect(two).toMatchObject({ status: "rejected", reason: { message: "no" } });
});

it.each([idle, { queued: 1, batches: 0 }])(
  "lets timers and other queries run beside an endless one (%j)",
  async (log) => {
    const slices = new Slices(log);
    let isOver = false;
    const long = slices.run(endless([], "long", () => isOver));
    expect(await slices.run(endless([], "short", () => true))).toBe("short");
    await new Promise((resolve) => setTimeout(resolve, 5));
    isOver = true;
    expect(await long).toBe("long");
  },
);

it("begins 16 at a time, keeps 256 waiting, refuses more, and ends all when it is closed", async () => {
  const slices = new Slices(idle);
  const notes: string[] = [];
  const asked = Array.from({ length: 16 }, (_, i) => failure(() => slices.run(endless(notes, `${i}`, () => false))));
  while (notes.length < 16) await new Promise((resolve) => setImmediate(resolve));
  const waiting = Array.from({ length: 256 }, () => failure(() => slices.run(endless(notes, "late", () => false))));
  expect(await failure(() => slices.run(endless(notes, "one more", () => true)))).toMatchObject({ code: "overloaded" });
  for (let turn = 0; turn < 40; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(notes).toHaveLength(16);
  slices.close();
  for (const refusal of await Promise.all([...asked, ...waiting])) expect(refusal.code).toBe("closed");
  expect(notes.filter((note) => note.endsWith("ends"))).toHaveLength(16);
  expect(await failure(() => slices.run(endless(notes, "after", () => true)))).toMatchObject({ code: "closed" });
});
