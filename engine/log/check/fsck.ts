/**
 * The check of a whole data directory, on a log that nobody has open: all that follows from the entries is derived once
 * more and compared with the disk, and the entries themselves are checked as `verifyLog` does. Derived rows and tiles go
 * to an environment of their own meanwhile, so that memory does not grow with the log.
 */
import { rmSync } from "node:fs";
import { importPublicKey } from "../../crypto/keys/spki.js";
import type { Pool } from "../../crypto/pool/pool.js";
import { CairnlogError } from "../../error.js";
import type { ChangeSet } from "../../store/changeset.js";
import { checkFormat } from "../../store/lmdb/migrations.js";
import { DERIVED_TABLES, FORMAT, HASH, type Key, PRIVATE_TABLES, type TableName } from "../../store/schema.js";
import { openStore, type Store } from "../../store/store.js";
import { canonicalTimestamp, ENTRY_MEMBERS, type Entry } from "../../verify/entry.js";
import { isObject, objectOf } from "../../verify/json/shape.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { EntryReader } from "../read/reader.js";
import type { Frontier } from "../tree/frontier.js";
import { Tree } from "../tree/tree.js";
import type { Projection } from "../write/projection.js";
import { checkAnchors } from "./anchor-check.js";
import { describeDifference, rowDifferences, tileDifferences } from "./differences.js";
import type { PrivateCheck } from "./private-check.js";
import { Replay } from "./rebuild.js";
import { RunCheck } from "./run-check.js";
import { verifyLog } from "./verify.js";

/** Entries replayed between two breaths of the event loop: about 100 ms. */
const STEP_ENTRIES = 1024;
/** Sentences kept; all are counted. */
const MAX_SENTENCES = 1000;
const ENTRY = objectOf(ENTRY_MEMBERS, {}, "ignored");

/**
 * Where a difference lies. `entries`: batches, entries and heads, which nothing can be derived without; `derived`: what
 * `rebuildLog` can restore; `private`: rows beside the log that contradict one another.
 */
export type FindingArea = "entries" | "derived" | "private";

export interface LogCheckReport {
  /** Whether there is no difference. */
  readonly ok: boolean;
  /** Entries that were checked. */
  readonly entries: number;
  /** How many differences there are, by area. */
  readonly counts: Readonly<Record<FindingArea, number>>;
  /** A sentence for each of the first thousand. */
  readonly differences: readonly { readonly area: FindingArea; readonly message: string }[];
}

export interface LogCheckOptions {
  /** Directory of the log. */
  readonly path: string;
  readonly mapSize?: number;
  /** PEM of the public key that signed the heads. */
  readonly operatorKey: string;
  readonly projection: Projection;
  /** What the owner of private tables knows of them. */
  readonly privateChecks?: readonly PrivateCheck[];
  /** The newest head that was shown, as `readPublishedHead` gives it: a shorter log is not whole. */
  readonly published?: TreeHead | undefined;
  readonly pool: Pool;
  /** Called with the stage and how many of `total` entries it has done. */
  readonly progress?: (stage: "deriving" | "verifying", done: number, total: number) => void;
  /** Ends the work between two steps. */
  readonly signal?: AbortSignal;
}

/** By tree version. */
type Trees = Frontier["trees"];

/** Differences as they are found. */
export class Findings {
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
 * @throws CairnlogError `corrupt-log`, `precondition-failed` when the log is in another format than this version's;
 *   the reason of `options.signal`
 */
export async function checkLog(store: Store, options: LogCheckOptions): Promise<LogCheckReport> {
  return withScratch(options.path, (scratch, scratchPath) => checkWith(store, scratch, scratchPath, options));
}

/** A scratch store beside the log's own files, removed afterwards, and if that was not to be, by the next who makes one. */
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
  checkMeta(store, size, options, findings);
  // After a hole in the entries nothing on disk can be compared with what the rest of them makes.
  const runs = isComplete ? new RunCheck(store, size, (sentence) => findings.add("derived", sentence)) : null;
  const trees = await derive(store, scratch, size, options, (replay) => runs?.check(replay.terms));
  runs?.finish();
  const { path, mapSize, operatorKey, pool, progress, signal } = options;
  const checksEvents = options.projection.checksEvents === true;
  const paths = { path, derivedPath: scratchPath, ...(mapSize === undefined ? {} : { mapSize }) };
  const target = { ...paths, size, operatorKey, checksEvents };
  const verified = await verifyLog(pool, target, {
    progress: (checked) => progress?.("verifying", checked, size),
    ...(signal ? { signal } : {}),
  });
  for (const { id, tree_size, message } of verified.errors)
    findings.add("entries", `${id === null ? `tree size ${tree_size}` : `entry ${id}`}: ${message}`);
  checkPublished(trees, size, options.published, findings);
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
  // Where the last entry is damaged, which `verifyLog` names, nothing is known to lie beyond it.
  const lastId = size ? (readableEntry(new EntryReader(store), size - 1)?.id ?? Number.POSITIVE_INFINITY) : 0;
  for (const check of [checkAnchors, ...checks])
    try {
      yield* check(store, { size, lastId });
    } catch (error) {
      // Rows of any shape can be planted; what they make of a check is a finding, too.
      if (!(error instanceof TypeError)) throw error;
      yield "A private row has another shape than its table's rows.";
    }
}

function isReadable(store: Store, table: TableName, key: Key): boolean {
  try {
    return isObject(store.get(table, key as never));
  } catch {
    return false;
  }
}

/** Whether batches can be read and join without gap. @returns how many entries are there before the first fault */
export function checkBatches(store: Store, findings: Findings): number {
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
 * Puts the rows and tiles that the entries make into `scratch`; `step` sees every replayed stretch.
 * @returns the trees that the entries make
 */
export async function derive(
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
      // Without one the digest stays zero, and no head fits it.
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

/** What is no entry makes nothing; `verifyLog` names it. Whether an entry is true is for `verifyLog`, too. */
function readableEntry(reader: EntryReader, index: number): Entry | undefined {
  try {
    const entry = reader.entry(index);
    return ENTRY(entry, "") === undefined ? entry : undefined;
  } catch {
    // Damaged bytes are no JSON.
    return undefined;
  }
}

/** Writes what follows from the entries, in one transaction. It is no record: the journal's position stays as it is. */
export function commitRepairs(
  store: Store,
  { rows = [], tiles = [] }: Partial<Pick<ChangeSet, "rows" | "tiles">>,
): Promise<void> {
  const after = store.position().sequence;
  return store.commit({ after, position: null, firstIndex: 0, batch: null, rows, tiles });
}

function applyReadable(replay: Replay, index: number): void {
  try {
    replay.apply(index, index + 1);
  } catch {
    // A damaged payload may be any object.
  }
}

function checkPublished(trees: Trees, size: number, head: TreeHead | undefined, findings: Findings): void {
  if (!head) return;
  const { tree_size, root_hash, tree_version } = head;
  if (tree_size > size)
    findings.add("entries", `A head of ${tree_size} entries was signed and shown, but only ${size} are here.`);
  // The root of damaged entries says nothing.
  else if (!findings.counts.entries && trees[tree_version].rightEdge(tree_size).rootHex !== root_hash)
    findings.add("entries", `Another head of ${tree_size} entries was signed and shown than the one that is here.`);
}

function checkMeta(store: Store, size: number, { operatorKey }: LogCheckOptions, findings: Findings): void {
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
  checkFormat(meta);
  if (meta.format >= 1 && meta.format < FORMAT)
    throw new CairnlogError(
      "precondition-failed",
      `The log is in format ${meta.format}, this version's is ${FORMAT}. Start the service once: it brings the log up to date.`,
    );
  const { fingerprint } = importPublicKey(operatorKey);
  if (meta.format !== FORMAT) wrong(`the format is said to be ${meta.format}; these tables are in format ${FORMAT}.`);
  if (meta.key_id !== fingerprint) wrong(`the log is said to be signed by ${meta.key_id}, not by ${fingerprint}.`);
  if (meta.rebuilding) wrong("a rebuild was interrupted.");
  if (!isPlausibleStart(store, size, meta.created_at))
    wrong(`the log is said to have been made at ${JSON.stringify(meta.created_at)}, after its first entry or never.`);
}

/** Whether a log can have been made at this time; imported history may be older than the log. */
export function isPlausibleStart(store: Store, size: number, createdAt: unknown): boolean {
  if (typeof createdAt !== "string" || canonicalTimestamp(createdAt) !== createdAt) return false;
  const head = firstHeadTimestamp(store, size);
  return head === undefined || createdAt <= head;
}

/** When a head was signed, the first one that can be read where none is missing after it; undefined without any. */
export function firstHeadTimestamp(store: Store, size: number): string | undefined {
  const reader = new EntryReader(store);
  let low = 1;
  let high = size + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (readableHead(reader, middle)) high = middle;
    else low = middle + 1;
  }
  return low > size ? undefined : readableHead(reader, low)!.timestamp;
}

/** `verifyLog` names a head that is damaged. */
function readableHead(reader: EntryReader, size: number): TreeHead | undefined {
  try {
    return reader.head(size);
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return undefined;
  }
}
