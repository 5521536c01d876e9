/** The text of a checkpoint (c2sp.org/tlog-checkpoint, "Note text"): origin, size and root of a tree, a line each. */
import { decodeBase64, encodeBase64, fromHex, toHex } from "../bytes/encoding.js";

/** The content of a checkpoint. Extension lines are not part of it. */
export interface Checkpoint {
  /** The log's name. */
  readonly origin: string;
  readonly treeSize: number;
  /** Lower-case hex. */
  readonly rootHash: string;
}

const ROOT_BYTES = 32;
const TREE_SIZE = /^(?:0|[1-9]\d{0,15})$/;

/** The note text, which a checkpoint's signatures cover. `rootHash` is lower-case hex that has been checked. */
export function checkpointText({ origin, treeSize, rootHash }: Checkpoint): string {
  return `${origin}\n${treeSize}\n${encodeBase64(fromHex(rootHash))}\n`;
}

/**
 * A tree size as checkpoints and witnesses write it: decimal, without leading zeroes, at most 2^53 − 1; undefined for
 * anything else.
 */
export function parseTreeSize(text: unknown): number | undefined {
  const size = typeof text === "string" && TREE_SIZE.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(size) ? size : undefined;
}

/**
 * What the text of a note says as a checkpoint; undefined if it is none. Extension lines are accepted and not returned.
 * Nothing is verified here: the text may come from an attacker.
 */
export function parseCheckpointText(text: string): Checkpoint | undefined {
  const [origin, size, root, ...extensions] = text.slice(0, -1).split("\n");
  const treeSize = parseTreeSize(size);
  const rootHash = decodeBase64(root);
  if (!text.endsWith("\n") || !origin || treeSize === undefined || rootHash?.length !== ROOT_BYTES) return undefined;
  if (extensions.includes("")) return undefined;
  return { origin, treeSize, rootHash: toHex(rootHash) };
}
