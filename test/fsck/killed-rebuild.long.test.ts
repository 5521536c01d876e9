/** The state that is left when `cairnlog fsck --rebuild` is killed while it runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { cairnlog, MAIN } from "../service.js";
import { buildData, openData, removeFolders, tamper } from "./everykind.js";

const pool = createPool(1);
afterAll(async () => {
  removeFolders();
  await pool.close();
});

test("a rebuild that is killed is finished by the next one, and the service does not start before", async () => {
  const dataDir = await buildData(pool, 591);
  await tamper(dataDir, async (table) => {
    for (const key of [...table("keys").getKeys()]) await table("keys").remove(key);
  });
  const child = spawn(process.execPath, [MAIN, "fsck", "--data", dataDir, "--rebuild"], { stdio: "ignore" });
  const scratch = join(dataDir, "log", "scratch");
  // The scratch space is made for the check, and again for the rebuild.
  let [times, wasThere, isOver] = [0, false, false];
  const ended = once(child, "exit").then(() => {
    isOver = true;
  });
  while (!isOver && times < 2) {
    const isThere = existsSync(scratch);
    if (isThere && !wasThere) times++;
    wasThere = isThere;
    await sleep(1);
  }
  child.kill("SIGKILL");
  await ended;
  const checked = await cairnlog(["fsck", "--data", dataDir]);
  if (checked.stdout.includes("a rebuild was interrupted"))
    expect(await cairnlog(["serve"], { env: { ...process.env, PORT: "0", SERVICE_DATA_DIR: dataDir } })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/rebuild of the log in .* was interrupted\. Finish it: cairnlog fsck --rebuild/),
    });
  expect(await cairnlog(["fsck", "--data", dataDir, "--rebuild"])).toMatchObject({ code: 0, stderr: "" });
  expect(existsSync(scratch)).toBe(false);
  const { log, close } = await openData(dataDir, pool);
  expect(log.stateDifferences()).toEqual([]);
  await close();
});
