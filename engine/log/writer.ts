/**
 * The writer of a log: the one door through which it grows, and a view of it that shows each batch as soon as it is on disk.
 * A log has one, in one thread of one process, which owns all that runs ahead of the disk: the queue, the batches in flight,
 * the right edge of the trees, and the postings that no run holds yet.
 */

import { closeAll } from "../base/closing.js";
import { CairnlogError } from "../base/error.js";
import { tell } from "../base/lock.js";
import { importPublicKey, type ServerKey } from "../crypto/keys/spki.js";
import type { Signer } from "../crypto/signer/operator-key.js";
import type { Journal } from "../journal/ledger.js";
import type { JournalPosition } from "../store/changeset.js";
import type { WriterLock } from "../store/lmdb/writerlock.js";
import { FORMAT, type TableName } from "../store/schema/schema.js";
import type { Store } from "../store/store.js";
import { PAYLOAD_WITHHELD } from "../verify/events/withheld.js";
import type { TreeHead } from "../verify/tree/treehead.js";
import { Applier } from "./apply/applier.js";
import { LogMemory } from "./apply/memory.js";
import { checkEnd, REBUILD, STORED_NODES } from "./check/end.js";
import { Feed, type FeedMessage } from "./follow/feed.js";
import { frozenBy } from "./operator/entries.js";
import { Operators } from "./operator/operators.js";
import { type Frontier, SIGNING_VERSION } from "./read/frontier.js";
import { type Clock, type ClockGuard, checkMoment, formatTimestamp } from "./state/clock.js";
import { type Command, takeHeadTime } from "./state/commands.js";
import type { SecondaryDigests } from "./state/entry.js";
import {
  appendBy,
  type BatchReport,
  type BudgetLimits,
  type Committed,
  type Payer,
  type Receipt,
  type RowObserver,
  type Writer,
} from "./state/executor.js";
import type { EventInput } from "./state/projection.js";
import { freshHead, rootAt } from "./tree/proofs.js";
import { hex } from "./tree/tree.js";
import { LogView, type ViewParts } from "./view/view.js";
import type { FormedBatch } from "./write/forming.js";
import { type AppendCondition, Sequencer } from "./write/sequencer.js";

interface WriterParts extends Omit<ViewParts, "memory"> {
  readonly store: Store;
  /** PEM of the signer's public key. */
  readonly operatorKey: string;
  /** Released when the log is closed. */
  readonly lock: WriterLock;
  readonly journal: Journal;
  readonly signer: Signer;
  readonly clock: Clock;
  /** Looks whether the clock may be wrong. Null where a caller gave the clock. */
  readonly clockGuard: ClockGuard | null;
  readonly secondaryDigests: SecondaryDigests | null;
  /** Commands that may wait. */
  readonly queueLimit: number;
  readonly budgets: BudgetLimits;
  /** Absent where this process is the only one that may append. */
  readonly standing?: AppendCondition | undefined;
}

/** Opened by `openLog`. */
export class LogWriter extends LogView implements Writer {
  readonly #parts: WriterParts;
  readonly #operator: ServerKey;
  readonly #frontier: Frontier;
  readonly #applier: Applier;
  readonly #sequencer: Sequencer;
  readonly #memory: LogMemory;
  #feed: Feed | null = null;
  #refuted: CairnlogError | null = null;

  /** To be recovered and begun before anything else. */
  constructor(parts: WriterParts) {
    const { store, journal, projection } = parts;
    const operator = importPublicKey(parts.operatorKey);
    const memory = new LogMemory(store, projection, Operators.of(operator));
    super({ ...parts, memory });
    this.#parts = parts;
    this.#operator = operator;
    this.#frontier = memory.frontier;
    this.#memory = memory;
    this.#applier = new Applier({ store, journal, projection, memory });
    const refusal = () => this.refuted ?? this.clockRefusal;
    this.#sequencer = new Sequencer({
      ...parts,
      applier: this.#applier,
      operatorKey: this.#operator,
      belief: {
        get refusal() {
          return refusal();
        },
      },
      isRemote: journal.isRemote ?? false,
      published: (batch) => this.#published(batch),
      recover: () => this.recover(),
    });
  }

  /**
   * What the journal has decided beyond the disk is applied, and memory becomes what the disk says. A node that may not
   * append applies it later (`follow`), since nobody waits for it.
   */
  async recover(): Promise<void> {
    await this.#applier.fileMissing();
    this.#applier.restore();
    if (!this.#parts.standing?.refusal) {
      await this.#applier.catchUp();
      this.#applier.restore();
    }
    // A retired key must sign nothing more, whoever retired it.
    this.#applier.operators.checkCurrent(this.#parts.signer.fingerprint);
    checkEnd(this.#parts.store, this.#frontier, this.#applier.operators);
    this.showDisk();
    this.#feed?.restored();
  }

  /**
   * Applies and shows what the journal has decided beyond the disk. Only for a node that may not append (`standing`), one
   * call at a time.
   * @throws CairnlogError `storage-failed`; `corrupt-log` for a record that does not verify. Then memory is what the disk says
   */
  async follow(): Promise<void> {
    await this.#sequencer.settled();
    try {
      await this.#applier.adopt();
      await this.#applier.catchUp((records, made) => {
        this.#sequencer.forget();
        this.showDisk(made.rows.flatMap(({ table, key }) => (table === "withheld" ? [key as number] : [])));
        this.#feed?.applied(records, made, this.frozen);
      });
    } catch (error) {
      this.#applier.restore();
      this.showDisk();
      this.#feed?.restored();
      throw error;
    }
  }

  /** Whether every accepted command has been answered. */
  get isSettled(): boolean {
    return this.#sequencer.isSettled;
  }

  /** Resolves when every accepted command has been answered. */
  settled(): Promise<void> {
    return this.#sequencer.settled();
  }

  /** The newest record of the journal that is on disk here. */
  get position(): JournalPosition {
    return this.#applier.position;
  }

  #published(batch: FormedBatch): void {
    this.show(batch.firstIndex + batch.events.length, frozenBy(batch.events.at(-1)));
    if (batch.events.some(({ event_type }) => event_type === PAYLOAD_WITHHELD))
      this.withheld.take([...batch.layer.changes("withheld")].map(({ key }) => key));
    this.#feed?.written(batch);
  }

  /**
   * Has `send` called with everything that followers in other threads must be told (`follow/feed.ts`), from now on, before
   * the writer answers the commands of a batch. It must not throw, and be quick.
   */
  feed(send: (message: FeedMessage) => void): void {
    const feed = new Feed(send, this.#memory);
    this.#feed = feed;
    this.observeFailure((failure) => feed.failed(failure));
  }

  /** Makes the first record of a log that has none: what the log is. @param name which it takes then */
  async begin(name?: string): Promise<void> {
    const { store, signer, clock } = this.#parts;
    if (store.get("meta", "log")) return;
    const now = clock();
    checkMoment(now);
    const created_at = formatTimestamp(now);
    const row = { format: FORMAT, key_id: signer.fingerprint, created_at, ...(name !== undefined && { name }) };
    await this.#applier.commitRows([{ table: "meta", key: "log", row }]);
  }

  /** Begins to look whether the clock may be wrong. After `recover`. */
  watchClock(): void {
    this.#parts.clockGuard?.start(this.#frontier.lastTimestamp);
  }

  /** Has `observer` called when the clock is no longer believed, and with null when it is again. */
  observeClock(observer: (refusal: CairnlogError | null) => void): void {
    const { clockGuard } = this.#parts;
    if (!clockGuard) return;
    clockGuard.observer = observer;
    if (clockGuard.refusal) tell(observer, clockGuard.refusal);
  }

  /** Why the clock is not believed, so that nothing is appended; null if it is. */
  get clockRefusal(): CairnlogError | null {
    return this.#parts.clockGuard?.refusal ?? null;
  }

  /** Appends nothing any more: somebody has shown that this is not the newest state of the log. */
  refute(error: CairnlogError): void {
    this.#refuted ??= error;
  }

  /** What `refute` was called with; null while nobody has shown such a thing. */
  get refuted(): CairnlogError | null {
    return this.#refuted;
  }

  /** By how many seconds the newest time on the log is ahead of the clock; 0 if it is not. */
  get secondsAhead(): number {
    return Math.max(0, this.#frontier.lastTimestamp - this.#parts.clock()) / 1e6;
  }

  append(event: EventInput): Promise<Receipt>;
  append(events: readonly EventInput[]): Promise<readonly Receipt[]>;
  append(input: EventInput | readonly EventInput[]): Promise<Receipt | readonly Receipt[]> {
    return appendBy(this, input);
  }

  execute<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    payer: Payer | null = null,
  ): Promise<Committed<Output>> {
    return new Promise((resolve, reject) => this.enqueue(command, input, resolve, reject, payer));
  }

  enqueue<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    resolve: (committed: Committed<Output>) => void,
    reject: (error: unknown) => void,
    payer: Payer | null = null,
  ): void {
    this.#sequencer.enqueue(command, input, resolve, reject, payer);
  }

  /**
   * Writes a row that means nothing, and waits until it is on disk: whether the log can be written now.
   * @throws CairnlogError as `execute` does
   */
  async tryWriting(): Promise<void> {
    await this.execute(takeHeadTime, null);
  }

  async signHead(): Promise<TreeHead> {
    if (!this.size) throw new CairnlogError("precondition-failed", "The log is empty; there is no tree to sign.");
    const { value: now } = await this.execute(takeHeadTime, null);
    const { size } = this;
    const stored = this.treeHead(size);
    const tree = this.#frontier.trees[SIGNING_VERSION];
    // Nodes that were read from disk may be damaged.
    if (stored?.tree_version === SIGNING_VERSION && hex(rootAt(tree, size)) !== stored.root_hash)
      throw new CairnlogError("corrupt-log", `${STORED_NODES} ${REBUILD}`);
    // The log may have grown since the command. Canonical timestamps sort as text.
    const timestamp = [now, stored?.timestamp ?? now].sort().at(-1)!;
    return freshHead(tree, size, timestamp, this.#parts.signer, this.#operator);
  }

  get queued(): number {
    return this.#sequencer.queued;
  }

  get batches(): number {
    return this.#sequencer.batches;
  }

  /** Why the newest batch could not be signed or written; null when it could. */
  get lastFailure(): CairnlogError | null {
    return this.#sequencer.lastFailure;
  }

  /** Has `observer` called for every batch with entries that is on disk. It must be quick. */
  observeBatches(observer: (report: BatchReport) => void): void {
    this.#sequencer.observer = observer;
  }

  observeRows<T extends TableName>(table: T, observer: RowObserver<T>): void {
    this.#sequencer.observeRows(table, observer);
  }

  /** Answers every append that was accepted, then closes; a verification is broken off. Nothing keeps running. */
  override async close(): Promise<void> {
    this.stopVerifying();
    await closeAll(
      () => this.#sequencer.close(),
      () => this.#parts.clockGuard?.stop(),
      () => super.close(),
      () => this.#parts.lock.release(),
    );
  }
}
