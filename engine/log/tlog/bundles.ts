/**
 * Entry bundles (c2sp.org/tlog-tiles, "Log entries"): the data of up to 256 leaves, each with its length before it. The
 * data of a leaf is the entry's `entry_hash` as 64 lower-case hexadecimal characters, so an entry takes 66 bytes.
 */
import { HASH } from "../../store/schema/schema.js";
import { TILE_WIDTH } from "../tree/tree.js";
import type { LogView } from "../view/view.js";

const LENGTH_BYTES = 2;
const LEAF_BYTES = 2 * HASH;

/** The first `width` (1 to 256) entries of bundle `index`; undefined if the log has not as many. */
export function entryBundle(log: Pick<LogView, "digests">, index: number, width: number): Buffer | undefined {
  const first = index * TILE_WIDTH;
  const isBundle = width >= 1 && width <= TILE_WIDTH && Number.isSafeInteger(first + width);
  const digests = isBundle ? log.digests(first, first + width) : undefined;
  if (!digests) return undefined;
  const leaves = digests.toString("hex");
  const bundle = Buffer.allocUnsafeSlow(width * (LENGTH_BYTES + LEAF_BYTES));
  for (let i = 0; i < width; i++) {
    const at = bundle.writeUInt16BE(LEAF_BYTES, i * (LENGTH_BYTES + LEAF_BYTES));
    bundle.write(leaves.slice(i * LEAF_BYTES, (i + 1) * LEAF_BYTES), at, "latin1");
  }
  return bundle;
}
