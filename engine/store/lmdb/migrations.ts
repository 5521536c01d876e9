/**
 * How a log of an older format becomes one of this version's. Table `MIGRATIONS` has one step for each format; opening a
 * log runs those that it lacks, in order.
 */
import { CairnlogError } from "../../error.js";
import type { RowChange } from "../changeset.js";
import type { Store } from "../contract.js";
import { FORMAT, type LogMeta, type RequestCountKey, type RequestList } from "../schema.js";

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
  // Format 3 files attestations under what was signed, and requests under target and requester together, old ones too.
  // This takes about as long as reading the whole log.
  async (store, { fileAnew }) => {
    await fileAnew(store);
    await pairRequests(store);
  },
];

/** Rows written in one transaction. */
const ROWS_AT_ONCE = 512;

/** Lists every request under target and requester together. */
async function pairRequests(store: Store): Promise<void> {
  const rows: RowChange[] = [];
  const counts = new Map<string, { readonly key: RequestCountKey; readonly row: Record<RequestList, number> }>();
  for (const { row: request } of store.range("requests")) {
    const { request_id, target_fingerprint: target, requester_fingerprint: requester, log_entry_id: id } = request;
    const pair = `${target} ${requester}`;
    const row = { all: 0, open: 0, held: 0, accepted: 0, declined: 0 };
    const count = counts.get(pair) ?? { key: ["pair", target, requester], row };
    counts.set(pair, count);
    for (const list of ["all", request.status] as const) {
      count.row[list]++;
      rows.push({ table: "requestsByPair", key: [target, requester, list, id], row: { request_id } });
    }
  }
  for (const count of counts.values()) rows.push({ table: "requestCounts", ...count });
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
    const after = store.position().sequence;
    const some = rows.slice(from, from + ROWS_AT_ONCE);
    await store.commit({ after, position: null, firstIndex: 0, batch: null, rows: some, tiles: [] });
  }
}

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
