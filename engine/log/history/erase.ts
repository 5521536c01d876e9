/**
 * Takes the payloads that the operator withholds from the disk. What LMDB deletes stays in free pages and in the gaps of others,
 * so the files are made anew: entries, heads, tiles and private rows are copied, without these payloads; derived rows and
 * postings are made from what is left. It takes as long as reading the whole log, and as much room on the disk as the log has.
 *
 * If we crash here: the copy is made beside the log, and its folder gets another name when it is complete and on disk. From then
 * on the next opening puts it in place. Until then the payloads are still there, and the copy is begun anew.
 */
import { renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { closeAfter } from "../../base/closing.js";
import { CairnlogError } from "../../base/error.js";
import { flushFolder, isPresent } from "../../base/files.js";
import type { ChangeSet, PlacedBatch, RowChange, TileChange } from "../../store/changeset.js";
import { DATA_FILE } from "../../store/lmdb/inspect.js";
import { OpeningGate } from "../../store/lmdb/opening-gate.js";
import { LOCK_FILE } from "../../store/lmdb/preflight.js";
import { takeWriterLock } from "../../store/lmdb/writerlock.js";
import { BATCH_BYTES } from "../../store/schema/batch.js";
import { FORMAT, RECORD_TABLES } from "../../store/schema/schema.js";
import { openStore, postingsFolder, type Store, type StoreOptions, type StoreReader } from "../../store/store.js";
import { isCut } from "../../verify/events/withheld.js";
import { DERIVED_ANEW, refilingFor } from "../apply/derive.js";
import { EntryReader } from "../read/reader.js";
import { type Withheld, withheldIn } from "../read/withheld.js";
import type { Projection } from "../state/projection.js";

/** Rows written in one transaction. */
const ROWS_AT_ONCE = 512;
/** Folders of the copy beside the log, while it is made and when it is complete. */
const BUILDING = "erasing";
const BUILT = "erased";

/** What is to become of withheld payloads on this disk. */
export interface Erasure {
  /** They stay on the disk, and are still shown to nobody; false if absent. */
  readonly keepsWithheld?: boolean | undefined;
  /**
   * Called with the number of payloads before they are taken from the disk, and once more with an error if there is no room for
   * that: then the next opening tries again.
   */
  readonly onErasing?: ((payloads: number, refusal: CairnlogError | null) => void) | undefined;
}

interface ErasureOptions extends Erasure, StoreOptions {
  readonly projection: Projection;
}

/**
 * The store of a log, opened to be written, without the payloads that are withheld. The caller holds the writer's lock.
 * @throws as `openStore` does
 */
export async function openErased(options: ErasureOptions): Promise<Store> {
  const { path, keepsWithheld = false, onErasing } = options;
  await dropOutdated(options);
  await putInPlace(path);
  rmSync(join(path, BUILDING), { recursive: true, force: true });
  const store = openStore(options);
  let pending: Pending;
  try {
    pending = keepsWithheld ? NOTHING : pendingIn(store);
  } catch (error) {
    return closeAfter(error, () => store.close());
  }
  if (!pending.payloads) return store;
  onErasing?.(pending.payloads, null);
  try {
    await build(store, pending.withheld!, options);
  } catch (error) {
    rmSync(join(path, BUILDING), { recursive: true, force: true });
    if (!isFull(error)) return closeAfter(error, () => store.close());
    onErasing?.(pending.payloads, error);
    return store;
  }
  await store.close();
  await putInPlace(path);
  return openStore(options);
}

/**
 * Takes withheld payloads from a log that is closed.
 * @throws CairnlogError `in-use` if a process writes it; as `openStore` does
 */
export async function eraseWithheld(options: ErasureOptions): Promise<void> {
  const lock = await takeWriterLock(options.path);
  try {
    const store = await openErased(options);
    await store.close();
  } finally {
    await lock.release();
  }
}

/** Codes of errors that say so. */
const NO_ROOM: readonly unknown[] = ["storage-full", "ENOSPC", "EDQUOT", "EFBIG"];

/** Whether it failed because the disk is full, also where there was no room to begin the copy. */
function isFull(error: unknown): error is CairnlogError {
  if (!(error instanceof CairnlogError)) return false;
  for (let at: unknown = error; at instanceof Error; at = at.cause)
    if (NO_ROOM.includes((at as NodeJS.ErrnoException).code)) return true;
  return false;
}

interface Pending {
  /** How many payloads are withheld and on this disk. */
  readonly payloads: number;
  readonly withheld: Withheld | null;
}
const NOTHING: Pending = { payloads: 0, withheld: null };

const sizeOf = (store: StoreReader): number => {
  const last = store.lastBatch();
  return last ? last.firstIndex + last.count : 0;
};

/** A log that is to be converted or rebuilt first has its turn at the opening after that. */
function pendingIn(store: StoreReader): Pending {
  const meta = store.get("meta", "log");
  if (meta?.format !== FORMAT || meta.rebuilding) return NOTHING;
  const stored = new EntryReader(store);
  const withheld = withheldIn(store, stored, sizeOf(store));
  return { payloads: withheld.leaves.filter((leaf) => !isCut(stored.entry(leaf)!)).length, withheld };
}

/** Makes the copy. When this resolves, it is complete and on disk. */
async function build(store: Store, withheld: Withheld, options: ErasureOptions): Promise<void> {
  const { path, projection } = options;
  const building = join(path, BUILDING);
  const copy = openStore({ ...options, path: building, isUnshared: true });
  try {
    await copyStored(store, copy, withheld);
    const { deriveAnew, fileAnew } = refilingFor(projection);
    await deriveAnew(copy);
    await fileAnew(copy);
    // Last of all: rows without a position are those of an empty log.
    const meta = { table: "meta", key: "log", row: store.get("meta", "log") } as const;
    await copy.commit({ ...EMPTY, position: store.position(), rows: [meta] });
  } finally {
    await copy.close();
  }
  renameSync(building, join(path, BUILT));
  flushFolder(path);
}

const EMPTY: ChangeSet = { after: 0, position: null, batches: [], rows: [], tiles: [] };

/** Copies all that does not follow from the content of entries. */
async function copyStored(store: Store, copy: Store, withheld: Withheld): Promise<void> {
  const served = new EntryReader(store, withheld);
  const isWithheld = new Set(withheld.leaves);
  const batches = function* (): Iterable<PlacedBatch> {
    for (const firstIndex of store.batchKeys()) {
      const other = (i: number) => (isWithheld.has(firstIndex + i) ? served.json(firstIndex + i) : undefined);
      yield { firstIndex, batch: store.batchAt(firstIndex)!.packedWith(other) };
    }
  };
  for (const part of parts(batches(), BATCH_BYTES, ({ batch }) => batch.length))
    await copy.commit({ ...EMPTY, batches: part });
  const tiles = function* (): Iterable<TileChange> {
    for (const [treeVersion, level, index] of store.tileKeys())
      yield { treeVersion, level, index, hashes: store.tile(treeVersion, level, index)! };
  };
  for (const part of parts(tiles(), ROWS_AT_ONCE)) await copy.commit({ ...EMPTY, tiles: part });
  for (const table of RECORD_TABLES) {
    if (DERIVED_ANEW.some((derived) => derived === table)) continue;
    const rows = function* (): Iterable<RowChange> {
      for (const { key, row } of store.range(table)) yield { table, key, row };
    };
    for (const part of parts(rows(), ROWS_AT_ONCE)) await copy.commit({ ...EMPTY, rows: part });
  }
}

/** Items in groups, each of which is closed when it weighs as much as `most`. */
function* parts<T>(items: Iterable<T>, most: number, weigh: (item: T) => number = () => 1): Iterable<readonly T[]> {
  let [group, weight]: [T[], number] = [[], 0];
  for (const item of items) {
    group.push(item);
    weight += weigh(item);
    if (weight < most) continue;
    yield group;
    [group, weight] = [[], 0];
  }
  if (group.length) yield group;
}

/**
 * Removes a complete copy if the log has gone on since: no opening leaves one behind, so it was left in this folder when another
 * state of the log was copied over it.
 * @throws as `openStore` does
 */
async function dropOutdated(options: StoreOptions): Promise<void> {
  const { path } = options;
  const built = join(path, BUILT);
  if (![path, built].every((folder) => isPresent(join(folder, DATA_FILE)))) return;
  if ((await sequenceIn(options, path)) <= (await sequenceIn(options, built))) return;
  rmSync(built, { recursive: true });
  flushFolder(path);
}

async function sequenceIn(options: StoreOptions, path: string): Promise<number> {
  const store = openStore({ ...options, path, readOnly: true });
  try {
    return store.position().sequence;
  } finally {
    await store.close();
  }
}

/**
 * Puts a copy that is complete in the place of the log's own files, if there is one. Who has the old ones open keeps them, and
 * nobody opens any meanwhile: an old file of locks and a new one of data do not go together.
 */
async function putInPlace(path: string): Promise<void> {
  const built = join(path, BUILT);
  if (!isPresent(built)) return;
  const gate = new OpeningGate(path);
  try {
    await gate.pass(async () => {
      const postings = postingsFolder(built);
      if (isPresent(postings)) {
        rmSync(postingsFolder(path), { recursive: true, force: true });
        renameSync(postings, postingsFolder(path));
      }
      const data = join(built, DATA_FILE);
      if (isPresent(data)) {
        rmSync(join(path, LOCK_FILE), { force: true });
        renameSync(data, join(path, DATA_FILE));
      }
      flushFolder(path);
      rmSync(built, { recursive: true });
      flushFolder(path);
    });
  } finally {
    gate.close();
  }
}
