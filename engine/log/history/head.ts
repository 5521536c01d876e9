/**
 * One head of a history that somebody else wrote: every member of it may be hostile. It must be the operator's word on the
 * tree that the entries make, and be served again as it was signed.
 */

import type { ServerKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/verifier.js";
import { verifySync } from "../../crypto/signatures.js";
import { CairnlogError } from "../../error.js";
import type { BatchHeads } from "../../store/batch.js";
import { decodeBase64 } from "../../verify/encoding.js";
import { canonicalTimestamp } from "../../verify/entry.js";
import { TREE_HEAD, type TreeHead, treeHeadMessage } from "../../verify/tree/treehead.js";
import { parseTimestamp } from "../clock.js";

/** What a head has to be about. */
export interface ExpectedHead {
  readonly size: number;
  /** Hex, of the first `size` entries under the head's own lens. */
  readonly root: string;
  /** The earliest time that it may have, microseconds; null for any. */
  readonly notBefore: number | null;
}

/**
 * Heads of one kind fit into one batch: they are under one lens and have signatures of one length.
 * @throws CairnlogError `invalid-input` for what is no head
 */
export function headKind(head: TreeHead): string {
  const misfit = TREE_HEAD(head, "");
  if (misfit !== undefined) refuse(`This is not a tree head. ${misfit}`);
  const signature = decodeBase64(head.signature) ?? refuse("The tree head's signature is not base64.");
  return `${head.tree_version}/${signature.length}`;
}

/**
 * Size, key, root, spelling and order of a head; not its signature.
 * @throws CairnlogError `invalid-input`; `wrong-operator` for a head that names another key
 */
export function checkHead(head: TreeHead, { size, root, notBefore }: ExpectedHead, operator: ServerKey): void {
  if (head.tree_size !== size)
    refuse(`The tree head is that of size ${head.tree_size}, but the entry makes size ${size}.`);
  if (head.key_id !== operator.fingerprint)
    throw new CairnlogError(
      "wrong-operator",
      `The tree head is signed by ${head.key_id}, not by the operator key ${operator.fingerprint}.`,
    );
  if (head.root_hash !== root)
    refuse(`The tree head's root is not that of the first ${size} entries (tree version ${head.tree_version}).`);
  // It is stored as a number, and must be signed and served as the same text.
  if (canonicalTimestamp(head.timestamp) !== head.timestamp)
    refuse("The tree head's timestamp is not in canonical form (YYYY-MM-DDTHH:MM:SS.ffffffZ).");
  if (notBefore !== null && parseTimestamp(head.timestamp) < notBefore)
    refuse("The tree head is before the one before it, or before its entry.");
}

/** Whether the operator signed the head. Without a verifier that is found out on this thread. */
export async function isSigned(
  head: TreeHead,
  operator: ServerKey,
  verifier: SignatureVerifier | null,
): Promise<boolean> {
  const message = treeHeadMessage(head.root_hash, head.tree_size, head.timestamp);
  const signature = Buffer.from(head.signature, "base64");
  return verifier ? verifier.verify(operator, message, signature) : verifySync(operator, message, signature);
}

/** Heads of one kind, at least one, as a batch keeps them. @param keyId the operator key's fingerprint */
export function packedHeads(heads: readonly TreeHead[], keyId: string): BatchHeads {
  return {
    treeVersion: heads[0]!.tree_version,
    keyId: Buffer.from(keyId.slice("sha256:".length), "hex"),
    heads: heads.map((head) => ({
      root: Buffer.from(head.root_hash, "hex"),
      timestamp: parseTimestamp(head.timestamp),
      signature: Buffer.from(head.signature, "base64"),
    })),
  };
}

function refuse(message: string): never {
  throw new CairnlogError("invalid-input", message);
}
