/** Background work runs at the pace of incoming postings, and at full speed when there are none. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { MergePace } from "#cairnlog/engine/store/postings/merge.js";

function waitFor(pace: MergePace, mark: number): { done: boolean } {
  const state = { done: false };
  void pace.reached(mark).then(() => {
    state.done = true;
  });
  return state;
}

test("work waits until enough has come in", async () => {
  const pace = new MergePace();
  const [near, far] = [waitFor(pace, 10), waitFor(pace, 20)];
  pace.feed(9);
  await turn();
  expect([near.done, far.done]).toEqual([false, false]);
  pace.feed(1);
  await turn();
  expect([near.done, far.done]).toEqual([true, false]);
  pace.feed(100);
  await turn();
  expect(far.done).toBe(true);
  expect(pace.fed).toBe(110);
});

test("without anything coming in it goes on, and what comes in then sets the pace again", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const pace = new MergePace();
    const first = waitFor(pace, 10);
    vi.advanceTimersByTime(40);
    pace.feed(1);
    vi.advanceTimersByTime(40);
    await turn();
    expect(first.done).toBe(false);
    vi.advanceTimersByTime(60);
    await turn();
    expect(first.done).toBe(true);
    const second = waitFor(pace, 1000);
    await turn();
    expect(second.done).toBe(true);
    pace.feed(1);
    const third = waitFor(pace, 1000);
    await turn();
    expect(third.done).toBe(false);
    pace.release();
    await turn();
    expect(third.done).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});
