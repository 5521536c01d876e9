/** The verifier key of a log's checkpoints, from its data directory. */
import { existsSync, readFileSync } from "node:fs";
import { CairnlogError } from "../../../engine/base/error.js";
import { privateKey } from "../../../engine/crypto/keys/signatures.js";
import { importPublicKey, type ServerKey } from "../../../engine/crypto/keys/spki.js";
import { openLogReader } from "../../../engine/log/log.js";
import { projection } from "../../../engine/registry/events/projection.js";
import { parsePublicKey } from "../../../engine/verify/keys/publickey.js";
import { formatVkey, noteKey } from "../../../engine/verify/note/key.js";
import { operatorKeyPath, operatorPublicKeyPath, type Settings, tlogKeyPath } from "../../settings/settings.js";
import { logNameOf, tlogOrigin } from "../../tlog/tlog.js";
import { existingLog } from "../files/data-directory.js";

/**
 * The verifier key (c2sp.org/signed-note) with which the service of these settings signs the checkpoints at `/tlog/`.
 * @throws CairnlogError `precondition-failed` if the service has still to make the key; as `openLogReader` does
 */
export async function vkeyOf(settings: Settings): Promise<string> {
  const path = existingLog(settings.dataDir);
  const operator = operatorIn(settings);
  const log = await openLogReader({ path, operatorKey: operator.pem, projection });
  const name = logNameOf(settings, log);
  await log.close();
  const own = tlogKeyPath(settings.dataDir);
  const key = existsSync(own) ? privateKey(readFileSync(own, "utf8")).public : operator;
  if (key.algorithm !== "ed25519")
    throw new CairnlogError(
      "precondition-failed",
      `The operator key is not Ed25519, and there is no ${own} yet: start the service once, which makes it.`,
    );
  return formatVkey(noteKey(tlogOrigin(settings, name), parsePublicKey(key.pem)));
}

/** The public half of the operator key; of one behind a socket, as the service wrote it last. */
function operatorIn(settings: Settings): ServerKey {
  const file = settings.signer === null ? operatorKeyPath(settings) : operatorPublicKeyPath(settings.dataDir);
  if (!existsSync(file)) throw new CairnlogError("not-found", `There is no ${file}: start the service once.`);
  const pem = readFileSync(file, "utf8");
  return pem.includes("PRIVATE KEY") ? privateKey(pem).public : importPublicKey(pem);
}
