/** A simple load: attestations, one after the other or over several connections, until the service has ended. */
import { newManifest, newSigner, submission } from "./signers.js";

export interface Acknowledged {
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly sth: { readonly tree_size: number; readonly root_hash: string; readonly signature: string };
}

const signer = newSigner();

/** Sends an attestation of a document with this title. */
export const attest = (url: string, title: string): Promise<Response> =>
  fetch(`${url}/api/v1/attestations`, { method: "POST", body: JSON.stringify(submission(signer, newManifest(title))) });

/**
 * Attests over `connections` connections at once until one of them is cut off.
 * @param acknowledged called with every receipt
 * @returns all receipts
 */
export async function attestUntilGone(
  url: string,
  connections: number,
  acknowledged: Acknowledged[] = [],
): Promise<readonly Acknowledged[]> {
  const work = async (_: unknown, worker: number) => {
    for (let n = 0; ; n++) {
      let status: number;
      let answer: unknown;
      try {
        const response = await attest(url, `worker ${worker} document ${n}`);
        status = response.status;
        answer = await response.json();
      } catch (error) {
        // The load ends when the connection is cut off.
        if (error instanceof TypeError || error instanceof SyntaxError) return;
        throw error;
      }
      if (status !== 200) throw new Error(`answered ${status}: ${JSON.stringify(answer)}`);
      acknowledged.push(answer as Acknowledged);
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  return acknowledged;
}
