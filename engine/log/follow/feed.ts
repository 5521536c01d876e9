/**
 * What the writer of a log tells readers in other threads of its process, so that they show each batch as soon as it is on
 * disk. A reader has the disk itself; it is told what is not there or would take long to read: how far the log goes, the
 * digests of the new leaves, and the postings that no run holds yet.
 *
 * Nothing is told before it is on disk. If we crash here, the readers end with the process.
 */
import type { CairnlogError } from "../../base/error.js";
import type { Decided } from "../../journal/ledger.js";
import type { TermTable } from "../../store/postings/termtable.js";
import { Batch } from "../../store/schema/batch.js";
import type { KeyOf } from "../../store/schema/schema.js";
import type { Made } from "../apply/intake.js";
import type { LogMemory } from "../apply/memory.js";
import { type Frozen, frozenBy } from "../operator/entries.js";
import type { FormedBatch } from "../write/forming.js";

/** Tables whose changed rows are named, because readers keep something that follows from them. */
const WATCHED = ["passwords", "anchorTotals", "withheld"] as const;
export type WatchedTable = (typeof WATCHED)[number];

/** A key of a watched table. Readers find the row on disk. */
export type ChangedRow = { readonly [T in WatchedTable]: { readonly table: T; readonly key: KeyOf<T> } }[WatchedTable];

/** Something that readers must know. Plain data, for a message to another thread. */
export type FeedMessage =
  | {
      readonly kind: "batch";
      readonly firstIndex: number;
      readonly size: number;
      /** Shared by all readers: a digest for each entry, 32 bytes each. */
      readonly digests: Uint8Array;
      /** Shared by all readers: terms as `TermTable.pack` writes them, with `firstIndex` as the base. */
      readonly terms: Int32Array;
      readonly rows: readonly ChangedRow[];
      /** How the log ended, if its newest entry is the end. */
      readonly end: Frozen | null;
    }
  /** Postings of entries below `to` are on their way into a run. */
  | { readonly kind: "frozen"; readonly to: number }
  /** There are other runs than before. */
  | { readonly kind: "runs" }
  /** Memory may differ from the disk: all of it must be read again. */
  | { readonly kind: "restored" }
  /** The log cannot be used by this process any more. */
  | { readonly kind: "failed"; readonly message: string };

/** Belongs to the writer's thread. */
export class Feed {
  readonly #send: (message: FeedMessage) => void;

  /** @param send must not throw, and be quick */
  constructor(send: (message: FeedMessage) => void, { postings, titles }: Pick<LogMemory, "postings" | "titles">) {
    this.#send = send;
    const runsChanged = () => send({ kind: "runs" });
    postings.observer = { frozen: (to) => send({ kind: "frozen", to }), runsChanged };
    titles.observe(runsChanged);
  }

  /** A batch is on disk, which may hold rows only. */
  written({ firstIndex, events, digests, layer }: FormedBatch): void {
    const rows = WATCHED.flatMap((table) => [...layer.changes(table)].map(({ key }) => ({ table, key }) as ChangedRow));
    const end = frozenBy(events.at(-1));
    this.#batch({ firstIndex, size: firstIndex + events.length, digests, rows, end }, layer.terms);
  }

  #batch(told: Omit<FeedMessage & { kind: "batch" }, "kind" | "terms">, table: TermTable): void {
    const { firstIndex, digests } = told;
    const words = table.packedWords;
    const shared = new SharedArrayBuffer(4 * words + digests.length);
    const terms = new Int32Array(shared, 0, words);
    table.pack(terms, firstIndex);
    const leaves = new Uint8Array(shared, 4 * words);
    leaves.set(digests);
    this.#send({ kind: "batch", ...told, digests: leaves, terms });
  }

  /** Records that another node has written are on disk. */
  applied(decided: readonly Decided[], { size, terms, rows: derived }: Made, end: Frozen | null): void {
    // Ids and times no longer ascend with leaf indexes alone, or rows were exchanged: readers begin anew.
    if (derived.some(({ table }) => table === "seams")) {
      this.restored();
      return;
    }
    const { firstIndex } = decided[0]!.record;
    const batches = decided.flatMap(({ record }) => (record.batch ? [new Batch(record.firstIndex, record.batch)] : []));
    const rows = [...decided.flatMap(({ record }) => record.rows), ...derived].flatMap(({ table, key }) =>
      WATCHED.some((watched) => watched === table) ? [{ table, key } as ChangedRow] : [],
    );
    const digests = Buffer.concat(batches.map((batch) => batch.digests));
    this.#batch({ firstIndex, size, digests, rows, end }, terms);
  }

  restored(): void {
    this.#send({ kind: "restored" });
  }

  failed({ message }: CairnlogError): void {
    this.#send({ kind: "failed", message });
  }
}
