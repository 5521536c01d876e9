/** Compares what is stored of the RFC 6962 tree, and its newest checkpoints, with what the entries make. */
import type { Rfc6962Rows } from "../../store/postings/contract.js";
import type { Checkpoint } from "../../verify/note/note.js";
import { TILE_WIDTH } from "../tree/tree.js";
import { Rfc6962Growth } from "./growth.js";
import { type LeafSource, MemoryRfc6962Rows, Rfc6962Tree } from "./tree.js";

/** What differs: a sentence for each difference. */
interface Rfc6962Faults {
  /** In the stored nodes, which can be made again. */
  readonly nodes: readonly string[];
  /** Between the checkpoints and the entries. */
  readonly checkpoints: readonly string[];
}

/**
 * @param source the leaves that the entries make
 * @param stored null if the file with the stored nodes cannot be read
 * @param published the checkpoints that were shown
 */
export async function rfc6962Faults(
  source: LeafSource,
  stored: Rfc6962Rows | null,
  published: readonly Checkpoint[],
  signal?: AbortSignal,
): Promise<Rfc6962Faults> {
  const expected = new MemoryRfc6962Rows();
  const tree = new Rfc6962Tree(source, () => expected);
  const growth = new Rfc6962Growth(tree);
  const extent = stored?.extent();
  const nodes: string[] = [];
  if (extent && extent.size > source.size)
    nodes.push(
      `The stored nodes of the RFC 6962 tree go to entry ${extent.size}, but the log has ${source.size} entries.`,
    );
  else if (extent) {
    await growth.extend(extent.size, signal);
    const isWhole = extent.size % TILE_WIDTH === 0 && expected.extent()?.size === extent.size;
    if (!isWhole || Buffer.compare(expected.extent()!.lastLeaf, extent.lastLeaf) !== 0)
      nodes.push("The stored nodes of the RFC 6962 tree are of another log.");
    nodes.push(...differences(stored!, expected));
  } else if (stored) nodes.push(...differences(stored, expected));
  const checkpoints: string[] = [];
  for (const { treeSize, rootHash } of published) {
    if (treeSize > source.size) {
      checkpoints.push(`A checkpoint of ${treeSize} entries was published, but the log has only ${source.size}.`);
      continue;
    }
    await growth.extend(treeSize, signal);
    if (Buffer.from(tree.root(treeSize)).toString("hex") !== rootHash)
      checkpoints.push(`The checkpoint of ${treeSize} entries that was published is not of this log.`);
  }
  return { nodes, checkpoints };
}

function* differences(stored: Rfc6962Rows, expected: MemoryRfc6962Rows): Iterable<string> {
  const name = (level: number, index: number) => `The stored tile ${index} of level ${level} of the RFC 6962 tree`;
  const seen = new Set<string>();
  for (const [level, index] of [...stored.tileKeys()]) {
    seen.add(`${level}/${index}`);
    const made = expected.tile(level, index);
    if (!made) yield `${name(level, index)} is on disk, but the entries do not make it.`;
    else if (Buffer.compare(stored.tile(level, index)!, made) !== 0)
      yield `${name(level, index)} differs from the one that the entries make.`;
  }
  for (const [level, index] of expected.tileKeys())
    if (!seen.has(`${level}/${index}`)) yield `${name(level, index)} is missing on disk.`;
}
