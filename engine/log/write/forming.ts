/**
 * First stage: commands in, a formed batch out. Runs the commands, hashes and links their entries, extends the trees. All of
 * it is synchronous, and all of it is memory: if we crash here, nothing has happened.
 */

import { Layer } from "../../store/changeset.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { joinEntries } from "../../store/schema/batch.js";
import { HASH } from "../../store/schema/schema.js";
import type { Applier } from "../apply/applier.js";
import { type Clock, formatTimestamp } from "../state/clock.js";
import type { CommittedRows } from "../state/committed.js";
import { finishEntry, type SecondaryDigests } from "../state/entry.js";
import type { BudgetLimits } from "../state/payer.js";
import { addDigestTerm, type Projection } from "../state/projection.js";
import type { FormedBatch, QueuedCommand, Ran } from "./batch.js";
import { Budgets } from "./budgets.js";
import { BatchTransaction } from "./transaction.js";

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
    const headTimestamp = Math.max(clock(), frontier.lastTimestamp);
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
