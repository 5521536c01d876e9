/** The files of operator keys, while one takes the place of another. */
import { existsSync, linkSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { CairnlogError } from "../../../engine/base/error.js";
import { flushFolder, replaceFile } from "../../../engine/base/files.js";
import type { OperatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { PRIVATE_FILE } from "../../../engine/store/lmdb/private.js";

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
