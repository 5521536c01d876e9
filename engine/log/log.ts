/**
 * The embeddable log: append, read, prove, verify, close. No HTTP, no environment variables, no process-wide state;
 * any number of logs in one process.
 */
import { existsSync } from "node:fs";
import { createDigests, type DigestName } from "../crypto/digests.js";
import { importPublicKey } from "../crypto/keys/spki.js";
import { createPool, type Pool } from "../crypto/pool/pool.js";
import { CairnlogError } from "../error.js";
import type { Journal } from "../journal/journal.js";
import { localJournal } from "../journal/local.js";
import { checkFormat, MIGRATIONS, migrate } from "../store/lmdb/migrations.js";
import { takeWriterLock, type WriterLock } from "../store/lmdb/writerlock.js";
import type { PostingList, Postings } from "../store/postings/postings.js";
import { FORMAT, type Key, type KeyOf, type RowOf, type TableName } from "../store/schema.js";
import { openStore, type RowWindow, type Snapshot, type Store, type StoreUsage } from "../store/store.js";
import type { InclusionProof } from "../verify/bundle/format.js";
import type { Entry } from "../verify/entry.js";
import type { TreeVersion } from "../verify/tree/merkle.js";
import type { TreeHead } from "../verify/tree/treehead.js";
import { Anchors } from "./anchor/anchors.js";
import { Applier } from "./apply/applier.js";
import { stateDifferences } from "./check/differences.js";
import { Replay } from "./check/rebuild.js";
import { type VerifyReport, verifyLog } from "./check/verify.js";
import { type Clock, formatTimestamp, systemClock } from "./clock.js";
import { microsOf } from "./instant.js";
import { type Criteria, type Matches, matching } from "./read/query.js";
import { EntryReader } from "./read/reader.js";
import { Seams, type Stretch } from "./read/seams.js";
import { type Frontier, SIGNING_VERSION } from "./tree/frontier.js";
import { consistencyPath, inclusionPath } from "./tree/proofs.js";
import { ProofTexts, type ServedProof } from "./tree/prooftexts.js";
import { publishedTile } from "./tree/tiles.js";
import { TILE_WIDTH } from "./tree/tree.js";
import { append, type PlainEvent, takeHeadTime } from "./write/append.js";
import type { Command } from "./write/commands.js";
import type { RowObserver } from "./write/committed.js";
import { freshHead } from "./write/freshhead.js";
import { type EventInput, noProjection, type Projection } from "./write/projection.js";
import { type BatchReport, type Committed, DEFAULT_QUEUE_LIMIT, type Receipt, Sequencer } from "./write/sequencer.js";
import type { Signer } from "./write/signer.js";

export interface LogOptions {
  /** Directory of the log; created when it does not exist. One process at a time may write it. */
  readonly path: string;
  /** Signs the tree heads. `operatorKey` and `openOperatorKey` make one; its public key is needed to verify. */
  readonly signer: Signer & { readonly public: { readonly pem: string } };
  /** State that follows from entries. */
  readonly projection?: Projection;
  /** Digests kept beside SHA-256 in `entry_hashes`. */
  readonly digests?: readonly DigestName[];
  /** Worker threads to use; without it the log starts its own when it needs them. */
  readonly pool?: Pool;
  /** Appends that may wait; beyond it they are refused with `overloaded`. */
  readonly queueLimit?: number;
  /** Bytes of address space, and the size the data can grow to. */
  readonly mapSize?: number;
  readonly clock?: Clock;
  /** Decides what is appended; the log's own environment when absent. */
  readonly journal?: Journal;
  /**
   * Another process writes this log, and this one reads it: as it is now, and after each `refresh` as it is then. The
   * signer is asked for nothing; `publicOperatorKey` will do.
   */
  readonly readOnly?: boolean;
}

export interface ConsistencyProof {
  readonly from_size: number;
  readonly to_size: number;
  readonly tree_version: TreeVersion;
  readonly from_root: string;
  readonly to_root: string;
  readonly peaks: readonly string[];
  readonly extension: readonly string[];
  readonly from_sth: TreeHead | null;
  readonly to_sth: TreeHead | null;
}

/**
 * Opens or creates a log. The time this takes does not depend on the size of the log.
 * @throws CairnlogError `storage-failed`, `corrupt-log`; `wrong-operator` when another key signed this log's heads;
 *   `not-found` when it is to be read only, and is not there; `in-use` when it is to be written, and another process has
 *   it open to write
 */
export async function openLog(options: LogOptions): Promise<Log> {
  if (options.readOnly && !existsSync(options.path))
    throw new CairnlogError("not-found", `There is no log in ${options.path} to be read.`);
  const lock = options.readOnly ? NO_LOCK : await takeWriterLock(options.path);
  try {
    return await startLog(openStore(options), options, lock);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** `openLog` over a store that is open already; the log's `close` releases `lock`. */
export async function startLog(
  store: Store,
  options: LogOptions,
  lock: WriterLock = NO_LOCK,
  migrations = MIGRATIONS,
): Promise<Log> {
  try {
    if (options.readOnly) store.pin();
    await checkMeta(store, options, migrations);
    const secondaryDigests = options.digests?.length ? await createDigests(options.digests) : null;
    const log = new Log(store, options, secondaryDigests, lock);
    if (options.readOnly) return log;
    await log.recover();
    await log.begin();
    return log;
  } catch (error) {
    await store.close();
    throw error;
  }
}

const NO_LOCK: WriterLock = { release: async () => {} };

async function checkMeta(
  store: Store,
  { path, signer, readOnly }: LogOptions,
  migrations: typeof MIGRATIONS,
): Promise<void> {
  const keyId = signer.fingerprint;
  const meta = store.get("meta", "log");
  if (!meta && readOnly) throw new CairnlogError("not-found", `There is no log in ${path} to be read yet.`);
  if (!meta) return;
  if (meta.key_id !== keyId)
    throw new CairnlogError(
      "wrong-operator",
      `This log is signed by operator key ${meta.key_id}, not by ${keyId}. Give the key that belongs to it, or another data directory.`,
    );
  if (meta.rebuilding)
    throw new CairnlogError(
      "corrupt-log",
      `A rebuild of the log in ${path} was interrupted. Finish it: cairnlog fsck --rebuild.`,
    );
  if (readOnly) checkFormat(meta, migrations.length + 1);
  else await migrate(store, meta, migrations);
}

export class Log {
  readonly #store: Store;
  readonly #lock: WriterLock;
  readonly #options: LogOptions;
  readonly #postings: Postings;
  readonly #frontier: Frontier;
  readonly #applier: Applier;
  readonly #reader: EntryReader;
  readonly #seams: Seams;
  readonly #projection: Projection;
  readonly #proofTexts: ProofTexts;
  readonly #sequencer: Sequencer;
  /** Proofs from outside, joined to the entries that have one. */
  readonly anchors: Anchors;
  #ownPool: Pool | null = null;
  /** Entries on disk. Nothing beyond is shown to anyone. */
  #size = 0;
  #verification: Promise<VerifyReport> | null = null;
  readonly #closing = new AbortController();

  /** Use `openLog`. */
  constructor(
    store: Store,
    options: LogOptions,
    secondaryDigests: Awaited<ReturnType<typeof createDigests>> | null,
    lock: WriterLock,
  ) {
    const { readOnly: isReader = false } = options;
    this.#store = store;
    this.#lock = lock;
    this.#options = options;
    this.#projection = options.projection ?? noProjection;
    this.#reader = new EntryReader(store);
    this.#seams = new Seams(store, (leafIndex) => microsOf(this.#reader.entry(leafIndex)!.timestamp));
    const operator = importPublicKey(options.signer.public.pem);
    const { journal = localJournal } = options;
    this.#applier = new Applier({ store, journal, projection: this.#projection, operator, isReader });
    this.#frontier = this.#applier.frontier;
    this.#postings = this.#applier.postings;
    this.anchors = new Anchors(store, (command, input) => this.execute(command, input));
    this.#proofTexts = new ProofTexts(
      this.#frontier.trees,
      (leafIndex) => this.#reader.digest(leafIndex)!,
      (treeSize) => this.treeHead(treeSize),
    );
    this.#restore();
    this.#sequencer = new Sequencer({
      store,
      applier: this.#applier,
      signer: options.signer,
      operatorKey: operator,
      projection: this.#projection,
      clock: options.clock ?? systemClock,
      secondaryDigests,
      queueLimit: options.queueLimit ?? DEFAULT_QUEUE_LIMIT,
      published: (size) => {
        this.#size = size;
      },
      recover: () => this.recover(),
    });
  }

  /** Memory becomes what the disk says: at start, and after a failed write that may have been persisted all the same. */
  #restore(): void {
    this.#applier.restore();
    this.#proofTexts.clear();
    this.#seams.restore();
    this.anchors.restore();
    this.#checkEnd(this.#frontier.size);
    this.#size = this.#frontier.size;
  }

  /** What the journal has decided beyond the disk is applied, and memory becomes what the disk says. */
  async recover(): Promise<void> {
    this.#applier.restore();
    await this.#applier.catchUp();
    this.#restore();
  }

  /** Makes the first record of a log that has none: what the log is. */
  async begin(): Promise<void> {
    if (this.#store.get("meta", "log")) return;
    const { signer, clock = systemClock } = this.#options;
    const row = { format: FORMAT, key_id: signer.fingerprint, created_at: formatTimestamp(clock()) };
    await this.#applier.commitRows([{ table: "meta", key: "log", row }]);
  }

  /**
   * Shows what another process has written meanwhile. Only for a log that was opened to be read, which shows one moment
   * until then: between two calls nothing that was shown changes. Entries that it kept from the disk are freed late, so
   * call it at least every few seconds.
   */
  refresh(): void {
    if (!this.#options.readOnly) throw new RangeError("the log was opened to be written");
    this.#store.pin();
    this.#postings.reload();
    this.#restore();
  }

  /** A log that lost its newest batches must not go on: it would sign other entries at sizes that have heads already. */
  #checkEnd(size: number): void {
    const shrank = (what: string) =>
      new CairnlogError(
        "corrupt-log",
        `The log in ${this.#options.path} shrank: it ends after entry ${size}, but ${what} of later ones are there. Restore the newest backup (cairnlog restore).`,
      );
    if (this.#postings.size > size) throw shrank("postings");
    const firstOpen = Math.floor(size / TILE_WIDTH);
    if (this.#store.tile(1, 0, firstOpen) || this.#store.tile(2, 0, firstOpen)) throw shrank("tiles");
  }

  /** Entries in the log, all of them on disk. */
  get size(): number {
    return this.#size;
  }

  /** Batches written since the log was opened: how many transactions the appends shared. */
  get batches(): number {
    return this.#sequencer.batches;
  }

  /** Appends waiting for their batch. */
  get queued(): number {
    return this.#sequencer.queued;
  }

  /** How much room the log takes on disk, and may take. */
  get diskUsage(): StoreUsage {
    return this.#store.usage();
  }

  /** Why the newest batch could not be signed or written; null when it could. */
  get lastFailure(): CairnlogError | null {
    return this.#sequencer.lastFailure;
  }

  /** Has `observer` called for every batch with entries that is on disk. It must not throw, and be quick. */
  observeBatches(observer: (report: BatchReport) => void): void {
    this.#sequencer.observer = observer;
  }

  /**
   * Has `observer` called for every batch that changes rows of a table, once it is on disk and its entries can be read;
   * it takes the place of an earlier one.
   */
  observeRows<T extends TableName>(table: T, observer: RowObserver<T>): void {
    this.#sequencer.observeRows(table, observer);
  }

  /**
   * Writes a row that means nothing, and waits until it is on disk: whether the log can be written now.
   * @throws CairnlogError as `execute` does
   */
  async tryWriting(): Promise<void> {
    await this.execute(takeHeadTime, null);
  }

  /**
   * Appends one event, or several that become neighbours in one batch. Resolves when they are on disk, each with the
   * signed head of the size it made.
   * @throws CairnlogError `overloaded`, `closed`, `signer-unavailable`, `storage-failed`; `not-i-json` for a payload
   *   that has no canonical form. Nothing was appended then, unless the disk failed: then look before trying again.
   */
  append(event: EventInput): Promise<Receipt>;
  append(events: readonly EventInput[]): Promise<readonly Receipt[]>;
  async append(input: EventInput | readonly EventInput[]): Promise<Receipt | readonly Receipt[]> {
    const events: readonly EventInput[] = Array.isArray(input) ? input : [input as EventInput];
    // Whatever in a payload is no plain data has no canonical form, and is refused for that.
    const { receipts } = await this.execute(append, { events: events as readonly PlainEvent[] });
    return Array.isArray(input) ? receipts : receipts[0]!;
  }

  /**
   * Runs a command with its input, which nobody may change afterwards, and resolves when what it did is on disk.
   * @throws CairnlogError what the command throws; `overloaded`, `closed`, `signer-unavailable`, `storage-failed`
   */
  execute<Input, Output>(command: Command<Input, Output>, input: Input): Promise<Committed<Output>> {
    if (this.#options.readOnly)
      return Promise.reject(new CairnlogError("signer-unavailable", "This log is written elsewhere; here it is read."));
    return this.#sequencer.submit(command, input);
  }

  /** A row of state, as it is on disk. */
  row<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    return this.#store.get(table, key);
  }

  /** Rows of state with `start` <= key < `end`, ascending, as they are on disk; all of them, or those in `window`. */
  rows<T extends TableName>(table: T, start: Key, end: Key, window?: RowWindow): { key: KeyOf<T>; row: RowOf<T> }[] {
    return [...this.#store.range(table, start, end, window)];
  }

  /** Rows of state as they are on disk now, for work that takes several turns of the event loop; to be closed. */
  snapshot(): Snapshot {
    return this.#store.snapshot();
  }

  /** Leaf indexes of the entries with `term`, ascending. Use it before the next `await`. */
  postings(term: string): PostingList {
    return this.#postings.list(term);
  }

  /** The entry with this id as it is served (JSON), not to be written to; or undefined. */
  entryJson(id: number): Buffer | undefined {
    const leafIndex = this.leafIndexOf(id);
    return leafIndex === undefined ? undefined : this.entryJsonAt(leafIndex);
  }

  /** The leaf index of the entry with this id, or undefined: imported history may leave ids out. */
  leafIndexOf(id: number): number | undefined {
    return this.#seams.leafIndexOf(id, this.#size);
  }

  /** The entry at this leaf index as it is served (JSON), not to be written to; or undefined. */
  entryJsonAt(leafIndex: number): Buffer | undefined {
    const json = leafIndex >= 0 && leafIndex < this.#size ? this.#reader.json(leafIndex) : undefined;
    return json && this.anchors.join(leafIndex, json);
  }

  /** The leaf index of the first entry with a higher id than this one; the size of the log if there is none. */
  leafIndexAfter(id: number): number {
    return this.#seams.leafIndexFrom(id + 1, this.#size);
  }

  /** The entry with this id, or undefined. */
  entry(id: number): Entry | undefined {
    const leafIndex = this.leafIndexOf(id);
    return leafIndex === undefined ? undefined : this.entryAt(leafIndex);
  }

  /** The entry at this leaf index, or undefined. */
  entryAt(leafIndex: number): Entry | undefined {
    const json = this.entryJsonAt(leafIndex);
    return json && (JSON.parse(json.toString("utf8")) as Entry);
  }

  /** Entries in order, from this leaf index on; those appended meanwhile included. */
  *entries(from = 0): Iterable<Entry> {
    for (let leafIndex = from; ; leafIndex++) {
      const entry = this.entryAt(leafIndex);
      if (!entry) return;
      yield entry;
    }
  }

  /**
   * Leaf indexes of the entries that `criteria` select, a page at a time, oldest first: work that pauses at every `yield`.
   * Entries that are appended meanwhile are not among them.
   * @throws CairnlogError `invalid-input` for a search term that matches too much
   */
  matching(criteria: Criteria, offset: number, limit: number): Generator<void, Matches, void> {
    const entry = (leafIndex: number) => this.#reader.entry(leafIndex);
    return matching({ postings: this.#postings, size: this.#size, entry }, criteria, offset, limit);
  }

  /** The same in one go. */
  match(criteria: Criteria, offset: number, limit: number): Matches {
    const work = this.matching(criteria, offset, limit);
    for (;;) {
      const { done, value } = work.next();
      if (done) return value;
    }
  }

  /** The same entries as they are served (JSON). */
  find(criteria: Criteria, offset: number, limit: number): { readonly entries: Buffer[]; readonly total: number } {
    const { indexes, total } = this.match(criteria, offset, limit);
    return { entries: indexes.map((leafIndex) => this.entryJsonAt(leafIndex)!), total };
  }

  /**
   * The entries made in [from, to), in microseconds since the epoch: stretches of leaf indexes, ascending. Appended
   * entries ascend in time and are found by a binary search; imported history costs as many as it has steps back in time.
   */
  between(from: number, to: number): readonly Stretch[] {
    return this.#seams.between(from, to, this.#size);
  }

  /** The newest entry, or null on an empty log. */
  head(): Entry | null {
    return this.#size ? this.entryAt(this.#size - 1)! : null;
  }

  /** The signed head of a tree size (default: the newest), or null where there is none. */
  treeHead(treeSize: number = this.#size): TreeHead | null {
    return (treeSize <= this.#size && this.#reader.head(treeSize)) || null;
  }

  /**
   * Signs the head of the current size again, with a timestamp of now. Only its time is stored: the first head of a size
   * stays the one that `treeHead` gives.
   * @throws CairnlogError `precondition-failed` on an empty log; `signer-unavailable`; as `execute` does
   */
  async signHead(): Promise<TreeHead> {
    if (!this.#size) throw new CairnlogError("precondition-failed", "The log is empty; there is no tree to sign.");
    const { value: now } = await this.execute(takeHeadTime, null);
    const size = this.#size;
    const stored = this.treeHead(size)?.timestamp ?? now;
    // The log may have grown since the command. Canonical timestamps sort as text.
    const timestamp = [now, stored].sort().at(-1)!;
    const { signer } = this.#options;
    const key = importPublicKey(signer.public.pem);
    return freshHead(this.#frontier.trees[SIGNING_VERSION], size, timestamp, signer, key);
  }

  /** The receipt of the entry at a leaf index, as its append gave it; null for imported entries, which have no head. */
  receipt(leafIndex: number): Receipt | null {
    const entry = leafIndex < this.#size ? this.#reader.entry(leafIndex) : undefined;
    const sth = this.treeHead(leafIndex + 1);
    if (!entry || !sth) return null;
    const { id, entry_hash, timestamp } = entry;
    return { log_entry_id: id, leaf_index: leafIndex, entry_hash, timestamp, sth, json: this.#reader.json(leafIndex)! };
  }

  /**
   * Proof that the entry at `leafIndex` is in the tree of `treeSize` leaves (default: all).
   * @throws CairnlogError `invalid-input` unless 0 <= leafIndex < treeSize <= size
   */
  inclusionProof(
    leafIndex: number,
    { treeSize = this.#size, treeVersion = SIGNING_VERSION }: { treeSize?: number; treeVersion?: TreeVersion } = {},
  ): InclusionProof {
    this.#checkSize(treeSize);
    const { leafHash, rootHash, auditPath } = inclusionPath(this.#frontier.trees[treeVersion], leafIndex, treeSize);
    return {
      leaf_index: leafIndex,
      tree_size: treeSize,
      tree_version: treeVersion,
      leaf_hash: leafHash,
      root_hash: rootHash,
      audit_path: auditPath,
      entry_hash: this.#reader.digest(leafIndex)!,
      sth: this.treeHead(treeSize),
    };
  }

  /**
   * The same as it is served (JSON).
   * @throws CairnlogError as `inclusionProof` does
   */
  inclusionProofJson(
    leafIndex: number,
    { treeSize = this.#size, treeVersion = SIGNING_VERSION }: { treeSize?: number; treeVersion?: TreeVersion } = {},
  ): ServedProof {
    this.#checkSize(treeSize);
    return this.#proofTexts.inclusion(leafIndex, treeSize, treeVersion);
  }

  /**
   * Proof that the tree of `from` leaves is the beginning of the tree of `to` leaves (default: all).
   * @throws CairnlogError `invalid-input` unless 1 <= from <= to <= size
   */
  consistencyProof(
    from: number,
    to: number = this.#size,
    treeVersion: TreeVersion = SIGNING_VERSION,
  ): ConsistencyProof {
    this.#checkSize(to);
    const { fromRoot, toRoot, peaks, extension } = consistencyPath(this.#frontier.trees[treeVersion], from, to);
    return {
      from_size: from,
      to_size: to,
      tree_version: treeVersion,
      from_root: fromRoot,
      to_root: toRoot,
      peaks,
      extension,
      from_sth: this.treeHead(from),
      to_sth: this.treeHead(to),
    };
  }

  /**
   * The first `width` (1 to 256) hashes of tile `index` of a tile level, 32 bytes each; undefined when the log has not as
   * many. Level l holds the complete nodes of tree level 8·l, so what was given once never changes.
   */
  tile(treeVersion: TreeVersion, level: number, index: number, width: number = TILE_WIDTH): Uint8Array | undefined {
    return publishedTile(this.#frontier.trees[treeVersion], this.#size, { level, index, width });
  }

  /** A size that is on its way to disk must not be proved yet: its head might never exist. */
  #checkSize(treeSize: number): void {
    if (!(treeSize >= 1 && treeSize <= this.#size))
      throw new CairnlogError("invalid-input", `The tree size must lie between 1 and ${this.#size}.`);
  }

  /** Re-derives everything from the stored payloads, as of now, beside live appends. Calls at one time share one run. */
  verify(): Promise<VerifyReport> {
    this.#verification ??= this.#verify().finally(() => {
      this.#verification = null;
    });
    return this.#verification;
  }

  async #verify(): Promise<VerifyReport> {
    const { path, mapSize, signer } = this.#options;
    const target = { path, size: this.#size, operatorKey: signer.public.pem };
    const { signal } = this.#closing;
    return verifyLog(this.#pool, mapSize === undefined ? target : { ...target, mapSize }, { signal });
  }

  get #pool(): Pool {
    if (this.#options.pool) return this.#options.pool;
    this.#ownPool ??= createPool();
    return this.#ownPool;
  }

  /**
   * Rebuilds derived rows and postings from the entries, in memory, and compares them with what this log holds: for
   * logs that fit there. `checkLog` does so for any that is closed.
   * @returns a sentence for each difference; empty when state is what the entries make it
   */
  stateDifferences(): string[] {
    const rebuilt = new Replay(this.#reader, this.#projection);
    rebuilt.apply(0, this.#size);
    const differences = [...stateDifferences(this.#store, rebuilt)];
    let postings = 0;
    for (const [term, indexes] of rebuilt.terms) {
      postings += indexes.length;
      const list = this.#postings.list(term);
      const stored = Array.from({ length: list.length }, (_, rank) => list.at(rank));
      if (stored.join() !== indexes.join())
        differences.push(
          `postings of kind ${term.charCodeAt(0)}: entries ${stored.join()} instead of ${indexes.join()}`,
        );
    }
    if (this.#postings.count !== postings)
      differences.push(`${this.#postings.count} postings are held, but the entries make ${postings}`);
    return differences;
  }

  /** Answers every append that was accepted, then closes; a verification is broken off. Nothing keeps running. */
  async close(): Promise<void> {
    this.#closing.abort(new CairnlogError("closed", "The log is closed."));
    await this.#sequencer.close();
    await this.#verification?.catch(() => undefined);
    await this.#ownPool?.close();
    await this.#postings.close();
    await this.#store.close();
    await this.#lock.release();
  }
}
