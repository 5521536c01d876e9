/** Backups of real data directories: the data that a restore brings back, and refusals that leave no files behind. */
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import type { BackupManifest } from "#cairnlog/engine/log/history/backupformat.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { projection } from "#cairnlog/engine/registry/events/projection.js";
import { PRIVATE_TABLES } from "#cairnlog/engine/store/schema/schema.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
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
} from "../fsck/everykind.js";
import { chain } from "../log/history/entries.js";
import { runIn } from "../log/inline.js";
import { newSigner, submission } from "../server/signers.js";
import { startService } from "../service.js";
import { answers, backUp, headOf, manifestOf, NO_COMPLAINT } from "./backups.js";

const pool = createPool(1);
/** A data directory with 600 entries and rows in every table. */
let data: string;
/** A backup of `data`. */
let backup: string;
/** The head of its 600 entries, as the service showed it to a client. */
let shown: string;
beforeAll(async () => {
  data = await buildData(pool, 591);
  backup = join(newFolder(), "backup");
  await backUp(data, backup);
  shown = join(newFolder(), "head.json");
  writeFileSync(shown, JSON.stringify(await headOf(data, pool)));
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

/** Restores into a new data directory that has the operator key of `data`. */
async function restore(from: string, ...options: string[]) {
  const to = newFolder();
  copyFileSync(join(data, "operator.pem"), join(to, "operator.pem"));
  return { to, ...(await cairnlog(["restore", from, "--to", to, "--json", ...options])) };
}

async function expectRefused(from: string, sentence: RegExp, ...options: string[]): Promise<void> {
  const { to, code, stdout, stderr } = await restore(from, ...options);
  expect(stderr).toMatch(sentence);
  expect({ code, stdout }).toEqual({ code: stderr.includes("--help") ? 2 : 1, stdout: "" });
  expect(readdirSync(to)).toEqual(["operator.pem"]);
}

async function privateRows(dataDir: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  await tamper(dataDir, async (table) => {
    for (const name of [...PRIVATE_TABLES, "meta"])
      for (const { key, value } of table(name).getRange()) rows.push([name, key, value]);
  });
  return rows;
}

const copyOfBackup = () => {
  const copy = join(newFolder(), "backup");
  cpSync(backup, copy, { recursive: true });
  return copy;
};

test("what is restored is what was backed up, private rows included and the private key not", async () => {
  const { to, code, stdout, stderr } = await restore(backup, "--published", shown);
  expect({ code, stderr }).toEqual({ code: 0, stderr: NO_COMPLAINT });
  expect(JSON.parse(stdout)).toMatchObject({ tree_size: 600, from_mirror: 0 });
  expect(await privateRows(to)).toEqual(await privateRows(copyOf(data)));
  expect(await check(to, pool)).toMatchObject({ ok: true, entries: 600, differences: [] });
  expect(await answers(to, 600, pool)).toEqual(await answers(copyOf(data), 600, pool));
  for (const name of readdirSync(backup)) {
    expect(statSync(join(backup, name)).mode & 0o777, name).toBe(0o600);
    expect(readFileSync(join(backup, name), "utf8")).not.toContain("PRIVATE KEY");
  }
  expect(statSync(backup).mode & 0o777).toBe(0o700);
  const service = await startService(to);
  expect(await (await fetch(`${service.url}/api/v1/log/verify`, { method: "POST" })).json()).toMatchObject({
    valid: true,
  });
  expect(await service.stop()).toBe(0);
});

test("a log that has ended is restored as one that has ended, and takes no entry", async () => {
  const ended = copyOf(data);
  copyFileSync(join(data, "operator.pem"), join(ended, "operator.pem"));
  // Before its end, so that the end is the only entry of a later segment.
  const before = copyOfBackup();
  const freezing = ["operator", "freeze", "--data", ended, "--reason", "It is full.", "--json"];
  expect(await cairnlog(freezing)).toMatchObject({ code: 0, stdout: expect.stringContaining('"tree_size":601') });
  expect(await backUp(ended, before)).toMatchObject({ tree_size: 601, added: 1 });
  const { to, code } = await restore(before, "--may-fork");
  expect(code).toBe(0);
  expect(await check(to, pool)).toMatchObject({ ok: true, entries: 601, differences: [] });
  const service = await startService(to);
  const shards = await (await fetch(`${service.url}/api/v1/log/shards`)).json();
  expect(shards).toMatchObject({ frozen: { entry_id: 601, reason: "It is full." } });
  const body = JSON.stringify(submission(newSigner()));
  expect((await fetch(`${service.url}/api/v1/attestations`, { method: "POST", body })).status).toBe(410);
  expect(await service.stop()).toBe(0);
});

test("a folder that was there before is its owner's alone once a backup is in it", async () => {
  const to = newFolder();
  chmodSync(to, 0o755);
  await backUp(data, to);
  expect(statSync(to).mode & 0o777).toBe(0o700);
});

test("an empty log is backed up and restored, too", async () => {
  const dataDir = newFolder();
  await (await openData(dataDir, pool)).close();
  const to = join(newFolder(), "backup");
  expect(await backUp(dataDir, to)).toMatchObject({ tree_size: 0, added: 0 });
  const target = join(newFolder(), "data");
  expect(await cairnlog(["restore", to, "--to", target, "--may-fork"])).toMatchObject({ code: 0 });
  expect(existsSync(join(target, "log", "data.mdb"))).toBe(true);
});

test("imported history is backed up and restored, with its seams and without heads that never were", async () => {
  const dataDir = newFolder();
  const operator = openOperatorKey(join(dataDir, "operator.pem"));
  const entries = chain([{}, { chain_version: null }, { id: 7 }, { chain_version: 2 }, { id: 90, chain_version: 2 }]);
  await importEntries({ path: join(dataDir, "log"), signer: operator, projection }, entries);
  const { log, close } = await openData(dataDir, pool);
  for (let i = 0; i < 3; i++) await log.append(anyEvent({ i }));
  await close();
  expect(await check(dataDir, pool)).toMatchObject({ ok: true, entries: 8 });
  const to = join(newFolder(), "backup");
  await backUp(dataDir, to);
  const target = newFolder();
  copyFileSync(join(dataDir, "operator.pem"), join(target, "operator.pem"));
  expect(await cairnlog(["restore", to, "--to", target, "--may-fork"])).toMatchObject({
    code: 0,
    stderr: NO_COMPLAINT,
  });
  expect(await answers(target, 8, pool)).toEqual(await answers(dataDir, 8, pool));
  expect(await privateRows(target)).toEqual(await privateRows(dataDir));

  await tamper(target, (table) => table("seams").remove(90));
  expect(sentences(await check(target, pool))).toEqual(["seams 90 is missing on disk."]);
  expect(await rebuild(target, pool)).toMatchObject({ ok: true });
  expect(await answers(target, 8, pool)).toEqual(await answers(dataDir, 8, pool));
});

test("the second backup writes what is new, and touches no older segment", async () => {
  const dataDir = copyOf(data);
  const to = copyOfBackup();
  const [first] = manifestOf(to).segments;
  const before = statSync(join(to, first!.file), { bigint: true });
  expect(await backUp(dataDir, to)).toMatchObject({ tree_size: 600, added: 0 });
  expect(readdirSync(to)).toHaveLength(3);

  const { log, close } = await openData(dataDir, pool);
  for (let i = 0; i < 10; i++) await log.append(anyEvent({ i }));
  await runIn(log, (transaction) => transaction.put("counters", "webhook", { last: 8 }));
  await close();
  expect(await backUp(dataDir, to)).toMatchObject({ tree_size: 610, added: 10 });
  const { segments, private_rows } = manifestOf(to);
  expect(segments.map((segment) => [segment.from, segment.to])).toEqual([
    [0, 600],
    [600, 610],
  ]);
  expect(readFileSync(join(to, segments[1]!.file), "utf8").split("\n")).toHaveLength(21);
  expect(statSync(join(to, first!.file), { bigint: true })).toMatchObject({ ino: before.ino, mtimeNs: before.mtimeNs });
  expect(readdirSync(to).sort()).toEqual(
    ["manifest.json", ...segments.map(({ file }) => file), private_rows.file].sort(),
  );
  writeFileSync(join(to, "later.json"), JSON.stringify(await headOf(dataDir, pool)));
  const { to: target, code } = await restore(to, "--published", join(to, "later.json"));
  expect(code).toBe(0);
  expect(await answers(target, 610, pool)).toEqual(await answers(dataDir, 610, pool));
});

describe("a damaged backup", () => {
  /** Rewrites the manifest to fit the changed files, as an attacker would. */
  const rehash = (folder: string, change: (manifest: BackupManifest) => object): void => {
    const changed = change(manifestOf(folder)) as BackupManifest;
    const files = [...changed.segments, changed.private_rows].map((entry) => {
      const bytes = readFileSync(join(folder, entry.file));
      return { ...entry, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") };
    });
    const manifest = { ...changed, segments: files.slice(0, -1), private_rows: files.at(-1) };
    writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  };
  const segmentOf = (folder: string) => join(folder, manifestOf(folder).segments[0]!.file);
  const editSegment = (folder: string, edit: (lines: string[]) => string[]) =>
    writeFileSync(segmentOf(folder), edit(readFileSync(segmentOf(folder), "utf8").split("\n")).join("\n"));
  const swapLines = (lines: string[]) => [
    ...lines.slice(0, 40),
    lines[42]!,
    lines[43]!,
    lines[40]!,
    lines[41]!,
    ...lines.slice(44),
  ];

  const faults: [string, (folder: string) => void, RegExp][] = [
    [
      "a changed segment",
      (folder) => editSegment(folder, (lines) => lines.map((line) => line.replace("note 5", "note 6"))),
      /Entry at leaf \d+: The content does not hash/,
    ],
    [
      "a segment with a byte more",
      (folder) => writeFileSync(segmentOf(folder), "\n", { flag: "a" }),
      /its hash differs|no line for its head/,
    ],
    ["a missing segment", (folder) => rmSync(segmentOf(folder)), /file entries-0-600\.ndjson is missing/],
    ["a segment cut short", (folder) => editSegment(folder, (lines) => lines.slice(0, 900)), /its hash differs/],
    [
      "changed private rows",
      (folder) => writeFileSync(join(folder, manifestOf(folder).private_rows.file), "\n", { flag: "a" }),
      /its hash differs|should hold a row is damaged/,
    ],
    [
      "missing private rows",
      (folder) => rmSync(join(folder, manifestOf(folder).private_rows.file)),
      /private-600-\w+\.ndjson is missing/,
    ],
    [
      "a damaged manifest",
      (folder) => writeFileSync(join(folder, "manifest.json"), "{"),
      /manifest of the backup in .* is damaged/,
    ],
    [
      "a manifest that leads out of the folder",
      (folder) =>
        writeFileSync(
          join(folder, "manifest.json"),
          readFileSync(join(folder, "manifest.json"), "utf8").replace("entries-0-600.ndjson", "../x.ndjson"),
        ),
      /manifest .* is not valid\. .*the name of a file/,
    ],
    ["no manifest", (folder) => rmSync(join(folder, "manifest.json")), /There is no backup in/],
    [
      "swapped entries, hidden",
      (folder) => {
        editSegment(folder, swapLines);
        rehash(folder, (manifest) => manifest);
      },
      /Entry at leaf 20: The id|Entry at leaf 20: previous_hash/,
    ],
    [
      "a changed entry, hidden",
      (folder) => {
        editSegment(folder, (lines) => lines.map((line) => line.replace("note 77", "note 78")));
        rehash(folder, (manifest) => manifest);
      },
      /Entry at leaf \d+: The content does not hash/,
    ],
    [
      "a changed signature, hidden",
      (folder) => {
        editSegment(folder, (lines) =>
          lines.map((line, i) => (i === 301 ? line.replace(/"signature":"...../, '"signature":"AAAAA') : line)),
        );
        rehash(folder, (manifest) => manifest);
      },
      /Entry at leaf 150: The tree head's signature does not verify/,
    ],
    [
      "lost entries at the end, hidden",
      (folder) => {
        editSegment(folder, (lines) => [...lines.slice(0, 1000), ""]);
        rehash(folder, (manifest) => ({
          ...manifest,
          tree_size: 500,
          segments: [{ ...manifest.segments[0], to: 500 }],
        }));
      },
      /last entry is not the one|entries 501 to 600 are missing/,
    ],
    [
      "rows of a table that is not private, hidden",
      (folder) => {
        writeFileSync(join(folder, manifestOf(folder).private_rows.file), '["keys","x",{}]\n');
        rehash(folder, (manifest) => manifest);
      },
      /Rows of the table "keys"/,
    ],
  ];
  test.each(faults)("%s is refused", async (_, damage, sentence) => {
    const copy = copyOfBackup();
    damage(copy);
    await expectRefused(copy, sentence, "--published", shown);
  });

  test("segments in each other's place are refused", async () => {
    const dataDir = copyOf(data);
    const copy = copyOfBackup();
    const { log, close } = await openData(dataDir, pool);
    await log.append(Array.from({ length: 5 }, (_, i) => anyEvent({ i })));
    await close();
    await backUp(dataDir, copy);
    const [one, two] = manifestOf(copy).segments.map(({ file }) => join(copy, file)) as [string, string];
    renameSync(one, `${one}.x`);
    renameSync(two, one);
    renameSync(`${one}.x`, two);
    await expectRefused(copy, /hash differs|previous_hash|lacks its beginning/, "--may-fork");
  });
});

describe("another key or history", () => {
  test("an operator key that is not the backup's is refused", async () => {
    const other = join(newFolder(), "other.pem");
    writeFileSync(other, generatePrivateKey("ed25519"));
    await expectRefused(
      backup,
      /backup is of the log of operator key sha256:\w+, not of/,
      "--may-fork",
      "--operator-key",
      other,
    );
    expect((await cairnlog(["backup", "--data", data, "--to", newFolder(), "--operator-key", other])).stderr).toMatch(
      /log is signed by operator key/,
    );
  });

  test("a backup is not continued with another log, or with one that shrank", async () => {
    const copy = copyOfBackup();
    const before = readFileSync(join(copy, "manifest.json"), "utf8");
    const other = newFolder();
    mkdirSync(join(other, "data"));
    copyFileSync(join(data, "operator.pem"), join(other, "data", "operator.pem"));
    const registry = await openData(join(other, "data"), pool);
    await registry.log.append(anyEvent());
    const refusal = async () => (await cairnlog(["backup", "--data", join(other, "data"), "--to", copy])).stderr;
    expect(await refusal()).toMatch(/has 600 entries, the log only 1: the log shrank/);
    for (let i = 0; i < 2; i++) await registry.log.append(Array.from({ length: 400 }, (_, n) => anyEvent({ n })));
    await registry.close();
    expect(await refusal()).toMatch(/The first 600 entries of the log are not those in the backup/);
    expect(readFileSync(join(copy, "manifest.json"), "utf8")).toBe(before);
    expect(readdirSync(copy)).toHaveLength(3);
  });
});

describe("a restore that would fork", () => {
  test("is refused when nothing is known of what was published", async () => {
    await expectRefused(
      backup,
      /ends at size 600, and it is not known whether more was published.*--published.*--may-fork/s,
    );
    expect(await restore(backup, "--may-fork")).toMatchObject({ code: 0 });
  });

  test("is refused when a head, a checkpoint or a service shows more, and says which entries are missing", async () => {
    const dataDir = copyOf(data);
    const service = await startService(dataDir);
    const body = JSON.stringify(submission(newSigner()));
    const headers = { "content-type": "application/json" };
    expect((await fetch(`${service.url}/api/v1/attestations`, { method: "POST", headers, body })).status).toBe(200);
    const folder = newFolder();
    const [head, note] = [join(folder, "head.json"), join(folder, "checkpoint")];
    writeFileSync(head, await (await fetch(`${service.url}/api/v1/log/sth`)).text());
    writeFileSync(note, await (await fetch(`${service.url}/api/v1/log/checkpoint`)).text());
    const sentence = /A head of size 602 was published .* ends at size 600: entries 601 to 602 are missing.*mirror/;
    for (const source of [head, note, service.url]) await expectRefused(backup, sentence, "--published", source);
    await service.stop();
    // A mirror does not help if it is not longer than the backup.
    await expectRefused(backup, sentence, "--published", head, "--mirror", copyOf(data));
    expect(await restore(backup, "--published", head, "--may-fork")).toMatchObject({ code: 0 });
    const filled = await restore(backup, "--published", head, "--published", shown, "--mirror", dataDir);
    expect(JSON.parse(filled.stdout)).toMatchObject({ tree_size: 602, from_mirror: 2 });
    expect(await answers(filled.to, 602, pool)).toEqual(await answers(dataDir, 602, pool));
  });

  test("is refused when another root was published, and when what is given proves nothing", async () => {
    const other = newFolder();
    copyFileSync(join(data, "operator.pem"), join(other, "operator.pem"));
    const { log, close } = await openData(other, pool);
    await log.append(anyEvent());
    const head = join(other, "head.json");
    writeFileSync(head, JSON.stringify(log.treeHead()));
    await close();
    await expectRefused(backup, /The first 1 entries are not the published ones/, "--published", head);
    await expectRefused(backup, /is of another log/, "--may-fork", "--mirror", await longer(other));
    const forged = { ...JSON.parse(readFileSync(shown, "utf8")), tree_size: 1 };
    writeFileSync(head, JSON.stringify(forged));
    await expectRefused(backup, /no tree head that is signed by the operator key/, "--published", head);
    writeFileSync(head, "nothing\n1\n\n");
    await expectRefused(backup, /no checkpoint that is signed by the operator key/, "--published", head);
  });

  async function longer(dataDir: string): Promise<string> {
    const { log, close } = await openData(dataDir, pool);
    for (let i = 0; i < 2; i++) await log.append(Array.from({ length: 400 }, (_, n) => anyEvent({ n })));
    await close();
    return dataDir;
  }

  test("never writes over a log", async () => {
    const dataDir = copyOf(data);
    const before = await privateRows(dataDir);
    const refused = await cairnlog(["restore", backup, "--to", dataDir, "--may-fork"]);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toMatch(/There is already a log in .*, and restore does not overwrite it\. Move it away/);
    expect(await privateRows(dataDir)).toEqual(before);
  });
});
