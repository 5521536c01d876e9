/**
 * Checks a whole data directory, on a log that nobody has open. Everything derived from the entries is derived once
 * more and compared with the disk, and the entries themselves are checked as `verifyLog` does. Meanwhile derived rows
 * and tiles are in a scratch environment, so that memory does not grow with the log.
 */

import { rmSync } from "node:fs";
import { CairnlogError } from "../../base/error.js";
import { leastWhere } from "../../base/search.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import type { Pool } from "../../crypto/pool/pool.js";
import type { ChangeSet } from "../../store/changeset.js";
import { checkConverted } from "../../store/migrations.js";
import type { LogMeta } from "../../store/schema/rows.js";
import { DERIVED_TABLES, FORMAT, HASH, type Key, PRIVATE_TABLES, type TableName } from "../../store/schema/schema.js";
import { openStore, type Store } from "../../store/store.js";
import { anyObject, isObject, objectOf, orNull } from "../../verify/json/shape.js";
import type { Checkpoint } from "../../verify/note/note.js";
import { canonicalTimestamp, ENTRY_MEMBERS, type Entry } from "../../verify/tree/entry.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import type { Operators } from "../operator/operators.js";
import type { Frontier } from "../read/frontier.js";
import { EntryReader } from "../read/reader.js";
import { rfc6962Faults } from "../rfc6962/check.js";
import type { Projection } from "../state/projection.js";
import { publishedTile } from "../tree/proofs.js";
import { Tree } from "../tree/tree.js";
import { checkAnchors, operatorsFrom, type PrivateCheck } from "./checks.js";
import { describeDifference, Replay, rowDifferences, tileDifferences } from "./differences.js";
import { RunCheck } from "./run-check.js";
import { verifyLog } from "./verify.js";

/** Entries replayed before the event loop gets a turn: about 100 ms. */
const STEP_ENTRIES = 1024;
/** Number of sentences in the report; `counts` counts all differences. */
const MAX_SENTENCES = 1000;
const ENTRY = objectOf({ ...ENTRY_MEMBERS, payload: orNull(anyObject) }, {}, "ignored");

/**
 * The area of a difference. `entries`: batches, entries and heads, without which nothing can be derived; `derived`:
 * data that `rebuildLog` can restore; `private`: private rows that contradict one another.
 */
type FindingArea = "entries" | "derived" | "private";

export interface LogCheckReport {
  /** Whether there are no differences. */
  readonly ok: boolean;
  /** Number of entries that were checked. */
  readonly entries: number;
  /** Number of differences in each area. */
  readonly counts: Readonly<Record<FindingArea, number>>;
  /** A sentence for each of the first thousand differences. */
  readonly differences: readonly { readonly area: FindingArea; readonly message: string }[];
}

export interface LogCheckOptions {
  /** Directory of the log. */
  readonly path: string;
  readonly mapSize?: number;
  /** PEM of the public key that signed the heads, or of another one in the chain of its operator keys. */
  readonly operatorKey: string;
  readonly projection: Projection;
  /** Checks by the owners of private tables. */
  readonly privateChecks?: readonly PrivateCheck[];
  /** The newest head that was shown, as `readPublishedHead` returns it: the log must reach at least this size. */
  readonly published?: TreeHead | undefined;
  /** Checkpoints of the RFC 6962 tree that were shown: the log must make their roots. */
  readonly checkpoints?: readonly Checkpoint[];
  /** Leaves the postings out, whose file is damaged. */
  readonly skipsPostings?: boolean;
  readonly pool: Pool;
  /** Called with the stage and the number of entries done, of `total`. */
  readonly progress?: (stage: "deriving" | "verifying", done: number, total: number) => void;
  /** Stops the work between two steps. */
  readonly signal?: AbortSignal;
}

/** By tree version. */
type Trees = Frontier["trees"];

/** Collects differences as they are found. */
class Findings {
  readonly counts: Record<FindingArea, number> = { entries: 0, derived: 0, private: 0 };
  readonly sentences: { area: FindingArea; message: string }[] = [];

  add(area: FindingArea, message: string): void {
    this.counts[area]++;
    if (this.sentences.length < MAX_SENTENCES) this.sentences.push({ area, message });
  }

  report(entries: number): LogCheckReport {
    const { counts, sentences } = this;
    return { ok: !counts.entries && !counts.derived && !counts.private, entries, counts, differences: sentences };
  }
}

/**
 * Checks the log in `store`, which is open at `options.path` and has no other writer.
 * @throws CairnlogError `corrupt-log`; `precondition-failed` if the log is in another format than this version's; the
 *   reason of `options.signal`
 */
export async function checkLog(store: Store, options: LogCheckOptions): Promise<LogCheckReport> {
  return withScratch(options.path, (scratch, scratchPath) => checkWith(store, scratch, scratchPath, options));
}

/**
 * Makes a scratch store beside the log's own files, and removes it afterwards. If this process is killed, the next call
 * removes it.
 */
export async function withScratch<T>(path: string, work: (scratch: Store, scratchPath: string) => Promise<T>) {
  const scratchPath = `${path}/scratch`;
  rmSync(scratchPath, { recursive: true, force: true });
  const scratch = openStore({ path: scratchPath, isScratch: true });
  try {
    return await work(scratch, scratchPath);
  } finally {
    await scratch.close();
    rmSync(scratchPath, { recursive: true, force: true });
  }
}

async function checkWith(store: Store, scratch: Store, scratchPath: string, options: LogCheckOptions) {
  const findings = new Findings();
  const size = checkBatches(store, findings);
  const isComplete = !findings.counts.entries;
  // Entries are missing, so the rest of them cannot be compared with the data on disk.
  const report = (sentence: string) => findings.add("derived", sentence);
  const runs =
    isComplete && !options.skipsPostings
      ? [new RunCheck(store.postings, "postings", size, report), new RunCheck(store.words, "words", size, report)]
      : [];
  const trees = await deriveAnew(store, scratch, size, options, (replay) => {
    for (const each of runs) each.check(replay.terms);
  });
  for (const each of runs) each.finish();
  const operators = operatorsIn(scratch, store, size, options);
  checkMeta(store, size, operators, findings);
  const { path, mapSize, pool, progress, signal } = options;
  const checksEvents = options.projection.checksEvents === true;
  const paths = { path, derivedPath: scratchPath, ...(mapSize === undefined ? {} : { mapSize }) };
  const target = { ...paths, size, operators: operators.chain, checksEvents };
  const verified = await verifyLog(pool, target, {
    progress: (checked) => progress?.("verifying", checked, size),
    ...(signal ? { signal } : {}),
  });
  for (const { id, tree_size, message } of verified.errors)
    findings.add("entries", `${id === null ? `tree size ${tree_size}` : `entry ${id}`}: ${message}`);
  checkPublished(trees, size, options.published, findings);
  if (!findings.counts.entries) await checkRfc6962(store, trees, size, options, findings);
  if (!isComplete) return findings.report(size);

  for (const table of DERIVED_TABLES)
    for (const difference of rowDifferences(store, scratch, table))
      findings.add("derived", `${describeDifference(table, difference)}.`);
  for (const difference of tileDifferences(store, scratch))
    findings.add("derived", `${describeDifference("tile", difference)}.`);
  for (const sentence of privateFaults(store, size, options.privateChecks ?? [])) findings.add("private", sentence);
  return findings.report(size);
}

function* privateFaults(store: Store, size: number, checks: readonly PrivateCheck[]): Iterable<string> {
  let areReadable = true;
  for (const table of PRIVATE_TABLES)
    for (const key of store.keys(table))
      if (!isReadable(store, table, key)) {
        areReadable = false;
        yield `${table} ${JSON.stringify(key)} cannot be read.`;
      }
  if (!areReadable) return;
  // If the last entry is damaged, which `verifyLog` reports, it is unknown whether rows lie beyond the end.
  const lastId = size ? (readableEntry(new EntryReader(store), size - 1)?.id ?? Number.POSITIVE_INFINITY) : 0;
  for (const check of [checkAnchors, ...checks])
    try {
      yield* check(store, { size, lastId });
    } catch (error) {
      // An attacker can plant rows of any shape, so an error that they cause in a check is a finding too.
      if (!(error instanceof TypeError)) throw error;
      yield "A private row does not have the members of its table.";
    }
}

function isReadable(store: Store, table: TableName, key: Key): boolean {
  try {
    return isObject(store.get(table, key as never));
  } catch {
    return false;
  }
}

/** Checks that batches can be read and join without gaps. @returns the number of entries before the first fault */
function checkBatches(store: Store, findings: Findings): number {
  let size = 0;
  let isWhole = true;
  for (const key of store.batchKeys()) {
    let count = 0;
    try {
      const batch = store.batchAt(key);
      if (key > size && isWhole)
        throw new CairnlogError("corrupt-log", `The entries ${size + 1} to ${key} are missing.`);
      if (key < size) throw new CairnlogError("corrupt-log", `The batch at leaf ${key} overlaps the one before it.`);
      if (!batch?.count) throw new CairnlogError("corrupt-log", `The batch at leaf ${key} is empty.`);
      count = batch.count;
    } catch (error) {
      findings.add("entries", error instanceof CairnlogError ? error.message : `The batch at leaf ${key} is damaged.`);
      isWhole = false;
    }
    if (isWhole) size = key + count;
  }
  return size;
}

/**
 * Puts the rows and tiles that the entries make into `scratch`; `step` is called with every replayed stretch.
 * @returns the trees that the entries make
 */
export async function deriveAnew(
  store: Store,
  scratch: Store,
  size: number,
  { projection, progress, signal }: Pick<LogCheckOptions, "projection" | "progress" | "signal">,
  step: (replay: Replay, to: number) => void | Promise<void>,
): Promise<Trees> {
  const reader = new EntryReader(store);
  const replay = new Replay(reader, projection, scratch);
  const byVersion: Trees = { 1: new Tree(1, scratch), 2: new Tree(2, scratch) };
  const trees = Object.values(byVersion);
  for (const tree of trees) tree.restore(0, new Uint8Array(0));
  for (let from = 0; from < size; from += STEP_ENTRIES) {
    signal?.throwIfAborted();
    const to = Math.min(size, from + STEP_ENTRIES);
    const digests = Buffer.alloc(HASH * (to - from));
    for (let index = from; index < to; index++) {
      const entry = readableEntry(reader, index);
      // Without a readable entry the digest stays zero, and no head matches it.
      if (!entry) continue;
      digests.write(entry.entry_hash, HASH * (index - from), "hex");
      applyReadable(replay, index);
    }
    const tiles = trees.flatMap((tree) => tree.extend(digests, false).tiles);
    await step(replay, to);
    await commitRepairs(scratch, { rows: replay.take().split().derived, tiles });
    for (const tree of trees) tree.written(tiles);
    progress?.("deriving", to, size);
  }
  return byVersion;
}

/** The entry if it can be read. `verifyLog` reports unreadable entries, and checks whether the others are right. */
function readableEntry(reader: EntryReader, index: number): Entry | undefined {
  try {
    const entry = reader.entry(index);
    return ENTRY(entry, "") === undefined ? entry : undefined;
  } catch {
    // Damaged bytes are not JSON.
    return undefined;
  }
}

/** Writes derived data in one transaction. This is not a record, so the journal's position does not change. */
export function commitRepairs(
  store: Store,
  { rows = [], tiles = [] }: Partial<Pick<ChangeSet, "rows" | "tiles">>,
): Promise<void> {
  const after = store.position().sequence;
  return store.commit({ after, position: null, batches: [], rows, tiles });
}

function applyReadable(replay: Replay, index: number): void {
  try {
    replay.apply(index, index + 1);
  } catch {
    // A damaged payload may be any object.
  }
}

/** If entries are damaged, their tree proves nothing. */
async function checkRfc6962(
  store: Store,
  trees: Trees,
  size: number,
  { checkpoints = [], skipsPostings, signal }: LogCheckOptions,
  findings: Findings,
): Promise<void> {
  const tile = (_: 2, level: 0 | 1, index: number, width: number) =>
    publishedTile(trees[2], size, { level, index, width });
  const faults = await rfc6962Faults({ size, tile }, skipsPostings ? null : store.rfc6962, checkpoints, signal);
  for (const sentence of faults.nodes) findings.add("derived", sentence);
  for (const sentence of faults.checkpoints) findings.add("entries", sentence);
}

function checkPublished(trees: Trees, size: number, head: TreeHead | undefined, findings: Findings): void {
  if (!head) return;
  const { tree_size, root_hash, tree_version } = head;
  if (tree_size > size)
    findings.add("entries", `A head of ${tree_size} entries was signed and shown, but the log has only ${size}.`);
  // If entries are damaged, their root proves nothing.
  else if (!findings.counts.entries && trees[tree_version].rightEdge(tree_size).rootHex !== root_hash)
    findings.add("entries", `The head of ${tree_size} entries that was signed and shown is not the one in this log.`);
}

/** The operator keys of the log in `store`, by the rotations that are derived in `derived`. */
export function operatorsIn(
  derived: Store,
  store: Store,
  size: number,
  { operatorKey }: Pick<LogCheckOptions, "operatorKey">,
): Operators {
  const rotations = [...derived.range("operatorRotations")].map(({ row }) => row);
  let meta: LogMeta | undefined;
  try {
    meta = store.get("meta", "log");
  } catch {
    // Unreadable, which is reported.
  }
  return operatorsFrom(
    rotations,
    meta?.first_key_id ?? meta?.key_id,
    oldestHead(store, size),
    importPublicKey(operatorKey),
  );
}

function checkMeta(store: Store, size: number, { current, first }: Operators, findings: Findings): void {
  const wrong = (sentence: string) => findings.add("derived", `meta: ${sentence}`);
  let meta: ReturnType<typeof store.get<"meta">>;
  try {
    meta = store.get("meta", "log");
  } catch {
    wrong("the row cannot be read.");
    return;
  }
  if (!meta) {
    wrong("the row is missing on disk.");
    return;
  }
  if (meta.format >= 1) checkConverted(meta);
  if (meta.format !== FORMAT) wrong(`the stored format is ${meta.format}, but these tables are in format ${FORMAT}.`);
  if (meta.key_id !== current.fingerprint)
    wrong(`the stored operator key is ${meta.key_id}, not ${current.fingerprint}.`);
  else if ((meta.first_key_id ?? meta.key_id) !== first.fingerprint)
    wrong(`the stored first operator key is ${meta.first_key_id ?? meta.key_id}, not ${first.fingerprint}.`);
  if (meta.rebuilding) wrong("a rebuild was interrupted.");
  if (!isPlausibleStart(store, size, meta.created_at))
    wrong(
      `the stored creation time ${JSON.stringify(meta.created_at)} is not a time, or is later than the first entry.`,
    );
}

/** Whether this can be the time when the log was created; imported history may be older than the log. */
export function isPlausibleStart(store: Store, size: number, createdAt: unknown): boolean {
  if (typeof createdAt !== "string" || canonicalTimestamp(createdAt) !== createdAt) return false;
  const head = oldestHead(store, size);
  return head === undefined || createdAt <= head.timestamp;
}

/** The oldest readable head after which no head is missing; undefined if there is none. */
export function oldestHead(store: Store, size: number): TreeHead | undefined {
  const reader = new EntryReader(store);
  const oldest = leastWhere(1, size + 1, (treeSize) => readableHead(reader, treeSize) !== undefined);
  return oldest > size ? undefined : readableHead(reader, oldest);
}

/** The head if it can be read; `verifyLog` reports damaged heads. */
function readableHead(reader: EntryReader, size: number): TreeHead | undefined {
  try {
    return reader.head(size);
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return undefined;
  }
}
