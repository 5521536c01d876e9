/**
 * First stage: commands in, a formed batch out. Runs the commands, hashes and links their entries, extends the trees. All of
 * it is synchronous, and all of it is memory: if we crash here, nothing has happened.
 */
import { BATCH_BYTES, BATCH_EVENTS } from "../../../store/batch.js";
import { Layer } from "../../../store/changeset.js";
import type { TermTable } from "../../../store/postings/termtable.js";
import { HASH } from "../../../store/schema.js";
import type { Applier } from "../../apply/applier.js";
import { type Clock, formatTimestamp } from "../../clock.js";
import type { CommittedRows } from "../committed.js";
import { finishEntry, type SecondaryDigests } from "../entry.js";
import { addDigestTerm, addLogTerms, type Projection } from "../projection.js";
import { BatchTransaction, type Draft } from "../transaction.js";
import type { FormedBatch, Ran, Waiting } from "./batch.js";

export interface FormingParts {
  readonly applier: Applier;
  readonly projection: Projection;
  readonly clock: Clock;
  readonly secondaryDigests: SecondaryDigests | null;
}

export class Forming {
  readonly #parts: FormingParts;
  readonly #committed: CommittedRows;
  /** Layers of the batches in flight, oldest first. */
  #layers: Layer[] = [];
  /** Empty: the memory of layers that are done with is used again. */
  readonly #spareTerms: TermTable[] = [];

  constructor(parts: FormingParts, committed: CommittedRows) {
    this.#parts = parts;
    this.#committed = committed;
  }

  /**
   * Takes commands from the front of `queue` until the batch is full. Its rows stand before those on disk until `drop`.
   * @returns the batch, whose `ran` are the commands that were taken
   */
  form(queue: readonly Waiting[]): FormedBatch {
    const started = performance.now();
    const { applier, clock, projection } = this.#parts;
    const { frontier, postings } = applier;
    const layer = new Layer(this.#spareTerms.pop());
    const firstIndex = frontier.size;
    const parts = { store: this.#committed, postings, projection };
    const transaction = new BatchTransaction(parts, this.#layers, layer, frontier);
    const { drafts } = transaction;
    const ran: Ran[] = [];
    for (const waiting of queue) {
      if (drafts.length >= BATCH_EVENTS || transaction.bytes >= BATCH_BYTES) break;
      const from = drafts.length;
      const now = Math.max(clock(), frontier.lastTimestamp);
      let outcome: Ran["outcome"];
      try {
        outcome = { value: transaction.run(waiting.command, waiting.input, formatTimestamp(now)) };
        frontier.lastTimestamp = now;
      } catch (error) {
        outcome = { error };
      }
      ran.push({ waiting, outcome, from, to: drafts.length });
    }
    this.#layers.push(layer);
    const finished = this.#finish(layer, drafts);
    return { firstIndex, layer, ran, ...finished, forming: (performance.now() - started) / 1000 };
  }

  /** Hashes and links the entries of a batch and extends the trees by them. */
  #finish(
    layer: Layer,
    drafts: readonly Draft[],
  ): Pick<FormedBatch, "events" | "entries" | "digests" | "roots" | "tiles" | "headTimestamp"> {
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
    return { events: drafts.map(({ event }) => event), entries, digests, roots, tiles, headTimestamp };
  }

  /** The batch is on disk, or will never be: later ones read what the disk says. */
  drop({ layer }: FormedBatch): void {
    this.#layers = this.#layers.filter((other) => other !== layer);
    layer.terms.clear();
    this.#spareTerms.push(layer.terms);
  }
}
