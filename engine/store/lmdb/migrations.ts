/**
 * How a log of an older format becomes one of this version's. Table `MIGRATIONS` has one step for each format; opening a
 * log runs those that it lacks, in order.
 */
import { CairnlogError } from "../../error.js";
import type { Store } from "../contract.js";
import { FORMAT, type LogMeta } from "../schema.js";

/** What migrations need of those who know what entries mean. */
export interface Refiling {
  /** Makes the postings of all entries anew. */
  fileAnew(store: Store): Promise<void>;
}

/**
 * Brings the tables from one format to the next and resolves when that is on disk. The format's number is raised
 * afterwards; if we crash in between, the step runs again on what it left, so it must be able to.
 */
export type Migration = (store: Store, refiling: Refiling) => Promise<void>;

/** Number i leads from format i + 1 to format i + 2. */
export const MIGRATIONS: readonly Migration[] = [
  // Format 2 has the journal's position, which is 0 where no row says otherwise: the sequence begins with the next commit.
  async () => {},
  // Format 3 files attestations under what was signed, old ones too. This takes about as long as reading the whole log.
  (store, { fileAnew }) => fileAnew(store),
];

/** @throws CairnlogError `corrupt-log` for a log of a newer format than `format` */
export function checkFormat(meta: LogMeta, format: number = FORMAT): void {
  if (meta.format > format)
    throw new CairnlogError(
      "corrupt-log",
      `The log is in format ${meta.format}; this version reads formats up to ${format}. Use the version of cairnlog that wrote it, or a newer one.`,
    );
}

/**
 * Brings a log to the newest format that `migrations` lead to.
 * @returns its meta row as it is then
 * @throws CairnlogError `corrupt-log` for a log of a newer format, `storage-failed`
 */
export async function migrate(
  store: Store,
  meta: LogMeta,
  refiling: Refiling,
  migrations = MIGRATIONS,
): Promise<LogMeta> {
  const newest = migrations.length + 1;
  checkFormat(meta, newest);
  let migrated = meta;
  for (const step of migrations.slice(meta.format - 1)) {
    await step(store, refiling);
    migrated = { ...migrated, format: migrated.format + 1 };
    const row = { table: "meta", key: "log", row: migrated } as const;
    const after = store.position().sequence;
    await store.commit({ after, position: null, firstIndex: 0, batch: null, rows: [row], tiles: [] });
  }
  return migrated;
}
