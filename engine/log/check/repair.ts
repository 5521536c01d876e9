/**
 * Restores derived data in place. Batches and private rows are not changed.
 *
 * If we crash here: a mark in the log's meta row says that a rebuild has begun. A log with that mark cannot be opened,
 * so no reader sees half-restored rows. The next rebuild starts from the beginning, and its last step removes the mark.
 */

import { CairnlogError } from "../../base/error.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import { Postings } from "../../store/postings/postings.js";
import type { LogMeta } from "../../store/schema/rows.js";
import { DERIVED_TABLES, FORMAT, type Key } from "../../store/schema/schema.js";
import type { Store, TileKey } from "../../store/store.js";
import { Operators } from "../operator/operators.js";
import { formatTimestamp, systemClock } from "../state/clock.js";
import { type Difference, rowDifferences, tileDifferences } from "./differences.js";
import {
  checkLog,
  commitRepairs,
  deriveAnew,
  isPlausibleStart,
  type LogCheckOptions,
  type LogCheckReport,
  oldestHead,
  operatorsIn,
  withScratch,
} from "./fsck.js";

/** Rows or tiles restored in one transaction. */
const REPAIRED_AT_ONCE = 512;

/**
 * Restores tiles, postings, derived rows and the log's meta row from the entries of the log in `store`.
 * @param report the result of `checkLog`
 * @returns the result of a second `checkLog`
 * @throws CairnlogError `corrupt-log` if entries or heads are damaged: then nothing is written; the reason of
 *   `options.signal`
 */
export async function rebuildLog(
  store: Store,
  report: LogCheckReport,
  options: LogCheckOptions,
): Promise<LogCheckReport> {
  if (report.counts.entries)
    throw new CairnlogError(
      "corrupt-log",
      "Entries or heads are damaged, and cannot be restored from this data directory. Nothing was changed. Restore the log from a backup (cairnlog restore).",
    );
  const { entries: size } = report;
  await putMeta(store, { ...restoredMeta(store, size, options), rebuilding: true });
  await withScratch(options.path, async (scratch) => {
    // Runs without entries would be read as postings. Without any run, postings are computed from the entries.
    await store.postings.removeRuns();
    // All runs are made with the words of titles.
    await store.words.removeRuns();
    await store.titles.removeRuns();
    // The next start of the service makes the nodes of the RFC 6962 tree again.
    await store.rfc6962.clear();
    const postings = new Postings(store.postings);
    try {
      await deriveAnew(store, scratch, size, options, async (replay, to) => {
        postings.add(to, replay.terms);
        await postings.settle();
      });
    } finally {
      await postings.close();
    }
    for (const table of DERIVED_TABLES)
      await repair(
        (start) => rowDifferences(store, scratch, table, start),
        (keys) => {
          const rows = keys.map((key) => ({ table, key, row: scratch.get(table, key as never) }));
          return commitRepairs(store, { rows });
        },
      );
    await repair<TileKey>(
      (start) => tileDifferences(store, scratch, start),
      (keys) => {
        const tiles = keys.map(([treeVersion, level, index]) => {
          const hashes = scratch.tile(treeVersion, level, index) ?? null;
          return { treeVersion, level, index, hashes };
        });
        return commitRepairs(store, { tiles });
      },
    );
  });
  await putMeta(store, restoredMeta(store, size, options));
  return checkLog(store, options);
}

/** Writes the differing rows or tiles, some at a time. */
async function repair<K extends Key>(
  differences: (start: K | undefined) => Iterable<Difference<K>>,
  write: (keys: readonly K[]) => Promise<void>,
): Promise<void> {
  for (let start: K | undefined; ; ) {
    const keys: K[] = [];
    for (const { key } of differences(start)) if (keys.push(key) >= REPAIRED_AT_ONCE) break;
    if (!keys.length) return;
    await write(keys);
    // Rows and tiles that were written do not differ any more.
    start = keys.at(-1)!;
  }
}

const putMeta = (store: Store, row: LogMeta): Promise<void> =>
  commitRepairs(store, { rows: [{ table: "meta", key: "log", row }] });

/**
 * The meta row, with implausible values replaced: a lost creation time becomes the time of the first head. The operator
 * keys follow from the rotations in the store, so they are right once those are.
 */
function restoredMeta(store: Store, size: number, options: LogCheckOptions): LogMeta {
  const { current, first } = readableOperators(store, size, options);
  const key_id = current.fingerprint;
  let stored: Partial<LogMeta> = {};
  try {
    stored = store.get("meta", "log") ?? {};
  } catch {
    // Unreadable, which is treated like a missing row.
  }
  const { rebuilding: _, migrating: __, first_key_id: ___, created_at, ...others } = stored;
  const rotated = first === current ? {} : { first_key_id: first.fingerprint };
  const beginning = isPlausibleStart(store, size, created_at)
    ? created_at
    : (oldestHead(store, size)?.timestamp ?? formatTimestamp(systemClock()));
  return { ...others, ...rotated, format: FORMAT, key_id, created_at: beginning as string };
}

function readableOperators(store: Store, size: number, options: LogCheckOptions): Operators {
  try {
    return operatorsIn(store, store, size, options);
  } catch {
    // Rows that are not repaired yet may be of any form.
    return Operators.of(importPublicKey(options.operatorKey));
  }
}
