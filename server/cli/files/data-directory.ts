/** What the subcommands share that work on a data directory without the service. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { privateKey } from "../../../engine/crypto/keys/signatures.js";
import { importPublicKey, type ServerKey } from "../../../engine/crypto/keys/spki.js";
import { postingsFolder } from "../../../engine/store/store.js";
import { UsageError } from "../line/usage.js";

/** The directory of the log in a data directory. */
export const logFolder = (dataDir: string): string => join(dataDir, "log");

/** @throws UsageError when there is no log, and there are no remains of one */
export function existingLog(dataDir: string): string {
  const folder = logFolder(dataDir);
  if (!existsSync(join(folder, "data.mdb")) && !existsSync(postingsFolder(folder)))
    throw new UsageError(`there is no log in ${dataDir}`);
  return folder;
}

/** The operator's public key in a PEM file, which may be that of the private key. */
function readOperatorKey(file: string): ServerKey {
  const pem = readFileSync(file, "utf8");
  return pem.includes("PRIVATE KEY") ? privateKey(pem).public : importPublicKey(pem);
}

/** The key in `file`, or else the one that the service keeps in the data directory; undefined without either. */
export function operatorKeyOf(dataDir: string, file: string | undefined): ServerKey | undefined {
  if (file !== undefined) return readOperatorKey(file);
  const kept = ["operator.pem", "operator.pub.pem"].map((name) => join(dataDir, name)).find(existsSync);
  return kept === undefined ? undefined : readOperatorKey(kept);
}
