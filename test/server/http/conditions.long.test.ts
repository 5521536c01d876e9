/** The real service without free resources: a clear answer each time, and nothing is lost. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { scratchFolder, startService } from "../../service.js";
import { type Acknowledged, attest } from "../attesting.js";
import { metric, slowClient, until } from "../sockets.js";
import { startLimited } from "./limitedservice.js";

const folder = scratchFolder();
afterAll(() => folder.remove());
const at = (name: string) => join(folder.path, name);
const run = promisify(execFile);

async function expectWhole(url: string, acknowledged: readonly Acknowledged[]): Promise<void> {
  const report = await (await fetch(`${url}/api/v1/log/verify`, { method: "POST" })).json();
  expect(report).toMatchObject({ valid: true, errors: [] });
  for (const { log_entry_id, entry_hash, sth } of acknowledged) {
    expect(await (await fetch(`${url}/api/v1/log/${log_entry_id}`)).json()).toMatchObject({ entry_hash });
    expect(await (await fetch(`${url}/api/v1/log/sth/${sth.tree_size}`)).json()).toEqual(sth);
  }
}

test("a full disk: 503 until there is room, without a restart, and acknowledged entries are there", async () => {
  // Writes beyond the limit fail with an error, as they do on a full disk.
  const { child, url, log } = await startLimited("trap '' XFSZ; ulimit -S -f 1500", at("full"));
  const acknowledged: Acknowledged[] = [];
  let refused: Response | null = null;
  for (let n = 0; !refused; n++) {
    const response = await attest(url, `document ${n} ${"x".repeat(400)}`);
    if (response.status === 200) acknowledged.push((await response.json()) as Acknowledged);
    else refused = response;
  }
  expect(refused.status).toBe(503);
  expect(refused.headers.get("retry-after")).toBe("10");
  expect(await refused.json()).toMatchObject({ code: "storage-full" });
  expect(acknowledged.length).toBeGreaterThan(10);
  expect(await metric(url, "cairnlog_last_batch_failed")).toBe(1);
  expect((await fetch(`${url}/livez`)).status).toBe(200);
  expect(log()).toContain("The disk has no room for the log (EFBIG).");

  await run("prlimit", ["--pid", `${child.pid}`, "--fsize=unlimited"]);
  await until(async () => (await fetch(`${url}/readyz`)).status === 200);
  const response = await attest(url, "there is room again");
  expect(response.status).toBe(200);
  acknowledged.push((await response.json()) as Acknowledged);
  await expectWhole(url, acknowledged);
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);

  const again = await startService(at("full"));
  await expectWhole(again.url, acknowledged);
  expect(await again.stop()).toBe(0);
});

test("few open files: fewer connections, with a warning, and those that there are are served", async () => {
  const { child, url, log } = await startLimited("ulimit -n 192", at("files"));
  expect(log()).toContain("too few files may be open");
  const clients = await Promise.all(Array.from({ length: 150 }, () => slowClient(url)));
  await until(() => clients.filter(({ socket }) => socket.destroyed).length >= 86);
  expect(log()).not.toContain("EMFILE");
  for (const { socket } of clients) socket.destroy();
  await until(async () => (await fetch(`${url}/livez`).catch(() => null))?.status === 200);
  expect((await attest(url, "still here")).status).toBe(200);
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
});
