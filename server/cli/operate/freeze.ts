/** `cairnlog operator freeze`: ends a log, in its data directory or through its service. */
import type { OperatorKey } from "../../../engine/crypto/keys/operator-key.js";
import { CairnlogError } from "../../../engine/error.js";
import { freeze } from "../../../engine/log/operator/freeze.js";
import type { Ending } from "../../../engine/log/operator/frozen.js";
import type { TreeHead } from "../../../engine/verify/tree/treehead.js";
import { createClient } from "../../client/index.js";
import type { Settings } from "../../settings.js";
import { UsageError } from "../usage.js";
import { existingLog } from "./data-directory.js";
import { openSoundLog } from "./keys/operator-log.js";

/** @throws UsageError for half of a successor */
export function endingOf({
  reason,
  successor,
  vkey,
}: Readonly<Record<"reason" | "successor" | "vkey", string | undefined>>): Ending {
  if (reason === undefined) throw new UsageError("--reason is missing");
  if ((successor === undefined) !== (vkey === undefined))
    throw new UsageError(
      "--successor and --vkey belong together (cairnlog operator vkey prints the one of the next log)",
    );
  return { reason, successor: successor === undefined || vkey === undefined ? null : { url: successor, vkey } };
}

/** Ends the log that nobody else writes. @returns its last head */
export async function freezeLog(settings: Settings, key: OperatorKey, ending: Ending): Promise<TreeHead> {
  const log = await openSoundLog(settings, existingLog(settings.dataDir), key);
  try {
    return (await freeze(log, ending)).sth;
  } catch (error) {
    // An earlier run may have been interrupted when that was done.
    const head = error instanceof CairnlogError && error.code === "frozen" ? log.treeHead() : null;
    if (head && isSame(log.frozen, ending)) return head;
    throw error;
  } finally {
    await log.close();
  }
}

const isSame = (one: Ending | null, other: Ending): boolean =>
  one?.reason === other.reason &&
  one.successor?.url === other.successor?.url &&
  one.successor?.vkey === other.successor?.vkey;

/** Ends the log of a service that runs. @returns its last head */
export function freezeAt(server: string, key: OperatorKey, ending: Ending): Promise<TreeHead> {
  const { pem: publicKeyPem, algorithm } = key.public;
  const sign = async (bytes: Uint8Array) => (await key.sign([bytes]))[0]!;
  const client = createClient({ server, operatorKey: publicKeyPem, signer: { publicKeyPem, algorithm, sign } });
  return client.shards.freeze(ending);
}
