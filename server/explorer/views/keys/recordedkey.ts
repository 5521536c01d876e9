/** The entry by which a key came into the log, proven, with the signatures that it holds. */
import { ClientError, type KeyDetail } from "../../../client/index.js";
import { type CheckedSignatures, checkSignatures } from "../../state/signatures.js";
import { type Proven, source } from "../../state/source.js";

interface RecordedKey {
  readonly proven: Proven;
  /** Whether the entry is about this key. */
  readonly isItsOwn: boolean;
  readonly signatures: CheckedSignatures;
}

/** Null if the service names no entry. @throws ClientError */
export async function recordedKey({ fingerprint, log_entry_id: id }: KeyDetail): Promise<RecordedKey | null> {
  if (id === null) return null;
  const proven = await source()
    .entry(id)
    .catch((error: unknown) => {
      if (!(error instanceof ClientError) || error.status !== 404) throw error;
      throw new ClientError("malformed-answer", `The service names entry ${id}, and says that there is none.`);
    });
  const { payload } = proven.entry;
  const isItsOwn = [payload?.fingerprint, payload?.signer_key_fingerprint].includes(fingerprint);
  return { proven, isItsOwn, signatures: await checkSignatures(proven) };
}
