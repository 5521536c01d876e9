/** What a command gets to see and to write: the state through all layers, its moment, and the append. */
import { CairnlogError } from "../../error.js";
import type { Layer } from "../../store/changeset.js";
import type { Postings } from "../../store/postings/postings.js";
import type { Store } from "../../store/store.js";
import { canonicalJson } from "../../verify/json/canonical.js";
import { OPERATOR_ROTATION } from "../operator/rotation.js";
import type { Frontier } from "../tree/frontier.js";
import type { Command, Transaction } from "./commands.js";
import { LayeredState } from "./layered.js";
import type { EventInput, LoggedEvent, Projection } from "./projection.js";

/** An event that waits to be hashed and linked. */
export interface Draft {
  readonly event: LoggedEvent;
  readonly canonicalPayload: string;
}

/** The transaction of one batch, lent to its commands one after the other. */
export class BatchTransaction extends LayeredState implements Transaction {
  timestamp = "";
  readonly drafts: Draft[] = [];
  /** Of all payloads. */
  bytes = 0;
  readonly #firstIndex: number;
  readonly #firstId: number;
  readonly #layer: Layer;
  readonly #projection: Projection;

  /** @param layers of the batches in flight, oldest first; `layer` is the batch's own */
  constructor(
    parts: {
      readonly store: Pick<Store, "get" | "range">;
      readonly postings: Postings;
      readonly projection: Projection;
    },
    layers: readonly Layer[],
    layer: Layer,
    { size, lastId }: Pick<Frontier, "size" | "lastId">,
  ) {
    super(parts.store, parts.postings, [...layers, layer]);
    this.#projection = parts.projection;
    this.#layer = layer;
    this.#firstIndex = size;
    this.#firstId = lastId + 1;
  }

  append({ event_type, payload }: EventInput): LoggedEvent {
    // It takes the signatures of two keys and ends this writer's term: `operator/rotate.ts`.
    if (event_type === OPERATOR_ROTATION)
      throw new CairnlogError("forbidden", "Only cairnlog operator rotate records a rotation of the operator key.");
    const leafIndex = this.#firstIndex + this.drafts.length;
    const event: LoggedEvent = {
      event_type,
      payload,
      id: this.#firstId + this.drafts.length,
      leafIndex,
      timestamp: this.timestamp,
    };
    const canonicalPayload = canonicalJson(payload);
    this.drafts.push({ event, canonicalPayload });
    this.bytes += Buffer.byteLength(canonicalPayload, "utf8");
    this.#projection.apply(event, this);
    this.#projection.onAppend?.(event, this);
    this.#projection.addTerms(event, this.#layer.terms);
    return event;
  }

  /** Runs one command at `timestamp`; one that throws leaves neither rows nor terms nor events. */
  run<Input, Output>(command: Command<Input, Output>, input: Input, timestamp: string): Output {
    const events = this.drafts.length;
    const { bytes } = this;
    this.timestamp = timestamp;
    this.#layer.begin();
    try {
      const value = command.run(this, input);
      this.#layer.keep();
      return value;
    } catch (error) {
      this.#layer.undo();
      this.drafts.length = events;
      this.bytes = bytes;
      throw error;
    }
  }
}
