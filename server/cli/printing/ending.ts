/** How commands tell of the end of a log. */
import type { Frozen } from "../../../engine/log/operator/entries.js";

/** What froze a log, and where it goes on: some sentences. */
export function endSentences({ entry_id, timestamp, reason, successor }: Frozen): string {
  const next = successor
    ? `It goes on at ${successor.url}, under the verifier key ${successor.vkey}`
    : "It names no log that goes on";
  return `Entry ${entry_id} (${timestamp}) froze the log: ${reason} ${next}.`;
}
