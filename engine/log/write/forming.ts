/**
 * First stage: commands in, a formed batch out. Runs the commands, hashes and links their entries, extends the trees. All of
 * it is synchronous, and all of it is memory: if we crash here, nothing has happened.
 */

import type { SpanContext } from "@opentelemetry/api";
import { CairnlogError } from "../../base/error.js";
import { rowLine } from "../../journal/rows.js";
import { Layer, type RowChange, type TileChange } from "../../store/changeset.js";
import type { Postings } from "../../store/postings/postings.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { BATCH_BYTES, BATCH_EVENTS, type JoinedEntries, joinEntries } from "../../store/schema/batch.js";
import { HASH, isRecorded, type RecordedTable } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import { canonicalJsonWithin, MAX_DEPTH } from "../../verify/json/canonical.js";
import type { Applier } from "../apply/applier.js";
import { MAX_ENTRY_BYTES } from "../apply/entry.js";
import { applyWithholding, checkShard, type Frozen, frozenBy, logFrozen } from "../operator/entries.js";
import { OPERATOR_ROTATION } from "../operator/operators.js";
import type { Frontier } from "../read/frontier.js";
import { type Clock, checkMoment, formatTimestamp } from "../state/clock.js";
import type { Command, Transaction } from "../state/commands.js";
import { finishEntry, type SecondaryDigests } from "../state/entry.js";
import type { BudgetLimits, Committed, Payer } from "../state/executor.js";
import {
  addDigestTerm,
  eventTerms,
  type LoggedEvent,
  type PreparedEvent,
  type Projection,
} from "../state/projection.js";
import { type CommittedRows, LayeredState } from "../state/rows.js";
import { Budgets } from "./budgets.js";

export interface FormingParts {
  readonly applier: Applier;
  readonly projection: Projection;
  readonly clock: Clock;
  readonly secondaryDigests: SecondaryDigests | null;
  readonly budgets: BudgetLimits;
}

export class Forming {
  readonly #parts: FormingParts;
  readonly #committed: CommittedRows;
  readonly #budgets: Budgets;
  /** Layers of the batches in flight, oldest first. */
  #layers: Layer[] = [];
  /** Empty: the memory of layers that are done with is used again. */
  readonly #spareTerms: TermTable[] = [];

  constructor(parts: FormingParts, committed: CommittedRows) {
    this.#parts = parts;
    this.#committed = committed;
    this.#budgets = new Budgets(parts.budgets);
  }

  /**
   * Takes commands from the front of `queue` until the batch is full. Its rows stand before those on disk until `drop`.
   * @param isTight whether the disk has room only for those whom an anchor reaches
   * @returns the batch, whose `ran` are the commands that were taken
   */
  form(queue: readonly QueuedCommand[], isTight: boolean): FormedBatch {
    const started = performance.now();
    const { applier, clock, projection } = this.#parts;
    const { frontier, postings } = applier;
    const layer = new Layer(this.#spareTerms.pop());
    const firstIndex = frontier.size;
    const parts = { store: this.#committed, postings, projection };
    const transaction = new BatchTransaction(parts, this.#layers, layer, frontier);
    const { events } = transaction;
    this.#budgets.begin(transaction);
    let now = 0;
    const ran: Ran[] = [];
    for (const waiting of queue) {
      if (transaction.isFull) break;
      const from = events.length;
      now = Math.max(clock(), frontier.lastTimestamp);
      let outcome: unknown;
      let isRefused = false;
      try {
        checkMoment(now);
        const { command, input, payer } = waiting;
        const charge = payer && ((bytes: number) => this.#budgets.take(payer, bytes, secondsOf(now), isTight));
        outcome = transaction.run(command, input, formatTimestamp(now), charge);
        frontier.lastTimestamp = now;
      } catch (error) {
        outcome = error;
        isRefused = true;
      }
      ran.push({ waiting, isRefused, outcome, from, to: events.length });
    }
    this.#budgets.end(secondsOf(now));
    this.#layers.push(layer);
    const finished = this.#finish(layer, transaction);
    return { firstIndex, layer, ran, events, ...finished, forming: (performance.now() - started) / 1000 };
  }

  /** Hashes and links the entries of a batch and extends the trees by them. */
  #finish(
    layer: Layer,
    { events, payloads, frozen }: BatchTransaction,
  ): Pick<FormedBatch, "entries" | "entryHashes" | "digests" | "roots" | "tiles" | "headTimestamp"> {
    const { applier, secondaryDigests, clock } = this.#parts;
    const { frontier } = applier;
    const { terms } = layer;
    const digests = Buffer.allocUnsafe(HASH * events.length);
    const texts: string[] = [];
    const entryHashes: string[] = [];
    for (let i = 0; i < events.length; i++) {
      const { id, timestamp, event_type, leafIndex } = events[i]!;
      const draft = { id, timestamp, event_type, canonicalPayload: payloads[i]! };
      const { text, entryHash, further } = finishEntry(draft, frontier.lastHash, secondaryDigests);
      frontier.lastHash = entryHash;
      frontier.lastId = id;
      digests.write(entryHash, HASH * i, "hex");
      addDigestTerm(entryHash, leafIndex, terms);
      for (const { digest_hex } of further) addDigestTerm(digest_hex, leafIndex, terms);
      texts.push(text);
      entryHashes.push(entryHash);
    }
    frontier.frozen = frozen;
    const { roots, tiles } = events.length ? frontier.extend(digests) : { roots: digests, tiles: [] };
    const headTimestamp = Math.max(clock() || 0, frontier.lastTimestamp);
    if (events.length) frontier.lastTimestamp = headTimestamp;
    return { entries: joinEntries(texts), entryHashes, digests, roots, tiles, headTimestamp };
  }

  /** The rows on disk may be others now. */
  forget(): void {
    this.#budgets.forget();
  }

  /** The batch is on disk, or will never be: later ones read what the disk says. */
  drop({ layer }: FormedBatch): void {
    this.#layers = this.#layers.filter((other) => other !== layer);
    layer.terms.clear();
    this.#spareTerms.push(layer.terms);
  }
}

const secondsOf = (microseconds: number): number => Math.floor(microseconds / 1_000_000);

/** A command that waits for its batch, and whoever waits for its answer. */
export interface QueuedCommand {
  readonly command: Command<unknown, unknown>;
  readonly input: unknown;
  /** Whose budget it takes from; null for a command that nobody pays. */
  readonly payer: Payer | null;
  /** Of its span, if there is a tracer. */
  readonly trace?: SpanContext;
  readonly resolve: (committed: Committed<unknown>) => void;
  readonly reject: (error: unknown) => void;
}

/** A command that has run: how it ends once its batch is on disk. */
interface Ran {
  readonly waiting: QueuedCommand;
  readonly isRefused: boolean;
  /** What it returned, or why it was refused. */
  readonly outcome: unknown;
  /** Its events are numbers [from, to) of the batch. */
  readonly from: number;
  readonly to: number;
}

export interface FormedBatch {
  readonly firstIndex: number;
  /** Rows and terms of the batch; later batches read through it until it is on disk. */
  readonly layer: Layer;
  readonly ran: readonly Ran[];
  readonly events: readonly LoggedEvent[];
  readonly entries: JoinedEntries;
  /** Entry hash of every entry, hex. */
  readonly entryHashes: readonly string[];
  /** Entry hash of every entry, 32 bytes each. */
  readonly digests: Buffer;
  /** Root of every new size, 32 bytes each. */
  readonly roots: Uint8Array;
  /** Of all heads of the batch, microseconds. */
  readonly headTimestamp: number;
  readonly tiles: readonly TileChange[];
  /** Seconds it took to form. */
  readonly forming: number;
}

/** The heads of a batch, one for every size. */
export interface SignedHeads {
  /** Of all heads, canonical form. */
  readonly timestamp: string;
  /** Hex. */
  readonly roots: readonly string[];
  /** One after the other, all of one length. */
  readonly signatures: Buffer;
}

/**
 * Levels of arrays and objects in a payload. Readers of I-JSON follow `MAX_DEPTH`, and a payload stands in an entry, which
 * stands on a page or in what a program keeps of it: one that is deeper would keep them from all that stands beside it.
 */
const MAX_PAYLOAD_LEVELS = MAX_DEPTH - 8;
/** Bytes that a UTF-16 unit becomes at most. */
const MOST_BYTES = 3;
/** Bytes of an entry beside its type and payload, at most. */
const FRAME_BYTES = 4096;

/** A backup with a longer entry could not be restored. @throws CairnlogError `payload-too-large` */
function checkLength(event_type: string, canonicalPayload: string): void {
  const most = MAX_ENTRY_BYTES - FRAME_BYTES;
  // Most are far from the limit. An escape of JSON takes six bytes.
  if (6 * (event_type.length + canonicalPayload.length) <= most) return;
  const bytes = Buffer.byteLength(JSON.stringify(event_type), "utf8") + Buffer.byteLength(canonicalPayload, "utf8");
  if (bytes > most)
    throw new CairnlogError("payload-too-large", `The event is longer than ${most} bytes, which no entry can be.`);
}

/** The transaction of one batch, lent to its commands one after the other. */
class BatchTransaction extends LayeredState implements Transaction {
  timestamp = "";
  /** Events that wait to be hashed and linked. */
  readonly events: LoggedEvent[] = [];
  /** RFC 8785 text of the payload of each. */
  readonly payloads: string[] = [];
  /** UTF-16 units of all payloads; each one is at most three bytes of UTF-8. */
  #units = 0;
  /** Bytes of the payloads that were measured: the first ones. */
  #bytes = 0;
  #measured = 0;
  readonly #firstIndex: number;
  readonly #firstId: number;
  readonly #layer: Layer;
  readonly #projection: Projection;
  readonly #frozen: Frozen | null;

  /** @param layers of the batches in flight, oldest first; `layer` is the batch's own */
  constructor(
    parts: {
      readonly store: Pick<Store, "get" | "range">;
      readonly postings: Postings;
      readonly projection: Projection;
    },
    layers: readonly Layer[],
    layer: Layer,
    { size, lastId, frozen }: Pick<Frontier, "size" | "lastId" | "frozen">,
  ) {
    super(parts.store, parts.postings, [...layers, layer]);
    this.#projection = parts.projection;
    this.#layer = layer;
    this.#firstIndex = size;
    this.#firstId = lastId + 1;
    this.#frozen = frozen;
  }

  append({ event_type, payload, terms }: PreparedEvent): LoggedEvent {
    // It takes the signatures of two keys and ends this writer's term: `history/rotate.ts`.
    if (event_type === OPERATOR_ROTATION)
      throw new CairnlogError("forbidden", "Only cairnlog operator rotate records a rotation of the operator key.");
    const { frozen } = this;
    if (frozen) throw logFrozen(frozen);
    const leafIndex = this.#firstIndex + this.events.length;
    checkShard({ event_type, payload }, leafIndex);
    const event: LoggedEvent = {
      event_type,
      payload,
      id: this.#firstId + this.events.length,
      leafIndex,
      timestamp: this.timestamp,
    };
    const canonicalPayload = canonicalJsonWithin(payload, MAX_PAYLOAD_LEVELS);
    checkLength(event_type, canonicalPayload);
    this.events.push(event);
    this.payloads.push(canonicalPayload);
    this.#units += canonicalPayload.length;
    applyWithholding(event, this);
    this.#projection.apply(event, this);
    this.#layer.terms.addEach(terms ?? eventTerms(event, this.#projection), leafIndex);
    return event;
  }

  /** How the log ends behind the events so far; null if it goes on. */
  get frozen(): Frozen | null {
    return this.events.length ? frozenBy(this.events.at(-1)) : this.#frozen;
  }

  get size(): number {
    return this.#firstIndex + this.events.length;
  }

  get lastId(): number {
    return this.#firstId + this.events.length - 1;
  }

  /** Whether the batch has as many events, or as many bytes of payloads, as a batch may have. */
  get isFull(): boolean {
    if (this.events.length >= BATCH_EVENTS) return true;
    // Most batches are far from the limit, and their bytes need not be counted.
    if (MOST_BYTES * this.#units < BATCH_BYTES) return false;
    for (; this.#measured < this.payloads.length; this.#measured++)
      this.#bytes += Buffer.byteLength(this.payloads[this.#measured]!, "utf8");
    return this.#bytes >= BATCH_BYTES;
  }

  /**
   * Runs one command at `timestamp`; one that throws leaves neither rows nor terms nor events.
   * @param charge called with the bytes that the command has stored; it may refuse them, as the command may
   */
  run<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    timestamp: string,
    charge: ((bytes: number) => void) | null = null,
  ): Output {
    const events = this.events.length;
    const units = this.#units;
    this.timestamp = timestamp;
    this.#layer.begin();
    try {
      const value = command.run(this, input);
      charge?.(this.#stored(events));
      this.#layer.keep();
      return value;
    } catch (error) {
      this.#layer.undo();
      this.events.length = this.payloads.length = events;
      this.#units = units;
      throw error;
    }
  }

  /** Bytes of what the command that is running has stored: its events from number `from` on, and its private rows. */
  #stored(from: number): number {
    let bytes = 0;
    for (let i = from; i < this.payloads.length; i++) bytes += Buffer.byteLength(this.payloads[i]!, "utf8");
    for (const change of this.#layer.changedRows())
      if (isPrivate(change) && change.row !== undefined) bytes += Buffer.byteLength(rowLine(change), "utf8");
    return bytes;
  }
}

const isPrivate = (change: RowChange): change is RowChange<RecordedTable> => isRecorded(change.table);
