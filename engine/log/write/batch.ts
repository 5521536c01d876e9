/** A batch on its way through the sequencer's stages: formed, signed, written, answered. */
import type { SpanContext } from "@opentelemetry/api";
import type { Layer, TileChange } from "../../store/changeset.js";
import type { JoinedEntries } from "../../store/schema/batch.js";
import type { Command } from "../state/commands.js";
import type { Committed } from "../state/executor.js";
import type { Payer } from "../state/payer.js";
import type { LoggedEvent } from "../state/projection.js";

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
export interface Ran {
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
