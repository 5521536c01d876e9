/** Load for a log, and what must hold of log and journal afterwards, whatever failed meanwhile. */
import { expect } from "vitest";
import { checkNext } from "#cairnlog/engine/journal/ledger.js";
import { recordHash } from "#cairnlog/engine/journal/record.js";
import type { Committed } from "#cairnlog/engine/log/state/executor.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { type JournalPosition, ORIGIN } from "#cairnlog/engine/store/changeset.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { runIn } from "../log/inline.js";
import { decodeRecord } from "./fakejournal.js";

/** The commands of a run. Every third command writes only a row, the others an entry and a row. */
export class Load {
  readonly acknowledged = new Map<number, Committed<unknown>>();
  readonly failed = new Set<number>();
  readonly #log: LogWriter;
  readonly #code: string;
  #next: number;

  /** @param code of the refusals that are expected */
  constructor(log: LogWriter, from = 0, code = "storage-failed") {
    this.#log = log;
    this.#next = from;
    this.#code = code;
  }

  /** Runs waves of enough commands that batches are in every stage at once. */
  async run(waves: number, width: number): Promise<void> {
    const runs: Promise<void>[] = [];
    for (let wave = 0; wave < waves; wave++) {
      for (let i = 0; i < width; i++) runs.push(this.#command(this.#next++));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(runs);
  }

  async #command(n: number): Promise<void> {
    try {
      const committed = await runIn(this.#log, (transaction) => {
        transaction.put("userNames", `n${n}`, { user_id: `u${n}` });
        if (n % 3) transaction.append({ event_type: "note", payload: { n, tags: ["load"] } });
      });
      this.acknowledged.set(n, committed);
    } catch (error) {
      expect(error).toMatchObject({ name: "CairnlogError", code: this.#code });
      this.failed.add(n);
    }
  }
}

export const namesOf = (log: Pick<LogWriter, "rows">) =>
  new Set(log.rows("userNames", "n", "o").map(({ key }) => Number(key.slice(1))));

export async function positionOf(path: string): Promise<JournalPosition> {
  const store = openStore({ path, mapSize: 2 ** 30 });
  const position = store.position();
  await store.close();
  return position;
}

/** The position behind encoded records, each of which must follow the one before. */
export function endOf(records: readonly Buffer[]): JournalPosition {
  let position: JournalPosition = ORIGIN;
  for (const bytes of records) {
    const record = decodeRecord(bytes);
    checkNext(position, record);
    position = { sequence: record.sequence, epoch: record.epoch, hash: Buffer.from(recordHash(bytes)) };
  }
  return position;
}

/** What was acknowledged is there, nothing is there in part, and state is what the entries make it. */
export async function checkContent(log: LogWriter, load: Load, isKept: boolean): Promise<void> {
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: log.size, errors: [] });
  expect(log.stateDifferences()).toEqual([]);
  const entries = new Set([...log.entries()].map(({ payload }) => payload!.n as number));
  const names = namesOf(log);
  for (const n of names) expect(n % 3 === 0 || entries.has(n), `${n}: a row without its entry`).toBe(true);
  for (const n of entries) expect(names.has(n), `${n}: an entry without its row`).toBe(true);
  for (const [n, { receipts }] of load.acknowledged) {
    expect(names.has(n)).toBe(true);
    for (const { log_entry_id, entry_hash, sth } of receipts) {
      expect(log.entry(log_entry_id)?.entry_hash).toBe(entry_hash);
      expect(log.treeHead(sth.tree_size)).toEqual(sth);
    }
  }
  if (!isKept) for (const n of load.failed) expect(names.has(n), `${n} failed and is there`).toBe(false);
}
