/**
 * The way to a log's writer: commands go in, receipts come out. Whoever has one need not know where the writer is: in this
 * thread (`writer.ts`), or in another one (`follower.ts`).
 */
import { inputError } from "../../base/error.js";
import type { TableChange } from "../../store/changeset.js";
import type { TableName } from "../../store/schema/schema.js";
import { canonicalJson, plainCopy } from "../../verify/json/canonical.js";
import type { TreeHead } from "../../verify/tree/treehead.js";
import { appendEvents, type Command, type PlainEvent } from "./commands.js";
import type { EventInput } from "./projection.js";

/** Proof that an event is in the log, on disk, with the head of the size it made. */
export interface Receipt {
  readonly log_entry_id: number;
  readonly leaf_index: number;
  readonly entry_hash: string;
  readonly timestamp: string;
  readonly sth: TreeHead;
  /**
   * The entry as it is stored and served (JSON), not to be written to. It keeps the bytes of its whole batch alive.
   * `JSON.stringify` of a receipt has the entry itself instead, as `entry`.
   */
  readonly json: Buffer;
}

/** What a command returned, when what it did is on disk. */
export interface Committed<T> {
  readonly value: T;
  /** One for each event that the command appended, in order. */
  readonly receipts: readonly Receipt[];
}

/** How one batch went, for measurements. Times are in seconds. */
export interface BatchReport {
  readonly entries: number;
  /** Running its commands, hashing, extending the trees: the time it kept the writer's thread. */
  readonly forming: number;
  /** Until all its heads were signed. */
  readonly signing: number;
  /** Until it was on disk. */
  readonly writing: number;
}

/**
 * Gets the changes that a batch made to a table, when they are on disk; null after a failure, when the table may hold
 * anything. It must be quick.
 */
export type RowObserver<T extends TableName> = (changes: readonly TableChange<T>[] | null) => void;

export interface Writer {
  /**
   * Appends one event, or several that become neighbours in one batch. Resolves when they are on disk, each with the
   * signed head of the size it made. What is appended is what they are at the call.
   * @throws CairnlogError as `execute` does; `not-i-json` for what has no canonical form; `payload-too-large` for what makes
   *   an entry above 16 MiB. Nothing was appended then, unless the disk failed: then look before trying again.
   *   `invalid-input` for what is no event.
   */
  append(event: EventInput): Promise<Receipt>;
  append(events: readonly EventInput[]): Promise<readonly Receipt[]>;
  /**
   * Runs a command with its input, which nobody may change afterwards, and resolves when what it did is on disk.
   * @param payer whose budget what it stores is taken from; null or absent where nothing is counted
   * @throws CairnlogError what the command throws; `budget-spent` and `storage-full` for a payer; `overloaded`, `closed`,
   *   `signer-unavailable`, `storage-failed`, `clock-suspect`
   */
  execute<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    payer?: Payer | null,
  ): Promise<Committed<Output>>;
  /**
   * Like `execute`, for callers that need no promise: calls `resolve` or `reject` exactly once, before this returns if the
   * command is not accepted.
   */
  enqueue<Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    resolve: (committed: Committed<Output>) => void,
    reject: (error: unknown) => void,
    payer?: Payer | null,
  ): void;
  /**
   * Signs the head of the current size again, with a timestamp of now. Only its time is stored: the first head of a size
   * stays the one that `treeHead` gives.
   * @throws CairnlogError `precondition-failed` on an empty log; `signer-unavailable`; as `execute` does
   */
  signHead(): Promise<TreeHead>;
  /** Appends waiting for their batch. */
  readonly queued: number;
  /** Batches written since the log was opened: how many transactions the appends shared. */
  readonly batches: number;
  /**
   * Has `observer` called for every batch that changes rows of a table, once it is on disk and its entries can be read;
   * it takes the place of an earlier one.
   */
  observeRows<T extends TableName>(table: T, observer: RowObserver<T>): void;
}

/** Programs in JavaScript may give anything. */
const isEvent = (event: { readonly event_type: unknown; readonly payload: unknown }): event is PlainEvent =>
  typeof event.event_type === "string" &&
  event.event_type !== "" &&
  typeof event.payload === "object" &&
  event.payload !== null &&
  !Array.isArray(event.payload);

/**
 * The events that `input` is now, as they will be read. Their caller may write to them again before their turn comes, and a
 * `toJSON` makes of an object what it likes: whoever judges events judges these.
 * @throws CairnlogError `invalid-input`, `not-i-json`
 */
export function plainEvents(input: EventInput | readonly EventInput[]): readonly PlainEvent[] {
  return Array.from(Array.isArray(input) ? input : [input], (given: EventInput | null | undefined) => {
    const event = { event_type: given?.event_type, payload: plainCopy(given?.payload) };
    if (!isEvent(event))
      throw inputError("append takes events: { event_type, payload }, a text that is not empty and an object.");
    // It stands in the entry, which must be I-JSON.
    canonicalJson(event.event_type);
    return event;
  });
}

/** Appends one event or several by `writer`, and gives one receipt or several. */
export async function appendBy(
  writer: Pick<Writer, "execute">,
  input: EventInput | readonly EventInput[],
): Promise<Receipt | readonly Receipt[]> {
  const { receipts } = await writer.execute(appendEvents, { events: plainEvents(input) });
  return Array.isArray(input) ? receipts : receipts[0]!;
}

/**
 * Who pays for what a command stores: the client that sent it. Commands of the service itself, of its operator's tools and of a program that embeds the
 * log have no payer, and are not counted.
 */
export interface Payer {
  /**
   * What is counted together: an IPv4 address as text, or the /64 of an IPv6 address as four groups and `::/64`. Clients
   * choose it.
   */
  readonly client: string;
  /** Whether an anchor of the log reaches the key that signed the command. */
  readonly isReached: boolean;
}

/** Bytes that may be stored in 24 hours; null where nothing is counted. */
export interface BudgetLimits {
  /** For one client. The /48 of an IPv6 address has eight times as many. */
  readonly perAddress: number | null;
  /** For all keys together that no anchor reaches. */
  readonly fromStrangers: number | null;
}

/** Defaults of the service. */
export const DEFAULT_BYTES_PER_ADDRESS = 64 * 2 ** 20;
export const DEFAULT_BYTES_FROM_STRANGERS = 2 ** 30;

export const NO_BUDGETS: BudgetLimits = { perAddress: null, fromStrangers: null };
