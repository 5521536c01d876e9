/** The leaves of a log that is open as a store alone. */
import { kernel } from "../../../wasm/index.js";
import { HASH } from "../../store/schema/schema.js";
import type { StoreReader } from "../../store/store.js";
import { EntryReader } from "../read/reader.js";
import { TILE_WIDTH } from "../tree/tree.js";
import type { LeafSource } from "./tree.js";

/** @param size returns the number of entries that can be read now */
export function storedLeaves(store: StoreReader, size: () => number): LeafSource {
  const entries = new EntryReader(store);
  return {
    get size() {
      return size();
    },
    tile(treeVersion, level, index, width) {
      const first = index * TILE_WIDTH;
      const covered = (first + width) * TILE_WIDTH ** level;
      if (!(index >= 0 && width >= 1 && width <= TILE_WIDTH && covered <= size())) return undefined;
      // Only full tiles of leaves are stored.
      const stored = store.tile(treeVersion, level, index);
      if (stored && stored.length >= width * HASH) return stored.subarray(0, width * HASH);
      if (level > 0) return undefined;
      const digests = entries.digests(first, first + width);
      return digests && kernel.leaves(digests, treeVersion);
    },
  };
}
