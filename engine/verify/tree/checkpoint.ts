/**
 * Checkpoints of tree version 2: a tree head as a signed note (c2sp.org/tlog-checkpoint, c2sp.org/signed-note). The root
 * is that of the log's own hashing and not that of RFC 6962, so witnesses cannot follow it.
 */
import type { PublicKey } from "../keys/publickey.js";
import { type Checkpoint, parseCheckpointText } from "../note/checkpoint.js";
import { noteKey } from "../note/key.js";
import { isNoteName, parseNote } from "../note/note.js";
import { verifySignatures } from "../note/verify.js";
import { OperatorKeys } from "./operators.js";

/**
 * What a checkpoint says, if it is one of the log `name`, signed by its operator (of several keys
 * of a log, the one whose term the size is in); null otherwise. Lines of other keys
 * (witnesses) are passed over, and every line of the operator's must hold. Extension lines are taken and not told. Never
 * throws: the note may be any text.
 */
export async function verifyCheckpoint(
  note: string,
  operator: PublicKey | OperatorKeys,
  name: string,
): Promise<Checkpoint | null> {
  const parsed = parseNote(note);
  const checkpoint = parsed && parseCheckpointText(parsed.text);
  if (!checkpoint || checkpoint.origin !== name || !isNoteName(name)) return null;
  const key = operator instanceof OperatorKeys ? operator.keyAt(checkpoint.treeSize) : operator;
  if (key.algorithm !== "ed25519") return null;
  const signatures = await verifySignatures(parsed, [noteKey(name, key)]);
  return signatures?.length ? checkpoint : null;
}
