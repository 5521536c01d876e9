/** Signed tree heads: the operator's signed statement about the log at one size. */
import { decodeBase64, utf8 } from "../bytes/encoding.js";
import { anyText, hexHash, objectOf, positiveInteger, where } from "../json/shape.js";
import type { PublicKey } from "../keys/publickey.js";
import { verifySignature } from "../keys/signature.js";
import { noteKey } from "../note/key.js";
import { type Checkpoint, isNoteName, parseCheckpointText, parseNote } from "../note/note.js";
import { verifySignatures } from "../note/verify.js";
import { canonicalTimestamp } from "./entry.js";
import type { TreeVersion } from "./merkle.js";
import { OperatorKeys } from "./operators.js";

/** A signed tree head as it is served. `key_id` and `tree_version` are not signed. */
export interface TreeHead {
  readonly tree_size: number;
  /** Lower-case hex. */
  readonly root_hash: string;
  /** Base64. */
  readonly signature: string;
  /** ISO 8601. The signature covers this spelling. */
  readonly timestamp: string;
  /** Fingerprint of the operator key. */
  readonly key_id: string;
  /** The tree version of `root_hash`. With a wrong one, every proof fails. */
  readonly tree_version: TreeVersion;
}

/** The members of a tree head. */
export const TREE_HEAD_MEMBERS = {
  tree_size: positiveInteger,
  root_hash: hexHash,
  signature: anyText,
  timestamp: where("an ISO 8601 date and time with an offset", (value) => canonicalTimestamp(value) !== undefined),
  key_id: anyText,
  tree_version: where("1 or 2", (value) => value === 1 || value === 2),
};

/** A tree head that may have further members. */
export const TREE_HEAD = objectOf(TREE_HEAD_MEMBERS, {}, "ignored");

/** The text whose UTF-8 a tree head's signature covers. It is ASCII. */
export function treeHeadText(rootHash: string, treeSize: number, timestamp: string): string {
  return `${rootHash}:${treeSize}:${timestamp}`;
}

/** The bytes that a tree head's signature covers: UTF-8 of `root_hash:tree_size:timestamp`. */
export function treeHeadMessage(rootHash: string, treeSize: number, timestamp: string): Uint8Array {
  return utf8(treeHeadText(rootHash, treeSize, timestamp));
}

/**
 * Whether `head` is well-formed, names the operator key by its fingerprint, and is signed by it: by the given key, or by
 * the one of a log's keys whose term its size is in. Never throws: the head may be any JSON value. The fields are checked
 * for their form first, since a colon could otherwise move between them.
 */
export async function verifyTreeHead(head: TreeHead, operator: PublicKey | OperatorKeys): Promise<boolean> {
  if (TREE_HEAD(head, "") !== undefined) return false;
  const key = operator instanceof OperatorKeys ? operator.keyAt(head.tree_size) : operator;
  const signature = decodeBase64(head.signature);
  if (signature === undefined || head.key_id !== key.fingerprint) return false;
  return verifySignature(key, treeHeadMessage(head.root_hash, head.tree_size, head.timestamp), signature);
}

// Checkpoints of tree version 2: a tree head as a signed note (c2sp.org/tlog-checkpoint, c2sp.org/signed-note). The root
// is that of the log's own hashing and not that of RFC 6962, so witnesses cannot follow it.

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
