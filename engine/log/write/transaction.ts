/** What a command gets to see and to write: the state through all layers, its moment, and the append. */
import { CairnlogError } from "../../base/error.js";
import { rowLine } from "../../journal/rows.js";
import type { Layer, RowChange } from "../../store/changeset.js";
import type { Postings } from "../../store/postings/postings.js";
import { BATCH_BYTES, BATCH_EVENTS } from "../../store/schema/batch.js";
import { isRecorded, type RecordedTable } from "../../store/schema/schema.js";
import type { Store } from "../../store/store.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { checkShard, type Frozen, frozenBy, logFrozen } from "../operator/frozen.js";
import { OPERATOR_ROTATION } from "../operator/rotation.js";
import { applyWithholding } from "../operator/withholding.js";
import type { Frontier } from "../read/frontier.js";
import type { Command, Transaction } from "../state/commands.js";
import { LayeredState } from "../state/layered.js";
import { type LoggedEvent, type PreparedEvent, type Projection, termsOf } from "../state/projection.js";

/** Bytes that a UTF-16 unit becomes at most. */
const MOST_BYTES = 3;

/** The transaction of one batch, lent to its commands one after the other. */
export class BatchTransaction extends LayeredState implements Transaction {
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
    const canonicalPayload = canonicalJson(payload);
    this.events.push(event);
    this.payloads.push(canonicalPayload);
    this.#units += canonicalPayload.length;
    applyWithholding(event, this);
    this.#projection.apply(event, this);
    this.#layer.terms.addEach(terms ?? termsOf(event, this.#projection), leafIndex);
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
