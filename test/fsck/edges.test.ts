/** Edge cases of `fsck`: the last value that it accepts, and the first that it refuses. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Database } from "lmdb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { checkFiles, withFiles } from "#cairnlog/engine/log/check/files.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { formatTimestamp, parseTimestamp } from "#cairnlog/engine/log/state/clock.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import type { TreeHead } from "#cairnlog/engine/verify/tree/treehead.js";
import { chain, definedRoot } from "../log/history/entries.js";
import { buildData, check, copyOf, newFolder, openData, removeFolders, sentences, tamper } from "./everykind.js";

const pool = createPool(1);
/** Number of entries in the log. */
const SIZE = 12;
let data: string;
beforeAll(async () => {
  data = await buildData(pool, SIZE - 9);
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

describe("private rows about the last entry, and about one more", () => {
  const OWNER = `sha256:${"0".repeat(64)}`;
  const dated = (row: object) => ({ ...row, created_at: "2025-01-01T00:00:00.000000Z" });
  /** One row about an entry, with the counts that belong to it. */
  const plant: Record<string, (table: (name: string) => Database, id: number) => Promise<unknown>> = {
    notifications: async (table, id) => {
      await table("notifications").put(
        [OWNER, id],
        dated({ kind: "attestation_request", request_id: "r", read: false }),
      );
      await table("inboxes").put(OWNER, { count: 1 });
    },
    outbox: async (table, id) => {
      await table("outbox").put([8, id], dated({ event: "key.registered", attempt: 0, next_attempt_at: null }));
      await table("outboxCounts").put(8, { count: 1 });
    },
    anchors: async (table, id) => {
      const row = { status: "confirmed", anchored_at: "2025-01-01T00:00:00.000000Z" };
      const totals = table("anchorTotals").get("log") ?? { newest: -1, pending: 0, confirmed: 0 };
      await table("anchors").put(id - 1, { ...row, proof: Buffer.from("a proof"), updated_at: row.anchored_at });
      await table("anchorTotals").put("log", { ...totals, newest: id - 1, confirmed: totals.confirmed + 1 });
    },
  };
  const refused: Record<string, string> = {
    notifications: `notifications ${OWNER}: it tells of entry ${SIZE + 1}, but the last entry is ${SIZE}.`,
    outbox: `outbox 8: it tells of entry ${SIZE + 1}, but the last entry is ${SIZE}.`,
    anchors: `anchors ${SIZE}: entry ${SIZE + 1} is anchored, but the log has ${SIZE} entries.`,
  };

  test.each(Object.keys(plant))("%s", async (name) => {
    const last = copyOf(data);
    await tamper(last, (table) => plant[name]!(table, SIZE));
    expect(await check(last, pool)).toMatchObject({ ok: true, differences: [] });
    const beyond = copyOf(data);
    await tamper(beyond, (table) => plant[name]!(table, SIZE + 1));
    expect(sentences(await check(beyond, pool))).toEqual([refused[name]]);
  });

  test("are judged by the last id, where imported history left ids out", async () => {
    const dataDir = newFolder();
    const signer = openOperatorKey(join(dataDir, "operator.pem"));
    await importEntries({ path: join(dataDir, "log"), signer, projection }, chain([{}, { id: 40 }]));
    await tamper(dataDir, (table) => plant.outbox!(table, 40));
    await tamper(dataDir, (table) => plant.notifications!(table, 40));
    expect(await check(dataDir, pool)).toMatchObject({ ok: true, differences: [] });
    await tamper(dataDir, (table) => plant.outbox!(table, 41));
    await tamper(dataDir, (table) => table("outboxCounts").put(8, { count: 2 }));
    expect(sentences(await check(dataDir, pool))).toEqual([
      "outbox 8: it tells of entry 41, but the last entry is 40.",
    ]);
  });

  test("on an empty log are all refused", async () => {
    const dataDir = newFolder();
    await (await openData(dataDir, pool)).close();
    await tamper(dataDir, (table) => plant.outbox!(table, 1));
    expect(sentences(await check(dataDir, pool))).toEqual(["outbox 8: it tells of entry 1, but the last entry is 0."]);
  });
});

test("the head that was shown may be the newest, with its root, and no later one", async () => {
  const dataDir = copyOf(data);
  const { log, close } = await openData(dataDir, pool);
  const heads = [SIZE - 1, SIZE].map((size) => log.treeHead(size)!);
  await close();
  const [older, newest] = heads as [TreeHead, TreeHead];
  const said = async (published: TreeHead) => {
    const report = await check(dataDir, pool, { published });
    // Either way it is the entries that are not what they were.
    expect(report.counts).toEqual({ entries: report.differences.length, derived: 0, private: 0 });
    expect(report.differences.every(({ area }) => area === "entries")).toBe(true);
    return sentences(report);
  };
  expect(await said(older)).toEqual([]);
  expect(await said(newest)).toEqual([]);
  const another = `The head of ${SIZE} entries that was signed and shown is not the one in this log.`;
  expect(await said({ ...newest, root_hash: older.root_hash })).toEqual([another]);
  const later = `A head of ${SIZE + 1} entries was signed and shown, but the log has only ${SIZE}.`;
  expect(await said({ ...newest, tree_size: SIZE + 1 })).toEqual([later]);
});

test("the head that was shown is compared with imported entries, which have none of their own", async () => {
  const dataDir = newFolder();
  const signer = openOperatorKey(join(dataDir, "operator.pem"));
  const entries = chain([{}, {}]);
  await importEntries({ path: join(dataDir, "log"), signer, projection }, entries);
  const { log, close } = await openData(dataDir, pool);
  const shown = { ...log.treeHead()!, tree_size: 1 };
  await close();
  const said = async (root_hash: string) =>
    sentences(await check(dataDir, pool, { published: { ...shown, root_hash } }));
  const [first, second] = entries.map(({ entry_hash }) => definedRoot([entry_hash], 2)) as [string, string];
  expect(await said(first)).toEqual([]);
  expect(await said(second)).toEqual(["The head of 1 entries that was signed and shown is not the one in this log."]);
});

test("the log may have been made when its first head was, and no later", async () => {
  const dataDir = copyOf(data);
  const { log, close } = await openData(dataDir, pool);
  const first = parseTimestamp(log.treeHead(1)!.timestamp);
  await close();
  const saidOf = async (created_at: unknown) => {
    await tamper(dataDir, (table) => table("meta").put("log", { ...table("meta").get("log"), created_at }));
    return sentences(await check(dataDir, pool));
  };
  const wrong = expect.stringMatching(
    /^meta: the stored creation time .* is not a time, or is later than the first entry/,
  );
  expect(await saidOf(formatTimestamp(first))).toEqual([]);
  expect(await saidOf(formatTimestamp(first + 1))).toEqual([wrong]);
  for (const none of ["2020-01-01T00:00:00Z", "once", 7, undefined]) expect(await saidOf(none)).toEqual([wrong]);
});

test("a damaged file of postings is a difference of what follows from the entries", () => {
  const log = join(copyOf(data), "log");
  const file = join(log, "postings", "data.mdb");
  writeFileSync(file, Buffer.alloc(8192, 7));
  expect(checkFiles(log)).toMatchObject({
    ...{ log: "sound", postings: "damaged" },
    differences: [{ area: "derived", message: expect.stringContaining(`${file} is damaged: `) }],
  });
});

test("what is wrong with the files is told first, and is counted with the rest", () => {
  const own = { area: "derived", message: "A row differs." } as const;
  const report = { ok: false, entries: 7, counts: { entries: 0, derived: 1, private: 0 }, differences: [own] };
  const damaged = { area: "entries", message: "data.mdb is damaged." } as const;
  const files = { log: "damaged", postings: "sound", differences: [damaged] } as const;
  expect(withFiles(report, files)).toEqual({
    ...{ ok: false, entries: 7 },
    ...{ counts: { entries: 1, derived: 1, private: 0 }, differences: [damaged, own] },
  });
  const sound = { log: "sound", postings: "sound", differences: [] } as const;
  expect(withFiles({ ...report, ok: true }, sound).ok).toBe(true);
  expect(withFiles({ ...report, ok: true }, files).ok).toBe(false);
});
