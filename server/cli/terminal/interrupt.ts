/** Handling of interruptions in long-running commands. */
import { setMaxListeners } from "node:events";
import { CairnlogError } from "../../../engine/base/error.js";

/**
 * Runs `work` with an abort signal for SIGINT and SIGTERM, so that it can clean up before the command ends. A second
 * signal of the same name ends the process at once.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  // Every request that is under way listens: Node would warn of a leak at eleven.
  setMaxListeners(0, controller.signal);
  const interrupt = () => controller.abort(new CairnlogError("closed", "Interrupted."));
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    return await work(controller.signal);
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
  }
}

/**
 * Resolves at the first of these signals.
 * @param later what a later one does: `ends` the process at once, as it usually does, or `nothing`
 */
export function stopSignal(signals: readonly NodeJS.Signals[], later: "ends" | "nothing" = "ends"): Promise<null> {
  return new Promise((resolve) => {
    const stop = () => {
      if (later === "ends") for (const signal of signals) process.off(signal, stop);
      resolve(null);
    };
    for (const signal of signals) process.on(signal, stop);
  });
}
