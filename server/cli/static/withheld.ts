/** What a published log withholds of a file: nothing there has the file's hash any more, so what its readers have kept tells of it. */
import { withPayload } from "../../../engine/verify/bundle/withheld.js";
import { isPayloadOf, isWithheld, withholdingIn } from "../../../engine/verify/events/withheld.js";
import type { AttestationBundle, Entry } from "../../../engine/verify/index.js";
import { ClientError } from "../../client/base/error.js";
import type { PublishedEntry, StaticLog } from "../../client/static/log.js";
import { DocumentFiles } from "../files/document-files.js";
import { readObject } from "../files/objects.js";

/** A withheld entry about a file, and the operator's words. */
interface WithheldAbout extends PublishedEntry {
  readonly withheld_by: number;
  readonly reason: string;
}

/**
 * The withheld entry that a receipt beside a file is of, or that the index still names for it; undefined if there is none.
 * @param hash of the file
 * @param isMeant whether the payload that was kept is by a signer who is asked for
 */
export async function withheldAbout(
  log: StaticLog,
  file: string,
  hash: string,
  isMeant: (kept: Entry) => boolean,
): Promise<WithheldAbout | undefined> {
  for (const receipt of new DocumentFiles().receipts(file)) {
    const kept = keptIn(receipt);
    if (kept?.payload?.document_hash !== `sha256:${hash}` || !isMeant(kept)) continue;
    const found = await log.entry(kept.id).catch(orNone);
    if (found && isPayloadOf(found.entry, kept.payload) && isWithheld(found.entry)) return told(log, found);
  }
  // An index from before, in a cache for example: whether the entry was about the file, nothing proves.
  for (const leafIndex of await log.leavesAbout(hash)) {
    const found = await log.at(leafIndex);
    if (isWithheld(found.entry)) return told(log, found);
  }
  return undefined;
}

async function told(log: StaticLog, { entry, leafIndex }: PublishedEntry): Promise<WithheldAbout> {
  const by = (await log.entry(entry.withheld_by!)).entry;
  const reason = `The operator withholds this, as entry ${by.id} says: ${withholdingIn(by)!.reason}`;
  return { entry, leafIndex, withheld_by: by.id, reason };
}

/** The entry in a receipt, with its payload; undefined for a file that is none. */
function keptIn(receipt: string): Entry | undefined {
  try {
    return withPayload(readObject(receipt) as unknown as AttestationBundle).entry;
  } catch {
    // It counts for nothing here: `cairnlog verify FILE` says what is wrong with it.
    return undefined;
  }
}

function orNone(error: unknown): undefined {
  if (error instanceof ClientError && error.code === "not-found") return undefined;
  throw error;
}
