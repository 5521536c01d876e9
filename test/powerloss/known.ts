/** What clients know of a log, and since which moment of the trace. All of it must be in every later state of the disk. */
import { statSync } from "node:fs";
import type { Key, KeyOf, TableName } from "#cairnlog/engine/store/schema/schema.js";
import type { Entry } from "#cairnlog/engine/verify/index.js";
import { type Acknowledged, Ledger, type Receipt, type RowFact } from "../crash/ledger.js";
import type { TraceEvent } from "./record/trace.js";

export interface KnownReceipt extends Acknowledged {
  readonly at: number;
}

/** A head that was sent to somebody, with an entry or alone. */
export interface ShownHead {
  readonly at: number;
  readonly tree_size: number;
  readonly root_hash: string;
}

/** A row as it is from this moment on; without a fact, a change of it is on its way. */
export interface KnownRow {
  readonly at: number;
  readonly name: string;
  readonly fact: RowFact | null;
}

export interface Known {
  readonly receipts: readonly KnownReceipt[];
  readonly heads: readonly ShownHead[];
  readonly rows: readonly KnownRow[];
  /** Fingerprint of the operator key, once it was told to somebody. */
  readonly operator: { readonly at: number; readonly fingerprint: string } | null;
  /** Titles of attestations that somebody has asked to withhold, by the ids of their entries. */
  readonly asked: ReadonlyMap<number, string>;
  /** Before this moment the log may only have one of these sizes. */
  readonly sizes: { readonly until: number; readonly allowed: readonly number[] } | null;
}

/** A ledger that also notes how long the trace was. */
export class TracedLedger extends Ledger {
  readonly #trace: string;
  readonly receipts: { readonly receipt: Acknowledged; readonly length: number }[] = [];
  readonly facts: { readonly name: string; readonly fact: RowFact | null; readonly length: number }[] = [];

  constructor(trace: string, delivered: ReadonlySet<number>) {
    super(delivered);
    this.#trace = trace;
  }

  get #length(): number {
    return statSync(this.#trace).size;
  }

  override add(receipt: Receipt, says: Acknowledged["says"] = {}): void {
    super.add(receipt, says);
    this.receipts.push({ receipt: this.entries.at(-1)!, length: this.#length });
  }

  override holds<T extends TableName>(table: T, key: KeyOf<T>, row: Readonly<Record<string, unknown>>): void {
    super.holds(table, key, row);
    this.#note(table, key, { table, key: key as Key, row });
  }

  override lacks<T extends TableName>(table: T, key: KeyOf<T>): void {
    super.lacks(table, key);
    this.#note(table, key, { table, key: key as Key });
  }

  override changing<T extends TableName>(table: T, key: KeyOf<T>): void {
    super.changing(table, key);
    this.#note(table, key, null);
  }

  #note(table: TableName, key: unknown, fact: RowFact | null): void {
    this.facts.push({ name: `${table} ${JSON.stringify(key)}`, fact, length: this.#length });
  }
}

/** Heads in what was sent; answers are sent in one piece. */
function* headsIn(text: string): Iterable<{ tree_size: number; root_hash: string; signature: string }> {
  for (const [json] of text.matchAll(/\{[^{}]*"root_hash":[^{}]*\}/g))
    try {
      const head = JSON.parse(json);
      if (head.tree_size && head.signature) yield head;
    } catch {
      // A piece of an answer that was sent in several.
    }
}

/** The first event that sent a text. @throws Error if none did */
export function whenSent(events: readonly TraceEvent[], text: string): number {
  const at = events.findIndex(({ kind, bytes }) => kind === "S" && bytes.includes(text));
  if (at < 0) throw new Error(`${text} was never sent`);
  return at;
}

/** What the clients of the ledgers have learned by the end of the trace. */
export function knownFrom(events: readonly TraceEvent[], ledgers: readonly TracedLedger[]): Known {
  const heads: ShownHead[] = [];
  const sent = new Map<string, number>();
  let operator: Known["operator"] = null;
  for (const [at, { kind, bytes }] of events.entries()) {
    if (kind !== "S") continue;
    const text = bytes.toString("latin1");
    for (const { tree_size, root_hash, signature } of headsIn(text)) {
      if (!sent.has(signature)) sent.set(signature, at);
      heads.push({ at, tree_size, root_hash });
    }
    const told = /"operator_fingerprint":"(sha256:[0-9a-f]{64})"/.exec(text);
    if (told) operator ??= { at, fingerprint: told[1]! };
  }
  // What was noted when the trace had this length happened before the next event.
  const momentOf = (length: number) => {
    const next = events.findIndex(({ end }) => end > length);
    return (next < 0 ? events.length : next) - 1;
  };
  const receipts = ledgers.flatMap(({ receipts }) =>
    receipts.map(({ receipt, length }) => {
      const noted = momentOf(length);
      const at = receipt.sth ? sent.get(receipt.sth.signature) : noted;
      if (at === undefined || at > noted)
        throw new Error(`the receipt of entry ${receipt.log_entry_id} is not in the trace`);
      return { ...receipt, at };
    }),
  );
  const rows = ledgers.flatMap(({ facts }) =>
    facts.map(({ name, fact, length }) => ({ name, fact, at: momentOf(length) })),
  );
  const asked = new Map(ledgers.flatMap((ledger) => [...ledger.asked]));
  return { receipts, heads, rows, operator, asked, sizes: null };
}

/** The entries of a log, and their heads, as receipts that somebody has from this moment on. */
export const receiptsOf = (
  history: readonly { readonly entry: Entry; readonly sth: Receipt["sth"] }[],
  at: number,
): KnownReceipt[] =>
  history.map(({ entry: { id, entry_hash }, sth }) => ({
    at,
    log_entry_id: id,
    entry_hash,
    ...(sth ? { sth } : {}),
    says: {},
  }));
