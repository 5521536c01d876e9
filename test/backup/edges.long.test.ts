/** Backups and restores at exact limits: one entry more or less, and the same number of other entries. */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import type { BackupManifest } from "#cairnlog/engine/log/history/backupformat.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { type PublishedTree, restore } from "#cairnlog/engine/log/history/restore.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../log/harness.js";
import { chain } from "../log/history/entries.js";
import { runIn } from "../log/inline.js";

const SIZE = 5;
/** A closed log whose entries hold these numbers, one batch each. */
async function builtLog(numbers: readonly number[]): Promise<string> {
  let now = 1_700_000_000_000_000;
  const { log, path } = await openTestLog({ clock: () => now++ });
  for (const n of numbers) await log.append(anyEvent({ n }));
  await log.close();
  return path;
}

const backedUp = async (path: string, to = join(temporaryFolder(), "backup")) => {
  await backUp({ path, to, operatorKey: testOperator.public.pem });
  return to;
};

/** The published head of a log at a size, with the root of one of its trees. */
async function shown(path: string, size: number, lens: 1 | 2 = 2): Promise<PublishedTree> {
  const { log } = await openTestLog({ path });
  const { to_root } = log.consistencyProof(size, size, lens);
  await log.close();
  return { tree_size: size, root_hash: to_root, source: "a client" };
}

/** A log of the numbers 0 to 4, one with another number, and one whose last entry differs. */
let path: string;
let longer: string;
let other: string;
let backup: string;
beforeAll(async () => {
  path = await builtLog([0, 1, 2, 3, 4]);
  longer = await builtLog([0, 1, 2, 3, 4, 5]);
  other = await builtLog([0, 1, 2, 3, 9]);
  backup = await backedUp(path);
});

async function restored(options: Partial<Parameters<typeof restore>[0]>) {
  const folder = temporaryFolder();
  const to = join(folder, "log");
  try {
    const done = await restore({
      from: backup,
      path: to,
      projection: noProjection,
      pool: testPool,
      published: [],
      mayFork: false,
      ...options,
    });
    const { log } = await openTestLog({ path: to });
    expect(log.size).toBe(done.entries);
    expect(await log.verify()).toMatchObject({ valid: true });
    await log.close();
    return done;
  } catch (error) {
    // A refused restore leaves no files.
    expect(readdirSync(folder)).toEqual([]);
    throw error;
  }
}

const anotherRoot = (size: number) => ({
  code: "precondition-failed",
  message: `The first ${size} entries are not the published ones: the head of a client has another root.`,
});
const tooShort = (from: number, to: number) => ({
  code: "precondition-failed",
  message: expect.stringMatching(
    `^A head of size ${to} was published .a client., but this copy ends at size ${from - 1}: entries ${from} to ${to} are missing`,
  ),
});

describe("a head that was published", () => {
  test.each([1, 2] as const)("of exactly the restored size or an older one is accepted under lens %i", async (lens) => {
    const published = [await shown(path, SIZE, lens), await shown(path, 1, lens)];
    expect(await restored({ published })).toEqual({
      entries: SIZE,
      fromMirror: 0,
      operator: testOperator.fingerprint,
    });
  });

  test("of exactly the restored size with another root is refused, also where a fork is allowed", async () => {
    const published = [await shown(other, SIZE)];
    for (const mayFork of [false, true])
      await expect(restored({ published, mayFork })).rejects.toMatchObject(anotherRoot(SIZE));
    const right = await shown(path, SIZE);
    const wrong = { ...right, tree_size: SIZE - 1 };
    await expect(restored({ published: [right, wrong] })).rejects.toMatchObject(anotherRoot(SIZE - 1));
  });

  test("of one size more is refused, unless a fork is allowed", async () => {
    const published = [await shown(path, SIZE), await shown(longer, SIZE + 1)];
    await expect(restored({ published })).rejects.toMatchObject(tooShort(SIZE + 1, SIZE + 1));
    expect(await restored({ published, mayFork: true })).toMatchObject({ entries: SIZE });
  });

  test("that nobody names is refused, unless a fork is allowed", async () => {
    await expect(restored({})).rejects.toMatchObject({
      code: "precondition-failed",
      message: expect.stringContaining(
        `The backup ends at size ${SIZE}, and it is not known whether more was published.`,
      ),
    });
    expect(await restored({ mayFork: true })).toMatchObject({ entries: SIZE });
  });
});

describe("a mirror", () => {
  test("with one entry more gives that one, and what was published must still be reached", async () => {
    const published = [await shown(longer, SIZE + 1)];
    expect(await restored({ published, mirror: longer })).toMatchObject({ entries: SIZE + 1, fromMirror: 1 });
    const later = [{ ...published[0]!, tree_size: SIZE + 2 }];
    await expect(restored({ published: later, mirror: longer })).rejects.toMatchObject(tooShort(SIZE + 2, SIZE + 2));
  });

  test("with as many entries as the backup gives none, and is refused where the last one is another", async () => {
    const published = [await shown(path, SIZE)];
    expect(await restored({ published, mirror: path })).toMatchObject({ entries: SIZE, fromMirror: 0 });
    await expect(restored({ published, mirror: other })).rejects.toMatchObject({
      code: "precondition-failed",
      message: expect.stringMatching(/is of another log: its entry at leaf 4 is a different one\.$/),
    });
  });

  test("with fewer entries than the backup gives none", async () => {
    const published = [await shown(path, SIZE)];
    const shorter = await builtLog([0]);
    expect(await restored({ published, mirror: shorter })).toMatchObject({ entries: SIZE, fromMirror: 0 });
  });

  test("of a log whose backup is empty gives everything", async () => {
    const from = await backedUp(await builtLog([]));
    expect(await restored({ from, published: [await shown(path, SIZE)], mirror: path })).toMatchObject({
      entries: SIZE,
      fromMirror: SIZE,
    });
  });
});

describe("a manifest", () => {
  async function changed(change: (manifest: BackupManifest) => object): Promise<string> {
    const folder = await backedUp(path);
    const file = join(folder, "manifest.json");
    const manifest = JSON.parse(readFileSync(file, "utf8")) as BackupManifest;
    writeFileSync(file, JSON.stringify({ ...manifest, ...change(manifest) }));
    return folder;
  }

  test("that names another last entry is refused", async () => {
    for (const entry_hash of ["0".repeat(64), null]) {
      const from = await changed(() => ({ entry_hash }));
      await expect(restored({ from, mayFork: true })).rejects.toMatchObject({
        code: "corrupt-log",
        message: "The backup's last entry is not the one that its manifest names.",
      });
    }
  });

  test.each([SIZE - 1, SIZE + 1])("that counts %i entries where five are is refused", async (to) => {
    const segments = ({ segments: [only] }: BackupManifest) => ({ tree_size: to, segments: [{ ...only, to }] });
    const from = await changed(segments);
    await expect(restored({ from, mayFork: true })).rejects.toMatchObject({
      code: "corrupt-log",
      message: expect.stringMatching(/^The backup's file entries-0-5\.ndjson ends at size 5, not [46]\.$/),
    });
    const total = await changed(() => ({ tree_size: to }));
    await expect(restored({ from: total, mayFork: true })).rejects.toMatchObject({
      code: "corrupt-log",
      message: `The backup's segments hold 5 entries, not ${to}.`,
    });
  });
});

describe("a backup goes on", () => {
  test("with one entry more, and with none", async () => {
    const to = await backedUp(path);
    const operatorKey = testOperator.public.pem;
    expect(await backUp({ path, to, operatorKey })).toMatchObject({ added: 0, manifest: { tree_size: SIZE } });
    expect(await backUp({ path: longer, to, operatorKey })).toMatchObject({
      added: 1,
      manifest: { tree_size: SIZE + 1 },
    });
    expect(await restored({ from: to, published: [await shown(longer, SIZE + 1)] })).toMatchObject({
      entries: SIZE + 1,
    });
  });

  test("neither with a log of as many entries whose last is another, nor with one that is one entry shorter", async () => {
    const to = await backedUp(path);
    const before = readFileSync(join(to, "manifest.json"), "utf8");
    await expect(backedUp(other, to)).rejects.toMatchObject({
      code: "precondition-failed",
      message: expect.stringMatching(/^The first 5 entries of the log are not those in the backup/),
    });
    await expect(backedUp(await builtLog([0, 1, 2, 3]), to)).rejects.toMatchObject({
      code: "precondition-failed",
      message: expect.stringMatching(/has 5 entries, the log only 4: the log shrank/),
    });
    expect(readFileSync(join(to, "manifest.json"), "utf8")).toBe(before);
  });
});

test("imported entries, which have no heads, are compared with what was published by their root", async () => {
  const imported = join(temporaryFolder(), "log");
  await importEntries({ path: imported, signer: testOperator, mapSize: MAP_SIZE }, chain([{}, {}, {}]));
  const from = await backedUp(imported);
  expect(await restored({ from, published: [await shown(imported, 2)] })).toMatchObject({ entries: 3 });
  await expect(restored({ from, published: [await shown(path, 2)] })).rejects.toMatchObject(anotherRoot(2));
});

test("what the data directory itself says was shown counts, at exactly the restored size, too", async () => {
  const target = temporaryFolder();
  const signer = openOperatorKey(join(target, "operator.pem"));
  const heads = [];
  for (const last of [1, 2]) {
    const folder = join(temporaryFolder(), "log");
    const { log } = await openTestLog({ path: folder, signer });
    for (const n of [0, last]) await log.append(anyEvent({ n }));
    heads.push({ folder, head: JSON.stringify(log.treeHead()) });
    await log.close();
  }
  const [own, another] = heads as [(typeof heads)[0], (typeof heads)[0]];
  const from = join(temporaryFolder(), "backup");
  await backUp({ path: own.folder, to: from, operatorKey: signer.public.pem });
  writeFileSync(join(target, "published.json"), another.head);
  const refused = await cairnlog(["restore", from, "--to", target]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toMatch(/The first 2 entries are not the published ones: the head of .*published\.json/);
  expect((await cairnlog(["restore", from, "--to", target, "--may-fork"])).code).toBe(1);
  expect(readdirSync(target).sort()).toEqual(["operator.pem", "published.json"]);
  writeFileSync(join(target, "published.json"), own.head);
  expect(await cairnlog(["restore", from, "--to", target])).toMatchObject({ code: 0 });
});

test.each([511, 512, 513, 1025])("%d private rows are restored, 512 in one transaction", async (count) => {
  const { log, path: rich } = await openTestLog();
  await log.append(anyEvent());
  const rows = Array.from({ length: count }, (_, n) => ({ key: `key ${`${n}`.padStart(4, "0")}`, hash: `hash ${n}` }));
  await runIn(log, (transaction) => {
    for (const { key, hash } of rows) transaction.put("passwords", key, { hash });
  });
  await log.close();
  const to = join(temporaryFolder(), "log");
  await restore({
    ...{ from: await backedUp(rich), path: to, projection: noProjection, pool: testPool },
    ...{ published: [], mayFork: true },
  });
  const { log: restoredLog } = await openTestLog({ path: to });
  const found = restoredLog.rows("passwords", "", "~").map(({ key, row }) => ({ key, hash: row.hash }));
  expect(found).toEqual(rows);
  await restoredLog.close();
});
