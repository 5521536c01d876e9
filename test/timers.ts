/** Timers of this process that end at other times. */
import { onTestFinished, vi } from "vitest";

/**
 * Until the test ends, has every `setTimeout` of this process wait for as long as `instead` says. What a timer was given for
 * its call goes along: Node's own `fetch` gives its timers something, and they may end in the test of another file.
 */
export function waitInstead(instead: (milliseconds: number) => number): void {
  const { setTimeout: timer } = globalThis;
  const shifted = (run: () => void, milliseconds = 0, ...given: []) => timer(run, instead(milliseconds), ...given);
  vi.stubGlobal("setTimeout", shifted);
  onTestFinished(() => void vi.unstubAllGlobals());
}
