/** What nobody catches while a test file runs: errors of a program's own functions. */
import { afterEach, beforeEach } from "vitest";

/** To be called in a `describe`. @returns the errors of the running test, which do not end the process */
export function keepUncaught(): readonly unknown[] {
  const errors: unknown[] = [];
  let listeners: NodeJS.UncaughtExceptionListener[] = [];
  beforeEach(() => {
    errors.length = 0;
    listeners = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", (error) => void errors.push(error));
  });
  afterEach(() => {
    process.removeAllListeners("uncaughtException");
    for (const listener of listeners) process.on("uncaughtException", listener);
  });
  return errors;
}
