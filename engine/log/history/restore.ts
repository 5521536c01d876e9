/**
 * Restores a log from a backup. The backup is not trusted: entries and heads go through the writer that checks all
 * history (`history.ts`), which makes derived rows, tiles and postings as live appends do.
 *
 * If a log continues from before the published size, it signs other entries at sizes that already have signed heads.
 * That is a fork, and anybody who holds an old head can prove it. So a restore asks for the newest published head.
 *
 * If we crash here: the log is built beside its place and gets its name when it is complete and on disk.
 */
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { CairnlogError } from "../../base/error.js";
import { flushFolders, makeFolders } from "../../base/files.js";
import type { Pool } from "../../crypto/pool/pool.js";
import { commitRows, Ledger, localJournal } from "../../journal/ledger.js";
import { type RecordedChange, readRowLine } from "../../journal/rows.js";
import { BATCH_BYTES, BATCH_EVENTS } from "../../store/schema/batch.js";
import type { LogMeta } from "../../store/schema/rows.js";
import { FORMAT } from "../../store/schema/schema.js";
import { openStore } from "../../store/store.js";
import { parsePublicKey } from "../../verify/keys/publickey.js";
import { OperatorKeys, type OperatorTerm } from "../../verify/tree/operators.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { Frontier } from "../read/frontier.js";
import { EntryReader } from "../read/reader.js";
import type { Projection } from "../state/projection.js";
import { rootAt } from "../tree/proofs.js";
import { TREE_VERSIONS } from "../tree/tree.js";
import { type BackupManifest, linesOf, readBackupManifest } from "./backupformat.js";
import { type HistoryItem, type HistoryWriter, openHistory } from "./history.js";

/** Private rows written at once. */
const ROWS_AT_ONCE = 512;

/** A published head. Its signature has been verified. */
export interface PublishedTree extends Pick<TreeHead, "tree_size" | "root_hash"> {
  /** The source of the head, shown in messages. */
  readonly source: string;
}

interface RestoreOptions {
  /** Directory of the backup. */
  readonly from: string;
  /** Directory of the restored log; it must not exist. */
  readonly path: string;
  /** PEM of the public key that must have signed the heads, or be in the chain of those; by default the manifest's. */
  readonly operatorKey?: string | undefined;
  readonly projection: Projection;
  readonly pool: Pool;
  /** The known published heads. */
  readonly published: readonly PublishedTree[];
  /** Whether to restore even if no published head is known, or if the log ends before one. */
  readonly mayFork: boolean;
  /** Directory of a longer copy of the log, from which entries after the backup are added. */
  readonly mirror?: string | undefined;
  readonly progress?: (done: number, total: number) => void;
  /** Called when the log is complete, before it gets its name, with the PEM of its operator key. */
  readonly placing?: (operatorKey: string) => Promise<void>;
  readonly signal?: AbortSignal;
}

interface Restored {
  readonly entries: number;
  /** How many of them came from the mirror. */
  readonly fromMirror: number;
  /** Fingerprint of the operator key of the restored log. */
  readonly operator: string;
}

/**
 * Restores the log of a backup into `options.path`, all of it or nothing.
 * @throws CairnlogError `already-exists` if there is a log; `corrupt-log` if the backup is damaged; `wrong-operator`;
 *   `precondition-failed` if the restored log would fork the published log, or if no published head is known; as
 *   `HistoryWriter.add` does for invalid entries and heads; the reason of `options.signal`
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { from, path } = options;
  if (existsSync(path))
    throw new CairnlogError(
      "already-exists",
      `There is already a log in ${path}, and restore does not overwrite it. Move it away first. If it has a newer head, give that head with --published.`,
    );
  const manifest = readBackupManifest(from);
  if (!manifest) throw new CairnlogError("not-found", `There is no backup in ${from}.`);
  const operators = await operatorsOf(manifest, options.operatorKey);
  checkMayGoOn(manifest, options);
  const building = `${path}.restoring`;
  rmSync(building, { recursive: true, force: true });
  makeFolders(dirname(path));
  try {
    const { operatorKey, ...restored } = await build(manifest, operators, building, options);
    await options.placing?.(operatorKey);
    renameSync(building, path);
    flushFolders(dirname(path));
    return restored;
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

/**
 * The chain of operator keys that a backup names, checked against the wanted key.
 * @throws CairnlogError `wrong-operator`, also if a rotation in the chain is not signed
 */
export async function operatorsOf(
  { operator_key, operators, meta }: BackupManifest,
  wanted: string = operator_key,
): Promise<readonly OperatorTerm[]> {
  const [own, pinned] = [parsePublicKey(operator_key), parsePublicKey(wanted)];
  const { chain, current } = await OperatorKeys.verify(operators ?? OperatorKeys.of(own).chain, pinned).catch(
    (cause) => {
      const why = `The backup is of the log of operator key ${own.fingerprint}, not of ${pinned.fingerprint}.`;
      throw new CairnlogError("wrong-operator", why, { cause });
    },
  );
  if (current.fingerprint !== own.fingerprint || meta.key_id !== own.fingerprint)
    throw new CairnlogError("wrong-operator", "The manifest of the backup names different operator keys.");
  return chain;
}

/** The checks that can be made before any work is done. */
function checkMayGoOn(manifest: BackupManifest, { published, mayFork, mirror }: RestoreOptions): void {
  if (manifest.meta.format > FORMAT)
    throw new CairnlogError("corrupt-log", `The backup is in format ${manifest.meta.format}: use a newer version.`);
  // A node's log goes on with what the journal has. A head that is named holds all the same: perhaps it shall leave that.
  if (mayFork || (manifest.meta.in_journal && !published.length)) return;
  if (!published.length)
    throw new CairnlogError(
      "precondition-failed",
      `The backup ends at size ${manifest.tree_size}, and it is not known whether more was published. If so, the restored log would sign other entries in place of those for which people hold receipts. Give the newest head that anybody has seen (--published FILE or URL: a tree head, a checkpoint, a mirror's address). If you know that nobody has seen one, give --may-fork.`,
    );
  if (mirror === undefined) checkReaches(manifest.tree_size, published);
}

function checkReaches(size: number, published: readonly PublishedTree[]): void {
  for (const { tree_size, source } of published)
    if (tree_size > size)
      throw new CairnlogError(
        "precondition-failed",
        `A head of size ${tree_size} was published (${source}), but this copy ends at size ${size}: entries ${size + 1} to ${tree_size} are missing, and continuing without them would fork the log. A mirror has them (cairnlog monitor keeps one; --mirror DIR), or a newer backup.`,
      );
}

async function build(
  manifest: BackupManifest,
  operators: readonly OperatorTerm[],
  building: string,
  options: RestoreOptions,
): Promise<Restored & { readonly operatorKey: string }> {
  const { from, projection, pool, mirror, published, mayFork, signal } = options;
  const writer = await openHistory({
    path: building,
    operatorKey: operators[0]!.public_key,
    operators,
    projection,
    pool,
    isUnshared: true,
  });
  let operatorKey: string;
  try {
    for (const segment of manifest.segments) {
      await addAll(writer, itemsOf(linesOf(from, segment)), manifest.tree_size, options);
      if (writer.size !== segment.to)
        throw new CairnlogError(
          "corrupt-log",
          `The backup's file ${segment.file} ends at size ${writer.size}, not ${segment.to}.`,
        );
    }
    if (writer.lastHash !== manifest.entry_hash)
      throw new CairnlogError("corrupt-log", "The backup's last entry is not the one that its manifest names.");
    if (mirror !== undefined) await addFromMirror(writer, mirror, options);
    await writer.settled();
    operatorKey = writer.operators.current.pem;
  } finally {
    await writer.close();
  }
  const store = openStore({ path: building });
  try {
    const frontier = new Frontier(store);
    frontier.restore();
    const { size } = frontier;
    if (!mayFork) checkReaches(size, published);
    // Of which tree a root is was not signed with it.
    const hasRoot = ({ tree_size, root_hash }: PublishedTree) =>
      TREE_VERSIONS.some(
        (version) => Buffer.from(rootAt(frontier.trees[version], tree_size)).toString("hex") === root_hash,
      );
    for (const shown of published)
      if (shown.tree_size <= size && !hasRoot(shown))
        throw new CairnlogError(
          "precondition-failed",
          `The first ${shown.tree_size} entries are not the published ones: the head of ${shown.source} has another root.`,
        );
    const ledger = new Ledger(store, localJournal);
    const commit = (rows: readonly RecordedChange[]) => commitRows(ledger, size, rows);
    await putRows(linesOf(from, manifest.private_rows), async (rows) => {
      signal?.throwIfAborted();
      await commit(rows);
    });
    const { created_at, name, in_journal } = manifest.meta;
    const row: LogMeta = {
      ...(store.get("meta", "log") ?? manifest.meta),
      created_at,
      ...(name !== undefined && { name }),
      ...(in_journal && { in_journal }),
    };
    await commit([{ table: "meta", key: "log", row }]);
    return { entries: size, fromMirror: size - manifest.tree_size, operator: row.key_id, operatorKey };
  } finally {
    await store.close();
  }
}

async function* itemsOf(lines: AsyncIterable<Buffer>): AsyncIterable<HistoryItem> {
  let entry: Buffer | undefined;
  for await (const line of lines)
    if (entry === undefined) entry = Buffer.from(line);
    else {
      yield { entry, otsProof: null, head: readHead(line) };
      entry = undefined;
    }
  if (entry) throw new CairnlogError("corrupt-log", "The backup's last entry has no line for its head.");
}

function readHead(line: Buffer): TreeHead | null {
  try {
    return JSON.parse(line.toString("utf8")) as TreeHead | null;
  } catch (cause) {
    throw new CairnlogError("corrupt-log", "The backup has a line for a head that is not JSON.", { cause });
  }
}

async function addAll(
  writer: HistoryWriter,
  items: AsyncIterable<HistoryItem>,
  total: number,
  { progress, signal }: RestoreOptions,
): Promise<void> {
  let group: HistoryItem[] = [];
  let bytes = 0;
  const flush = async () => {
    signal?.throwIfAborted();
    await added(writer, group);
    group = [];
    bytes = 0;
    progress?.(writer.size, total);
  };
  for await (const item of items) {
    bytes += item.entry.length;
    if (group.push(item) >= BATCH_EVENTS || bytes >= BATCH_BYTES) await flush();
  }
  await flush();
}

/** Names entries by their places in the log. */
async function added(writer: HistoryWriter, items: readonly HistoryItem[]): Promise<void> {
  const { size } = writer;
  try {
    await writer.add(items);
  } catch (error) {
    if (!(error instanceof CairnlogError) || !error.details?.length) throw error;
    const { path, message } = error.details[0]!;
    throw new CairnlogError(error.code, `Entry at leaf ${size + Number(path.split("/")[1])}: ${message}`, {
      cause: error,
    });
  }
}

/** Adds the entries that a longer copy of the same log has after the end of the backup. */
async function addFromMirror(writer: HistoryWriter, mirror: string, options: RestoreOptions): Promise<void> {
  const store = openStore({ path: mirror, readOnly: true });
  try {
    store.pin();
    const reader = new EntryReader(store);
    const last = store.lastBatch();
    const end = last ? last.firstIndex + last.count : 0;
    const from = writer.size;
    if (end >= from && (reader.digest(from - 1) ?? null) !== writer.lastHash)
      throw new CairnlogError(
        "precondition-failed",
        `The mirror in ${mirror} is of another log: its entry at leaf ${from - 1} is a different one.`,
      );
    const items = async function* () {
      for (let index = from; index < end; index++)
        yield { entry: reader.json(index)!, otsProof: null, head: reader.head(index + 1) ?? null };
    };
    await addAll(writer, items(), end, options);
  } finally {
    await store.close();
  }
}

async function putRows(
  lines: AsyncIterable<Buffer>,
  commit: (rows: readonly RecordedChange[]) => Promise<void>,
): Promise<void> {
  let rows: RecordedChange[] = [];
  for await (const line of lines) {
    rows.push(privateRow(line.toString("utf8")));
    if (rows.length < ROWS_AT_ONCE) continue;
    await commit(rows);
    rows = [];
  }
  await commit(rows);
}

/** A private row of a backup. The meta row is in the manifest. */
function privateRow(line: string): RecordedChange {
  const change = readRowLine(line);
  if (change.table === "meta" || change.row === undefined)
    throw new CairnlogError(
      "corrupt-log",
      `The backup has a line of the table ${change.table} that does not belong in a backup.`,
    );
  return change;
}
