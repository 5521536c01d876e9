/** What a program gives to the embedded log: wrong values are refused before anything is done, and what its functions throw undoes nothing. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createPool, importEntries, openHistory, openLog, openLogReader } from "#cairnlog/engine/index.js";
import { keepUncaught } from "../uncaught.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "./harness.js";

const event = { event_type: "note", payload: {} };

/** What is tried in the place of each option. */
const JUNK: readonly unknown[] = [undefined, null, "", 0, -1, 0.5, Number.NaN, 7n, {}, [], () => {}, Symbol("s")];
const shown = (value: unknown) => (Array.isArray(value) ? "a list" : `${typeof value} ${String(value)}`);

type Given = Readonly<Record<string, unknown>>;
const { sign, public: shownKey, fingerprint } = testOperator;

const ENTRANCES: Readonly<
  Record<string, { readonly good: Given; readonly open: (given: unknown) => Promise<unknown> }>
> = {
  openLog: { good: { signer: testOperator }, open: (given) => openLog(given as never) },
  openLogReader: { good: { operatorKey: shownKey.pem }, open: (given) => openLogReader(given as never) },
  openHistory: { good: { operatorKey: shownKey.pem }, open: (given) => openHistory(given as never) },
  importEntries: { good: { signer: testOperator }, open: (given) => importEntries(given as never, []) },
};

describe.each(Object.entries(ENTRANCES))("%s", (_, { good, open }) => {
  test.each(JUNK.map((value) => [shown(value), value]))("refuses %s for its options", async (_name, value) => {
    await expect(open(value)).rejects.toMatchObject({ name: "CairnlogError", code: "invalid-input" });
  });

  test.each(["path", ...Object.keys(good)])("refuses what cannot be its %s, and makes nothing", async (option) => {
    const folder = temporaryFolder();
    for (const value of JUNK) {
      const given = { path: join(folder, "log"), mapSize: MAP_SIZE, ...good, [option]: value };
      await expect(open(given), shown(value)).rejects.toMatchObject({ name: "CairnlogError" });
    }
    expect(readdirSync(folder)).toEqual([]);
  });
});

test.each<[string, Given]>([
  ["a signer without a fingerprint", { signer: { sign, public: shownKey } }],
  ["a signer with a number for it", { signer: { sign, public: shownKey, fingerprint: 7 } }],
  ["a signer without a public key", { signer: { sign, fingerprint } }],
  ["a digest that is a list of its name", { digests: [["blake3"]] }],
  ["a digest that is no list", { digests: "sha3-256" }],
  ["a digest that is a number", { digests: 5 }],
])("openLog refuses %s", async (_, given) => {
  const options = { path: temporaryFolder(), mapSize: MAP_SIZE, signer: testOperator, ...given };
  await expect(openLog(options as never)).rejects.toMatchObject({ code: "invalid-input" });
});

test("nothing is verified by what is no number of workers", async () => {
  const refused = expect.objectContaining({ code: "invalid-input" });
  const { log, path } = await openTestLog();
  await log.append(event);
  await log.close();
  for (const pool of [createPool(1), null]) {
    const options = { path, signer: testOperator, mapSize: MAP_SIZE, ...(pool && { pool }) };
    const again = await openLog(options);
    for (const value of JUNK.slice(1)) {
      const workers = value as number;
      expect(() => createPool(workers), shown(value)).toThrow(refused);
      await expect(again.verify({ workers }), shown(value)).rejects.toEqual(refused);
    }
    expect(await again.verify({ workers: 1 })).toMatchObject({ valid: true, entry_count: 1 });
    await again.close();
    await pool?.close();
  }
});

test.each(JUNK.map((value) => [shown(value), value]))(
  "history refuses %s as items, and takes others",
  async (_, value) => {
    const options = { path: temporaryFolder(), mapSize: MAP_SIZE, operatorKey: shownKey.pem };
    const history = await openHistory(options);
    try {
      const refused = { code: "invalid-input" };
      if (!Array.isArray(value)) await expect(history.add(value as never)).rejects.toMatchObject(refused);
      await expect(history.add([value as never])).rejects.toMatchObject(refused);
      await expect(history.seal(value as never, testOperator)).rejects.toMatchObject(refused);
      expect(await history.add([])).toEqual([]);
    } finally {
      await history.close();
    }
  },
);

test.each(JUNK.filter((value) => value !== "" && !Array.isArray(value)).map((value) => [shown(value), value]))(
  "an import refuses %s as its source",
  async (_, value) => {
    const folder = temporaryFolder();
    const options = { path: join(folder, "log"), mapSize: MAP_SIZE, signer: testOperator };
    await expect(importEntries(options, value as never)).rejects.toMatchObject({ code: "invalid-input" });
    expect(readdirSync(folder)).toEqual([]);
  },
);

describe("functions that throw", () => {
  const own = new Error("of the program");
  const uncaught = keepUncaught();
  const fail = () => {
    throw own;
  };

  test("what observers throw is the program's: appends that are on disk are acknowledged, once", async () => {
    const { log } = await openTestLog();
    await log.append(event);
    log.observeBatches(fail);
    log.observeRows("meta", fail);
    const end = log.observeSize(fail);
    const receipts = await Promise.all([log.append(event), log.append([event, event]), log.append(event)]);
    expect(receipts.flat().map(({ log_entry_id }) => log_entry_id)).toEqual([2, 3, 4, 5]);
    await expect.poll(() => uncaught).toEqual([own, own]);
    end();
    expect([log.size, log.lastFailure]).toEqual([5, null]);
    expect((await log.verify()).errors).toEqual([]);
  });

  test("one that is answered by functions does not take the answers of others with it", async () => {
    const { log } = await openTestLog();
    const command = { name: "nothing", run: () => 7 };
    const refused = { name: "refused", run: fail };
    log.enqueue(command, null, fail, fail);
    log.enqueue(refused, null, fail, fail);
    expect(await Promise.all([log.execute(command, null), log.append(event)])).toMatchObject([
      { value: 7 },
      { log_entry_id: 1 },
    ]);
    await expect.poll(() => uncaught).toEqual([own, own]);
  });
});
