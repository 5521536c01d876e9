/**
 * What the service does when its log can no longer be used: it says why, everywhere, and ends. A supervisor starts it again,
 * and the next start checks the newest entries before it serves them.
 */
import { readFileSync, rmSync } from "node:fs";
import { CairnlogError } from "../engine/error.js";
import type { LogView } from "../engine/log/view.js";
import { isPresent } from "../engine/store/presence.js";
import { writePrivateFile } from "../engine/store/private.js";
import type { Logger } from "./http/observing/logger.js";

/** Exit code of a service whose log failed: EX_IOERR of sysexits(3). */
export const FAILED_EXIT_CODE = 74;

/**
 * Writes the reason to the file `path`, beside the log. If we crash here the file may be missing or cut short; then the next
 * start only leaves out a check.
 */
export function recordFailure(path: string, failure: CairnlogError, logger: Pick<Logger, "fatal">): void {
  const { message, code } = failure;
  logger.fatal({ err: failure }, "the log failed, and the service ends");
  try {
    const record = { failed_at: new Date().toISOString(), code, message };
    writePrivateFile(path, `${JSON.stringify(record)}\n`);
  } catch (error) {
    logger.fatal({ err: error, path }, "the reason cannot be written beside the log");
  }
}

/**
 * Checks the newest entries of a log whose last process recorded a failure at `path`, and removes the record.
 * @throws CairnlogError `corrupt-log` if they do not verify; then the record stays
 */
export async function checkAfterFailure(
  path: string,
  log: Pick<LogView, "verifyNewest">,
  logger: Pick<Logger, "warn">,
): Promise<void> {
  if (!isPresent(path)) return;
  const record = readFileSync(path, "utf8").trim();
  const { valid, errors } = await log.verifyNewest();
  if (!valid) {
    const [first] = errors;
    throw new CairnlogError(
      "corrupt-log",
      `The service ended because a write failed, and the newest entries do not verify: ${first!.message} Restore the newest backup (cairnlog restore).`,
    );
  }
  logger.warn({ record }, "the service had ended because a write failed; the newest entries verify");
  rmSync(path);
}
