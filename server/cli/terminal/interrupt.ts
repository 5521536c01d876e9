/** What an interruption does to commands that take their time. */
import { CairnlogError } from "../../../engine/error.js";

/**
 * Runs `work` with a signal that SIGINT and SIGTERM raise, so that it can clear up before the command ends. A second
 * signal of the same name ends the process at once.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const interrupt = () => controller.abort(new CairnlogError("closed", "Interrupted."));
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    return await work(controller.signal);
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
  }
}
