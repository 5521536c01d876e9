/** What is known to be published of a log: heads and checkpoints in files, or as a service or mirror shows them now. */
import { readFileSync } from "node:fs";
import type { PublishedTree } from "../../../engine/log/history/restore.js";
import { type PublicKey, type TreeHead, verifyCheckpoint, verifyTreeHead } from "../../../engine/verify/index.js";
import { connect } from "../service.js";
import { UsageError } from "../usage.js";

/**
 * The head in a file, or that of the service at an address.
 * @throws UsageError when it is neither a head nor a checkpoint, or not signed by `operatorKey`
 */
export async function readPublished(source: string, operatorKey: PublicKey): Promise<PublishedTree> {
  if (/^https?:\/\//.test(source))
    return signedTree(await connect(source).get<TreeHead>("/log/sth"), operatorKey, source);
  const text = readFileSync(source, "utf8");
  return text.trimStart().startsWith("{")
    ? signedTree(parsed(text, source), operatorKey, source)
    : signedNote(text, operatorKey, source);
}

/** A head as it is served, or a member `sth` or `head` of what is served. */
function parsed(text: string, source: string): TreeHead {
  try {
    const value = JSON.parse(text) as TreeHead & { readonly sth?: TreeHead; readonly head?: TreeHead };
    return value.sth ?? value.head ?? value;
  } catch {
    throw new UsageError(`${source} is neither a tree head nor a checkpoint`);
  }
}

async function signedTree(head: TreeHead, operatorKey: PublicKey, source: string): Promise<PublishedTree> {
  if (!(await verifyTreeHead(head, operatorKey)))
    throw new UsageError(`${source} has no tree head that is signed by the operator key ${operatorKey.fingerprint}`);
  const { tree_size, root_hash, tree_version } = head;
  return { tree_size, root_hash, tree_version, source };
}

async function signedNote(note: string, operatorKey: PublicKey, source: string): Promise<PublishedTree> {
  // Whatever the log was called then: the key makes it this operator's.
  const [name = ""] = note.split("\n", 1);
  const checkpoint = await verifyCheckpoint(note, operatorKey, name);
  if (!checkpoint)
    throw new UsageError(`${source} has no checkpoint that is signed by the operator key ${operatorKey.fingerprint}`);
  return { tree_size: checkpoint.treeSize, root_hash: checkpoint.rootHash, tree_version: 2, source };
}
