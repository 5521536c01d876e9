/** Backups of a log that grows at the same time, and commands that are killed while they run. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { anyEvent } from "../anyevent.js";
import { buildData, check, newFolder, openData, removeFolders } from "../fsck/everykind.js";
import { attestUntilGone } from "../server/attesting.js";
import { newSigner, submission } from "../server/signers.js";
import { cairnlog, MAIN, startService } from "../service.js";
import { answers, backUp, headOf, manifestOf, NO_COMPLAINT } from "./backups.js";

const pool = createPool(1);
afterAll(async () => {
  removeFolders();
  await pool.close();
});

test("backups under load hold a moment of the log each", async () => {
  const dataDir = newFolder();
  const to = join(newFolder(), "backup");
  const service = await startService(dataDir);
  const exited = once(service.process, "exit");
  const load = attestUntilGone(service.url, 4);
  const isBegun = async () => (await fetch(`${service.url}/api/v1/log/sth`)).status;
  await expect.poll(isBegun).toBe(200);
  const sizes: number[] = [];
  for (let i = 0; i < 3; i++) sizes.push((await backUp(dataDir, to)).tree_size);
  const size = sizes.at(-1)!;
  // One more entry, so that the log is longer than the backup for any amount of load.
  const body = JSON.stringify(submission(newSigner()));
  const headers = { "content-type": "application/json" };
  await fetch(`${service.url}/api/v1/attestations`, { method: "POST", headers, body });
  const head = await (await fetch(`${service.url}/api/v1/log/sth/${size}`)).text();
  service.process.kill("SIGKILL");
  await load;
  await exited;
  expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
  expect(size).toBeGreaterThan(0);
  writeFileSync(join(to, "head.json"), head);
  const target = newFolder();
  copyFileSync(join(dataDir, "operator.pem"), join(target, "operator.pem"));
  const restored = await cairnlog(["restore", to, "--to", target, "--published", join(to, "head.json")]);
  expect(restored).toMatchObject({ code: 0, stderr: NO_COMPLAINT });
  expect(await answers(target, size, pool)).toEqual(await answers(dataDir, size, pool));
  expect(await check(target, pool)).toMatchObject({ ok: true, entries: size });

  // More was published since then, and the data directory has the newer head.
  await expectRefusedIn(dataDir, to, size);
});

test("backup and fsck take the processor time that others leave", async () => {
  const dataDir = await buildData(pool, 1);
  const tell = `data:text/javascript,${encodeURIComponent(
    'import { getPriority } from "node:os"; process.on("exit", () => console.error("priority", getPriority()));',
  )}`;
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ["--import", tell, MAIN, ...args], { encoding: "utf8" }).stderr.match(
      /priority \d+/,
    )?.[0];
  const own = getPriority();
  const lower = Math.min(own + 10, 19);
  expect([
    run("backup", "--data", dataDir, "--to", join(newFolder(), "backup")),
    run("fsck", "--data", dataDir),
    run("keygen", "--help"),
  ]).toEqual([`priority ${lower}`, `priority ${lower}`, `priority ${own}`]);
});

/** Asserts that a restore is refused. The log was lost, but the file with its published head was not. */
async function expectRefusedIn(dataDir: string, from: string, size: number): Promise<void> {
  const { tree_size } = await headOf(dataDir, pool);
  expect(tree_size).toBeGreaterThan(size);
  const service = await startService(dataDir);
  await service.stop();
  renameSync(join(dataDir, "log"), join(dataDir, "log.lost"));
  const refused = await cairnlog(["restore", from, "--to", dataDir]);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`entries ${size + 1} to ${tree_size} are missing`);
  expect(existsSync(join(dataDir, "log"))).toBe(false);
  // A longer copy has the missing entries.
  const mirror = newFolder();
  renameSync(join(dataDir, "log.lost"), join(mirror, "log"));
  const filled = await cairnlog(["restore", from, "--to", dataDir, "--mirror", mirror, "--json"]);
  expect(filled).toMatchObject({ code: 0, stderr: NO_COMPLAINT });
  expect(JSON.parse(filled.stdout)).toMatchObject({ tree_size, from_mirror: tree_size - size });
  expect(await check(dataDir, pool)).toMatchObject({ ok: true, entries: tree_size });
}

describe("killed in the middle", () => {
  const run = (...args: string[]): ChildProcess => spawn(process.execPath, [MAIN, ...args], { stdio: "ignore" });

  /** Kills the child when `isMoment` becomes true. Resolves when it has ended, killed or not. */
  async function killAt(child: ChildProcess, isMoment: () => boolean): Promise<void> {
    let isOver = false;
    const ended = once(child, "exit").then(() => {
      isOver = true;
    });
    while (!isOver && !isMoment()) await sleep(2);
    child.kill("SIGKILL");
    await ended;
  }

  test("a backup leaves the one before, and the next one is whole", async () => {
    const dataDir = await buildData(pool, 5_000);
    // A first backup that is killed while its segment is a draft, and a second one that is killed later.
    const fresh = join(newFolder(), "backup");
    const isDraft = () => existsSync(fresh) && readdirSync(fresh).some((name) => name.endsWith(".partial"));
    const isSegment = () => existsSync(fresh) && readdirSync(fresh).some((name) => name.startsWith("entries-"));
    for (const isMoment of [isDraft, isSegment]) {
      await killAt(run("backup", "--data", dataDir, "--to", fresh), isMoment);
      if (existsSync(join(fresh, "manifest.json"))) expect(manifestOf(fresh).tree_size).toBe(5_009);
    }
    expect((await backUp(dataDir, fresh)).tree_size).toBe(5_009);
    expect(readdirSync(fresh)).toHaveLength(3);
    const before = readFileSync(join(fresh, "manifest.json"), "utf8");
    const { log, close } = await openData(dataDir, pool);
    for (let i = 0; i < 4; i++) await log.append(Array.from({ length: 500 }, (_, n) => anyEvent({ n })));
    await close();
    await killAt(run("backup", "--data", dataDir, "--to", fresh), isDraft);
    const after = readFileSync(join(fresh, "manifest.json"), "utf8");
    if (after !== before) expect(manifestOf(fresh).tree_size).toBe(7_009);
    const target = newFolder();
    expect(await cairnlog(["restore", fresh, "--to", target, "--may-fork"])).toMatchObject({
      code: 0,
      stderr: NO_COMPLAINT,
    });
    expect((await backUp(dataDir, fresh)).tree_size).toBe(7_009);
  });

  test("a restore leaves no log, and the next one is whole", async () => {
    const data = await buildData(pool, 591);
    const backup = join(newFolder(), "backup");
    await backUp(data, backup);
    const target = join(newFolder(), "data");
    const building = join(target, "log.restoring", "data.mdb");
    await killAt(run("restore", backup, "--to", target, "--may-fork"), () => existsSync(building));
    if (!existsSync(join(target, "log")))
      expect(await cairnlog(["restore", backup, "--to", target, "--may-fork"])).toMatchObject({
        code: 0,
        stderr: NO_COMPLAINT,
      });
    expect(readdirSync(target)).toEqual(["log", "operator.pub.pem"]);
    copyFileSync(join(data, "operator.pem"), join(target, "operator.pem"));
    expect(await check(target, pool)).toMatchObject({ ok: true, entries: 600 });
  });
});
