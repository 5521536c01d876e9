/**
 * Checks one head of a history from elsewhere: every member may be hostile. The operator must have signed it for the
 * tree that the entries make, and the log must be able to serve it exactly as it was signed.
 */

import { CairnlogError } from "../../base/error.js";
import { verifySync } from "../../crypto/keys/signatures.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import type { SignatureVerifier } from "../../crypto/pool/pool.js";
import type { BatchHeads } from "../../store/schema/batch.js";
import { decodeBase64 } from "../../verify/bytes/encoding.js";
import { canonicalTimestamp } from "../../verify/tree/entry.js";
import { TREE_HEAD, type TreeHead, treeHeadMessage } from "../../verify/tree/treehead.js";
import { parseTimestamp } from "../state/clock.js";

/** The values that a head must have. */
interface ExpectedHead {
  readonly size: number;
  /** Root of the first `size` entries, hex, for the head's own tree version. */
  readonly root: string;
  /** The earliest time that it may have, microseconds; null for any. */
  readonly notBefore: number | null;
}

/**
 * Heads of one kind fit into one batch: they have the same key, tree version and signature length.
 * @throws CairnlogError `invalid-input` if this is not a head
 */
export function headKind(head: TreeHead): string {
  const misfit = TREE_HEAD(head, "");
  if (misfit !== undefined) refuse(`This is not a tree head. ${misfit}`);
  const signature = decodeBase64(head.signature) ?? refuse("The tree head's signature is not base64.");
  return `${head.key_id}/${head.tree_version}/${signature.length}`;
}

/**
 * Checks size, key, root, form and time of a head, but not its signature.
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
  // The timestamp is stored as a number, and must be served as exactly the signed text.
  if (canonicalTimestamp(head.timestamp) !== head.timestamp)
    refuse("The tree head's timestamp is not in canonical form (YYYY-MM-DDTHH:MM:SS.ffffffZ).");
  if (notBefore !== null && parseTimestamp(head.timestamp) < notBefore)
    refuse("The tree head is earlier than the head before it, or than its entry.");
}

/** Whether the operator signed the head. Without a verifier, the signature is verified on this thread. */
export async function isSigned(
  head: TreeHead,
  operator: ServerKey,
  verifier: SignatureVerifier | null,
): Promise<boolean> {
  const message = treeHeadMessage(head.root_hash, head.tree_size, head.timestamp);
  const signature = Buffer.from(head.signature, "base64");
  return verifier ? verifier.verify(operator, message, signature) : verifySync(operator, message, signature);
}

/**
 * Heads of one kind, at least one, in the form in which a batch stores them. @param keyId the operator key's
 * fingerprint
 */
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
