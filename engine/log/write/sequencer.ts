/**
 * The sequencer: commands in, one at a time; batches out, each one transaction. It belongs to the thread of the log's
 * writer, like all that it keeps.
 *
 * A batch passes three stages, each of which holds one batch at a time: *formed* (commands run, entries hashed, trees
 * extended), *signed* (one head for every size), *written* (on disk). Where many commands wait, batch k+1 is formed while
 * k is signed and k−1 is written; where few do, they share the next batch when the disk is free. A command on an idle log
 * is formed at the end of the event-loop turn it came in. Only where a journal on other machines decides, a batch may
 * wait for others (`commit-delay.ts`).
 *
 * Every answer, a refusal too, is released when what it was based on is on disk, in order. If we crash here, nobody was
 * told anything that the disk does not hold. If signing or writing fails, the batch and all that were built on it fail
 * with it, and memory is read from disk again: a failed write may be there all the same.
 */
import { context, ROOT_CONTEXT } from "@opentelemetry/api";
import { CairnlogError } from "../../base/error.js";
import { Lock, tell } from "../../base/lock.js";
import { registeredTracer } from "../../base/tracing.js";
import type { ServerKey } from "../../crypto/keys/spki.js";
import type { Signer } from "../../crypto/signer/operator-key.js";
import type { TableName } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import type { Command } from "../state/commands.js";
import type { BatchReport, Committed, Payer, RowObserver } from "../state/executor.js";
import { CommittedRows } from "../state/rows.js";
import { CommitDelay } from "./commit-delay.js";
import { type FormedBatch, Forming, type FormingParts, type QueuedCommand } from "./forming.js";
import { WriteSpans } from "./spans.js";
import { answerBatch, Signing, Writing } from "./writing.js";

/** Commands waiting beyond which an append is refused at once. */
export const DEFAULT_QUEUE_LIMIT = 16_384;
/**
 * Commands that are worth a batch of their own while another is on its way to disk. Fewer wait until it is there and make
 * one larger batch: each one costs a transaction, and a transaction costs the waking of threads, whatever is in it.
 */
const EARLY_COMMANDS = 128;

/** Whether anything may be appended, as far as one condition goes: the role of a node, or its clock. */
export interface AppendCondition {
  /** Why nothing may be, now; null if it may. */
  readonly refusal: CairnlogError | null;
}

interface SequencerParts extends FormingParts {
  readonly store: Store;
  readonly signer: Signer;
  /** The signer's public key. */
  readonly operatorKey: ServerKey;
  readonly queueLimit: number;
  /** Absent where this process is the only one that may append. */
  readonly standing?: AppendCondition | undefined;
  /** Whether clock and log are believed. */
  readonly belief: AppendCondition;
  /** Whether other machines are asked about each commit. */
  readonly isRemote: boolean;
  /** Called when a batch that changes something is on disk, before anyone is told. */
  readonly published: (batch: FormedBatch) => void;
  /** Makes memory what the disk says, and the disk what the journal has decided. */
  readonly recover: () => Promise<void>;
}

export class Sequencer {
  readonly #parts: SequencerParts;
  readonly #committed: CommittedRows;
  readonly #forming: Forming;
  readonly #signing: Signing;
  readonly #writing: Writing;
  readonly #signingStage = new Lock();
  readonly #writingStage = new Lock();
  readonly #commitDelay: CommitDelay | null;
  /** Null without a tracer. */
  readonly #spans: WriteSpans | null;
  #queue: QueuedCommand[] = [];
  #scheduled = false;
  /** Set while a batch waits for others. */
  #waiting: NodeJS.Timeout | null = null;
  #closed = false;
  /** The batch that waits for the signing stage; while there is one, no other is formed. */
  #formed: FormedBatch | null = null;
  #inFlight = 0;
  /** The first failure; until recovery every batch in flight fails with it. */
  #failure: { readonly error: unknown } | null = null;
  /** Commands of batches that failed, to be answered when memory is what the disk says. */
  readonly #refused: { readonly waiting: QueuedCommand; readonly error: unknown }[] = [];
  #recovering = false;
  #idle: (() => void)[] = [];
  /** Why the newest batch could not be signed or written; null when it could. */
  lastFailure: CairnlogError | null = null;
  /** Called for every batch with entries that is on disk. */
  observer: ((report: BatchReport) => void) | null = null;

  constructor(parts: SequencerParts) {
    const { store, applier, signer, operatorKey, published } = parts;
    this.#parts = parts;
    this.#commitDelay = parts.isRemote ? new CommitDelay() : null;
    const tracer = registeredTracer();
    this.#spans = tracer && new WriteSpans(tracer);
    this.#committed = new CommittedRows(store);
    this.#forming = new Forming(parts, this.#committed);
    this.#signing = new Signing(signer, operatorKey);
    this.#writing = new Writing(applier, this.#committed, signer.fingerprint, published);
  }

  observeRows<T extends TableName>(table: T, observer: RowObserver<T>): void {
    this.#committed.observe(table, observer);
  }

  /** Commands accepted and not yet formed into a batch. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Batches that were written since the start. */
  get batches(): number {
    return this.#writing.batches;
  }

  /**
   * Runs `command` in its turn and calls `resolve` when what it did is on disk, or `reject` with what the command throws, or a
   * CairnlogError: `overloaded`, `closed`, `signer-unavailable`, `storage-failed`. Exactly one of them is called, once: before this returns if the command is
   * not accepted, otherwise in a later turn, in the order in which commands were accepted.
   */
  enqueue<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    resolve: (committed: Committed<Output>) => void,
    reject: (error: unknown) => void,
    payer: Payer | null = null,
  ): void {
    const refusal = this.#refusal();
    if (refusal) {
      reject(refusal);
      return;
    }
    const waiting = { command, input, resolve, reject, payer } as QueuedCommand;
    this.#queue.push(this.#spans ? this.#spans.command(waiting) : waiting);
    this.#schedule();
  }

  /** Why no command is accepted now; null if one is. */
  #refusal(): CairnlogError | null {
    if (this.#closed) return new CairnlogError("closed", "The log is closed.");
    const refusal = this.#parts.standing?.refusal;
    if (refusal) return refusal;
    if (this.#queue.length < this.#parts.queueLimit) return null;
    return new CairnlogError("overloaded", "Too many appends are waiting. Try again shortly.");
  }

  /** Refuses new commands and resolves when every accepted one has been answered. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.settled();
  }

  /** The rows on disk were changed by another writer. */
  forget(): void {
    this.#committed.clear();
    this.#forming.forget();
  }

  /** Resolves when every accepted command has been answered. */
  async settled(): Promise<void> {
    while (!this.isSettled) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Whether every accepted command has been answered. */
  get isSettled(): boolean {
    return this.#queue.length === 0 && this.#inFlight === 0 && !this.#recovering;
  }

  #schedule(): void {
    if (this.#scheduled || this.#formed || this.#recovering || !this.#queue.length) return;
    if (this.#inFlight && this.#queue.length < EARLY_COMMANDS) return;
    const wait = this.#commitDelay?.wait(this.#queue.length) ?? 0;
    if (wait > 0) {
      this.#waiting ??= setTimeout(() => {
        this.#waiting = null;
        this.#schedule();
      }, wait);
      return;
    }
    this.#scheduled = true;
    const form = () => {
      this.#scheduled = false;
      this.#form();
    };
    // The end of the turn: whatever else this turn of the event loop brings joins the batch. What follows from a batch is no
    // part of the trace of the command that came first.
    setImmediate(this.#spans ? context.bind(ROOT_CONTEXT, form) : form);
  }

  #form(): void {
    if (this.#formed || this.#recovering || !this.#queue.length) return;
    if (this.#failure) {
      void this.#recover();
      return;
    }
    const refusal = this.#parts.standing?.refusal ?? this.#parts.belief.refusal;
    if (refusal) {
      this.#refuseQueue(refusal);
      return;
    }
    try {
      this.#parts.store.checkRoom();
    } catch (error) {
      // Before anything is formed, so there is nothing to recover from. Reads go on, and so do appends when there is room.
      this.lastFailure = error as CairnlogError;
      this.#refuseQueue(error);
      return;
    }
    const batch = this.#forming.form(this.#queue, this.#parts.store.isTight);
    this.#queue = this.#queue.slice(batch.ran.length);
    this.#formed = batch;
    this.#inFlight++;
    void this.#carry(batch);
  }

  #refuseQueue(error: unknown): void {
    for (const { reject } of this.#queue.splice(0)) tell(reject, error);
    this.#tellIdle();
  }

  /** Takes a batch through the remaining stages. Never rejects. */
  async #carry(batch: FormedBatch): Promise<void> {
    const span = this.#spans ? this.#spans.batch(batch) : null;
    const leaveSigning = await this.#signingStage.enter();
    let leaveWriting = () => {};
    this.#formed = null;
    this.#schedule();
    try {
      this.#checkFailure();
      const started = performance.now();
      const signed = await (span ? span.stage("sign", () => this.#signing.sign(batch)) : this.#signing.sign(batch));
      const wasSigned = performance.now();
      // A signed batch stays in its stage until the disk is free. Were it to make room sooner, every turn of the event
      // loop would send another small batch to wait for a transaction of its own: 2.3 entries a commit instead of 30.
      leaveWriting = await this.#writingStage.enter();
      leaveSigning();
      this.#checkFailure();
      const written = performance.now();
      const writing = span
        ? span.stage("commit", () => this.#writing.write(batch, signed))
        : this.#writing.write(batch, signed);
      if (await writing) this.lastFailure = null;
      const took = performance.now() - written;
      this.#report(batch, (wasSigned - started) / 1000, took / 1000);
      this.#commitDelay?.answered(batch.ran.length, this.#queue.length, took);
      span?.end();
      answerBatch(batch, signed, this.#parts.signer.fingerprint);
    } catch (error) {
      span?.fail(error);
      this.#fail(batch, error);
    }
    this.#forming.drop(batch);
    this.#inFlight--;
    leaveSigning();
    leaveWriting();
    if (this.#failure) void this.#recover();
    this.#schedule();
    this.#tellIdle();
  }

  #report({ events, forming }: FormedBatch, signing: number, writing: number): void {
    if (events.length && this.observer) tell(this.observer, { entries: events.length, forming, signing, writing });
  }

  #checkFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }

  #fail(batch: FormedBatch, error: unknown): void {
    if (!this.#failure) {
      this.#failure = { error };
      this.lastFailure = error as CairnlogError;
    }
    for (const { waiting } of batch.ran) this.#refused.push({ waiting, error });
  }

  /**
   * Begins anew after a failure, when nothing is in flight any more. When that fails, too, everything that waits fails, and
   * the next command tries again.
   */
  async #recover(): Promise<void> {
    if (this.#inFlight || this.#recovering) return;
    this.#recovering = true;
    try {
      await this.#parts.recover();
      this.forget();
      this.#failure = null;
    } catch (cause) {
      const error = new CairnlogError("storage-failed", "The data directory cannot be read.", { cause });
      for (const { reject } of this.#queue.splice(0)) tell(reject, error);
    }
    this.#recovering = false;
    // Only now: a failed write may be there all the same, and whoever looks because of it must see that.
    for (const { waiting, error } of this.#refused.splice(0)) tell(waiting.reject, error);
    this.#schedule();
    this.#tellIdle();
  }

  #tellIdle(): void {
    if (this.isSettled) for (const resolve of this.#idle.splice(0)) resolve();
  }
}
