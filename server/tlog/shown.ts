/** What a data directory says was shown of its log. A log that does not go on from it was set back: it would sign a fork. */
import type { Log } from "../../engine/log/log.js";
import { PublishedHead } from "../../engine/log/tlog/published.js";
import { checkCheckpoint } from "../../engine/log/tlog/publisher.js";
import { cosignedCheckpointPath, publishedHeadPath, tlogCheckpointPath } from "../settings/settings.js";

/** The files with checkpoints that were shown. */
export const shownCheckpointPaths = (dataDir: string): string[] => [
  tlogCheckpointPath(dataDir),
  cosignedCheckpointPath(dataDir),
];

/**
 * Compares a log with the newest head and the newest checkpoints that were shown of it.
 * @throws CairnlogError `corrupt-log` when the log is shorter, or another one; `storage-failed` when a file cannot be read
 */
export async function checkShown(
  log: Pick<Log, "size" | "treeHead" | "consistencyProof" | "rfc6962">,
  dataDir: string,
): Promise<void> {
  new PublishedHead(publishedHeadPath(dataDir), log).check();
  for (const file of shownCheckpointPaths(dataDir)) await checkCheckpoint(log, file);
}
