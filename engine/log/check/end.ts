/**
 * Checks the end of a log before anything is built on it. The hash of the newest entry goes into the next one, and the
 * stored nodes of the tree into the next head. A bit of them that was flipped on disk would be signed. What is compared
 * here was written in one transaction, so no crash can make it differ.
 */

import { CairnlogError } from "../../base/error.js";
import { verifySync } from "../../crypto/keys/signatures.js";
import { HASH } from "../../store/schema/schema.js";
import type { StoreReader } from "../../store/store.js";
import { type Entry, entryHash, isCut } from "../../verify/tree/entry.js";
import { treeHeadMessage } from "../../verify/tree/treehead.js";
import type { Operators } from "../operator/operators.js";
import type { Frontier } from "../read/frontier.js";
import { formatTimestamp } from "../state/clock.js";
import { rootAt } from "../tree/proofs.js";
import { hex } from "../tree/tree.js";

/**
 * Some twenty hashes and a signature: 50 µs, at any size.
 * @param frontier was read from `store` just now
 * @throws CairnlogError `corrupt-log` with what can mend it
 */
export function checkEnd(store: StoreReader, frontier: Frontier, operators: Operators): void {
  const last = store.lastBatch();
  if (!last?.count) return;
  const { size, trees } = frontier;
  const digest = hex(last.digests.subarray(-HASH));
  if (hashOf(last.entry(last.count - 1)) !== digest)
    throw damaged(`Entry ${size} does not have its hash. Restore the newest backup (cairnlog restore).`);
  const head = last.head(last.count - 1);
  if (!head) return;
  const { treeVersion } = last.headInfo!;
  const root = hex(head.root);
  // A time that was damaged may be none, and then nobody can have signed it.
  const isSigned =
    Number.isSafeInteger(head.timestamp) &&
    verifySync(operators.keyAt(size), treeHeadMessage(root, size, formatTimestamp(head.timestamp)), head.signature);
  if (!isSigned)
    throw damaged(
      `The head of ${size} entries does not have its signature. Restore the newest backup (cairnlog restore).`,
    );
  if (hex(rootAt(trees[treeVersion], size)) !== root) throw damaged(`${STORED_NODES} ${REBUILD}`);
}

/** Null for a text that is no entry. */
function hashOf(text: Buffer): string | null {
  try {
    const entry = JSON.parse(text.toString("utf8")) as Entry;
    // There is nothing to hash, and the head below is over this one.
    return isCut(entry) ? entry.entry_hash : entryHash(entry);
  } catch {
    return null;
  }
}

export const STORED_NODES = "The stored nodes of the tree do not make the root that was signed.";
export const REBUILD = "Stop the service; cairnlog fsck --rebuild makes them again.";

const damaged = (what: string): CairnlogError =>
  new CairnlogError("corrupt-log", `The data directory is damaged, so nothing is signed. ${what}`);
