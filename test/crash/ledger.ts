/** The changes that the service has acknowledged. All of them must still be there, unchanged, after any crash. */
import type { Key, KeyOf, TableName } from "#cairnlog/engine/store/schema/schema.js";
import type { TreeHead } from "#cairnlog/engine/verify/index.js";

/** The parts of an answer that give the place of an entry. */
export interface Receipt {
  readonly log_entry_id: number;
  readonly leaf_index?: number;
  readonly entry_hash?: string;
  readonly sth?: TreeHead | null;
}

export interface Acknowledged extends Receipt {
  /** Members that the entry's payload must have. */
  readonly says: Readonly<Record<string, unknown>>;
}

/** A row that must exist with these members. If `row` is absent, the row must not exist. */
export interface RowFact {
  readonly table: TableName;
  readonly key: Key;
  readonly row?: Readonly<Record<string, unknown>> | undefined;
}

export class Ledger {
  readonly entries: Acknowledged[] = [];
  /** Values of payload members in refused requests. They must not occur in the log. */
  readonly refused = new Set<string>();
  readonly #rows = new Map<string, RowFact>();
  /** Id of the standing subscription; null until there is one. */
  webhook: number | null = null;
  /** Acknowledged entries that must be delivered to its endpoint. */
  readonly told: number[] = [];
  readonly delivered: ReadonlySet<number>;
  /** The entry that ended the log, once that was acknowledged. */
  end: number | null = null;
  /** Titles of attestations that somebody has asked to withhold, by the ids of their entries, oldest first. */
  readonly asked = new Map<number, string>();
  /** Those for which that was acknowledged. */
  readonly withheld = new Set<number>();
  /** Those whose payload the newest start has taken from the disk. */
  erased: readonly number[] = [];
  /** Writes that were acknowledged, by route. */
  readonly writes = new Map<string, number>();

  /** @param delivered entries that the endpoint has received, each recorded before the answer */
  constructor(delivered: ReadonlySet<number> = new Set()) {
    this.delivered = delivered;
  }

  add(receipt: Receipt, says: Acknowledged["says"] = {}): void {
    const { log_entry_id, leaf_index, entry_hash, sth } = receipt;
    const where = { ...(leaf_index === undefined ? {} : { leaf_index }), ...(entry_hash ? { entry_hash } : {}) };
    this.entries.push({ log_entry_id, ...where, ...(sth ? { sth } : {}), says });
  }

  /** Notes that a row exists from now on. */
  holds<T extends TableName>(table: T, key: KeyOf<T>, row: Readonly<Record<string, unknown>>): void {
    this.#rows.set(`${table} ${JSON.stringify(key)}`, { table, key: key as Key, row });
  }

  /** Notes that a row does not exist from now on. */
  lacks<T extends TableName>(table: T, key: KeyOf<T>): void {
    this.#rows.set(`${table} ${JSON.stringify(key)}`, { table, key: key as Key });
  }

  /** Notes that a row may change: until the change is acknowledged, both states are right. */
  changing<T extends TableName>(table: T, key: KeyOf<T>): void {
    this.#rows.delete(`${table} ${JSON.stringify(key)}`);
  }

  get rows(): Iterable<RowFact> {
    return this.#rows.values();
  }
}
