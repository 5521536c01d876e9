/**
 * Converts a log of an older format to this version's format. `MIGRATIONS` has one step for each format. Opening a log
 * runs the missing steps in order.
 */
import { CairnlogError } from "../base/error.js";
import type { Store } from "./contract.js";
import type { LogMeta } from "./schema/rows.js";
import { FORMAT } from "./schema/schema.js";

/** What migrations need of the code that knows what entries mean. */
export interface Refiling {
  /** Makes the postings of all entries anew. */
  fileAnew(store: Store): Promise<void>;
  /**
   * Makes the rows of keys, endorsements, requests and policies anew, from all entries. This takes about as long as reading
   * the whole log.
   */
  deriveAnew(store: Store): Promise<void>;
}

/**
 * Converts the tables from one format to the next, and resolves when the result is on disk. The format number is raised
 * afterwards. If we crash in between, the step runs again on its own result, so it must be repeatable.
 */
type Migration = (store: Store, refiling: Refiling) => Promise<void>;

/** Step i converts format i + 1 to format i + 2. */
export const MIGRATIONS: readonly Migration[] = [
  // Format 2 adds the journal's position. It is 0 if there is no row, so the next commit begins the sequence.
  async () => {},
  // Format 3 says of keys whether they are proven; the rows are made by the last step.
  async () => {},
  // Format 4 files attestations under what was signed, old ones too. This takes about as long as reading the whole log.
  (store, { fileAnew }) => fileAnew(store),
  // Format 5 says of keys whether they named themselves, and lists the endorsements that were accepted. Its batches hold entries
  // in shorthand. Older batches stay what they are: both are read, and LMDB would not make the file shorter.
  (store, { deriveAnew }) => deriveAnew(store),
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
 * Checks that a log can be read as it is. One that is not converted, or not to its end, has rows that say too little: of keys, for
 * example, that nobody registered them.
 * @throws CairnlogError `precondition-failed` for a log of an older format; as `checkFormat` does
 */
export function checkConverted(meta: LogMeta): void {
  checkFormat(meta);
  if (meta.format !== FORMAT)
    throw new CairnlogError(
      "precondition-failed",
      `The log is in format ${meta.format}, but this version uses format ${FORMAT}. Start the service once, or the monitor of a mirror: it converts the log.`,
    );
}

/**
 * Converts a log to the newest format that `migrations` can reach.
 * @returns its meta row after that
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
  // The marks of a migration that was interrupted: it runs again, and they go with the row that it writes at its end.
  const { rebuilding: _, migrating: __, ...sound } = meta;
  let migrated: LogMeta = meta.migrating ? sound : meta;
  for (const step of migrations.slice(meta.format - 1)) {
    await step(store, refiling);
    migrated = { ...migrated, format: migrated.format + 1 };
    const row = { table: "meta", key: "log", row: migrated } as const;
    const after = store.position().sequence;
    await store.commit({ after, position: null, batches: [], rows: [row], tiles: [] });
  }
  return migrated;
}
