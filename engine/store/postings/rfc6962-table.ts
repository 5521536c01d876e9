/**
 * The nodes of the RFC 6962 tree (`engine/log/rfc6962`) on disk, in the environment of the postings. Both are derived from
 * the entries and written after them, so they may be behind the entries, and both can be removed and made again.
 */
import type { Database } from "lmdb";
import { type Environment, unheard, view } from "../lmdb/environment.js";
import { Growth } from "../lmdb/growth.js";
import type { Health } from "../lmdb/health.js";
import { HASH } from "../schema/schema.js";
import type { Rfc6962Rows } from "./contract.js";

/** Key of the extent: 8 bytes of size, big-endian, and the hash of the last leaf. Level 0 has no tiles here. */
const EXTENT: [number, number] = [0, 0];
const SIZE_BYTES = 8;
/** Name of the table. */
export const RFC6962_TABLE = "lens";

/**
 * @param handles returns the environment and the table, which is undefined in a read-only environment that no writer of
 *   this version has opened: then it is empty
 * @param write runs a transaction that adds at most so much to the file
 */
export function rfc6962Rows(
  handles: () => {
    readonly environment: Environment;
    readonly rfc6962: Database<Buffer, [number, number]> | undefined;
  },
  health: Health,
  write: (growth: Growth, changes: () => void) => Promise<void>,
): Rfc6962Rows {
  const fresh = () => {
    health.check();
    // The writer may be another thread, and this one may not have yielded since it wrote.
    handles().environment.resetReadTxn();
  };
  const table = () => handles().rfc6962;
  return {
    tile(level, index) {
      fresh();
      return health.reading(() => {
        const db = table();
        return db && view(db, [level, index], {});
      });
    },
    extent() {
      fresh();
      const row = health.reading(() => table()?.get(EXTENT));
      if (row?.length !== SIZE_BYTES + HASH) return undefined;
      return { size: Number(row.readBigUInt64BE()), lastLeaf: row.subarray(SIZE_BYTES) };
    },
    *tileKeys() {
      fresh();
      yield* health.readingEach(() => table()?.getKeys({ start: [1, 0] }) ?? []);
    },
    write(tiles, { size, lastLeaf }) {
      const row = Buffer.alloc(SIZE_BYTES + HASH);
      row.writeBigUInt64BE(BigInt(size));
      row.set(lastLeaf, SIZE_BYTES);
      const growth = new Growth().add(RFC6962_TABLE, EXTENT, row.length);
      for (const { level, index, hashes } of tiles) growth.add(RFC6962_TABLE, [level, index], hashes.length);
      return write(growth, () => {
        for (const { level, index, hashes } of tiles) unheard(table()!.put([level, index], Buffer.from(hashes)));
        unheard(table()!.put(EXTENT, row));
      });
    },
    clear() {
      const keys = [...table()!.getKeys()];
      const growth = new Growth();
      for (const key of keys) growth.add(RFC6962_TABLE, key, null);
      return write(growth, () => {
        for (const key of keys) unheard(table()!.remove(key));
      });
    },
  };
}
