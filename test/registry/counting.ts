/**
 * Counts what an operation of a registry costs, in rows and bytes instead of time: these are the same on every machine.
 * Counted are what a command reads and writes through its transaction, and what is read from disk.
 */
import type { Command, Transaction } from "#cairnlog/engine/log/state/commands.js";
import type { Committed, Payer } from "#cairnlog/engine/log/state/executor.js";
import type { Snapshot, Store } from "#cairnlog/engine/store/contract.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { newFolder, type World } from "./world.js";

/** What one run of a command has read and written. */
export interface CommandCost {
  readonly name: string;
  /** Rows, looks for a row that is not there, and looks for a term. */
  reads: number;
  readBytes: number;
  writes: number;
  /** Of rows and payloads. */
  writtenBytes: number;
}

/** A number counts like any other, however many digits it has: ids are higher in a longer log. */
const NUMBER_BYTES = 8;

/** Bytes of a value, about as many as it has on disk. */
function bytesOf(value: unknown): number {
  if (typeof value === "number") return NUMBER_BYTES;
  if (typeof value === "string") return Buffer.byteLength(value);
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== "object" || value === null) return 1;
  return Object.entries(value).reduce((sum, [name, member]) => sum + name.length + bytesOf(member), 0);
}

type Functions = Record<string, (...args: never[]) => unknown>;

/** Calls `run` while methods of `object` are replaced: `replace` gets each by its name, and gives the one that is called. */
function replacing<T>(object: object, replace: Functions, run: () => T): T {
  Object.assign(object, replace);
  try {
    return run();
  } finally {
    for (const name of Object.keys(replace)) delete (object as Functions)[name];
  }
}

/** `command` with everything counted that it does, and that the projection does when it appends. */
function counting<Input, Output>(
  { name, run }: Command<Input, Output>,
  done: (cost: CommandCost) => void,
): Command<Input, Output> {
  return {
    name,
    run(transaction, input) {
      const cost = { name, reads: 0, readBytes: 0, writes: 0, writtenBytes: 0 };
      const { get, range, first, put, append } = Object.getPrototypeOf(transaction) as Transaction;
      const methods: Pick<Transaction, "get" | "range" | "first" | "put" | "append"> = {
        get(table, key) {
          const row = get.call(transaction, table, key) as ReturnType<typeof get>;
          cost.reads++;
          cost.readBytes += bytesOf(row);
          return row as never;
        },
        range(table, start, end) {
          const rows = range.call(transaction, table, start, end);
          cost.reads += 1 + rows.length;
          for (const { row } of rows) cost.readBytes += bytesOf(row);
          return rows as never;
        },
        first(term) {
          cost.reads++;
          return first.call(transaction, term);
        },
        put(table, key, row) {
          cost.writes++;
          cost.writtenBytes += bytesOf(row);
          put.call(transaction, table, key as never, row as never);
        },
        append(event) {
          cost.writes++;
          cost.writtenBytes += bytesOf(event.payload);
          return append.call(transaction, event);
        },
      };
      // Refused commands count, too: a client can send them at will.
      try {
        return replacing(transaction, methods as never, () => run(transaction, input));
      } finally {
        done(cost);
      }
    },
  };
}

/** Counts what the commands cost that `world` executes from now on, in their order, until the returned function is called. */
export function countCommands(world: World): () => readonly CommandCost[] {
  const { log } = world.registry;
  const costs: CommandCost[] = [];
  const { enqueue } = Object.getPrototypeOf(log) as typeof log;
  log.enqueue = <Input, Output>(
    command: Command<Input, Output>,
    input: Input,
    resolve: (committed: Committed<Output>) => void,
    reject: (error: unknown) => void,
    payer?: Payer,
  ) => {
    const counted = counting(command, (cost) => costs.push(cost));
    enqueue.call(log, counted as Command<unknown, unknown>, input, resolve as never, reject, payer);
  };
  log.execute = (command, input) =>
    new Promise((resolve, reject) => log.enqueue(command, input, resolve as never, reject));
  return () => {
    for (const name of ["enqueue", "execute"]) delete (log as unknown as Functions)[name];
    return costs;
  };
}

/** What was read from disk. */
export interface DiskCost {
  rows: number;
  rowBytes: number;
  batches: number;
}

/** Counts what `run` reads from the disk of any log of this thread. */
export async function countReads(run: () => unknown): Promise<DiskCost> {
  const cost = { rows: 0, rowBytes: 0, batches: 0 };
  const row = <T>(value: T): T => {
    cost.rows++;
    cost.rowBytes += bytesOf(value);
    return value;
  };
  const prototype = await storePrototype();
  const original = Object.getOwnPropertyDescriptors(prototype);
  const call = (name: keyof Store, self: unknown, args: unknown[]) =>
    (original[name]!.value as (...args: unknown[]) => unknown).apply(self, args);
  function* each(rows: Iterable<unknown>) {
    for (const one of rows) yield row(one);
  }
  const replaced: Record<string, (this: unknown, ...args: unknown[]) => unknown> = {
    get(...args) {
      return row(call("get", this, args));
    },
    range(...args) {
      return each(call("range", this, args) as Iterable<unknown>);
    },
    floor(...args) {
      return row(call("floor", this, args));
    },
    keys(...args) {
      return each(call("keys", this, args) as Iterable<unknown>);
    },
    snapshot(...args) {
      const snapshot = call("snapshot", this, args) as Snapshot;
      return {
        get: (table: never, key: never) => row(snapshot.get(table, key)),
        range: (table: never, ...more: never[]) => each(snapshot.range(table, ...more)),
        close: () => snapshot.close(),
      };
    },
  };
  for (const name of ["batchAt", "batchView", "batchPlace", "lastBatch"] as const)
    replaced[name] = function (...args) {
      cost.batches++;
      return call(name, this, args);
    };
  Object.assign(prototype, replaced);
  try {
    await run();
  } finally {
    Object.defineProperties(prototype, original);
  }
  return cost;
}

let known: object | undefined;
/** What all stores have in common. Its class is not exported. */
async function storePrototype(): Promise<object> {
  if (known) return known;
  const path = newFolder();
  const store = openStore({ path });
  known = Object.getPrototypeOf(store) as object;
  await store.close();
  return known;
}
