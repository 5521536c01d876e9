/**
 * Import: a log that begins with a history, all of it or nothing. The new log is built in a directory beside the log, and
 * put in the place of the empty log by two renames: first the file of the entries, then the directory of the postings.
 *
 * If we crash here: before the first rename the log is still empty, and the next import removes the unfinished one. After
 * it the log is complete. Between the two it has no postings, which the next start makes from the entries. Every byte of
 * the new log is on disk before the first rename.
 */
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { closing } from "../../base/closing.js";
import { CairnlogError, inputError } from "../../base/error.js";
import { flushFolder, flushFolders } from "../../base/files.js";
import type { Pool } from "../../crypto/pool/pool.js";
import type { Signer } from "../../crypto/signer/operator-key.js";
import { checkAlone, commitRows, Ledger, localJournal } from "../../journal/ledger.js";
import type { RecordedChange } from "../../journal/rows.js";
import { makePrivateFolder } from "../../store/lmdb/private.js";
import { takeWriterLock } from "../../store/lmdb/writerlock.js";
import { migrate } from "../../store/migrations.js";
import { BATCH_BYTES } from "../../store/schema/batch.js";
import { PRIVATE_TABLES } from "../../store/schema/schema.js";
import { openStore, postingsFolder, type Store } from "../../store/store.js";
import type { Entry } from "../../verify/tree/entry.js";
import { refilingFor } from "../apply/derive.js";
import { MAX_ENTRY_BYTES } from "../apply/entry.js";
import { NOT_ANSWERED_FOR } from "../read/withheld.js";
import { checkPath, checkSigner } from "../state/given.js";
import { noProjection, type Projection } from "../state/projection.js";
import { type HistoryItem, type HistoryWarning, type HistoryWriter, openHistory } from "./history.js";

/** A batch of history may be larger than a live one, because no client waits for it. */
const BATCH_ENTRIES = 1024;
/** Number of reported warnings; the others are only counted. */
const MAX_WARNINGS = 1000;
const DATA_FILE = "data.mdb";
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export interface ImportOptions {
  /** Directory of the log, which must be empty or absent. No process may have it open. */
  readonly path: string;
  /** Signs the log's heads. It signs one head now, that of the whole history. */
  readonly signer: Signer & { readonly public: { readonly pem: string } };
  /** State that is derived from entries. It must be the projection with which the log will be opened. */
  readonly projection?: Projection;
  readonly pool?: Pool;
  /** Bytes of address space, which is also the maximum size of the data. */
  readonly mapSize?: number;
  /** As in `LogOptions`. */
  readonly minFreeBytes?: number;
}

/** NDJSON in pieces of any size, or entries. */
export type ImportSource = Iterable<ImportPiece> | AsyncIterable<ImportPiece>;
type ImportPiece = Uint8Array | string | Entry;

export interface ImportReport {
  readonly entry_count: number;
  readonly last_id: number;
  readonly last_hash: string;
  /** Unusual but valid values: at most 1000 warnings, in order. */
  readonly warnings: readonly (HistoryWarning & { readonly line: number })[];
  readonly warning_count: number;
}

/** The progress of an import. */
interface ImportProgress {
  readonly entries: number;
  /** Bytes read from the source, including line ends. */
  readonly bytes: number;
}

/**
 * Imports entries as `GET /log` serves them, one on each line, into a log that is empty or absent. Ids, the text of
 * timestamps, hashes, chain versions and anchoring proofs do not change. Everything that can be checked is checked.
 * `placing` is called when the new log is complete, before it takes its place.
 * @throws CairnlogError `precondition-failed` or `in-use` unless the log is empty and no other process has it open;
 *   `wrong-operator`; for the first invalid line, with its number in the message and as `details[0].path`,
 *   `invalid-input`, `not-i-json` or `payload-too-large`; `signer-unavailable`, `storage-failed`. The log is then
 *   unchanged.
 */
export async function importEntries(
  options: ImportOptions,
  source: ImportSource,
  {
    progress = () => {},
    placing = async () => {},
  }: { progress?: (done: ImportProgress) => void; placing?: () => Promise<void> } = {},
): Promise<ImportReport> {
  checkPath("importEntries", options);
  checkSigner("importEntries", options.signer);
  const given = Object(source) as Partial<Iterable<ImportPiece> & AsyncIterable<ImportPiece>>;
  if (!given[Symbol.iterator] && !given[Symbol.asyncIterator])
    throw inputError("importEntries needs `source`, NDJSON in pieces, or entries.");
  const { path } = options;
  const building = `${path}.importing`;
  // Also beside a log that has entries: an import that was killed after the first rename leaves files behind.
  rmSync(building, { recursive: true, force: true });
  await checkEmpty(options);
  try {
    await copyPrivateRows(options, building);
    const report = await build({ ...options, path: building }, source, progress);
    checkOwn(building, path, report.inodes);
    // From here on no service starts: it would go on with the file that is about to be replaced.
    const lock = await takeWriterLock(path);
    try {
      await checkEmpty(options);
      await placing();
      takePlace(building, path);
    } finally {
      await lock.release();
    }
    return report.imported;
  } finally {
    // This may remove the files of another import that runs at the same time; that one finds its file gone and fails.
    rmSync(building, { recursive: true, force: true });
  }
}

/** @throws CairnlogError unless there is no log, or an empty one of this operator that no other process has open */
async function checkEmpty(options: ImportOptions): Promise<void> {
  const { path, signer } = options;
  // Without its file but with postings, a log has lost its entries, and `openStore` refuses it.
  if (!existsSync(join(path, DATA_FILE)) && !existsSync(postingsFolder(path))) return;
  const store = openStore(options);
  try {
    checkAlone(store, path);
    const meta = store.get("meta", "log");
    if (meta && meta.key_id !== signer.fingerprint)
      throw new CairnlogError("wrong-operator", `This log is signed by operator key ${meta.key_id}.`);
    const last = store.lastBatch();
    if (last)
      throw new CairnlogError(
        "precondition-failed",
        `The log already has ${last.firstIndex + last.count} entries. History can only be imported into an empty log.`,
      );
    const [other] = store.otherProcesses();
    if (other !== undefined)
      throw new CairnlogError("precondition-failed", `Process ${other} has the log open. Stop the service first.`);
  } finally {
    await store.close();
  }
}

/** Copies accounts, passwords and subscriptions, which an empty log may have, at least for its operator key. */
async function copyPrivateRows(options: ImportOptions, building: string): Promise<void> {
  if (!existsSync(join(options.path, DATA_FILE))) return;
  const from = openStore(options);
  let to: Store | undefined;
  const copy = async () => {
    to = openStore({ ...options, path: building });
    const meta = from.get("meta", "log");
    if (meta) await migrate(from, meta, refilingFor(options.projection ?? noProjection));
    const rows: RecordedChange[] = (["meta", ...PRIVATE_TABLES] as const).flatMap((table) =>
      [...from.range(table)].map(({ key, row }) => ({ table, key, row })),
    );
    await commitRows(new Ledger(to, localJournal), 0, rows);
  };
  await closing(
    copy,
    () => from.close(),
    () => to?.close(),
  );
}

/** @returns also the inodes of the files that were written */
async function build(
  options: ImportOptions,
  source: ImportSource,
  progress: (done: ImportProgress) => void,
): Promise<{ readonly imported: ImportReport; readonly inodes: readonly number[] }> {
  const writer = await openHistory({ ...options, operatorKey: options.signer.public.pem, isUnshared: true });
  try {
    const inodes = inodesOf(options.path);
    const batches = new Batches(writer, options.signer);
    let number = 0;
    for await (const { bytes, done } of lines(source)) {
      number++;
      if (!bytes.length) continue;
      await batches.push(bytes, number);
      progress({ entries: batches.size, bytes: done });
    }
    const imported = await batches.finish();
    // What withholds a payload comes later than the entry.
    const lost = writer.unanswered;
    if (lost) throw new CairnlogError("invalid-input", `Entry ${lost.id}: ${NOT_ANSWERED_FOR} Nothing was imported.`);
    await writer.settled();
    return { imported, inodes };
  } finally {
    await writer.close();
  }
}

/** Collects lines into batches, and holds back the last one, which gets the head. */
class Batches {
  readonly #writer: HistoryWriter;
  readonly #signer: Signer;
  readonly #warnings: (HistoryWarning & { readonly line: number })[] = [];
  #warningCount = 0;
  #items: HistoryItem[] = [];
  /** The line number of each item. */
  #numbers: number[] = [];
  #bytes = 0;

  constructor(writer: HistoryWriter, signer: Signer) {
    this.#writer = writer;
    this.#signer = signer;
  }

  /** Number of entries on disk. */
  get size(): number {
    return this.#writer.size;
  }

  async push(entry: Uint8Array, number: number): Promise<void> {
    if (this.#items.length === BATCH_ENTRIES || this.#bytes + entry.length > BATCH_BYTES) await this.#write();
    this.#items.push({ entry, otsProof: null, head: null });
    this.#numbers.push(number);
    this.#bytes += entry.length;
  }

  async finish(): Promise<ImportReport> {
    const last = this.#items.pop();
    const number = this.#numbers.pop();
    if (!last || number === undefined) throw new CairnlogError("invalid-input", "There are no entries to import.");
    await this.#write();
    this.#numbers = [number];
    await this.#told(this.#writer.seal(last, this.#signer));
    return {
      entry_count: this.#writer.size,
      last_id: this.#writer.lastId,
      last_hash: this.#writer.lastHash!,
      warnings: this.#warnings,
      warning_count: this.#warningCount,
    };
  }

  async #write(): Promise<void> {
    await this.#told(this.#writer.add(this.#items));
    this.#items = [];
    this.#numbers = [];
    this.#bytes = 0;
  }

  /** Replaces item numbers in errors and warnings by line numbers. */
  async #told(written: Promise<readonly HistoryWarning[]>): Promise<void> {
    const first = this.#writer.size;
    try {
      for (const warning of await written) {
        this.#warningCount++;
        if (this.#warnings.length < MAX_WARNINGS)
          this.#warnings.push({ ...warning, line: this.#numbers[warning.leafIndex - first]! });
      }
    } catch (error) {
      const [detail] = error instanceof CairnlogError ? (error.details ?? []) : [];
      if (!detail) throw error;
      const line = this.#numbers[Number(detail.path.split("/")[1])]!;
      throw lineError(line, error as CairnlogError, detail.message);
    }
  }
}

const lineError = (line: number, { code }: Pick<CairnlogError, "code">, message: string): CairnlogError =>
  new CairnlogError(code, `Line ${line}: ${message} Nothing was imported.`, {
    details: [{ path: `/${line}`, message }],
  });

/** Lines without their ends, and the number of bytes read when each was complete. Holds one line and one piece. */
async function* lines(source: ImportSource): AsyncIterable<{ readonly bytes: Buffer; readonly done: number }> {
  let number = 0;
  let done = 0;
  let parts: Buffer[] = [];
  let held = 0;
  const line = (end: Buffer) => {
    const bytes = parts.length ? Buffer.concat([...parts, end]) : end;
    parts = [];
    held = 0;
    number++;
    return bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;
  };
  for await (const piece of source) {
    const chunk = asBytes(piece);
    let from = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, from)) {
      const bytes = line(chunk.subarray(from, end));
      from = end + 1;
      yield { bytes, done: done + from };
    }
    done += chunk.length;
    // A copy, because a short rest would keep the whole piece in memory.
    if (from < chunk.length) parts.push(Buffer.from(chunk.subarray(from)));
    held += chunk.length - from;
    // A carriage return at the end may belong to the end of the line.
    if (held - (chunk.at(-1) === CARRIAGE_RETURN ? 1 : 0) > MAX_ENTRY_BYTES) {
      const message = `The line is longer than ${MAX_ENTRY_BYTES} bytes.`;
      throw lineError(number + 1, { code: "payload-too-large" }, message);
    }
  }
  if (held) yield { bytes: line(Buffer.alloc(0)), done };
}

function asBytes(piece: ImportPiece): Buffer {
  if (typeof piece === "string") return Buffer.from(piece, "utf8");
  // A copy: lines wait for their batch, and a source may read into the same memory again.
  if (piece instanceof Uint8Array) return Buffer.from(piece);
  return Buffer.from(`${JSON.stringify(piece)}\n`, "utf8");
}

/** Inodes of the files of the log in the directory `path`. */
const inodesOf = (path: string): number[] =>
  [path, postingsFolder(path)].map((folder) => statSync(join(folder, DATA_FILE)).ino);

/** @throws CairnlogError if another import that runs at the same time has removed the built log, or made its own */
function checkOwn(building: string, path: string, inodes: readonly number[]): void {
  try {
    if (inodesOf(building).join() !== inodes.join()) throw new Error("the file is another import's");
  } catch (cause) {
    throw notMoved(path, cause);
  }
}

/**
 * Puts the built log into its place: from now on the log has a history.
 *
 * If we crash or the power fails here: each step is on disk before the next one begins. Postings beside an empty log would
 * say that the log has lost its entries, so they come last; and the empty log's own must be gone by then.
 */
function takePlace(building: string, path: string): void {
  try {
    makePrivateFolder(path);
    rmSync(postingsFolder(path), { recursive: true, force: true });
    flushFolder(path);
    renameSync(join(building, DATA_FILE), join(path, DATA_FILE));
    flushFolders(path);
    renameSync(postingsFolder(building), postingsFolder(path));
    flushFolder(path);
  } catch (cause) {
    throw notMoved(path, cause);
  }
}

const notMoved = (path: string, cause: unknown): CairnlogError =>
  new CairnlogError("storage-failed", `The imported log could not be moved to ${path}.`, { cause });
