/** The operator key and the log in a data directory, for commands that take both without the service. */

import { existsSync, linkSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnlogError } from "../../../engine/base/error.js";
import { flushFolder, replaceFile } from "../../../engine/base/files.js";
import { type OperatorKey, operatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { type SocketSigner, signerAt } from "../../../engine/crypto/signer/socket-signer.js";
import { openLog } from "../../../engine/log/log.js";
import { PublishedHead } from "../../../engine/log/tlog/published.js";
import type { LogWriter } from "../../../engine/log/writer.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { PRIVATE_FILE } from "../../../engine/store/lmdb/private.js";
import { type Client, createClient } from "../../client/index.js";
import { failurePath, publishedHeadPath, type Settings } from "../../settings/settings.js";

/** @param publicOrigin how the service is known, where it has another address */
export function operatorClient(server: string, publicOrigin: string | undefined, key: OperatorKey): Client {
  const { pem: publicKeyPem, algorithm } = key.public;
  const sign = async (bytes: Uint8Array) => (await key.sign([bytes]))[0]!;
  return createClient({
    server,
    publicOrigin,
    operatorKey: publicKeyPem,
    signer: { publicKeyPem, algorithm, sign },
  });
}

/** Digits of the fingerprint in the name of a retired key's file. */
const NAME_DIGITS = 16;

/** @throws CairnlogError `storage-failed` */
export function readPrivateKey(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new CairnlogError("storage-failed", `The operator key ${file} cannot be read.`, { cause });
  }
}

/**
 * Gives a file to a new key, mode 0600. The key that it held stays beside it, under the name of its fingerprint.
 *
 * If we crash here: the file holds one of the two keys, whole. The old key has its second name before the new one comes.
 * @param old the private key that the file holds; null for the file of a public key, whose content is not kept
 * @returns the file of the old key
 */
export async function putInPlace(file: string, old: OperatorKey | null, pem: string): Promise<string | null> {
  const folder = dirname(file);
  const kept = old && join(folder, `operator.${old.fingerprint.slice("sha256:".length).slice(0, NAME_DIGITS)}.pem`);
  if (kept) {
    if (!existsSync(kept)) linkSync(file, kept);
    flushFolder(folder);
  }
  // A draft that is left over may have another mode.
  rmSync(`${file}.new`, { force: true });
  await replaceFile(file, pem, PRIVATE_FILE);
  return kept;
}

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
