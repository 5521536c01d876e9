/** A tree head signed on demand, beside the ones that appends leave in the log. Only its time is stored (`takeHeadTime`). */

import { CairnlogError } from "../../base/error.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import { type Signer, signatures } from "../../crypto/signer/operator-key.js";
import { type TreeHead, treeHeadMessage } from "../../verify/tree/treehead.js";
import { rootAt } from "./proofs.js";
import type { Tree } from "./tree.js";

/**
 * The head of the first `size` leaves (at least one) with this timestamp.
 * @param key the signer's public key
 * @throws CairnlogError `signer-unavailable`
 */
export async function freshHead(
  tree: Tree,
  size: number,
  timestamp: string,
  signer: Signer,
  key: ServerKey,
): Promise<TreeHead> {
  const root_hash = Buffer.from(rootAt(tree, size)).toString("hex");
  let signature: Buffer;
  try {
    signature = await signatures(signer, key, [treeHeadMessage(root_hash, size, timestamp)]);
  } catch (cause) {
    throw new CairnlogError("signer-unavailable", "The operator key cannot sign.", { cause });
  }
  return {
    tree_size: size,
    root_hash,
    signature: signature.toString("base64"),
    timestamp,
    key_id: signer.fingerprint,
    tree_version: tree.version,
  };
}
