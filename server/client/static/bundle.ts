/**
 * A bundle of entries as the service serves them, each with the head of the size that ends with it: lines of JSON, in gzip. An
 * entry's timestamp proof is left out, because it may come later, and a bundle is never replaced.
 */
import { utf8 } from "../../../engine/verify/bytes/encoding.js";
import { checkServiceEntry, type Entry, parseIJson, rfc6962, type TreeHead } from "../../../engine/verify/index.js";
import { isObject } from "../../../engine/verify/json/shape.js";
import { TREE_HEAD } from "../../../engine/verify/tree/treehead.js";
import { readBody } from "../base/body.js";
import { FULL_TILE, HASH_BYTES } from "../log/served.js";

export interface BundledEntry {
  readonly entry: Entry;
  /** Null for an entry of imported history, which has no head. Nothing in a bundle proves its signature. */
  readonly head: TreeHead | null;
}

/** The text of a bundle, before it is compressed. */
export const bundleText = (entries: readonly BundledEntry[]): string =>
  entries.map(({ entry: { ots_proof: _, ...entry }, head }) => `${JSON.stringify({ entry, head })}\n`).join("");

/**
 * The entries in the bytes of a bundle, unchecked; undefined for what is none.
 * @param weighed called with the length of its text
 */
export async function parseBundle(
  bytes: Uint8Array,
  weighed: (length: number) => void = () => {},
): Promise<readonly BundledEntry[] | undefined> {
  try {
    // Some servers and their clients have decompressed it on the way.
    const text = new TextDecoder().decode(isGzip(bytes) ? await gunzipped(bytes) : bytes);
    weighed(text.length);
    if (!text.endsWith("\n")) return undefined;
    const lines = text.slice(0, -1).split("\n").map(parseIJson);
    return lines.every((line) => isObject(line) && isObject(line.entry))
      ? (lines as unknown as BundledEntry[])
      : undefined;
  } catch {
    // The server chose the bytes.
    return undefined;
  }
}

/**
 * What is wrong with the entries of a bundle; undefined if they are those of the tree, and every head has the form of one of its
 * size. Signatures of heads are not verified, nor whether a payload that is missing is withheld.
 * @param hashes of the leaves, from the tree
 */
export function bundleFault(
  entries: readonly BundledEntry[],
  index: number,
  hashes: Uint8Array,
  sha256?: (preimage: Uint8Array) => Uint8Array,
): string | undefined {
  const first = index * FULL_TILE;
  const count = hashes.length / HASH_BYTES;
  if (entries.length !== count) return `It has ${entries.length} entries, and not ${count}.`;
  for (const [i, { entry, head }] of entries.entries()) {
    const about = `Entry ${first + i}`;
    const problem = checkServiceEntry(entry, sha256).find(
      ({ code }) => code !== "unknown-digest" && code !== "withheld",
    );
    if (problem) return `${about}: ${problem.message}`;
    const leaf = rfc6962.leafHash(utf8(entry.entry_hash));
    if (leaf.some((byte, at) => byte !== hashes[i * HASH_BYTES + at])) return `${about} is not the one in the tree.`;
    const before = entries[i - 1];
    if (entry.id <= (before?.entry.id ?? first)) return `${about} has an id that cannot be there.`;
    // Sizes of imported history, which come first, have no heads.
    if (!head && !before?.head && head === null) continue;
    const misfit = TREE_HEAD(head, "");
    if (misfit !== undefined) return `${about} has no head. ${misfit}`;
    if (head!.tree_size !== first + i + 1) return `${about} has the head of another size.`;
  }
  return undefined;
}

/** The leaf index of an entry among `size`; undefined if it is not there. @param read the entries of a bundle */
export async function leafIndexOf(
  id: number,
  size: number,
  read: (index: number) => Promise<readonly BundledEntry[]>,
): Promise<number | undefined> {
  // Ids ascend from 1 and may skip some, so an entry's place is below its id.
  let [low, high] = [0, Math.ceil(Math.min(id, size) / FULL_TILE)];
  let at = high - 1;
  while (low < high) {
    const entries = await read(at);
    const i = entries.findIndex(({ entry }) => entry.id === id);
    if (i >= 0) return at * FULL_TILE + i;
    if (entries[0]!.entry.id < id && id < entries.at(-1)!.entry.id) break;
    if (entries[0]!.entry.id > id) high = at;
    else low = at + 1;
    at = (low + high) >> 1;
  }
  return undefined;
}

const isGzip = ([first, second]: Uint8Array): boolean => first === 0x1f && second === 0x8b;

/** @throws OversizedAnswer; TypeError for what is no gzip */
const gunzipped = (bytes: Uint8Array): Promise<Uint8Array> =>
  readBody(
    new Response(new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream("gzip"))),
    true,
  );
