/** The attestations of a document in the log. */
import { type AttestationEvent, canonicalJson, type Entry } from "../../../../engine/verify/index.js";
import { ClientError } from "../../../client/index.js";
import { type CheckedAttestation, checkAttestation, isAttestation } from "../../state/attestation.js";
import { source } from "../../state/source.js";

/** Number of attestations shown and verified at a time: each takes three requests. */
export const RECORDS_PER_PAGE = 5;

/** An entry that claims to attest the document; not checked yet. */
export interface Claim {
  readonly entry: Entry;
  readonly event: AttestationEvent;
}

export interface ClaimRecords {
  readonly claims: readonly Claim[];
  /** Number of entries that name the document, as who lists them says it. */
  readonly total: number;
}

/**
 * A page of the attestations of a document, oldest first, and the number of entries that name it.
 * @throws ClientError
 */
export async function claimsAbout(documentHash: string, page: number): Promise<ClaimRecords> {
  const { entries, total } = await source().naming(documentHash, page, RECORDS_PER_PAGE);
  const claims = entries.flatMap((entry) => {
    const event = (entry.payload ?? {}) as Partial<AttestationEvent>;
    return isAttestation(event) ? [{ entry, event }] : [];
  });
  return { claims, total };
}

/**
 * Fetches the entry again, with its proof. The list is not trusted, not even that the entry is about this document.
 * @throws ClientError `log-misbehaved` for an entry that is not in the log; others if something cannot be fetched
 */
export async function checkClaim({ entry: listed }: Claim, documentHash: string): Promise<CheckedAttestation> {
  const { id } = listed;
  const proven = await source().entry(id);
  const event = (proven.entry.payload ?? {}) as Partial<AttestationEvent>;
  // What is shown of it is what was listed: when, what, and by whom.
  const [said, shown] = [listed, proven.entry].map(({ timestamp, payload }) => canonicalJson({ timestamp, payload }));
  if (!isAttestation(event) || said !== shown)
    throw new ClientError("malformed-answer", `Entry ${id} is not the entry that was listed.`);
  return checkAttestation(proven, event, documentHash);
}
