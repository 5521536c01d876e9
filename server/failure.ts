/**
 * What the service does when its log can no longer be used: it says why, everywhere, and ends. A supervisor starts it again,
 * and the next start checks the newest entries before it serves them. The parent of a service records the same for one that
 * a signal has ended.
 */
import { readFileSync, rmSync } from "node:fs";
import { CairnlogError } from "../engine/base/error.js";
import { isPresent } from "../engine/base/files.js";
import type { LogView } from "../engine/log/view/view.js";
import { writePrivateFile } from "../engine/store/lmdb/private.js";
import type { Logger } from "./process/logger.js";

/** Exit code of a service whose log failed, or that a signal has ended: EX_IOERR of sysexits(3). */
export const FAILED_EXIT_CODE = 74;

/**
 * Resolves with the failure after which this process cannot use `log` any more. The reason is in the file `path` then, beside
 * the log. If we crash here the file may be missing or cut short; then the next start only leaves out a check.
 */
export function failureOf(log: LogView, path: string, logger: Logger): Promise<CairnlogError> {
  return new Promise((resolve) =>
    log.observeFailure((failure) => {
      const { message, code } = failure;
      logger.fatal({ err: failure }, "the log failed, and the service ends");
      try {
        writeFailure(path, { code, message });
      } catch (error) {
        logger.fatal({ err: error, path }, "the reason cannot be written beside the log");
      }
      resolve(failure);
    }),
  );
}

/** What `failure.json` says beside the time. Members may be added. */
interface FailureRecord {
  readonly code: string;
  /** Why the service has ended: a sentence. */
  readonly message: string;
}

/** @param flag `wx` leaves a record that is there. @throws the file system's error */
export function writeFailure(path: string, record: FailureRecord, flag: "w" | "wx" = "w"): void {
  writePrivateFile(path, `${JSON.stringify({ failed_at: new Date().toISOString(), ...record })}\n`, flag);
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
      `The service was ended by a failure, and the newest entries do not verify: ${first!.message} Restore the newest backup (cairnlog restore).`,
    );
  }
  logger.warn({ record }, "the service was ended by a failure; the newest entries verify");
  rmSync(path);
}
