/** The state that is left when `cairnlog import` is killed while it runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { chain, type Wanted } from "../log/history/entries.js";
import { cairnlog, MAIN, scratchFolder, startService } from "../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);

test("killed anywhere on the way, it leaves the log empty or whole, and the next one succeeds", async () => {
  const entries = chain(Array<Wanted>(6000).fill({ payload: { text: "x".repeat(300) } }));
  const file = at("large.ndjson");
  writeFileSync(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  for (let round = 0; round < 3; round++) {
    const data = at(`killed-${round}`);
    const child = spawn(process.execPath, [MAIN, "import", file, "--data", data], { stdio: "ignore" });
    const exited = once(child, "exit");
    // In later rounds it is killed when a part of the log is on disk.
    for (let waited = 0; round > 0 && !existsSync(join(data, "log.importing")) && waited < 60_000; waited += 5)
      await sleep(5);
    await sleep(round * 200);
    child.kill("SIGKILL");
    await exited;
    if (round % 2) {
      const service = await startService(data);
      const { entry_count } = await (await fetch(`${service.url}/api/v1/log/head`)).json();
      expect([0, 6000]).toContain(entry_count);
      expect(await service.stop()).toBe(0);
    }
    const again = await cairnlog(["import", file, "--data", data, "--json"]);
    if (again.code === 0) expect(JSON.parse(again.stdout)).toMatchObject({ entry_count: 6000 });
    // The import was complete when it was killed.
    else expect(again.stderr).toContain("already has 6000 entries");
    expect(existsSync(join(data, "log.importing"))).toBe(false);
  }
});
