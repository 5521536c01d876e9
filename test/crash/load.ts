/** Mixed load for crash tests: attestations by several keys until the service dies, and what was acknowledged. */
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export interface Acknowledged {
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly sth: { readonly tree_size: number; readonly root_hash: string; readonly signature: string };
}

export interface Signer {
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

export function makeSigner(): Signer {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  return { publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(), privateKey };
}

/** A body for `POST /attestations`; keys are in canonical order already, so JSON.stringify gives the signed bytes. */
export function attestationBody(signer: Signer, title: string): object {
  const content_hash = `sha256:${createHash("sha256").update(title).digest("hex")}`;
  const manifest = { attestations: [], document: { content_hash, title } };
  const signature = sign(null, Buffer.from(JSON.stringify(manifest)), signer.privateKey).toString("base64");
  return { manifest, public_key_pem: signer.publicKey, signature, pseudonym: "crash test" };
}

/** Sends attestations over `connections` at once until one fails to be answered. @returns every acknowledged receipt */
export async function loadUntilDead(url: string, round: number, connections = 24): Promise<Acknowledged[]> {
  const acknowledged: Acknowledged[] = [];
  const fixed = makeSigner();
  const send = async (body: object): Promise<Acknowledged | null> => {
    try {
      const response = await fetch(`${url}/api/v1/attestations`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const answer = await response.json();
      if (response.status !== 200) throw new Error(`answered ${response.status}: ${JSON.stringify(answer)}`);
      return answer as Acknowledged;
    } catch (error) {
      // Being cut off is what this load is for; an answer that is not 200 is not.
      if (error instanceof TypeError || error instanceof SyntaxError) return null;
      throw error;
    }
  };
  const work = async (worker: number) => {
    for (let n = 0; ; n++) {
      // Every eighth attestation is by a key the log has not seen: its registration is part of the same batch.
      const signer = n % 8 === 0 ? makeSigner() : fixed;
      const receipt = await send(attestationBody(signer, `round ${round} worker ${worker} number ${n}`));
      if (!receipt) return;
      acknowledged.push(receipt);
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, worker) => work(worker)));
  return acknowledged;
}
