/** The operator key and the log in a data directory, for commands that take both without the service. */
import { existsSync } from "node:fs";
import { CairnlogError } from "../../../engine/base/error.js";
import { type OperatorKey, operatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { type SocketSigner, signerAt } from "../../../engine/crypto/signer/socket-signer.js";
import { openLog } from "../../../engine/log/log.js";
import { PublishedHead } from "../../../engine/log/tlog/published.js";
import type { LogWriter } from "../../../engine/log/writer.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { failurePath, publishedHeadPath, type Settings } from "../../settings/settings.js";
import { readPrivateKey } from "./operator-files.js";

export const isSocket = (place: string): boolean => place.startsWith("unix:");

/** The key in a file, or behind a socket; what is opened for it is added to `signers`. */
export async function keyAt(place: string, settings: Settings, signers: SocketSigner[]): Promise<OperatorKey> {
  if (!isSocket(place)) return operatorKey(readPrivateKey(place));
  const signer = await signerAt(place, { deadlineMs: settings.signerTimeoutSeconds * 1000 });
  signers.push(signer);
  return signer;
}

/**
 * The log, to be written. Nothing is signed in one with which the service would not start.
 * @throws CairnlogError `precondition-failed`; as `openLog` and `PublishedHead.check` do
 */
export async function openSoundLog({ dataDir }: Settings, path: string, signer: OperatorKey): Promise<LogWriter> {
  if (existsSync(failurePath(dataDir)))
    throw new CairnlogError(
      "precondition-failed",
      `The service ended because a write failed (${failurePath(dataDir)}). Start it once with the present key: it checks the newest entries.`,
    );
  const log = await openLog({ path, signer, projection });
  try {
    new PublishedHead(publishedHeadPath(dataDir), log).check();
    return log;
  } catch (error) {
    await log.close();
    throw error;
  }
}
