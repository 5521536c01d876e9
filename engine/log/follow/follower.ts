/**
 * A reader of a log that another thread of this process writes. It shows each batch as soon as the writer has told it
 * (`feed.ts`), and hands commands to the writer. All of its memory belongs to the thread that opened it.
 */

import { CairnlogError } from "../../base/error.js";
import { importPublicKey } from "../../crypto/keys/spki.js";
import { FLUSH_ENTRIES } from "../../store/postings/postings.js";
import { HASH, type TableName } from "../../store/schema/schema.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { LogMemory } from "../apply/memory.js";
import { Operators } from "../operator/operators.js";
import type { Command } from "../state/commands.js";
import {
  appendBy,
  type Committed,
  type Payer,
  type Receipt,
  type RowObserver,
  type Writer,
} from "../state/executor.js";
import type { EventInput } from "../state/projection.js";
import { LogView, type ViewParts } from "../view/view.js";
import type { ChangedRow, FeedMessage, WatchedTable } from "./feed.js";

/** Leaves that may wait to be added to the trees. With more, the trees are read from disk, which costs the same at any size. */
const MAX_PENDING = 4096;

/**
 * Entries whose postings may wait to be added. A run of `FLUSH_ENTRIES` takes less time to make than half as many entries to come; if
 * it takes longer, or cannot be made, the oldest are added as new ones come.
 */
const MAX_UNTAKEN = 1.5 * FLUSH_ENTRIES;

/** Terms of new entries, as the writer has told them. */
type Terms = Pick<FeedMessage & { kind: "batch" }, "firstIndex" | "size" | "terms">;

/** What the writer has told of postings: terms, or that those of all entries before are on their way into a run. */
type Untaken = Terms | { readonly frozenAt: number };

/** The way to the writer. */
export interface WriterLink {
  enqueue: Writer["enqueue"];
  signHead(): Promise<TreeHead>;
  verify(): ReturnType<LogView["verify"]>;
}

interface FollowerParts extends Omit<ViewParts, "memory"> {
  /** PEM of an operator key of the log. */
  readonly operatorKey: string;
  readonly writer: WriterLink;
}

/** Opened by `openLogFollower`. */
export class LogFollower extends LogView implements Writer {
  readonly #parts: FollowerParts;
  readonly #memory: LogMemory;
  readonly #observers = new Map<TableName, RowObserver<never>>();
  /** Digests of the newest leaves, which the trees do not have yet: they are added when a proof is asked for. */
  #pending: { readonly firstIndex: number; readonly digests: Uint8Array }[] = [];
  #pendingLeaves = 0;
  /**
   * What the writer has told of postings, and this thread has not added: terms of entries, and that those before are on
   * their way into a run. To add them costs 1 µs an entry, and where only entries are written nobody asks for them before
   * they are in a run. They are of at most `MAX_UNTAKEN` entries, because the first question for postings adds all of them.
   */
  #untaken: Untaken[] = [];
  /** The entry below which postings are on their way into a run, if the writer has told that before the batch that ends there. */
  #frozenAhead: number | null = null;
  readonly queued = 0;
  batches = 0;

  constructor(parts: FollowerParts) {
    const { store, projection, operatorKey } = parts;
    const memory = new LogMemory(store, projection, Operators.of(importPublicKey(operatorKey)), true);
    super({ ...parts, memory });
    this.#parts = parts;
    this.#memory = memory;
    this.#restore();
    // Entries that are in no run are read and parsed one by one. This thread serves nobody yet; later, somebody would wait.
    this.readyPostings();
  }

  /** Shows what the writer has told. To be called with every message, in order. */
  follow(message: FeedMessage): void {
    switch (message.kind) {
      case "batch":
        this.#take(message);
        return;
      case "frozen":
        if (message.to > this.size) this.#frozenAhead = message.to;
        else this.#await({ frozenAt: message.to });
        return;
      case "runs":
        this.#takeRuns();
        return;
      case "restored":
        this.#restore();
        for (const observer of this.#observers.values()) observer(null);
        return;
      case "failed":
        this.#parts.store.health.end(new CairnlogError("storage-failed", message.message));
    }
  }

  #take({ firstIndex, size, digests, terms, rows, end }: FeedMessage & { kind: "batch" }): void {
    this.#parts.store.refresh();
    this.batches++;
    // What was on disk when this log was opened is told once more.
    if (size > this.size) {
      if (firstIndex > this.size) {
        this.#restore();
        return;
      }
      this.#await({ firstIndex, size, terms });
      if (size === this.#frozenAhead) {
        this.#await({ frozenAt: size });
        this.#frozenAhead = null;
      }
      this.#pending.push({ firstIndex, digests });
      this.#pendingLeaves += size - firstIndex;
      if (this.#pendingLeaves > MAX_PENDING) this.#pending = [];
      this.show(size, end);
      this.#takeEarly();
    }
    for (const row of rows) this.#changed(row);
  }

  #changed({ table, key }: ChangedRow): void {
    if (table === "anchorTotals") this.anchors.restore();
    if (table === "withheld") this.withheld.take([key]);
    const change = { table, key, row: this.#parts.store.get(table, key) };
    (this.#observers.get(table) as RowObserver<WatchedTable> | undefined)?.([change]);
  }

  #takeRuns(): void {
    const { postings } = this.#memory;
    this.#parts.store.pinPostings();
    postings.takeRuns();
    this.#memory.titles.takeRuns();
    // What is in a run now need not be added any more.
    this.#untaken = this.#untaken.filter((told) => !this.#isInRuns(told));
  }

  /** Runs are read from the disk, which may be ahead of what the writer has told: then they hold these postings already. */
  #await(told: Untaken): void {
    if (!this.#isInRuns(told)) this.#untaken.push(told);
  }

  #isInRuns(told: Untaken): boolean {
    return ("size" in told ? told.size : told.frozenAt) <= this.#memory.postings.runsEnd;
  }

  protected override readyPostings(): void {
    while (this.#untaken.length) this.#takeOldest();
    this.#memory.addMissing(this.size);
  }

  /** Adds the oldest postings while there are too many: when a run takes long to make, or cannot be made. */
  #takeEarly(): void {
    const isFull = () => {
      const oldest = this.#untaken.find((told) => "size" in told);
      return oldest && this.size - oldest.firstIndex > MAX_UNTAKEN;
    };
    while (isFull()) this.#takeOldest();
  }

  #takeOldest(): void {
    const { postings } = this.#memory;
    const told = this.#untaken.shift()!;
    if ("size" in told) {
      this.#memory.addMissing(told.firstIndex);
      postings.addPacked(told.size, told.terms, told.firstIndex);
    } else if (postings.size === told.frozenAt) {
      // After a start in the middle of a run's making the postings of this thread are parted nowhere; they go as a whole.
      postings.freeze();
    }
  }

  #restore(): void {
    const { store } = this.#parts;
    store.refresh();
    store.pinPostings();
    this.#memory.postings.reload();
    this.#memory.titles.takeRuns();
    this.#memory.restore();
    [this.#pending, this.#pendingLeaves, this.#untaken, this.#frozenAhead] = [[], 0, [], null];
    this.showDisk();
  }

  /** The trees get the leaves that have come since they were last asked. */
  protected override readyTrees(): void {
    if (!this.#pendingLeaves) return;
    const { frontier } = this.#memory;
    if (this.#pendingLeaves > MAX_PENDING) frontier.restore();
    else
      for (const { firstIndex, digests } of this.#pending) {
        // The disk, from which the trees were read, may have been ahead of what the writer had told.
        const known = frontier.size - firstIndex;
        if (HASH * known >= digests.length) continue;
        const { tiles } = frontier.extend(digests.subarray(HASH * known), null);
        frontier.written(tiles);
      }
    [this.#pending, this.#pendingLeaves] = [[], 0];
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
    this.#parts.writer.enqueue(command, input, resolve, reject, payer);
  }

  signHead(): Promise<TreeHead> {
    return this.#parts.writer.signHead();
  }

  /** The writer verifies, so that those who ask at any front end share one run. */
  override verify(): ReturnType<LogView["verify"]> {
    return this.#parts.writer.verify();
  }

  /** Of the tables that the writer names (`feed.ts`). */
  observeRows<T extends TableName>(table: T, observer: RowObserver<T>): void {
    this.#observers.set(table, observer as RowObserver<never>);
  }
}
