/**
 * Makes backups of a log, also while its service runs in another process. Each backup writes the entries since the
 * previous one into a new segment, and the private rows of one moment beside it. Payloads that the operator withholds are left
 * out: a segment that has one is written again, and so is one whose file was lost or cut. Short segments become part of the new
 * one: a backup a minute would else make half a million files in a year, which the manifest names each time.
 *
 * Only the private rows and the size of the log are read at one moment, because they belong together. Entries and heads
 * never change, so they are read afterwards, a stretch at a time. LMDB maps its file: the pages that were read count as
 * memory of this process, and are given back only when the file is closed. So the log is opened again for each stretch.
 *
 * If we crash here: no file that the last manifest names is changed before the new manifest has replaced it, so the
 * previous backup stays intact.
 */
import { chmodSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { closeAfter } from "../../base/closing.js";
import { CairnlogError } from "../../base/error.js";
import { flushFolders, makeFolders } from "../../base/files.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import { isOfNode } from "../../journal/ledger.js";
import { rowLine } from "../../journal/rows.js";
import { checkConverted } from "../../store/migrations.js";
import type { LogMeta } from "../../store/schema/rows.js";
import { PRIVATE_TABLES } from "../../store/schema/schema.js";
import { openStore, type Store } from "../../store/store.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { Operators } from "../operator/operators.js";
import { EntryReader } from "../read/reader.js";
import { type Withheld, withheldIn } from "../read/withheld.js";
import { formatTimestamp, systemClock } from "../state/clock.js";
import {
  BACKUP_FORMAT,
  type BackupManifest,
  type BackupSegment,
  HashedFile,
  linesOf,
  readBackupManifest,
  removeDrafts,
  replaceManifest,
} from "./backupformat.js";

/** Lines written before the signal is checked again. */
const STEP = 1024;
/** Bytes of entries that are read before the log is opened again. */
const STRETCH_BYTES = 32 * 2 ** 20;
/** Bytes of earlier segments that become part of a new one, at most: whoever copies a backup elsewhere copies them again. */
const MERGED_BYTES = 32 * 2 ** 20;

interface BackupOptions {
  /** Directory of the log. */
  readonly path: string;
  /** Directory of the backup; created if it does not exist. */
  readonly to: string;
  /** PEM of the operator's public key, of now or of before. */
  readonly operatorKey: string;
  /** Called with the number of new entries written, of `total`. */
  readonly progress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** The log at the moment of the backup. */
interface Moment {
  readonly meta: LogMeta;
  readonly operators: Operators;
  readonly size: number;
  /** Of the newest entry, hex; null on an empty log. */
  readonly entryHash: string | null;
  readonly head: TreeHead | null;
  readonly withheld: Withheld;
  /** Of the last entry of each segment of the previous backup, hex, by its end. */
  readonly ends: ReadonlyMap<number, string | null>;
  /** The private rows; the file has no name yet. */
  readonly rows: HashedFile;
}

/**
 * Brings the backup in `options.to` up to date.
 * @returns its manifest, and the number of entries that were added
 * @throws CairnlogError `wrong-operator`; `precondition-failed` if the backup has another history or is longer than the
 *   log; `corrupt-log`, `storage-failed`; the reason of `options.signal`
 */
export async function backUp(
  options: BackupOptions,
): Promise<{ readonly manifest: BackupManifest; readonly added: number }> {
  const { path, to } = options;
  const store = openStore({ path, readOnly: true });
  let earlier: BackupManifest | undefined;
  let moment: Moment;
  try {
    store.pin();
    makeFolders(to, 0o700);
    chmodSync(to, 0o700);
    flushFolders(to);
    removeDrafts(to);
    earlier = readBackupManifest(to);
    moment = await readMoment(store, earlier, options);
  } finally {
    await store.close();
  }
  return write(moment, earlier, options);
}

async function readMoment(store: Store, earlier: BackupManifest | undefined, options: BackupOptions): Promise<Moment> {
  const meta = soundMeta(store, options);
  const operators = Operators.read(store, meta, Operators.of(importPublicKey(options.operatorKey)));
  const reader = new EntryReader(store);
  const last = store.lastBatch();
  const size = last ? last.firstIndex + last.count : 0;
  if (earlier) checkContinues(earlier, operators, size, reader, options.to);
  const [entryHash, head] = [reader.digest(size - 1) ?? null, reader.head(size) ?? null];
  const ends = new Map(earlier?.segments.map(({ to }) => [to, reader.digest(to - 1) ?? null]));
  const withheld = withheldIn(store, reader, size);
  const stored: LogMeta = isOfNode(store) ? { ...meta, in_journal: true } : meta;
  const rows = await writePrivateRows(store, options);
  return { meta: stored, operators, size, entryHash, head, withheld, ends, rows };
}

/** @throws CairnlogError unless this is a complete log in this version's format */
function soundMeta(store: Store, { path }: BackupOptions): LogMeta {
  const meta = store.get("meta", "log");
  if (!meta) throw new CairnlogError("corrupt-log", `There is no log in ${path}.`);
  checkConverted(meta);
  if (meta.rebuilding)
    throw new CairnlogError(
      "corrupt-log",
      `A rebuild of the log in ${path} was interrupted: run cairnlog fsck --rebuild first.`,
    );
  return meta;
}

async function write(moment: Moment, earlier: BackupManifest | undefined, options: BackupOptions) {
  const { to } = options;
  const { meta, operators, size, entryHash, head, rows } = moment;
  const from = earlier?.tree_size ?? 0;
  const { withheld, ends } = moment;
  const isLeftOut = new Set(earlier?.withheld);
  const isWhole = ({ file, bytes }: BackupSegment) =>
    statSync(join(to, file), { throwIfNoEntry: false })?.size === bytes;
  const isCurrent = (segment: BackupSegment) =>
    isWhole(segment) &&
    withheld.leaves.every((leaf) => leaf < segment.from || leaf >= segment.to || isLeftOut.has(leaf));
  const kept = [...(earlier?.segments ?? [])];
  const merged = size > from ? takeShort(kept, size) : [];
  const segments: BackupSegment[] = [];
  try {
    for (const segment of kept)
      segments.push(
        isCurrent(segment)
          ? segment
          : await writeSegment({ ...segment, digest: ends.get(segment.to)!, isAnew: true }, withheld, options),
      );
    if (size > from) {
      const copied: BackupSegment[] = [];
      for (const segment of merged) if (isCurrent(segment) && (await isSound(to, segment))) copied.push(segment);
      const all = { from: merged[0]?.from ?? from, to: size, digest: entryHash, copied };
      segments.push(await writeSegment(all, withheld, options));
    }
  } catch (error) {
    return closeAfter(error, () => rows.abandon());
  }
  // Named by its hash, so that it never overwrites a file that the last manifest names.
  const private_rows = await rows.keep((sha256) => `private-${size}-${sha256.slice(0, 16)}.ndjson`);
  const manifest: BackupManifest = {
    format: BACKUP_FORMAT,
    operator_key: operators.current.pem,
    operators: operators.chain,
    meta,
    tree_size: size,
    entry_hash: entryHash,
    head,
    made_at: formatTimestamp(systemClock()),
    segments,
    withheld: withheld.leaves,
    private_rows,
  };
  await replaceManifest(to, manifest, earlier);
  const named = new Set([...segments, private_rows].map(({ file }) => file));
  for (const file of readdirSync(to)) if (NAMED.test(file) && !named.has(file)) rmSync(join(to, file), { force: true });
  return { manifest, added: size - from };
}

/** Names of segments and of private rows: of the previous backup, or of one that was interrupted. */
const NAMED = /^(entries-\d+-\d+(-[0-9a-f]{16})?|private-\d+-[0-9a-f]{16})\.ndjson$/;

/** Refuses to add to a backup of another history: the result would be useless. */
function checkContinues(
  earlier: BackupManifest,
  operators: Operators,
  size: number,
  reader: EntryReader,
  to: string,
): void {
  const { tree_size, entry_hash, meta } = earlier;
  if (!operators.named(meta.key_id))
    throw new CairnlogError("wrong-operator", `The backup in ${to} is of the log of another operator, ${meta.key_id}.`);
  if (tree_size > size)
    throw new CairnlogError(
      "precondition-failed",
      `The backup in ${to} has ${tree_size} entries, the log only ${size}: the log shrank. Do not continue it; restore it (cairnlog restore).`,
    );
  if ((reader.digest(tree_size - 1) ?? null) !== entry_hash)
    throw new CairnlogError(
      "precondition-failed",
      `The first ${tree_size} entries of the log are not those in the backup in ${to}: the backup has another history. Keep it, and make a new backup elsewhere.`,
    );
}

/**
 * Removes from the end of `segments` those that become part of the segment up to `size`: as long as each has no more entries
 * than what follows it. So the backups of a log leave a logarithmic number of segments below `MERGED_BYTES`.
 */
function takeShort(segments: BackupSegment[], size: number): readonly BackupSegment[] {
  let [at, bytes] = [segments.length, 0];
  for (; at > 0; at--) {
    const before = segments[at - 1]!;
    bytes += before.bytes;
    if (bytes > MERGED_BYTES || before.to - before.from > size - before.to) break;
  }
  return segments.splice(at);
}

/** Whether the file of a segment is the one that was written. It is asked before its lines are copied: these cannot be taken back. */
async function isSound(to: string, segment: BackupSegment): Promise<boolean> {
  try {
    for await (const _ of linesOf(to, segment));
    return true;
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "corrupt-log") return false;
    throw error;
  }
}

/** A stretch of the log that is written. */
interface Written {
  readonly from: number;
  readonly to: number;
  /** Of its last entry, hex. */
  readonly digest: string | null;
  /** Whether the previous backup has a file of it, which stays until the new manifest is there. */
  readonly isAnew?: true;
  /** Sound segments of the previous backup, whose lines are copied: a log that was damaged since has no say in them. */
  readonly copied?: readonly BackupSegment[];
}

async function writeSegment(written: Written, withheld: Withheld, options: BackupOptions): Promise<BackupSegment> {
  const { from, to: size, isAnew = false, copied = [] } = written;
  const { path, to } = options;
  const file = await HashedFile.create(to, "entries");
  try {
    let index = from;
    for (const segment of copied) {
      await writeEntries(file, index, segment.from, withheld, options);
      for await (const line of linesOf(to, segment)) await file.line(line);
      index = segment.to;
    }
    const digest = await writeEntries(file, index, size, withheld, options);
    if (digest !== written.digest)
      throw new CairnlogError("corrupt-log", `Another log was put in the place of the one in ${path}.`);
  } catch (error) {
    return closeAfter(error, () => file.abandon());
  }
  const name = `entries-${from}-${size}`;
  const kept = await file.keep((sha256) => `${isAnew ? `${name}-${sha256.slice(0, 16)}` : name}.ndjson`);
  return { ...kept, from, to: size };
}

/** Writes the entries [from, to) of the log, and their heads. @returns the digest of the last one, hex; undefined if there is none */
async function writeEntries(
  file: HashedFile,
  from: number,
  to: number,
  withheld: Withheld,
  { path, progress, signal }: BackupOptions,
): Promise<string | undefined> {
  let digest: string | undefined;
  for (let index = from; index < to; ) {
    // The file was looked at when the moment was read.
    const store = openStore({ path, readOnly: true, isInspected: true });
    try {
      const reader = new EntryReader(store, withheld);
      for (let read = 0; index < to && read < STRETCH_BYTES; index++) {
        if ((index - from) % STEP === 0) {
          signal?.throwIfAborted();
          progress?.(index - from, to - from);
        }
        const entry = reader.json(index);
        if (!entry) throw new CairnlogError("corrupt-log", `The entry at leaf ${index} is missing in the log.`);
        read += entry.length;
        await file.line(entry);
        await file.line(JSON.stringify(reader.head(index + 1) ?? null));
        digest = reader.digest(index);
      }
    } finally {
      await store.close();
    }
  }
  return digest;
}

async function writePrivateRows(store: Store, { to, signal }: BackupOptions): Promise<HashedFile> {
  const file = await HashedFile.create(to, "private");
  let lines = 0;
  try {
    for (const table of PRIVATE_TABLES)
      for (const { key, row } of store.range(table)) {
        if (lines++ % STEP === 0) signal?.throwIfAborted();
        await file.line(rowLine({ table, key, row }));
      }
  } catch (error) {
    return closeAfter(error, () => file.abandon());
  }
  return file;
}
