/**
 * What can be read of a log: rows, entries, heads, proofs, tiles, searches. It shows the log as it
 * was at one moment; the writer and the reader (`writer.ts`, `reader.ts`), which extend it, move
 * that moment on.
 *
 * All of its memory belongs to the thread that opened it: no two threads share a view.
 */

import { closeAll } from "../../base/closing.js";
import { CairnlogError } from "../../base/error.js";
import { tell } from "../../base/lock.js";
import type { Pool } from "../../crypto/pool/pool.js";
import type { Rfc6962Rows } from "../../store/postings/contract.js";
import { listBelow, type PostingList } from "../../store/postings/lists.js";
import type { Key, KeyOf, RowOf, TableName } from "../../store/schema/schema.js";
import type { RowWindow, Snapshot, StoreReader, StoreUsage } from "../../store/store.js";
import type { InclusionProof } from "../../verify/bundle/format.js";
import type { Entry } from "../../verify/tree/entry.js";
import type { TreeVersion } from "../../verify/tree/merkle.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { Anchors } from "../anchor/anchors.js";
import type { LogMemory } from "../apply/memory.js";
import { postingDifferences, Replay, stateDifferences } from "../check/differences.js";
import { LogVerification, type VerifyReport } from "../check/verify.js";
import type { Frozen } from "../operator/entries.js";
import type { Operators } from "../operator/operators.js";
import { SIGNING_VERSION } from "../read/frontier.js";
import { ProofTexts, type ServedProof } from "../read/prooftexts.js";
import { type Criteria, type Matches, matching } from "../read/query.js";
import { EntryReader } from "../read/reader.js";
import { Seams, type Stretch } from "../read/seams.js";
import { Withheld } from "../read/withheld.js";
import { Rfc6962Tree } from "../rfc6962/tree.js";
import { microsOf } from "../state/clock.js";
import { EntryReceipt } from "../state/entry.js";
import type { Receipt } from "../state/executor.js";
import { type EventInput, eventTerms, type Projection } from "../state/projection.js";
import { type ConsistencyProof, consistencyPath, inclusionPath, publishedTile } from "../tree/proofs.js";
import { TILE_WIDTH } from "../tree/tree.js";

/** What a view reads, and by what it checks it. */
export interface ViewParts {
  readonly path: string;
  readonly store: StoreReader;
  readonly memory: LogMemory;
  readonly projection: Projection;
  /** Worker threads for verification; without it, each run starts some that let all others go first. */
  readonly pool?: Pool | undefined;
  readonly mapSize?: number | undefined;
  /** Where the nodes of the RFC 6962 tree are; without it, in the store. */
  readonly rfc6962Rows?: () => Rfc6962Rows;
}

/** Reads of a log. */
export abstract class LogView {
  readonly #parts: ViewParts;
  readonly #reader: EntryReader;
  readonly #seams: Seams;
  readonly #proofTexts: ProofTexts;
  /** Proofs from outside, joined to the entries that have one. */
  readonly anchors: Anchors;
  /** The entries that are shown without their payload. */
  protected readonly withheld: Withheld;
  /** The log as a tree of RFC 6962. */
  readonly rfc6962: Rfc6962Tree;
  /** Entries on disk. Nothing beyond is shown to anyone. */
  #size = 0;
  #frozen: Frozen | null = null;
  readonly #sizeObservers = new Set<() => void>();
  readonly #verification: LogVerification;

  constructor(parts: ViewParts) {
    const { store, memory } = parts;
    this.#parts = parts;
    this.withheld = new Withheld(store, memory.entries, (id) => this.leafIndexOf(id));
    this.#reader = new EntryReader(store, this.withheld);
    this.#seams = new Seams(store, (leafIndex) => microsOf(this.#reader.entry(leafIndex)!.timestamp));
    this.anchors = new Anchors(store);
    this.rfc6962 = new Rfc6962Tree(this, parts.rfc6962Rows ?? (() => store.rfc6962));
    this.#verification = new LogVerification(parts, this);
    this.#proofTexts = new ProofTexts(
      memory.frontier.trees,
      (leafIndex, width) => this.#reader.digestsAround(leafIndex, width)!,
      (treeSize) => this.treeHead(treeSize),
    );
  }

  /** Forgets what was read, when another log may be in the place of the one that it was read from. Before `showDisk`. */
  protected forget(): void {
    this.#reader.clear();
    this.#parts.memory.entries.clear();
    this.rfc6962.clear();
  }

  /**
   * Shows what the disk says, when memory says the same.
   * @param withheld ids of the entries that were withheld since the last call; without them, all are looked for
   * @throws CairnlogError `corrupt-log` when the log has lost its end
   */
  protected showDisk(withheld?: Iterable<number>): void {
    this.#proofTexts.clear();
    this.#seams.restore();
    this.anchors.restore();
    const { size, frozen } = this.#parts.memory.frontier;
    this.#checkEnd(size);
    this.#frozen = null;
    this.show(size, frozen);
    if (withheld) this.withheld.take(withheld);
    else this.withheld.restore();
  }

  /** Shows the first `size` entries, which are on disk. @param end how the log ended, if the newest of them says so */
  protected show(size: number, end: Frozen | null): void {
    this.#size = size;
    this.#frozen ??= end;
    for (const observer of this.#sizeObservers) tell(observer);
  }

  /** A log that lost its newest batches must not go on: it would sign other entries at sizes that have heads already. */
  #checkEnd(size: number): void {
    const shrank = (what: string) =>
      new CairnlogError(
        "corrupt-log",
        `The log in ${this.#parts.path} shrank: it ends after entry ${size}, but ${what} of later ones are there. Restore the newest backup (cairnlog restore).`,
      );
    if (this.#parts.memory.postings.size > size) throw shrank("postings");
    const firstOpen = Math.floor(size / TILE_WIDTH);
    if (this.#parts.store.tile(1, 0, firstOpen) || this.#parts.store.tile(2, 0, firstOpen)) throw shrank("tiles");
  }

  /** Entries in the log, all of them on disk. */
  get size(): number {
    return this.#size;
  }

  /** How the log ended; null while entries may follow. */
  get frozen(): Frozen | null {
    return this.#frozen;
  }

  /** The keys that sign the heads: which one, says the size. */
  get operators(): Operators {
    return this.#parts.memory.operators;
  }

  /** Why this process can no longer read or write the log; null while it can. */
  get failure(): CairnlogError | null {
    return this.#parts.store.health.failure;
  }

  /**
   * Has `observer` called once, when a write has failed in such a way that this process must not use the log any more. Every
   * read and write then throws `storage-failed`. The process should end; a new one finds what is on disk.
   */
  observeFailure(observer: (failure: CairnlogError) => void): void {
    this.#parts.store.health.observe(observer);
  }

  /**
   * Calls `observer` when `size` may have changed. It must be quick.
   * @returns a function that ends this
   */
  observeSize(observer: () => void): () => void {
    this.#sizeObservers.add(observer);
    return () => this.#sizeObservers.delete(observer);
  }

  /** How much room the log takes on disk, and may take. */
  get diskUsage(): StoreUsage {
    return this.#parts.store.usage();
  }

  /** A row of state, as it is on disk. */
  row<T extends TableName>(table: T, key: KeyOf<T>): RowOf<T> | undefined {
    return this.#parts.store.get(table, key);
  }

  /** Rows of state with `start` <= key < `end`, ascending, as they are on disk; all of them, or those in `window`. */
  rows<T extends TableName>(table: T, start: Key, end: Key, window?: RowWindow): { key: KeyOf<T>; row: RowOf<T> }[] {
    return [...this.#parts.store.range(table, start, end, window)];
  }

  /** Rows of state as they are on disk now, for work that takes several turns of the event loop; to be closed. */
  snapshot(): Snapshot {
    return this.#parts.store.snapshot();
  }

  /** Leaf indexes of the entries with `term`, ascending. Use it before the next `await`. */
  postings(term: string): PostingList {
    this.readyPostings();
    const { postings } = this.#parts.memory;
    const list = postings.list(term);
    // To a reader beside the writer, runs on disk may be ahead of what it was told.
    return this.withheld.list(term, postings.size > this.#size ? listBelow(list, this.#size) : list);
  }

  /** The terms of an event that a command will append; see `PreparedEvent`. */
  termsOf(event: EventInput): string {
    return eventTerms(event, this.#parts.projection);
  }

  /** The entry with this id as it is served (JSON), not to be written to; or undefined. */
  entryJson(id: number): Buffer | undefined {
    const leafIndex = this.leafIndexOf(id);
    return leafIndex === undefined ? undefined : this.entryJsonAt(leafIndex);
  }

  /** The leaf index of the entry with this id, or undefined: imported history may leave ids out. */
  leafIndexOf(id: number): number | undefined {
    this.#parts.store.health.check();
    return this.#seams.leafIndexOf(id, this.#size);
  }

  /**
   * The leaf index of an entry that a row names by its id. A reader beside the writer may see a row a moment before it is
   * told of its entry, which is on disk with it: `leafIndexOf` does not have it then.
   */
  leafIndexOfRow(entryId: number): number {
    this.#parts.store.health.check();
    return this.#seams.leafIndexFrom(entryId, Number.MAX_SAFE_INTEGER);
  }

  /** An entry that a row names by its id: see `leafIndexOfRow`. */
  entryOfRow(entryId: number): Entry {
    return this.#reader.entry(this.leafIndexOfRow(entryId))!;
  }

  /** The entry at this leaf index as it is served (JSON), not to be written to; or undefined. */
  entryJsonAt(leafIndex: number): Buffer | undefined {
    // Also for what is beyond the end: after a failure nobody is told that something is not there.
    this.#parts.store.health.check();
    if (!Number.isInteger(leafIndex)) return undefined;
    const json = leafIndex >= 0 && leafIndex < this.#size ? this.#reader.json(leafIndex) : undefined;
    return json && this.anchors.join(leafIndex, json);
  }

  /** The leaf index of the first entry with a higher id than this one; the size of the log if there is none. */
  leafIndexAfter(id: number): number {
    return this.#seams.leafIndexFrom(id + 1, this.#size);
  }

  /** Leaf indexes of the entries whose payload is withheld, ascending. */
  get withheldLeaves(): readonly number[] {
    return this.withheld.leaves;
  }

  /** The leaf index of the entry that has one of these payloads, and is shown without it. */
  withheldLike(payloads: Parameters<Withheld["like"]>[0]): number | undefined {
    return this.withheld.like(payloads);
  }

  /** An entry as it is served, but for `ots_proof`. */
  bareJsonAt(leafIndex: number): Buffer {
    return this.#reader.json(leafIndex)!;
  }

  /** Whether the payload of the entry with this id is withheld. */
  isWithheld(id: number): boolean {
    if (!this.withheld.count) return false;
    const leafIndex = this.leafIndexOf(id);
    return leafIndex !== undefined && this.withheld.row(leafIndex) !== undefined;
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
   * Leaf indexes of the entries that `criteria` select, a page at a time, oldest first. The work pauses at every `yield`;
   * entries that are appended meanwhile are not among the matches.
   * @throws CairnlogError `invalid-input` for what matches too much; `indexing` while titles of older entries are being filed
   */
  matching(criteria: Criteria, offset: number, limit: number): Generator<void, Matches, void> {
    const entry = (leafIndex: number) => this.#reader.scattered(leafIndex);
    this.readyPostings();
    const { titles } = this.#parts.memory;
    const postings = this.withheld.postings(this.#parts.memory.postings);
    const titleSources = () => titles.sources().map((source) => this.withheld.postings(source));
    return matching(
      { postings, titles: titleSources, hasEarlierTitles: titles.missing > 0, size: this.#size, entry },
      criteria,
      offset,
      limit,
    );
  }

  /** Like `matching`, without pauses. */
  match(criteria: Criteria, offset: number, limit: number): Matches {
    const work = this.matching(criteria, offset, limit);
    for (;;) {
      const { done, value } = work.next();
      if (done) return value;
    }
  }

  /** A page of the entries that match, in the form in which they are served (JSON). */
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
    this.#parts.store.health.check();
    if (!Number.isInteger(treeSize)) return null;
    return (treeSize <= this.#size && this.#reader.head(treeSize)) || null;
  }

  /** The receipt of the entry at a leaf index, as its append gave it; null for imported entries, which have no head. */
  receipt(leafIndex: number): Receipt | null {
    if (!Number.isInteger(leafIndex)) return null;
    const entry = leafIndex < this.#size ? this.#reader.entry(leafIndex) : undefined;
    const sth = this.treeHead(leafIndex + 1);
    if (!entry || !sth) return null;
    const { id, entry_hash, timestamp } = entry;
    const json = this.#reader.json(leafIndex)!;
    return new EntryReceipt({ log_entry_id: id, leaf_index: leafIndex, entry_hash, timestamp, sth, json });
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
    this.readyTrees();
    const { leafHash, rootHash, auditPath } = inclusionPath(
      this.#parts.memory.frontier.trees[treeVersion],
      leafIndex,
      treeSize,
    );
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
    this.readyTrees();
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
    this.readyTrees();
    const { fromRoot, toRoot, peaks, extension } = consistencyPath(
      this.#parts.memory.frontier.trees[treeVersion],
      from,
      to,
    );
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
    this.readyTrees();
    return publishedTile(this.#parts.memory.frontier.trees[treeVersion], this.#size, { level, index, width });
  }

  /**
   * The digests (`entry_hash`) of the entries at the leaf indexes [from, to), 32 bytes each, in a copy; undefined when the
   * log has not as many.
   */
  digests(from: number, to: number): Buffer | undefined {
    this.#parts.store.health.check();
    const isThere = Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from <= to && to <= this.#size;
    return isThere ? this.#reader.digests(from, to) : undefined;
  }

  /** Called before the trees, or the postings, are asked for anything. */
  protected readyTrees(): void {}
  protected readyPostings(): void {}

  /** A size that is on its way to disk must not be proved yet: its head might never exist. */
  #checkSize(treeSize: number): void {
    if (!(Number.isInteger(treeSize) && treeSize >= 1 && treeSize <= this.#size))
      throw new CairnlogError("invalid-input", `The tree size must lie between 1 and ${this.#size}.`);
  }

  /**
   * Re-derives everything from the stored payloads, as of now, beside live appends. Calls at one time share one run.
   * @param options.workers threads that it takes at most
   */
  verify(options: { readonly workers?: number } = {}): Promise<VerifyReport> {
    return this.#verification.all(options);
  }

  /** Like `verify`, for the newest entries alone: what the last process may have written when it failed. */
  verifyNewest(): Promise<VerifyReport> {
    return this.#verification.newest();
  }

  /**
   * Rebuilds derived rows and postings from the entries, in memory, and compares them with what this log holds: for
   * logs that fit there. `checkLog` does so for any that is closed.
   * @returns a sentence for each difference; empty when state is what the entries make it
   */
  stateDifferences(): string[] {
    const { store, memory, projection } = this.#parts;
    const rebuilt = new Replay(new EntryReader(store), projection);
    rebuilt.apply(0, this.#size);
    return [...stateDifferences(store, rebuilt), ...postingDifferences(memory.postings, rebuilt.terms)];
  }

  /** Closes what was opened to be read; a verification is broken off. Nothing keeps running. */
  async close(): Promise<void> {
    const { memory, store } = this.#parts;
    await closeAll(
      () => this.#verification.close(),
      () => memory.close(),
      () => store.close(),
    );
  }

  /** Breaks off the verification that runs. */
  protected stopVerifying(): void {
    this.#verification.stop();
  }
}
