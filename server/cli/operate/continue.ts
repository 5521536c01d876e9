/** `cairnlog operator continue`: begins a log where another one has ended. */

import { CairnlogError } from "../../../engine/base/error.js";
import type { OperatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { beginLog, continuedBy, type PrecedingLog } from "../../../engine/log/operator/entries.js";
import type { Receipt } from "../../../engine/log/state/executor.js";
import { canonicalJson } from "../../../engine/verify/json/canonical.js";
import { createClient } from "../../client/index.js";
import type { Settings } from "../../settings/settings.js";
import { existingLog } from "../files/data-directory.js";
import { openSoundLog } from "./operator-log.js";

/**
 * The log at an address, which has ended: its end and its last head are verified.
 * @param operatorKey PEM, which its chain of operator keys must hold
 * @param vkey of the log that goes on
 * @throws CairnlogError `precondition-failed` for a log that has not ended, or goes on elsewhere; ClientError
 */
export async function endedLog(url: string, operatorKey: string, vkey: string): Promise<PrecedingLog> {
  const client = createClient({ server: url, operatorKey });
  const end = await client.shards.end();
  if (!end) throw new CairnlogError("precondition-failed", `The log at ${url} has not ended: freeze it first.`);
  if (end.successor && end.successor.vkey !== vkey)
    throw new CairnlogError(
      "precondition-failed",
      `The log at ${url} goes on at ${end.successor.url} under the verifier key ${end.successor.vkey}. That of this log is ${vkey}.`,
    );
  const tree_head = await client.log.headOf(end.tree_size);
  const operators = await client.log.operators();
  return { url: client.server, operator_key: operators.keyAt(end.tree_size).pem, tree_head };
}

/**
 * Makes the first entry of the log in the data directory, which no service writes.
 * @returns null if an earlier run has made it
 */
export async function continueLog(
  settings: Settings,
  key: OperatorKey,
  predecessor: PrecedingLog,
): Promise<Receipt | null> {
  const log = await openSoundLog(settings, existingLog(settings.dataDir), key);
  try {
    const begun = continuedBy(log.entryAt(0));
    if (begun && canonicalJson({ ...predecessor, entry_id: begun.entry_id }) === canonicalJson(begun)) return null;
    return (await log.execute(beginLog, { predecessor })).receipts[0]!;
  } finally {
    await log.close();
  }
}
