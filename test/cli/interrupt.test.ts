/** What an interruption does to a command that takes its time, and when it listens for one. */
import { once } from "node:events";
import { expect, test } from "vitest";
import { interruptible } from "#cairnlog/server/cli/terminal/interrupt.js";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;
const listeners = () => SIGNALS.map((signal) => process.listenerCount(signal));

test.each(SIGNALS)("%s ends the work, and what comes after is the process's own affair", async (signal) => {
  const before = listeners();
  const work = interruptible(async (interrupted) => {
    await once(interrupted, "abort");
    interrupted.throwIfAborted();
  });
  expect(listeners()).toEqual(before.map((count) => count + 1));
  process.emit(signal);
  await expect(work).rejects.toMatchObject({ code: "closed", message: "Interrupted." });
  expect(listeners()).toEqual(before);
});

test("nobody listens any more when the work has ended on its own", async () => {
  const before = listeners();
  expect(await interruptible(async () => 7)).toBe(7);
  await expect(interruptible(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(listeners()).toEqual(before);
});
