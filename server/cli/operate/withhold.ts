/** `cairnlog operator withhold`: withholds the payload of an entry, in its data directory or through its service. */
import type { OperatorKey } from "../../../engine/crypto/signer/operator-key.js";
import { eraseWithheld } from "../../../engine/log/history/erase.js";
import { type WithholdingReason, withhold } from "../../../engine/log/operator/entries.js";
import { projection } from "../../../engine/registry/events/projection.js";
import type { Settings } from "../../settings/settings.js";
import { existingLog } from "../files/data-directory.js";
import { openSoundLog, operatorClient } from "./operator-log.js";

/** Where the log is that the operator's key writes: nobody else writes it, or a service. */
type LogAccess =
  | { readonly settings: Settings }
  | { readonly server: string; readonly publicOrigin: string | undefined };

/** @returns the id of the entry that withholds the payload */
export async function withholdAt(
  place: LogAccess,
  key: OperatorKey,
  entryId: number,
  said: WithholdingReason,
): Promise<number> {
  if ("server" in place) {
    const client = operatorClient(place.server, place.publicOrigin, key);
    return (await client.withholding.withhold(entryId, said)).log_entry_id;
  }
  const path = existingLog(place.settings.dataDir);
  const log = await openSoundLog(place.settings, path, key);
  let withheldBy: number;
  try {
    withheldBy = (await withhold({ log, writer: log }, entryId, said)).log_entry_id;
  } finally {
    await log.close();
  }
  // The next start of the service would do so.
  await eraseWithheld({ path, projection });
  return withheldBy;
}
