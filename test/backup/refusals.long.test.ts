/** Backups and restores that are refused or broken off: with which words, and that nothing is left behind. */
import { createHash } from "node:crypto";
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { type BackupManifest, readBackupManifest } from "#cairnlog/engine/log/history/backupformat.js";
import { restore } from "#cairnlog/engine/log/history/restore.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import type { LogMeta } from "#cairnlog/engine/store/schema/rows.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator, testPool } from "../log/harness.js";
import { runIn } from "../log/inline.js";

/** One time for all entries, which the machine's clock may follow. */
const CLOCK = Date.now() * 1000;

/** A closed log whose entries hold these numbers, with one private row. */
async function builtLog(numbers: readonly number[]): Promise<string> {
  const { log, path } = await openTestLog({ clock: () => CLOCK });
  for (const n of numbers) await log.append({ event_type: "note", payload: { n } });
  await runIn(log, (transaction) => transaction.put("passwords", "a key", { hash: "a hash" }));
  await log.close();
  return path;
}

async function changeMeta(path: string, change: (meta: LogMeta) => LogMeta | undefined): Promise<void> {
  const store = openStore({ path, mapSize: MAP_SIZE });
  const rows = [{ table: "meta", key: "log", row: change(store.get("meta", "log")!) }] as const;
  const after = store.position().sequence;
  await store.commit({ after, position: null, batches: [], rows, tiles: [] });
  await store.close();
}

/** The files below a folder that this process has open, removed ones too. */
const openIn = (folder: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    .filter((link) => lstatSync(link, { throwIfNoEntry: false }))
    .map((link) => readlinkSync(link))
    .filter((file) => file.startsWith(`${folder}/`));

const refused = (code: string, message: string | RegExp) =>
  expect.objectContaining({
    code,
    message: typeof message === "string" ? expect.stringContaining(message) : expect.stringMatching(message),
  });

describe("no backup is made", () => {
  const into = (path: string, to: string, options: Partial<Parameters<typeof backUp>[0]> = {}) =>
    backUp({ path, to, operatorKey: testOperator.public.pem, ...options });

  test.each<[string, (meta: LogMeta) => LogMeta | undefined, string, RegExp]>([
    ["without its own row", () => undefined, "corrupt-log", /^There is no log in /],
    [
      "whose rebuild was interrupted",
      (meta) => ({ ...meta, rebuilding: true }),
      "corrupt-log",
      /^A rebuild of the log in .* was interrupted: run cairnlog fsck --rebuild first\.$/,
    ],
    [
      "in an older format",
      (meta) => ({ ...meta, format: FORMAT - 1 }),
      "precondition-failed",
      new RegExp(`is in format ${FORMAT - 1}, but this version uses format ${FORMAT}\\. Start the service once`),
    ],
    [
      "whose conversion was interrupted",
      (meta) => ({ ...meta, format: FORMAT - 1, rebuilding: true, migrating: true }),
      "precondition-failed",
      new RegExp(`is in format ${FORMAT - 1}, but this version uses format ${FORMAT}\\. Start the service once`),
    ],
    [
      "in a newer format",
      (meta) => ({ ...meta, format: FORMAT + 1 }),
      "corrupt-log",
      new RegExp(`is in format ${FORMAT + 1}; this version reads formats up to ${FORMAT}`),
    ],
  ])("of a log %s", async (_, change, code, message) => {
    const path = await builtLog([0]);
    const to = temporaryFolder();
    await changeMeta(path, change);
    await expect(into(path, to)).rejects.toEqual(refused(code, message));
    expect([readdirSync(to), openIn(to), openIn(path)]).toEqual([[], [], []]);
  });

  test("of a log of another operator, nor in a folder that has one of another operator's log", async () => {
    const [path, to] = [await builtLog([0]), temporaryFolder()];
    const other = operatorKey(generatePrivateKey("ed25519"));
    await expect(into(path, to, { operatorKey: other.public.pem })).rejects.toEqual(
      refused("wrong-operator", `signed by operator key ${testOperator.fingerprint}, not by ${other.fingerprint}`),
    );
    const { log, path: another } = await openTestLog({ signer: other });
    await log.append({ event_type: "note", payload: {} });
    await log.close();
    await into(another, to, { operatorKey: other.public.pem });
    await expect(into(path, to)).rejects.toEqual(
      refused("wrong-operator", `The backup in ${to} is of the log of another operator, ${other.fingerprint}.`),
    );
  });

  test("where another process has made one at the same time, which stays", async () => {
    const [path, to] = [await builtLog([0, 1]), temporaryFolder()];
    await into(await builtLog([0]), to);
    const manifest = readFileSync(join(to, "manifest.json"), "utf8");
    const others = manifest.replace(/"made_at": "20/, '"made_at": "30');
    const progress = () => writeFileSync(join(to, "manifest.json"), others);
    await expect(into(path, to, { progress })).rejects.toEqual(
      refused("precondition-failed", `Another process has changed the backup in ${to} at the same time.`),
    );
    expect(readFileSync(join(to, "manifest.json"), "utf8")).toBe(others);
    expect(readdirSync(to).filter((name) => name.includes("draft"))).toEqual([]);
  });

  test("where another process replaces the manifest at the same time, which goes on", async () => {
    const [path, to] = [await builtLog([0, 1]), temporaryFolder()];
    await into(await builtLog([0]), to);
    const before = readdirSync(to);
    const draft = `draft.${process.ppid}.manifest.partial`;
    writeFileSync(join(to, draft), "");
    await expect(into(path, to)).rejects.toEqual(
      refused("precondition-failed", `Another process changes (${draft}) the backup in ${to} at the same time.`),
    );
    // The segment of two entries is left over, which the next backup removes.
    expect(readdirSync(to)).toEqual(expect.arrayContaining([...before, draft]));
    rmSync(join(to, draft));
    await into(path, to);
    expect(readBackupManifest(to)!.tree_size).toBe(2);
  });

  test.each<[string, number[], RegExp]>([
    ["of as many entries", [0, 9], /^Another log was put in the place of the one in /],
    ["of fewer entries", [0], /^The entry at leaf 1 is missing in the log\.$/],
  ])("of a log in whose place another one %s was put meanwhile", async (_, numbers, message) => {
    const [path, other, to] = [await builtLog([0, 1]), await builtLog(numbers), temporaryFolder()];
    // The signal is asked while the private rows are written, which is before the entries are read.
    let asked = 0;
    const signal = {
      throwIfAborted() {
        if (asked++ > 0) return;
        renameSync(path, `${path}.before`);
        renameSync(other, path);
      },
    } as AbortSignal;
    await expect(into(path, to, { signal })).rejects.toEqual(refused("corrupt-log", message));
    expect([readdirSync(to), openIn(to), openIn(path)]).toEqual([[], [], []]);
    rmSync(`${path}.before`, { recursive: true });
  });
});

/** A log of three entries, the newest under a second key, and its backup. */
let backup: string;
const second = operatorKey(generatePrivateKey("ed25519"));
beforeAll(async () => {
  const path = await builtLog([0, 1]);
  await rotateOperatorKey({ path, from: testOperator, to: second, projection: noProjection });
  backup = temporaryFolder();
  await backUp({ path, to: backup, operatorKey: second.public.pem });
});

/** A copy of the backup with other files, and a manifest that fits them, as an attacker would make it. */
function changedBackup(
  change: { segment?: (lines: string[]) => string[]; rows?: (text: string) => string; manifest?: object } = {},
): string {
  const manifest = readBackupManifest(backup)!;
  const folder = temporaryFolder();
  const put = <T extends BackupManifest["private_rows"]>(entry: T, edit: (text: string) => string): T => {
    const text = edit(readFileSync(join(backup, entry.file), "utf8"));
    writeFileSync(join(folder, entry.file), text);
    const sha256 = createHash("sha256").update(text).digest("hex");
    return { ...entry, bytes: Buffer.byteLength(text), sha256 };
  };
  const lines = (text: string) =>
    (change.segment ?? ((all) => all))(text.trimEnd().split("\n")).map((one) => `${one}\n`);
  const segments = manifest.segments.map((segment) => put(segment, (text) => lines(text).join("")));
  const private_rows = put(manifest.private_rows, change.rows ?? ((text) => text));
  writeFileSync(
    join(folder, "manifest.json"),
    JSON.stringify({ ...manifest, segments, private_rows, ...change.manifest }),
  );
  return folder;
}

async function restored(from: string, options: Partial<Parameters<typeof restore>[0]> = {}) {
  const folder = temporaryFolder();
  const path = join(folder, "deep", "log");
  try {
    const fixed = { projection: noProjection, pool: testPool, published: [], mayFork: true };
    return { path, ...(await restore({ from, path, ...fixed, ...options })) };
  } catch (error) {
    // Besides the folder that was to hold it, a refused restore leaves nothing.
    expect(readdirSync(folder, { recursive: true }).filter((name) => name !== "deep")).toEqual([]);
    expect(openIn(folder)).toEqual([]);
    throw error;
  }
}

describe("a restore", () => {
  const manifest = (change: (manifest: BackupManifest) => object) =>
    changedBackup({ manifest: change(readBackupManifest(backup)!) });

  test("brings back entries, private rows and the keys, for whoever has one of them", async () => {
    for (const key of [undefined, testOperator.public.pem, second.public.pem]) {
      const { path, entries, fromMirror, operator } = await restored(changedBackup(), { operatorKey: key });
      expect({ entries, fromMirror, operator }).toEqual({ entries: 3, fromMirror: 0, operator: second.fingerprint });
      const store = openStore({ path, mapSize: MAP_SIZE });
      expect(store.get("passwords", "a key")).toEqual({ hash: "a hash" });
      const { meta } = readBackupManifest(backup)!;
      expect(store.get("meta", "log")).toEqual(meta);
      expect(meta).toMatchObject({ key_id: second.fingerprint, first_key_id: testOperator.fingerprint });
      await store.close();
    }
  });

  test.each<[string, () => string, string, RegExp]>([
    [
      "in a newer format",
      () => manifest(({ meta }) => ({ meta: { ...meta, format: FORMAT + 1 } })),
      "corrupt-log",
      new RegExp(`^The backup is in format ${FORMAT + 1}: use a newer version\\.$`),
    ],
    [
      "whose row names another key",
      () => manifest(({ meta }) => ({ meta: { ...meta, key_id: testOperator.fingerprint } })),
      "wrong-operator",
      /^The manifest of the backup names different operator keys\.$/,
    ],
    [
      "whose key is not the newest of its chain",
      () =>
        manifest(({ meta }) => ({
          operator_key: testOperator.public.pem,
          meta: { ...meta, key_id: testOperator.fingerprint },
        })),
      "wrong-operator",
      /^The manifest of the backup names different operator keys\.$/,
    ],
    [
      "of an earlier version, without the chain that its entries need",
      () => manifest(() => ({ operators: undefined })),
      "wrong-operator",
      /^Entry at leaf 0: .*signed by sha256:\w+, not by the operator key/,
    ],
    [
      "whose last entry has no line for its head",
      () => changedBackup({ segment: (lines) => lines.slice(0, -1) }),
      "corrupt-log",
      /^The backup's last entry has no line for its head\.$/,
    ],
    [
      "with a head that is not JSON",
      () => changedBackup({ segment: (lines) => lines.with(1, "{") }),
      "corrupt-log",
      /^The backup has a line for a head that is not JSON\.$/,
    ],
    [
      "with a head that is none",
      () => changedBackup({ segment: (lines) => lines.with(3, "{}") }),
      "invalid-input",
      /^Entry at leaf 1: This is not a tree head\./,
    ],
    [
      "with a row of the log itself among the private ones",
      () => changedBackup({ rows: () => '["meta","log",{"format":1}]\n' }),
      "corrupt-log",
      /^The backup has a line of the table meta that does not belong in a backup\.$/,
    ],
    [
      "with a row that was deleted",
      () => changedBackup({ rows: () => '["passwords","a key",null]\n' }),
      "corrupt-log",
      /^The backup has a line of the table passwords that does not belong in a backup\.$/,
    ],
    ["from a folder without one", () => temporaryFolder(), "not-found", /^There is no backup in /],
  ])("of a backup %s is refused", async (_, from, code, message) => {
    await expect(restored(from())).rejects.toEqual(refused(code, message));
  });

  test("of a log without heads has none afterwards, and an earlier version's backup of one key needs no chain", async () => {
    const from = changedBackup({ segment: (lines) => lines.slice(0, 4) });
    const whole = readBackupManifest(backup)!;
    const [only] = readBackupManifest(from)!.segments;
    const [entry] = readFileSync(join(from, only!.file), "utf8").split("\n").slice(2);
    const changed = {
      ...readBackupManifest(from)!,
      operators: undefined,
      operator_key: testOperator.public.pem,
      meta: { ...whole.meta, key_id: testOperator.fingerprint, first_key_id: undefined },
      tree_size: 2,
      entry_hash: JSON.parse(entry!).entry_hash,
      segments: [{ ...only, to: 2 }],
    };
    writeFileSync(join(from, "manifest.json"), JSON.stringify(changed));
    expect(await restored(from)).toMatchObject({ entries: 2, operator: testOperator.fingerprint });
  });

  test("never takes the place of what is there", async () => {
    const path = temporaryFolder();
    mkdirSync(join(path, "x"));
    await expect(
      restore({ from: backup, path, projection: noProjection, pool: testPool, published: [], mayFork: true }),
    ).rejects.toEqual(refused("already-exists", `There is already a log in ${path}`));
    expect(readdirSync(path)).toEqual(["x"]);
  });

  test("of an empty log is an empty log of the same operator", async () => {
    const [path, from] = [await builtLog([]), temporaryFolder()];
    await backUp({ path, to: from, operatorKey: testOperator.public.pem });
    expect(await restored(from)).toMatchObject({ entries: 0, operator: testOperator.fingerprint });
  });

  test("goes on with a mirror, over a rotation of the operator key", async () => {
    const [path, from] = [await builtLog([0, 1]), temporaryFolder()];
    await backUp({ path, to: from, operatorKey: testOperator.public.pem });
    await rotateOperatorKey({ path, from: testOperator, to: second, projection: noProjection });
    const done = await restored(from, { mirror: path });
    expect(done).toMatchObject({ entries: 3, fromMirror: 1, operator: second.fingerprint });
    const { log } = await openTestLog({ path: done.path, signer: second });
    expect(log.operators.chain).toHaveLength(2);
  });

  test("writes at most 512 entries or 4 MiB at once, and names the first wrong entry of all", async () => {
    const { log, path } = await openTestLog();
    const text = "x".repeat(2 * 2 ** 20);
    for (let n = 0; n < 3; n++) await log.append({ event_type: "note", payload: { n, text } });
    await log.append(Array.from({ length: 515 }, (_, n) => ({ event_type: "note", payload: { n } })));
    await log.close();
    const from = temporaryFolder();
    await backUp({ path, to: from, operatorKey: testOperator.public.pem });
    const told: unknown[] = [];
    // What a restore that was killed has left behind.
    const folder = temporaryFolder();
    const to = join(folder, "log");
    mkdirSync(`${to}.restoring`);
    writeFileSync(join(`${to}.restoring`, "data.mdb"), "half of something");
    const fixed = { projection: noProjection, pool: testPool, published: [], mayFork: true };
    await restore({ from, path: to, ...fixed, progress: (done, total) => told.push([done, total]) });
    expect(told).toEqual([
      [2, 518],
      [514, 518],
      [518, 518],
    ]);
    expect(readdirSync(folder)).toEqual(["log"]);
    const { segments } = readBackupManifest(from)!;
    const file = join(from, segments[0]!.file);
    writeFileSync(file, readFileSync(file, "utf8").replace('{"n":510}', '{"n":511}'));
    await expect(restored(from)).rejects.toEqual(
      refused("invalid-input", "Entry at leaf 513: The content does not hash to entry_hash"),
    );
  });

  test("tells its progress, and may be broken off before the entries and before the private rows", async () => {
    const told: unknown[] = [];
    await restored(backup, { progress: (done, total) => told.push([done, total]) });
    expect(told).toEqual([[3, 3]]);
    const reason = new Error("broken off by the test");
    await expect(restored(backup, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const { signal } = controller;
    await expect(restored(backup, { signal, progress: () => controller.abort(reason) })).rejects.toBe(reason);
  });
});
