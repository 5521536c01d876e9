/** The progress and the report of a check, and that it leaves no files behind. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { openHistory } from "#cairnlog/engine/log/history/history.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { formatTimestamp, parseTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { packBatch } from "#cairnlog/engine/store/schema/batch.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { anyEvent } from "../anyevent.js";
import { chain, line } from "../log/history/entries.js";
import {
  buildData,
  check,
  copyOf,
  newFolder,
  openData,
  rebuild,
  removeFolders,
  sentences,
  tamper,
} from "./everykind.js";

const pool = createPool(1);
/** Number of entries in `small`. */
const SIZE = 12;
let small: string;
/** A log that takes two steps of deriving. */
let longer: string;
const LONGER = 1109;
beforeAll(async () => {
  small = await buildData(pool, SIZE - 9);
  longer = await buildData(pool, LONGER - 9);
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

const scratchOf = (dataDir: string) => join(dataDir, "log", "scratch");
const NO_ROW = Buffer.from([0x82, 0xa1]);

test("progress is told by stage, and nothing is left behind", async () => {
  const dataDir = copyOf(longer);
  const told: unknown[] = [];
  // The scratch folder of a run that was killed.
  mkdirSync(scratchOf(dataDir));
  writeFileSync(join(scratchOf(dataDir), "data.mdb"), "half of something");
  const progress = (...said: unknown[]) => told.push(said);
  expect(await check(dataDir, pool, { progress })).toEqual({
    ok: true,
    entries: LONGER,
    counts: { entries: 0, derived: 0, private: 0 },
    differences: [],
  });
  expect(told).toEqual([
    ["deriving", 1024, LONGER],
    ["deriving", LONGER, LONGER],
    ["verifying", LONGER, LONGER],
  ]);
  expect(existsSync(scratchOf(dataDir))).toBe(false);
});

test.each(["deriving", "verifying"])("a check that is broken off while %s leaves nothing behind", async (stage) => {
  const dataDir = copyOf(longer);
  const controller = new AbortController();
  const told: unknown[] = [];
  const progress = (now: string, done: number) => {
    told.push(now, done);
    if (now === "deriving" && done === (stage === "deriving" ? 1024 : LONGER))
      controller.abort(new Error("broken off by the test"));
  };
  const checking = check(dataDir, pool, { progress, signal: controller.signal });
  await expect(checking).rejects.toThrow("broken off by the test");
  expect(told).toEqual(stage === "deriving" ? ["deriving", 1024] : ["deriving", 1024, "deriving", LONGER]);
  expect(existsSync(scratchOf(dataDir))).toBe(false);
});

test("all differences are counted by area, and a thousand are named", async () => {
  const dataDir = copyOf(small);
  await tamper(dataDir, async (table) => {
    for (let i = 0; i < 1100; i++) await table("keys").put(`planted ${i}`, {});
    await table("userNames").put("eve", { user_id: "x" });
  });
  const { ok, counts, differences } = await check(dataDir, pool);
  expect({ ok, counts }).toEqual({ ok: false, counts: { entries: 0, derived: 1100, private: 1 } });
  expect(differences).toHaveLength(1000);
  expect(differences[0]).toEqual({
    area: "derived",
    message: 'keys "planted 0" is on disk, but the entries do not make it.',
  });
});

describe("batches", () => {
  const keysIn = (table: { getKeys(): Iterable<unknown> }) => [...table.getKeys()] as number[];

  test("that overlap are named, once", async () => {
    const dataDir = copyOf(small);
    let last = 0;
    await tamper(dataDir, async (_, bytes) => {
      const batches = bytes("batches");
      last = keysIn(batches).at(-1)!;
      await batches.put(last + 1, batches.get(last as never)!);
    });
    const report = await check(dataDir, pool);
    expect(report.entries).toBe(SIZE);
    expect(sentences(report)).toEqual([`The batch at leaf ${last + 1} overlaps the one before it.`]);
  });

  test("that are empty are named", async () => {
    const dataDir = copyOf(small);
    await tamper(dataDir, (_, bytes) => bytes("batches").put(SIZE as never, packBatch([], new Uint8Array(0), null)));
    const report = await check(dataDir, pool);
    expect(report.entries).toBe(SIZE);
    expect(sentences(report)).toEqual([`The batch at leaf ${SIZE} is empty.`]);
  });

  test("that are missing end what is checked, and those behind them are not named again", async () => {
    const dataDir = copyOf(small);
    let keys: number[] = [];
    await tamper(dataDir, async (_, bytes) => {
      keys = keysIn(bytes("batches"));
      await bytes("batches").remove(keys[1] as never);
    });
    expect(keys.length).toBeGreaterThan(3);
    const report = await check(dataDir, pool);
    expect(report.entries).toBe(keys[1]);
    expect(sentences(report)).toEqual([`The entries ${keys[1]! + 1} to ${keys[2]} are missing.`]);
    // With one more batch that cannot be read.
    await tamper(dataDir, (_, bytes) => bytes("batches").put(keys.at(-1) as never, NO_ROW));
    expect(sentences(await check(dataDir, pool))).toEqual([
      `The entries ${keys[1]! + 1} to ${keys[2]} are missing.`,
      `The batch at leaf ${keys.at(-1)} is not in a format this version reads.`,
    ]);
  });

  test("that begin late are missed from the first entry on", async () => {
    const dataDir = copyOf(small);
    let keys: number[] = [];
    await tamper(dataDir, async (_, bytes) => {
      keys = keysIn(bytes("batches"));
      await bytes("batches").remove(0 as never);
    });
    const report = await check(dataDir, pool);
    expect(report.entries).toBe(0);
    expect(sentences(report)).toContain(`The entries 1 to ${keys[1]} are missing.`);
  });
});

describe("the log's own row", () => {
  test("that cannot be read is named and restored", async () => {
    const dataDir = copyOf(small);
    await tamper(dataDir, (_, bytes) => bytes("meta").put("log" as never, NO_ROW));
    expect(sentences(await check(dataDir, pool))).toEqual(["meta: the row cannot be read."]);
    expect(await rebuild(dataDir, pool)).toMatchObject({ ok: true });
    await tamper(dataDir, async (table) => expect(table("meta").get("log").format).toBe(FORMAT));
  });

  test("of no format is named; of one that is too new or older, it is refused", async () => {
    const dataDir = copyOf(small);
    const saidOf = async (format: unknown) => {
      await tamper(dataDir, (table) => table("meta").put("log", { ...table("meta").get("log"), format }));
      return sentences(await check(dataDir, pool));
    };
    expect(await saidOf(0)).toEqual([`meta: the stored format is 0, but these tables are in format ${FORMAT}.`]);
    await expect(saidOf(FORMAT + 1)).rejects.toMatchObject({ code: "corrupt-log" });
    for (const older of [1, FORMAT - 1])
      await expect(saidOf(older)).rejects.toMatchObject({ code: "precondition-failed" });
    expect(await saidOf(FORMAT)).toEqual([]);
  });

  test("may be as old as the first head of imported history, or as any canonical time where there is no head", async () => {
    const dataDir = newFolder();
    const signer = openOperatorKey(join(dataDir, "operator.pem"));
    await importEntries({ path: join(dataDir, "log"), signer, projection }, chain(Array(5).fill({})));
    const { log, close } = await openData(dataDir, pool);
    for (let n = 0; n < 3; n++) await log.append(anyEvent({ n }));
    const first = parseTimestamp(log.treeHead(5)!.timestamp);
    await close();
    const saidOf = async (created_at: string) => {
      await tamper(dataDir, (table) => table("meta").put("log", { ...table("meta").get("log"), created_at }));
      return sentences(await check(dataDir, pool));
    };
    expect(await saidOf(formatTimestamp(first))).toEqual([]);
    expect(await saidOf(formatTimestamp(first + 1))).toHaveLength(1);
    // The lost time is replaced by that of the first head.
    expect(await rebuild(dataDir, pool)).toMatchObject({ ok: true });
    await tamper(dataDir, async (table) => expect(table("meta").get("log").created_at).toBe(formatTimestamp(first)));

    const bare = newFolder();
    const { public: key } = openOperatorKey(join(bare, "operator.pem"));
    const writer = await openHistory({ path: join(bare, "log"), operatorKey: key.pem, projection });
    await writer.add(chain([{}]).map((entry) => ({ entry: line(entry), otsProof: null, head: null })));
    await writer.close();
    const created_at = "2999-01-01T00:00:00.000000Z";
    await tamper(bare, (table) => table("meta").put("log", { ...table("meta").get("log"), created_at }));
    expect(await check(bare, pool)).toMatchObject({ ok: true });
  });

  test("keeps what else it says when it is restored", async () => {
    const dataDir = copyOf(small);
    await tamper(dataDir, (table) =>
      table("meta").put("log", { ...table("meta").get("log"), sparse_heads: true, rebuilding: true }),
    );
    expect(await rebuild(dataDir, pool)).toMatchObject({ ok: true });
    await tamper(dataDir, async (table) => {
      const meta = table("meta").get("log");
      expect(meta).toMatchObject({ sparse_heads: true, format: FORMAT });
      expect(meta).not.toHaveProperty("rebuilding");
    });
  });
});

describe("private rows", () => {
  test("that cannot be read are all named, and nothing is concluded from the others", async () => {
    const dataDir = copyOf(small);
    await tamper(dataDir, async (table, bytes) => {
      await bytes("users").put("x" as never, NO_ROW);
      await bytes("outbox").put([7, 2] as never, NO_ROW);
      await table("userNames").put("eve", { user_id: "nobody" });
    });
    expect(sentences(await check(dataDir, pool)).sort()).toEqual([
      "outbox [7,2] cannot be read.",
      'users "x" cannot be read.',
    ]);
  });

  test("that are no objects cannot be read", async () => {
    const dataDir = copyOf(small);
    await tamper(dataDir, (table) => table("users").put("x", [1]));
    expect(sentences(await check(dataDir, pool))).toEqual(['users "x" cannot be read.']);
  });

  test("of another shape are a finding, and the other checks go on", async () => {
    const dataDir = copyOf(small);
    await tamper(dataDir, async (table) => {
      await table("users").put("x", {});
      await table("counters").remove("webhook");
    });
    expect(sentences(await check(dataDir, pool))).toEqual([
      expect.stringMatching(/^users x: the row is that of undefined/),
      "A private row does not have the members of its table.",
      expect.stringMatching(/^counters "webhook": 0 is the last id/),
    ]);
  });

  test("a check that fails for another reason ends the whole", async () => {
    const fails = () => {
      throw new Error("the disk is gone");
    };
    await expect(check(copyOf(small), pool, { privateChecks: [fails] })).rejects.toThrow("the disk is gone");
  });
});
