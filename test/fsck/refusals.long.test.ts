/** The messages about a log that must not be opened: each is a sentence with the action to take. */
import { once } from "node:events";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { startLog } from "#cairnlog/engine/log/start.js";
import { MIGRATIONS } from "#cairnlog/engine/store/migrations.js";
import { FORMAT } from "#cairnlog/engine/store/schema/schema.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { type Acknowledged, attest } from "../server/attesting.js";
import { startService } from "../service.js";
import { buildData, copyOf, newFolder, openData, removeFolders, tamper } from "./everykind.js";

const pool = createPool(1);
/** 600 entries; the newest batch has 79. */
let data: string;
beforeAll(async () => {
  data = await buildData(pool, 591);
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

/** The message of `cairnlog serve` when it does not start. */
async function refusal(dataDir: string, env: Record<string, string> = {}): Promise<string> {
  const ended = await cairnlog(["serve"], { PORT: "0", SERVICE_DATA_DIR: dataDir, ...env });
  expect(ended.code).toBe(1);
  expect(ended.stdout).toBe("");
  return ended.stderr;
}

const dropNewest = (dataDir: string, count: number) =>
  tamper(dataDir, async (_, bytes) => {
    const keys = [...bytes("batches").getKeys()].slice(-count);
    for (const key of keys) await bytes("batches").remove(key);
  });

test("another operator key is refused", async () => {
  const dataDir = copyOf(data);
  writeFileSync(join(dataDir, "other.pem"), generatePrivateKey("ed25519"), { mode: 0o600 });
  const said = await refusal(dataDir, { SERVICE_OPERATOR_KEY: join(dataDir, "other.pem") });
  expect(said).toMatch(/^cairnlog: This log is signed by operator key sha256:\w+, not by sha256:\w+\. Give the key/);
});

test("a log in a newer format is refused", async () => {
  const dataDir = copyOf(data);
  await tamper(dataDir, (table) => table("meta").put("log", { ...table("meta").get("log"), format: FORMAT + 1 }));
  const sentence = `The log is in format ${FORMAT + 1}; this version reads formats up to ${FORMAT}. Use the version`;
  expect(await refusal(dataDir)).toContain(sentence);
  expect((await cairnlog(["fsck", "--data", dataDir, "--rebuild"])).stderr).toContain(sentence);
});

test("a log whose newest batches are gone is refused by what they left", async () => {
  const dataDir = copyOf(data);
  await dropNewest(dataDir, 2);
  expect(await refusal(dataDir)).toMatch(/^cairnlog: The log in .* shrank: it ends after entry 9, but tiles of later/);

  const long = await buildData(pool, 5_000);
  await dropNewest(long, 12);
  expect(await refusal(long)).toMatch(/^cairnlog: The log in .* shrank: .* but postings of later ones are there/);
});

test("a log that is shorter than what was shown of it is refused, and by fsck, too", async () => {
  const dataDir = copyOf(data);
  const before = copyOf(dataDir);
  await (await startService(dataDir)).stop();
  const shown = JSON.parse(readFileSync(join(dataDir, "published.json"), "utf8"));
  expect(shown.tree_size).toBe(600);

  const { log, close } = await openData(dataDir, pool);
  await log.append(anyEvent());
  await close();
  await (await startService(dataDir)).stop();
  expect(JSON.parse(readFileSync(join(dataDir, "published.json"), "utf8")).tree_size).toBe(601);

  // An old copy of the log is restored.
  rmSync(join(dataDir, "log"), { recursive: true });
  renameSync(join(before, "log"), join(dataDir, "log"));
  expect(await refusal(dataDir)).toMatch(
    /^cairnlog: The log shrank: it has 600 entries, but a head of 601 was signed and shown\. .*restore the newest backup/,
  );
  const checked = await cairnlog(["fsck", "--data", dataDir]);
  expect(checked.code).toBe(1);
  expect(checked.stdout).toContain("A head of 601 entries was signed and shown, but the log has only 600.");

  // Another log of the same operator, with the same size.
  writeFileSync(join(dataDir, "published.json"), JSON.stringify({ ...shown, root_hash: "0".repeat(64) }));
  expect(await refusal(dataDir)).toMatch(/^cairnlog: The log is not the one that was shown: its first 600 entries/);
  // A file that was cut short by a power failure proves nothing, but there is another one that was published.
  writeFileSync(join(dataDir, "published.json"), "");
  expect(await refusal(dataDir)).toMatch(
    /^cairnlog: The log shrank: it has 600 entries, but the checkpoint in \S*tlog-checkpoint\.txt has 601\. .*restore the newest backup/,
  );
  writeFileSync(join(dataDir, "tlog-checkpoint.txt"), "");
  await (await startService(dataDir)).stop();
});

test("a second process is refused while the first one runs, and not after it was killed", async () => {
  const dataDir = copyOf(data);
  const service = await startService(dataDir);
  const sentence = new RegExp(
    `^cairnlog: The log in .* is in use by process ${service.process.pid}\\. Only one process`,
  );
  expect(await refusal(dataDir)).toMatch(sentence);
  expect((await cairnlog(["fsck", "--data", dataDir])).stderr).toMatch(sentence);
  // The first service does not notice.
  const appended = await attest(service.url, "after the second one");
  expect(appended.status).toBe(200);
  const { log_entry_id, sth } = (await appended.json()) as Acknowledged;
  const ended = once(service.process, "exit");
  service.process.kill("SIGKILL");
  await ended;
  const next = await startService(dataDir);
  const kept = await fetch(`${next.url}/api/v1/log/sth/${sth.tree_size}`);
  expect(await kept.json()).toMatchObject(sth);
  expect((await fetch(`${next.url}/api/v1/log/${log_entry_id}`)).status).toBe(200);
  expect(await next.stop()).toBe(0);
});

test("an older format is brought up to date step by step, again after a crash, and once", async () => {
  expect(MIGRATIONS.length + 1).toBe(FORMAT);
  const path = newFolder();
  const signer = operatorKey(generatePrivateKey("ed25519"));
  await (await startLog(openStore({ path }), { path, signer })).close();
  const ran: string[] = [];
  const counter =
    (name: string): (typeof MIGRATIONS)[number] =>
    async (store) => {
      ran.push(name);
      const row = { last: (store.get("counters", "webhook")?.last ?? 0) + 1 };
      const rows = [{ table: "counters", key: "webhook", row }] as const;
      const after = store.position().sequence;
      await store.commit({ after, position: null, batches: [], rows, tiles: [] });
    };
  const crash: (typeof MIGRATIONS)[number] = () => Promise.reject(new Error("the power failed"));
  const open = (migrations: readonly (typeof MIGRATIONS)[number][]) =>
    startLog(openStore({ path }), { path, signer }, undefined, [...MIGRATIONS, ...migrations]);
  await expect(open([counter("first"), crash])).rejects.toThrow("the power failed");
  const log = await open([counter("first"), counter("second")]);
  expect(log.row("meta", "log")).toMatchObject({ format: FORMAT + 2, key_id: signer.fingerprint });
  expect(log.row("counters", "webhook")).toEqual({ last: 2 });
  await log.close();
  await (await open([counter("first"), counter("second")])).close();
  expect(ran).toEqual(["first", "second"]);
  await expect(open([])).rejects.toMatchObject({ code: "corrupt-log" });
});

test("fsck answers in JSON, says what it cannot find, and leaves nothing behind", async () => {
  const dataDir = copyOf(data);
  const whole = await cairnlog(["fsck", "--data", dataDir, "--json"]);
  expect(whole).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(whole.stdout)).toEqual({
    ok: true,
    entries: 600,
    counts: { entries: 0, derived: 0, private: 0 },
    differences: [],
    rebuilt: false,
  });
  await tamper(dataDir, (table) => table("keys").put("planted\u001b[2J", {}));
  const damaged = await cairnlog(["fsck", "--data", dataDir]);
  expect(damaged).toMatchObject({ code: 1, stderr: "" });
  expect(damaged.stdout).toMatch(
    /^600 entries, and one difference: 1 in derived from the entries\.\n {2}keys "planted/,
  );
  expect(damaged.stdout).not.toContain("\u001b");
  const rebuilt = await cairnlog(["fsck", "--data", dataDir, "--rebuild"]);
  expect(rebuilt).toMatchObject({ code: 0, stderr: "" });
  expect(rebuilt.stdout).toMatch(/\nRebuilt\.\n600 entries, and nothing differs\.\n$/);
  expect(existsSync(join(dataDir, "log", "scratch"))).toBe(false);
  expect(await cairnlog(["fsck", "--data", newFolder()])).toMatchObject({ code: 2 });
  expect(await cairnlog(["fsck", "--dta", dataDir])).toMatchObject({ code: 2 });
});
