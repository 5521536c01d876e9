/**
 * The sequencer: commands in, one at a time; batches out, each one transaction.
 *
 * A batch passes three stages, each of which holds one batch at a time: *formed* (commands run, entries hashed, trees
 * extended), *signed* (one head for every size), *written* (on disk). Where many commands wait, batch k+1 is formed while
 * k is signed and k−1 is written; where few do, they share the next batch when the disk is free. There is no timer: a
 * command on an idle log is formed at the end of the event-loop turn it came in.
 *
 * Every answer, a refusal too, is released when what it was based on is on disk, in order. If we crash here, nobody was
 * told anything that the disk does not hold. If signing or writing fails, the batch and all that were built on it fail
 * with it, and memory is read from disk again: a failed write may be there all the same.
 */
import type { ServerKey } from "../../crypto/keys/spki.js";
import { CairnlogError } from "../../error.js";
import { BATCH_BYTES, BATCH_EVENTS, type BatchHeads, packBatch } from "../../store/batch.js";
import { Layer, type TileChange } from "../../store/changeset.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { HASH, type TableName } from "../../store/schema.js";
import type { Store } from "../../store/store.js";
import { type TreeHead, treeHeadText } from "../../verify/tree/treehead.js";
import type { Applier } from "../apply/applier.js";
import { type Clock, formatTimestamp } from "../clock.js";
import { SIGNING_VERSION } from "../tree/frontier.js";
import type { Command } from "./commands.js";
import { CommittedRows, type RowObserver } from "./committed.js";
import { type FinishedEntry, finishEntry, type SecondaryDigests } from "./entry.js";
import type { BatchReport, Committed, Receipt } from "./executor.js";
import { addDigestTerm, addLogTerms, type LoggedEvent, type Projection } from "./projection.js";
import { type Signer, signatures } from "./signer.js";
import { BatchTransaction, type Draft } from "./transaction.js";

/** Commands waiting beyond which an append is refused at once. */
export const DEFAULT_QUEUE_LIMIT = 16_384;
/**
 * Commands that are worth a batch of their own while another is on its way to disk. Fewer wait until it is there and make
 * one larger batch: each one costs a transaction, and a transaction costs the waking of threads, whatever is in it.
 */
const EARLY_COMMANDS = 128;

interface Waiting {
  readonly command: Command<unknown, unknown>;
  readonly input: unknown;
  readonly resolve: (committed: Committed<unknown>) => void;
  readonly reject: (error: unknown) => void;
}

/** A command that has run: how it ends once its batch is on disk. */
interface Ran {
  readonly waiting: Waiting;
  readonly outcome: { readonly value: unknown } | { readonly error: unknown };
  /** Its events are numbers [from, to) of the batch. */
  readonly from: number;
  readonly to: number;
}

interface FormedBatch {
  readonly firstIndex: number;
  readonly layer: Layer;
  readonly ran: readonly Ran[];
  readonly events: readonly LoggedEvent[];
  readonly entries: readonly FinishedEntry[];
  readonly digests: Buffer;
  /** Root of every new size, 32 bytes each. */
  readonly roots: Uint8Array;
  readonly headTimestamp: number;
  readonly tiles: readonly TileChange[];
  /** Seconds it took to form. */
  readonly forming: number;
  /** Settle, without ever rejecting, when the batch has left the stage. */
  readonly leftSigning: Promise<void>;
  readonly finished: Promise<void>;
}

export interface SequencerParts {
  readonly store: Store;
  readonly applier: Applier;
  readonly signer: Signer;
  /** The signer's public key. */
  readonly operatorKey: ServerKey;
  readonly projection: Projection;
  readonly clock: Clock;
  readonly secondaryDigests: SecondaryDigests | null;
  readonly queueLimit: number;
  /** Called when entries up to `size` are on disk, before anyone is told. */
  readonly published: (size: number) => void;
  /** Makes memory what the disk says, and the disk what the journal has decided. */
  readonly recover: () => Promise<void>;
}

export class Sequencer {
  readonly #parts: SequencerParts;
  readonly #committed: CommittedRows;
  #queue: Waiting[] = [];
  #scheduled = false;
  #closed = false;
  /** The batch that waits for the signing stage; while there is one, no other is formed. */
  #formed: FormedBatch | null = null;
  /** The newest batch in flight. */
  #last: FormedBatch | null = null;
  /** Layers of the batches in flight, oldest first. */
  #layers: Layer[] = [];
  /** Empty: the memory of layers that are done with is used again. */
  readonly #spareTerms: TermTable[] = [];
  #inFlight = 0;
  /** Set by the first failure; until recovery every batch in flight fails with it. */
  #failure: unknown;
  #failed = false;
  /** Commands of batches that failed, to be answered when memory is what the disk says. */
  readonly #refused: { readonly waiting: Waiting; readonly error: unknown }[] = [];
  #recovering = false;
  #idle: (() => void)[] = [];
  /** Batches that were written since the start. */
  batches = 0;
  /** Why the newest batch could not be signed or written; null when it could. */
  lastFailure: CairnlogError | null = null;
  /** Called for every batch with entries that is on disk. Must not throw. */
  observer: ((report: BatchReport) => void) | null = null;

  constructor(parts: SequencerParts) {
    this.#parts = parts;
    this.#committed = new CommittedRows(parts.store);
  }

  observeRows<T extends TableName>(table: T, observer: RowObserver<T>): void {
    this.#committed.observe(table, observer);
  }

  /** Commands accepted and not yet formed into a batch. */
  get queued(): number {
    return this.#queue.length;
  }

  /**
   * Runs `command` in its turn and resolves when what it did is on disk.
   * @throws CairnlogError what the command throws; `overloaded`, `closed`, `signer-unavailable`, `storage-failed`
   */
  submit<Input, Output>(command: Command<Input, Output>, input: Input): Promise<Committed<Output>> {
    if (this.#closed) return Promise.reject(new CairnlogError("closed", "The log is closed."));
    if (this.#queue.length >= this.#parts.queueLimit)
      return Promise.reject(new CairnlogError("overloaded", "Too many appends are waiting. Try again shortly."));
    return new Promise((resolve, reject) => {
      this.#queue.push({ command, input, resolve, reject } as Waiting);
      this.#schedule();
    });
  }

  /** Refuses new commands and resolves when every accepted one has been answered. */
  async close(): Promise<void> {
    this.#closed = true;
    while (this.#isBusy) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  get #isBusy(): boolean {
    return this.#queue.length > 0 || this.#inFlight > 0 || this.#recovering;
  }

  #schedule(): void {
    if (this.#scheduled || this.#formed || this.#recovering || !this.#queue.length) return;
    if (this.#inFlight && this.#queue.length < EARLY_COMMANDS) return;
    this.#scheduled = true;
    // The end of the turn: whatever else this turn of the event loop brings joins the batch.
    setImmediate(() => {
      this.#scheduled = false;
      this.#form();
    });
  }

  #form(): void {
    if (this.#formed || this.#recovering || !this.#queue.length) return;
    if (this.#failed) {
      void this.#recover();
      return;
    }
    const started = performance.now();
    const { frontier, postings } = this.#parts.applier;
    const layer = new Layer(this.#spareTerms.pop());
    const firstIndex = frontier.size;
    const { projection } = this.#parts;
    const parts = { store: this.#committed, postings, projection };
    const transaction = new BatchTransaction(parts, this.#layers, layer, frontier);
    const { drafts } = transaction;
    const ran: Ran[] = [];
    const queue = this.#queue;
    let taken = 0;
    while (taken < queue.length && drafts.length < BATCH_EVENTS && transaction.bytes < BATCH_BYTES) {
      const waiting = queue[taken++]!;
      const from = drafts.length;
      const now = Math.max(this.#parts.clock(), frontier.lastTimestamp);
      let outcome: Ran["outcome"];
      try {
        outcome = { value: transaction.run(waiting.command, waiting.input, formatTimestamp(now)) };
        frontier.lastTimestamp = now;
      } catch (error) {
        outcome = { error };
      }
      ran.push({ waiting, outcome, from, to: drafts.length });
    }
    this.#queue = queue.slice(taken);
    const finished = this.#finish(firstIndex, layer, ran, drafts);
    this.#carry({ ...finished, forming: (performance.now() - started) / 1000 });
  }

  /** Hashes and links the entries of a batch and extends the trees by them. */
  #finish(
    firstIndex: number,
    layer: Layer,
    ran: readonly Ran[],
    drafts: readonly Draft[],
  ): Omit<FormedBatch, "forming" | "leftSigning" | "finished"> {
    const { applier, secondaryDigests, clock } = this.#parts;
    const { frontier } = applier;
    const digests = Buffer.allocUnsafe(HASH * drafts.length);
    const entries = drafts.map(({ event, canonicalPayload }, i) => {
      const { id, timestamp, event_type } = event;
      const entry = finishEntry({ id, timestamp, event_type, canonicalPayload }, frontier.lastHash, secondaryDigests);
      frontier.lastHash = entry.entryHash;
      frontier.lastId = id;
      digests.write(entry.entryHash, HASH * i, "hex");
      addLogTerms(event, layer.terms);
      for (const digest of entry.digests) addDigestTerm(digest, event.leafIndex, layer.terms);
      return entry;
    });
    const { roots, tiles } = drafts.length ? frontier.extend(digests) : { roots: digests, tiles: [] };
    const headTimestamp = Math.max(clock(), frontier.lastTimestamp);
    if (drafts.length) frontier.lastTimestamp = headTimestamp;
    return {
      firstIndex,
      layer,
      ran,
      events: drafts.map(({ event }) => event),
      entries,
      digests,
      roots,
      headTimestamp,
      tiles,
    };
  }

  /** Takes a batch through the remaining stages. */
  #carry(formed: Omit<FormedBatch, "leftSigning" | "finished">): void {
    const previous = this.#last;
    let leaveSigning = () => {};
    const leftSigning = new Promise<void>((resolve) => {
      leaveSigning = resolve;
    });
    let finish = () => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const batch: FormedBatch = { ...formed, leftSigning, finished };
    this.#formed = this.#last = batch;
    this.#layers.push(batch.layer);
    this.#inFlight++;

    const pass = async () => {
      await previous?.leftSigning;
      this.#formed = null;
      this.#schedule();
      this.#checkFailure();
      const started = performance.now();
      const signed = await this.#sign(batch);
      const wasSigned = performance.now();
      // A signed batch stays in its stage until the disk is free. Were it to make room sooner, every turn of the event
      // loop would send another small batch to wait for a transaction of its own: 2.3 entries a commit instead of 30.
      await previous?.finished;
      leaveSigning();
      this.#checkFailure();
      const written = performance.now();
      await this.#write(batch, signed);
      this.#report(batch, (wasSigned - started) / 1000, (performance.now() - written) / 1000);
      return signed;
    };
    pass()
      .then(
        (signed) => this.#release(batch, signed),
        (error) => {
          if (!this.#failed) {
            this.#failed = true;
            this.#failure = this.lastFailure = error;
          }
          for (const { waiting } of batch.ran) this.#refused.push({ waiting, error });
        },
      )
      .finally(() => {
        this.#layers = this.#layers.filter((layer) => layer !== batch.layer);
        batch.layer.terms.clear();
        this.#spareTerms.push(batch.layer.terms);
        this.#inFlight--;
        if (this.#formed === batch) this.#formed = null;
        if (this.#last === batch) this.#last = null;
        leaveSigning();
        finish();
        if (this.#failed) void this.#recover();
        this.#schedule();
        this.#tellIdle();
      });
  }

  #report({ entries, forming }: FormedBatch, signing: number, writing: number): void {
    if (entries.length) this.observer?.({ entries: entries.length, forming, signing, writing });
  }

  #checkFailure(): void {
    if (this.#failed) throw this.#failure;
  }

  /** @returns the signature of each head */
  async #sign({ entries, roots, headTimestamp, firstIndex }: FormedBatch): Promise<readonly Uint8Array[]> {
    if (!entries.length) return [];
    const timestamp = formatTimestamp(headTimestamp);
    const messages = entries.map((_, i) =>
      Buffer.from(treeHeadText(rootHex(roots, i), firstIndex + i + 1, timestamp), "latin1"),
    );
    try {
      return await signatures(this.#parts.signer, this.#parts.operatorKey, messages);
    } catch (cause) {
      throw new CairnlogError("signer-unavailable", "The operator key cannot sign, so nothing was appended.", {
        cause,
      });
    }
  }

  async #write(batch: FormedBatch, signatures: readonly Uint8Array[]): Promise<void> {
    const { firstIndex, tiles, layer } = batch;
    const size = firstIndex + batch.events.length;
    const { recorded, derived } = batch.layer.split();
    const packed = this.#pack(batch, signatures);
    if (!packed && !recorded.length && !derived.length) return;
    const made = { rows: derived, tiles, terms: layer.terms, size };
    await this.#parts.applier.commit({ firstIndex, batch: packed, rows: recorded }, made);
    this.batches++;
    this.lastFailure = null;
    if (packed) this.#parts.published(size);
    this.#committed.written(batch.layer);
  }

  #pack({ entries, digests, roots, headTimestamp }: FormedBatch, signatures: readonly Uint8Array[]): Buffer | null {
    if (!entries.length) return null;
    const heads: BatchHeads = {
      treeVersion: SIGNING_VERSION,
      keyId: Buffer.from(this.#parts.signer.fingerprint.slice("sha256:".length), "hex"),
      heads: signatures.map((signature, i) => ({
        root: roots.subarray(HASH * i, HASH * (i + 1)),
        timestamp: headTimestamp,
        signature,
      })),
    };
    return packBatch(
      entries.map(({ json }) => json),
      digests,
      heads,
    );
  }

  #release(batch: FormedBatch, signatures: readonly Uint8Array[]): void {
    const timestamp = formatTimestamp(batch.headTimestamp);
    const head = (i: number): TreeHead => ({
      tree_size: batch.firstIndex + i + 1,
      root_hash: rootHex(batch.roots, i),
      signature: base64(signatures[i]!),
      timestamp,
      key_id: this.#parts.signer.fingerprint,
      tree_version: SIGNING_VERSION,
    });
    for (const { waiting, outcome, from, to } of batch.ran) {
      if ("error" in outcome) {
        waiting.reject(outcome.error);
        continue;
      }
      const receipts: Receipt[] = [];
      for (let i = from; i < to; i++)
        receipts.push({
          log_entry_id: batch.events[i]!.id,
          leaf_index: batch.events[i]!.leafIndex,
          entry_hash: batch.entries[i]!.entryHash,
          timestamp: batch.events[i]!.timestamp,
          sth: head(i),
          json: batch.entries[i]!.json,
        });
      waiting.resolve({ value: outcome.value, receipts });
    }
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
      this.#committed.clear();
      this.#failed = false;
      this.#failure = undefined;
    } catch (cause) {
      const error = new CairnlogError("storage-failed", "The data directory cannot be read.", { cause });
      for (const waiting of this.#queue.splice(0)) waiting.reject(error);
    }
    this.#recovering = false;
    // Only now: a failed write may be there all the same, and whoever looks because of it must see that.
    for (const { waiting, error } of this.#refused.splice(0)) waiting.reject(error);
    this.#schedule();
    this.#tellIdle();
  }

  #tellIdle(): void {
    if (!this.#isBusy) for (const resolve of this.#idle.splice(0)) resolve();
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
const base64 = (bytes: Uint8Array): string => bufferOf(bytes).toString("base64");
/** Hex of root number `i`. */
const rootHex = (roots: Uint8Array, i: number): string => bufferOf(roots).toString("hex", HASH * i, HASH * (i + 1));
