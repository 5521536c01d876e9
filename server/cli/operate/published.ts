/** What is known to be published of a log: heads and checkpoints in files, or as a service or mirror shows them now. */
import type { PublishedTree } from "../../../engine/log/history/restore.js";
import { OperatorKeys, type TreeHead, verifyCheckpoint, verifyTreeHead } from "../../../engine/verify/index.js";
import { connect } from "../connection/service.js";
import { readText } from "../files/files.js";
import { UsageError } from "../line/usage.js";

/**
 * The head in a file, or that of the service at an address.
 * @param operators the keys of the log; a service may show later ones, to which they lead
 * @throws UsageError when it is neither a head nor a checkpoint, or not signed by the operator key of its size
 */
export async function readPublished(source: string, operators: OperatorKeys): Promise<PublishedTree> {
  if (/^https?:\/\//.test(source)) return shownTree(source, operators);
  const text = readText(source);
  return text.trimStart().startsWith("{")
    ? signedTree(parsed(text, source), operators, source)
    : signedNote(text, operators, source);
}

async function shownTree(source: string, operators: OperatorKeys): Promise<PublishedTree> {
  const service = connect(source);
  const head = await service.get<TreeHead>("/log/sth");
  if (await verifyTreeHead(head, operators)) return signedTree(head, operators, source);
  const { operators: chain } = await service.get<{ readonly operators: unknown }>("/log/operator-key");
  const later = await OperatorKeys.verify(chain, operators.current);
  return signedTree(head, later.continues(operators) ? later : operators, source);
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

async function signedTree(head: TreeHead, operators: OperatorKeys, source: string): Promise<PublishedTree> {
  if (!(await verifyTreeHead(head, operators)))
    throw new UsageError(
      `${source} has no tree head that is signed by the operator key ${operators.current.fingerprint}`,
    );
  const { tree_size, root_hash } = head;
  return { tree_size, root_hash, source };
}

async function signedNote(note: string, operators: OperatorKeys, source: string): Promise<PublishedTree> {
  // Whatever the log was called then: the key makes it this operator's.
  const [name = ""] = note.split("\n", 1);
  const checkpoint = await verifyCheckpoint(note, operators, name);
  if (!checkpoint)
    throw new UsageError(
      `${source} has no checkpoint that is signed by the operator key ${operators.current.fingerprint}`,
    );
  return { tree_size: checkpoint.treeSize, root_hash: checkpoint.rootHash, source };
}
