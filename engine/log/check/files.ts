/**
 * Checks the data files of a log page by page, without LMDB, which a damaged page could end. The log's own file cannot
 * be repaired. The file of the postings can be made anew.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { isPresent } from "../../base/files.js";
import { DATA_FILE, inspectEnvironment } from "../../store/lmdb/inspect.js";
import { postingsFolder } from "../../store/store.js";
import type { LogCheckReport } from "./fsck.js";

/** Faults named for each file. */
const MAX_FAULTS = 100;

export interface FilesCheck {
  /** `damaged`: reading it with LMDB may end the process. `closed`: LMDB cannot open it. */
  readonly log: "sound" | "damaged" | "closed";
  readonly postings: "sound" | "damaged";
  /** A sentence for each fault. */
  readonly differences: LogCheckReport["differences"];
}

/**
 * Reads every page of the log in the directory `path`, which no process writes.
 * @throws CairnlogError `storage-failed` if a file cannot be read
 */
export function checkFiles(path: string): FilesCheck {
  const look = (folder: string) => inspectEnvironment(folder, { maxFaults: MAX_FAULTS });
  const { state, faults } = look(path);
  const { faults: postings } = look(postingsFolder(path));
  // Postings are made only after the log's own file is on disk.
  const isLost = (state === "absent" || state === "unborn") && isPresent(postingsFolder(path));
  const log = isLost ? [{ page: undefined, message: "it holds nothing" }] : faults;
  const sentence = (folder: string, message: string) => `${join(folder, DATA_FILE)} is damaged: ${message}.`;
  const closed = log.some(({ page }) => page === undefined);
  return {
    log: closed ? "closed" : log.length ? "damaged" : "sound",
    postings: postings.length ? "damaged" : "sound",
    differences: [
      ...log.map(({ message }) => ({ area: "entries", message: sentence(path, message) }) as const),
      ...postings.map(
        ({ message }) => ({ area: "derived", message: sentence(postingsFolder(path), message) }) as const,
      ),
    ],
  };
}

/** A report with the differences of the files before its own. */
export function withFiles(report: LogCheckReport, { differences }: FilesCheck): LogCheckReport {
  const counts = { ...report.counts };
  for (const { area } of differences) counts[area]++;
  return {
    ...report,
    ok: report.ok && !differences.length,
    counts,
    differences: [...differences, ...report.differences],
  };
}

/** The report if only the files could be checked. @param message why: a sentence; null if the files say it all */
export function filesOnly(files: FilesCheck, entries: number, message: string | null): LogCheckReport {
  const own = message === null ? [] : [{ area: "entries", message } as const];
  const counts = { entries: own.length, derived: 0, private: 0 };
  return withFiles({ ok: !own.length, entries, counts, differences: own }, files);
}

/**
 * Removes the file of the postings. If we crash after it, the next start computes the postings from the entries.
 */
export function removePostings(path: string): void {
  rmSync(postingsFolder(path), { recursive: true });
}
