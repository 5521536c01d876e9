/**
 * Every commit is based on the current state: writers that do not know of one another cannot overwrite each other's
 * data.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "lmdb";
import { describe, expect, test } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { type Draft, Ledger, localJournal } from "#cairnlog/engine/journal/ledger.js";
import { leaveRecords } from "#cairnlog/engine/log/history/first-records.js";
import { type JournalPosition, NO_HASH } from "#cairnlog/engine/store/changeset.js";
import { MIGRATIONS } from "#cairnlog/engine/store/migrations.js";
import type { LogMeta } from "#cairnlog/engine/store/schema/rows.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore, type Store } from "#cairnlog/engine/store/store.js";
import { continueLog, freezeLog, openSoundLog, withholdAt } from "#cairnlog/server/cli/operate/operator-log.js";
import { startServer } from "#cairnlog/server/index.js";
import type { Settings } from "#cairnlog/server/settings/settings.js";
import { openFaultyLog, openTestLog, temporaryFolder } from "../log/harness.js";
import { runIn } from "../log/inline.js";
import { FakeJournal } from "./fakejournal.js";

const event = (n: number) => ({ event_type: "note", payload: { n } });
const OTHER_WRITER = expect.objectContaining({ code: "storage-failed" });

/** Opens the store of a closed log for `look`. */
async function withStore<T>(path: string, look: (store: Store) => T | Promise<T>): Promise<T> {
  const store = openStore({ path, mapSize: 2 ** 30 });
  try {
    return await look(store);
  } finally {
    await store.close();
  }
}

const positionOf = (path: string) => withStore(path, (store) => store.position());

/** Writes as a version without positions did: only rows and batches. */
async function writeBeside(path: string, table: string, key: string | number, value: unknown): Promise<void> {
  const env = open({ path, maxDbs: 50, mapSize: 2 ** 30 });
  const isBytes = value instanceof Uint8Array;
  const rows = env.openDB<unknown>({ name: table, ...(isBytes ? { encoding: "binary" } : {}) });
  await (value === undefined ? rows.remove(key) : rows.put(key, value));
  await env.flushed;
  await env.close();
}

test("a commit of rows alone is refused when another writer has committed since", async () => {
  const { log: first, path } = await openTestLog();
  // Without the lock of writers, which would refuse it.
  const { log: second } = await openFaultyLog({ path });
  const count = (log: typeof first) =>
    runIn(log, (transaction) => {
      const last = (transaction.get("counters", "webhook")?.last ?? 0) + 1;
      transaction.put("counters", "webhook", { last });
      return last;
    });
  expect(await count(first)).toMatchObject({ value: 1 });
  await expect(count(second)).rejects.toEqual(OTHER_WRITER);
  expect(first.row("counters", "webhook")).toEqual({ last: 1 });
  // It has read the commits of the other writer, and continues after them.
  expect(await count(second)).toMatchObject({ value: 2 });
  await expect(first.append(event(0))).rejects.toEqual(OTHER_WRITER);
  expect(first.size).toBe(0);
  expect((await first.append(event(1))).leaf_index).toBe(0);
  await expect(count(second)).rejects.toEqual(OTHER_WRITER);
});

test("every commit has a number, whether it has entries or rows, and none is left out over restarts", async () => {
  const path = temporaryFolder();
  // The row that creates the log is the first record.
  let commits = 1;
  for (let round = 0; round < 3; round++) {
    const { log } = await openTestLog({ path });
    await log.append(event(round));
    await runIn(log, (transaction) => transaction.put("counters", "webhook", { last: round }));
    await log.append([event(round), event(round)]);
    // Commands that change nothing commit nothing.
    await runIn(log, () => undefined);
    await log.close();
    commits += 3;
    expect(await positionOf(path)).toEqual({ sequence: commits, epoch: 0, hash: Buffer.from(NO_HASH) });
  }
});

describe("a ledger", () => {
  const rows = (last: number) => [{ table: "counters", key: "webhook", row: { last } }] as const;
  const commit = async (ledger: Ledger, proposed: Draft) =>
    ledger.apply([await ledger.decide(proposed)], { rows: [], tiles: [] });
  const draft = (last: number) => ({ firstIndex: 0, batch: null, rows: rows(last) });

  test("that is behind writes nothing, wherever it is behind", async () => {
    const path = temporaryFolder();
    await withStore(path, async (store) => {
      const [first, second] = [new Ledger(store, localJournal), new Ledger(store, localJournal)];
      for (let n = 1; n <= 3; n++) {
        await commit(first, draft(n));
        await expect(commit(second, draft(-n))).rejects.toEqual(OTHER_WRITER);
        expect(store.get("counters", "webhook")).toEqual({ last: n });
        expect(store.position().sequence).toBe(n);
      }
      second.restore();
      await commit(second, draft(4));
      expect(store.position().sequence).toBe(4);
    });
  });

  test("does not go on from a state before what it has written, whoever shows it", async () => {
    await withStore(temporaryFolder(), async (store) => {
      let shown: JournalPosition | null = null;
      const position = () => shown ?? store.position();
      const ledger = new Ledger({ position, commit: (changes) => store.commit(changes) } as Store, localJournal);
      await commit(ledger, draft(1));
      const old = store.position();
      await commit(ledger, draft(2));
      shown = old;
      expect(() => ledger.restore()).toThrow("was written");
      shown = null;
      ledger.restore();
      await commit(ledger, draft(3));
      expect(store.position().sequence).toBe(3);
    });
  });

  test("replaces private rows by those of the record, and keeps none of the others", async () => {
    await withStore(temporaryFolder(), async (store) => {
      const ledger = new Ledger(store, localJournal);
      const password = (key: string, hash: string) =>
        ({ table: "passwords", key, row: { hash, set_at: "", version: "" } }) as const;
      const draftOf = (...rows: Draft["rows"]) => ({ firstIndex: 0, batch: null, rows });
      await commit(ledger, draftOf(password("a", "1"), password("b", "1")));
      const decided = await ledger.decide(draftOf(password("b", "2"), password("c", "2")));
      await ledger.apply([{ ...decided, replacesPrivateRows: true }], { rows: [], tiles: [] });
      const left = [...store.range("passwords")].map(({ key, row }) => [key, row.hash]);
      expect(left).toEqual([
        ["b", "2"],
        ["c", "2"],
      ]);
    });
  });

  test("goes on behind the place in a journal that it has adopted", async () => {
    await withStore(temporaryFolder(), async (store) => {
      const ledger = new Ledger(store, localJournal);
      const position = { sequence: 7, epoch: 2, hash: Buffer.alloc(32, 1) };
      await ledger.adopt({ position, rows: rows(1) });
      expect([ledger.position, store.position()]).toEqual([position, position]);
      const { record } = await ledger.decide(draft(2));
      expect(record).toMatchObject({ sequence: 8, epoch: 2, previous: position.hash });
    });
  });

  test("passes on that another node leads; whatever else a journal throws is no answer", async () => {
    await withStore(temporaryFolder(), async (store) => {
      const failing = (error: Error) => ({ ...localJournal, propose: () => Promise.reject(error) });
      const decided = (error: Error) => new Ledger(store, failing(error)).decide(draft(1));
      const notLeader = new CairnlogError("not-leader", "Another node writes this log.");
      await expect(decided(notLeader)).rejects.toBe(notLeader);
      await expect(decided(new CairnlogError("overloaded", ""))).rejects.toMatchObject({ code: "storage-failed" });
    });
  });

  test.each([
    ["no journal keeps", NO_HASH, "storage-full"],
    ["a journal keeps", Buffer.alloc(32, 1), "storage-failed"],
  ])("a record that %s, and the disk has no room for: %#", async (_, hash, code) => {
    const full = new CairnlogError("storage-full", "There is no room.");
    await withStore(temporaryFolder(), async (store) => {
      const shown = { position: () => store.position(), commit: () => Promise.reject(full) } as Partial<Store> as Store;
      const ledger = new Ledger(shown, { ...localJournal, propose: async () => hash });
      const before = ledger.position;
      await expect(commit(ledger, draft(1))).rejects.toMatchObject({ code });
      expect(ledger.position).toEqual(before);
    });
  });

  test("puts no batch over one that a version without positions has written", async () => {
    const path = temporaryFolder();
    await withStore(path, (store) => commit(new Ledger(store, localJournal), draft(1)));
    await writeBeside(path, "batches", 0, Buffer.from("theirs"));
    await withStore(path, async (store) => {
      const batch = Buffer.from("ours");
      const ledger = new Ledger(store, localJournal);
      await expect(commit(ledger, { ...draft(2), batch })).rejects.toEqual(OTHER_WRITER);
      expect(store.get("counters", "webhook")).toEqual({ last: 1 });
      expect([...store.batchKeys()]).toEqual([0]);
      expect(store.position().sequence).toBe(1);
    });
  });
});

test("a log of the format without positions is opened, keeps its content, and begins to count", async () => {
  expect(MIGRATIONS.length + 1).toBe(FORMAT);
  const { log, path } = await openTestLog();
  const receipts = [await log.append(event(0)), await log.append(event(1))];
  const meta = log.row("meta", "log")!;
  await log.close();
  await writeBeside(path, "meta", "log", { ...meta, format: 1 } satisfies LogMeta);
  await writeBeside(path, "journal", "position", undefined);
  expect((await positionOf(path)).sequence).toBe(0);

  const { log: again } = await openTestLog({ path });
  expect(again.row("meta", "log")).toEqual(meta);
  for (const { log_entry_id, entry_hash } of receipts) expect(again.entry(log_entry_id)?.entry_hash).toBe(entry_hash);
  expect((await again.append(event(2))).leaf_index).toBe(2);
  expect(await again.verify()).toMatchObject({ valid: true, entry_count: 3 });
  await again.close();
  expect((await positionOf(path)).sequence).toBe(1);
});

describe("on the disk of a node of a replicated log", () => {
  const pem = generatePrivateKey("ed25519");
  const operator = operatorKey(pem);
  const ending = { reason: "over", successor: null };
  const said = { reason: "an order", basis: null };
  const head = { tree_size: 1, root_hash: "", timestamp: "", signature: "", key_id: "", tree_version: 2 as const };
  const preceding = { url: "https://log.example", operator_key: "", tree_head: head };
  const OPERATOR_WORK: Readonly<Record<string, (settings: Settings, path: string) => Promise<unknown>>> = {
    "an ending": (settings) => freezeLog(settings, operator, ending),
    "an entry that withholds": (settings) => withholdAt({ settings }, operator, 1, said),
    "an entry that continues": (settings) => continueLog(settings, operator, preceding),
    "a rotation": (settings, path) => openSoundLog(settings, path, operator),
    "whatever a service does": ({ dataDir }) => startServer({ dataDir, port: 0 }),
  };

  test.each(Object.entries(OPERATOR_WORK))("the operator does not make %s alone", async (_, work) => {
    const dataDir = temporaryFolder();
    const path = join(dataDir, "log");
    writeFileSync(join(dataDir, "operator.pem"), pem, { mode: 0o600 });
    const journal = new FakeJournal();
    const { log } = await openTestLog({ path, journal, signer: operator });
    await log.append(event(0));
    await log.close();
    const before = await positionOf(path);
    const refused = { code: "precondition-failed", message: expect.stringContaining("--server") };
    await expect(work({ dataDir } as Settings, path)).rejects.toMatchObject(refused);
    expect(await positionOf(path)).toEqual(before);
    const { log: again } = await openTestLog({ path, journal, signer: operator });
    expect((await again.append(event(1))).leaf_index).toBe(1);
  });

  test("that has left it, all of this may be done", async () => {
    const dataDir = temporaryFolder();
    const path = join(dataDir, "log");
    writeFileSync(join(dataDir, "operator.pem"), pem, { mode: 0o600 });
    const { log } = await openTestLog({ path, journal: new FakeJournal(), signer: operator });
    await log.append(event(0));
    await log.close();
    const before = await positionOf(path);
    const refusal = async () => Promise.reject(new CairnlogError("precondition-failed", "No."));
    await expect(leaveRecords(path, refusal)).rejects.toThrow("No.");
    expect(await positionOf(path)).toEqual(before);
    await leaveRecords(path, async (left) => expect(left).toEqual(before));
    await expect(leaveRecords(path, async () => {})).rejects.toMatchObject({ code: "precondition-failed" });
    await (await startServer({ dataDir, port: 0 })).close();
    expect((await freezeLog({ dataDir } as Settings, operator, ending)).tree_size).toBe(2);
  });
});
