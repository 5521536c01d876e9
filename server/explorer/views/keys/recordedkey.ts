/** The entry by which a key came into the log, proven, with the signatures that it holds. */
import { canonicalTimestamp, type Entry } from "../../../../engine/verify/index.js";
import { namesKey } from "../../../../engine/verify/tree/entry.js";
import { ClientError, type KeyDetail } from "../../../client/index.js";
import { type CheckedSignatures, checkSignatures } from "../../state/signatures.js";
import { type Proven, source } from "../../state/source.js";

interface RecordedKey {
  readonly proven: Proven;
  /** Whether the entry records this key, with the name and the expiration that are shown. */
  readonly isItsOwn: boolean;
  readonly signatures: CheckedSignatures;
}

/** Null if the service names no entry. @throws ClientError */
export async function recordedKey(shown: KeyDetail): Promise<RecordedKey | null> {
  const id = shown.log_entry_id;
  if (id === null) return null;
  const proven = await source()
    .entry(id)
    .catch((error: unknown) => {
      if (!(error instanceof ClientError) || error.status !== 404) throw error;
      throw new ClientError("malformed-answer", `The service names entry ${id}, and says that there is none.`);
    });
  return { proven, isItsOwn: isShown(shown, proven.entry), signatures: await checkSignatures(proven) };
}

/** An operator key that was handed the log has the name of its part, and no expiration. */
function isShown({ fingerprint, pseudonym, expires_at }: KeyDetail, { event_type, payload }: Entry): boolean {
  if (payload?.fingerprint !== fingerprint) return false;
  if (event_type === "operator_key_rotation") return true;
  const { pseudonym: name, expiration_date } = payload;
  return namesKey(event_type) && name === pseudonym && (canonicalTimestamp(expiration_date) ?? null) === expires_at;
}
