/** A data file that was changed directly: each fault is reported, and derived data is restored. */
import type { Database } from "lmdb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { Batch, storedBatch } from "#cairnlog/engine/store/schema/batch.js";
import { DERIVED_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { anyEvent } from "../anyevent.js";
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
  tamperPostings,
} from "./everykind.js";

const pool = createPool(1);
/** 600 entries, with events of every kind. */
let small: string;
/** Enough entries for two runs of postings. */
let large: string;
beforeAll(async () => {
  small = await buildData(pool, 591);
  large = await buildData(pool, 8_500);
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

/** Appended entries have no seams, and the operator key was not rotated (test/log/operator has such logs). */
const FILLED_TABLES = DERIVED_TABLES.filter((name) => name !== "seams" && name !== "operatorRotations");
/** The first bytes of a map with two members. */
const NO_ROW = Buffer.from([0x82, 0xa1]);
const keysOf = (table: Database) => [...table.getKeys()];

/** Asserts that the log opens and that its answers agree with its entries. */
async function expectWhole(dataDir: string): Promise<void> {
  const { log, close } = await openData(dataDir, pool);
  expect(log.stateDifferences()).toEqual([]);
  expect((await log.verify()).errors).toEqual([]);
  await log.append(anyEvent());
  await close();
}

/** Every private row, as bytes. */
async function privateRows(dataDir: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  const names = ["users", "credentials", "webhooks", "outbox", "anchors", "trustConfigs", "notifications", "batches"];
  await tamper(dataDir, async (_, bytes) => {
    // As text, because `toEqual` compares a buffer byte by byte, which takes as long as all the rest.
    for (const name of names)
      for (const { key, value } of bytes(name).getRange()) rows.push([name, key, value.toString("base64")]);
  });
  return rows;
}

test("nothing differs in a directory that nobody touched", async () => {
  for (const dataDir of [small, large])
    expect(await check(copyOf(dataDir), pool)).toMatchObject({ ok: true, differences: [] });
  const empty = newFolder();
  await (await openData(empty, pool)).close();
  expect(await check(empty, pool)).toMatchObject({ ok: true, entries: 0 });
});

describe("derived rows", () => {
  /** `small`, with a payload that is withheld. */
  let filled: string;
  beforeAll(async () => {
    filled = copyOf(small);
    const { log, close } = await openData(filled, pool);
    const { entries } = log.find({ eventTypes: ["https://x-service.example/predicates/authorship/v1"] }, 0, 1);
    await withhold({ log, writer: log }, JSON.parse(entries[0]!.toString()).id, { reason: "an order", basis: null });
    await close();
  });
  const plant = {
    "dropped rows": (table: Database) => Promise.all(keysOf(table).map((key) => table.remove(key))),
    "altered rows": (table: Database) =>
      Promise.all(keysOf(table).map((key) => table.put(key, { ...table.get(key), planted: 1 }))),
    "rows that no entry makes": (table: Database) => {
      const [key] = keysOf(table);
      const other = typeof key === "number" ? 99_999 : Array.isArray(key) ? ["~", ...key.slice(1)] : "~";
      return table.put(other, table.get(key!));
    },
  };
  const says = {
    "dropped rows": "is missing on disk.",
    "altered rows": "differs from the one that the entries make.",
    "rows that no entry makes": "is on disk, but the entries do not make it.",
  };

  test.each(Object.keys(plant) as (keyof typeof plant)[])("%s are named in every table and restored", async (fault) => {
    const dataDir = copyOf(filled);
    const before = await privateRows(dataDir);
    await tamper(dataDir, async (table) => {
      for (const name of FILLED_TABLES) await plant[fault](table(name));
    });
    const report = await check(dataDir, pool);
    for (const name of FILLED_TABLES)
      expect(sentences(report), name).toContainEqual(
        expect.stringMatching(new RegExp(`^${name} .* ${says[fault].replaceAll(".", "\\.")}$`)),
      );
    expect(report.counts).toMatchObject({ entries: 0, private: 0 });
    expect(await rebuild(dataDir, pool)).toMatchObject({ ok: true, differences: [] });
    expect(await privateRows(dataDir)).toEqual(before);
    await expectWhole(dataDir);
  });

  test("a seam where there is none is named and removed", async () => {
    const dataDir = copyOf(small);
    const seam = { leaf_index: 99, starts_at: 1, before: 2 };
    await tamper(dataDir, (table) => table("seams").put(100, seam));
    expect(sentences(await check(dataDir, pool))).toEqual(["seams 100 is on disk, but the entries do not make it."]);
    expect((await rebuild(dataDir, pool)).ok).toBe(true);
    await expectWhole(dataDir);
  });

  test("bytes that are no row are named in every table and restored", async () => {
    const dataDir = copyOf(filled);
    await tamper(dataDir, async (_, bytes) => {
      for (const name of FILLED_TABLES) {
        const [key] = [...bytes(name).getKeys()];
        await bytes(name).put(key!, NO_ROW);
      }
    });
    const report = await check(dataDir, pool);
    for (const name of FILLED_TABLES)
      expect(sentences(report), name).toContainEqual(expect.stringMatching(`^${name} .* cannot be read\\.$`));
    expect((await rebuild(dataDir, pool)).ok).toBe(true);
    await expectWhole(dataDir);
  });
});

describe("tiles", () => {
  const faults: [string, (tiles: Database<Buffer>) => Promise<unknown>, string][] = [
    ["a deleted leaf tile", (tiles) => tiles.remove([1, 0, 1]), "tile [1,0,1] is missing on disk."],
    ["a deleted newest tile of a higher level", (tiles) => tiles.remove([2, 1, 0]), "tile [2,1,0] is missing on disk."],
    [
      "an altered tile",
      (tiles) => flip(tiles, [2, 0, 0], 40),
      "tile [2,0,0] differs from the one that the entries make.",
    ],
    [
      "a tile cut short",
      (tiles) => tiles.put([1, 0, 0], tiles.get([1, 0, 0])!.subarray(0, 64)),
      "tile [1,0,0] differs from the one that the entries make.",
    ],
    [
      "a tile that no entries make",
      (tiles) => tiles.put([1, 0, 9], Buffer.alloc(8192)),
      "tile [1,0,9] is on disk, but the entries do not make it.",
    ],
  ];
  test.each(faults)("%s is named, alone, and restored", async (_, plant, sentence) => {
    const dataDir = copyOf(small);
    await tamper(dataDir, (_table, bytes) => plant(bytes("tiles")));
    expect(sentences(await check(dataDir, pool))).toEqual([sentence]);
    expect((await rebuild(dataDir, pool)).ok).toBe(true);
    await expectWhole(dataDir);
  });
});

async function flip(table: Database<Buffer>, key: unknown, at: number): Promise<void> {
  const row = Buffer.from(table.get(key as never)!);
  row[at]! ^= 1;
  await table.put(key as never, row);
}

describe("postings", () => {
  const faults: [string, Parameters<typeof tamperPostings>[1], RegExp][] = [
    ["a dropped run", (table) => table("runs").remove(1), /^run 2 of postings begins at leaf 4105, where .* ends at 0/],
    ["a dropped block", (_, bytes) => bytes("postings").remove([2, 3]), /^block 3 of run 2 of postings is missing/],
    [
      "a block cut short",
      (_, bytes) => bytes("postings").put([1, 0], bytes("postings").get([1, 0])!.subarray(0, 240)),
      /^block 0 of run 1 of postings has 240 bytes instead of 16344/,
    ],
    ["an altered record", (_, bytes) => flip(bytes("postings"), [1, 2], 5), /^run 1 of postings lacks the posting of /],
    [
      "a wrong count",
      (table) => table("runs").put(1, { ...table("runs").get(1), count: table("runs").get(1).count - 1 }),
      /^(block \d+ of run 1 of postings has|run 1 of postings lacks)/,
    ],
    [
      "a Bloom filter that forgot",
      (table) => table("runs").put(1, { ...table("runs").get(1), bloom: Buffer.alloc(64) }),
      /^the Bloom filter of run 1 denies the posting of entry \d+ of the kind (submission|signedPayload|attestationId)/,
    ],
    [
      "a run beyond the end",
      (table) => table("runs").put(9, { ...table("runs").get(1), from: 8201, to: 12_288 }),
      /^run 9 of postings covers leaves 8201 to 12288, and the log has 8509/,
    ],
    [
      "a fence that is not where its block begins",
      (table) => {
        const row = table("runs").get(1);
        const fences = Buffer.from(row.fences);
        fences[24 + 5]! ^= 1;
        return table("runs").put(1, { ...row, fences });
      },
      /^the fences of run 1 of postings are not the first records/,
    ],
    ["a run whose row is no row", (_, bytes) => bytes("runs").put(2, NO_ROW), /^the row of run 2 .*read/],
  ];
  test("each fault is named; all of them together are restored", async () => {
    const all = copyOf(large);
    for (const [name, plant, sentence] of faults) {
      const dataDir = copyOf(large);
      await tamperPostings(dataDir, plant);
      const report = await check(dataDir, pool);
      expect(sentences(report), name).toContainEqual(expect.stringMatching(sentence));
      expect(report.counts, name).toMatchObject({ entries: 0, private: 0 });
    }
    for (const [, plant] of faults.slice(1)) await tamperPostings(all, plant);
    expect(sentences(await rebuild(all, pool))).toEqual([]);
    await expectWhole(all);
  });
});

describe("meta", () => {
  const faults: [string, object | undefined, RegExp][] = [
    ["a lost row", undefined, /^meta: the row is missing/],
    ["another operator", { key_id: `sha256:${"0".repeat(64)}` }, /^meta: the stored operator key is sha256:0000/],
    [
      "a beginning after the first entry",
      { created_at: "2999-01-01T00:00:00.000000Z" },
      /^meta: the stored creation time "2999/,
    ],
    ["an interrupted rebuild", { rebuilding: true }, /^meta: a rebuild was interrupted/],
  ];
  test.each(faults)("%s is named and restored", async (_, change, sentence) => {
    const dataDir = copyOf(small);
    await tamper(dataDir, (table) =>
      change ? table("meta").put("log", { ...table("meta").get("log"), ...change }) : table("meta").remove("log"),
    );
    expect(sentences(await check(dataDir, pool))).toEqual([expect.stringMatching(sentence)]);
    expect((await rebuild(dataDir, pool)).ok).toBe(true);
    await expectWhole(dataDir);
  });
});

describe("entries and heads", () => {
  const first = (batches: Database<Buffer>) => [...batches.getKeys()].at(-1) as unknown as number;
  const replace = (from: string, to: string) => async (batches: Database<Buffer>) => {
    const row = Buffer.from(new Batch(first(batches), batches.get(first(batches) as never)!).packed);
    const at = row.indexOf(from);
    expect(at).toBeGreaterThan(0);
    row.write(to, at);
    await batches.put(first(batches) as never, storedBatch(row));
  };
  /** The newest batch of `small` has 79 entries: offsets, digests, key id, then the heads of 104 bytes. */
  const headsAt = 8 + (4 + 32) * 79 + 32;
  const faults: [string, (batches: Database<Buffer>) => Promise<unknown>, RegExp][] = [
    ["an altered payload", replace("note 5", "note 6"), /^entry 527: .*hash/],
    ["an altered id", replace('"id":530,', '"id":999,'), /^entry 531: The id does not ascend/],
    ["an altered digest", (batches) => flip(batches, first(batches), 8 + 4 * 79 + 32 * 5), /^entry 527: .*digest/],
    ["an altered root", (batches) => flip(batches, first(batches), headsAt), /^tree size 522: .* root/],
    ["an altered signature", (batches) => flip(batches, first(batches), headsAt + 104 + 45), /^tree size 523: .*sign/],
    [
      "a head's timestamp that is none",
      (batches) => {
        const row = Buffer.from(batches.get(first(batches) as never)!);
        row.writeDoubleLE(Number.NaN, headsAt + 2 * 104 + 32);
        return batches.put(first(batches) as never, row);
      },
      /^tree size 524: .*sign/,
    ],
    [
      "an entry without id",
      replace('"id":540,', '"ix":540,'),
      /^tree size 540: The entry at leaf 539 is not a valid entry: .id is/,
    ],
    ["another signer", (batches) => flip(batches, first(batches), headsAt - 5), /^tree size \d+: .* another key/],
    [
      "a truncated newest batch",
      (batches) => batches.put(first(batches) as never, batches.get(first(batches) as never)!.subarray(0, -10)),
      /^The batch at leaf 521 is cut short\.$/,
    ],
    ["a lost batch in the middle", (batches) => batches.remove(9 as never), /^The entries 10 to 521 are missing\.$/],
    ["a batch of no known format", (batches) => flip(batches, 9, 0), /^The batch at leaf 9 is not in a format/],
  ];
  test.each(faults)("%s is named, and nothing is rebuilt", async (_, plant, sentence) => {
    const dataDir = copyOf(small);
    await tamper(dataDir, async (table, bytes) => {
      await plant(bytes("batches"));
      await table("keys").put("planted", {});
    });
    const report = await check(dataDir, pool);
    expect(sentences(report)).toContainEqual(expect.stringMatching(sentence));
    expect(report.counts.entries).toBeGreaterThan(0);
    await expect(rebuild(dataDir, pool)).rejects.toMatchObject({ code: "corrupt-log" });
    await tamper(dataDir, async (table) => expect(table("keys").get("planted")).toEqual({}));
  });

  test("a log whose newest batch is gone is missed by all that followed from it", async () => {
    const dataDir = copyOf(small);
    await tamper(dataDir, (_, bytes) => bytes("batches").remove(first(bytes("batches")) as never));
    const report = await check(dataDir, pool);
    expect(report.entries).toBe(521);
    expect(sentences(report)).toEqual([]);
  });
});

describe("private rows", () => {
  /** Gives the first row of a table another member. */
  const change =
    (name: "users" | "credentials", member: Record<string, unknown>): Parameters<typeof tamper>[1] =>
    (table) => {
      const [key] = keysOf(table(name));
      return table(name).put(key!, { ...table(name).get(key!), ...member });
    };
  const faults: [string, Parameters<typeof tamper>[1], RegExp][] = [
    [
      "a name without account",
      (table) => table("userNames").put("eve", { user_id: "x" }),
      /^userNames "eve": there is/,
    ],
    ["an account without name", (table) => table("userNames").remove("ada"), /^users .*: userNames does not lead/],
    ["an account of another id", change("users", { id: "x" }), /^users .*: the row is that of x\.$/],
    [
      "a credential of another account",
      change("credentials", { user_id: "x" }),
      /^credentials .*: the row is that of another one/,
    ],
    [
      "a credential of another id",
      change("credentials", { id: "x" }),
      /^credentials .*: the row is that of another one/,
    ],
    ["a lost account", (table) => table("users").remove(keysOf(table("users"))[0]!), /^credentials .*no such account/],
    [
      "a lost credential",
      (table) => table("credentials").remove(keysOf(table("credentials"))[0]!),
      /^credentialKeys .*no such credential/,
    ],
    [
      "a key without credential",
      (table) => table("credentialKeys").remove(keysOf(table("credentialKeys"))[0]!),
      /^credentials .*credentialKeys does not lead/,
    ],
    [
      "a wrong length of an inbox",
      (table) => table("inboxes").put(keysOf(table("inboxes"))[0]!, { count: 5 }),
      /^inboxes .*: 5 are counted, but notifications has 2/,
    ],
    ["a wrong length of an outbox", (table) => table("outbox").remove([7, 1]), /^outboxCounts 7: 1 are counted, but/],
    [
      "a delivery of an entry that is not there",
      (table) => table("outbox").put([7, 9999], table("outbox").get([7, 1])),
      /^outbox 7: it tells of entry 9999, but the last entry is 600/,
    ],
    [
      "a cursor beyond the end",
      (table) => table("webhookCursors").put(7, { next: 9999 }),
      /^webhookCursors 7: it is at/,
    ],
    [
      "a cursor of nobody",
      (table) => table("webhookCursors").put(6, { next: 1 }),
      /^webhookCursors 6: there is no webhook/,
    ],
    [
      "more matched entries than there are",
      (table) => table("counters").put("webhook-walk", { last: 9999 }),
      /^counters "webhook-walk": 9999 entries are matched/,
    ],
    ["an id given out twice", (table) => table("counters").remove("webhook"), /^counters "webhook": 0 is the last id/],
    [
      "a lost configuration",
      (table) => table("trustConfigs").remove(1),
      /^trustConfigHeads "": 2 are counted, but trustConfigs has 1/,
    ],
    ["a wrong newest configuration", (table) => table("trustConfigHeads").put("", { id: 1 }), /^trustConfigHeads ""/],
    ["lost work on an anchor", (table) => table("anchorWork").remove(3), /^anchors 3: it waits for its block, but/],
    ["a lost anchor", (table) => table("anchors").remove(3), /^anchorWork 3: it does not match/],
    ["wrong totals", (table) => table("anchorTotals").remove("log"), /^anchorTotals: /],
    ["bytes that are no row", (_, bytes) => bytes("users").put("x", NO_ROW), /^users "x" cannot be read/],
  ];
  test("each contradiction is named and left alone", async () => {
    for (const [name, plant, sentence] of faults) {
      const dataDir = copyOf(small);
      await tamper(dataDir, plant);
      const report = await check(dataDir, pool);
      expect(sentences(report), name).toContainEqual(expect.stringMatching(sentence));
      expect(report.counts, name).toMatchObject({ entries: 0, derived: 0 });
    }
  });
});

test("an interrupted rebuild is refused at the start, and finished by the next one", async () => {
  const dataDir = copyOf(small);
  await tamper(dataDir, async (table) => {
    await table("keys").put("planted", {});
  });
  // The signal is first checked after the mark was set and the runs were removed.
  const signal = AbortSignal.abort(new Error("interrupted by the test"));
  await expect(rebuild(dataDir, pool, signal)).rejects.toThrow("interrupted by the test");
  await expect(openData(dataDir, pool)).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringMatching(/rebuild .* was interrupted. Finish it: cairnlog fsck --rebuild/),
  });
  expect((await rebuild(dataDir, pool)).ok).toBe(true);
  await expectWhole(dataDir);
});
