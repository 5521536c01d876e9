/** Only its owner can read a data directory, for any umask and any creator of its files. */
import { chmodSync, lstatSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cairnlog, scratchFolder, startService } from "../../service.js";
import { newSigner, registration } from "../signers.js";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
const inherited = process.umask();
/** Child processes inherit the umask. */
beforeAll(() => {
  process.umask(0);
});
afterAll(() => {
  process.umask(inherited);
  folder.remove();
});

/** Everything at and below `path` that others than its owner may use, with its mode. */
function open(path: string): string[] {
  const found = lstatSync(path);
  const mode = found.mode & 0o777;
  const own = mode === (found.isDirectory() ? 0o700 : 0o600) ? [] : [`${path} ${mode.toString(8)}`];
  return found.isDirectory() ? [...own, ...readdirSync(path).flatMap((name) => open(join(path, name)))] : own;
}

async function serve(dataDir: string): Promise<void> {
  const service = await startService(dataDir);
  const body = JSON.stringify(registration(newSigner()));
  expect((await fetch(`${service.url}/api/v1/keys/register`, { method: "POST", body })).status).toBe(200);
  expect(await service.stop()).toBe(0);
}

test("the service makes folders of mode 0700 and files of mode 0600, with a umask of 0", async () => {
  await serve(at("data"));
  expect(readdirSync(at("data")).sort()).toEqual([
    ...["log", "operator.pem", "operator.pub.pem", "published.json", "tlog-checkpoint.txt", "tlog.vkey"],
  ]);
  expect(open(at("data"))).toEqual([]);
});

test("a data directory that others could read is closed to them at the next start", async () => {
  const dataDir = at("older");
  await serve(dataDir);
  for (const name of ["", "log", "log/data.mdb", "log/postings", "operator.pub.pem", "published.json"])
    chmodSync(join(dataDir, name), lstatSync(join(dataDir, name)).isDirectory() ? 0o755 : 0o644);
  writeFileSync(join(dataDir, "published.json.new"), "left by a crash");
  await serve(dataDir);
  expect(open(dataDir)).toEqual([]);
});

test("so do import, backup, restore and the check of a log", async () => {
  const data = at("data");
  writeFileSync(at("empty.ndjson"), "");
  for (const args of [
    ["import", at("empty.ndjson"), "--data", at("imported")],
    ["backup", "--data", data, "--to", at("saved")],
    ["restore", at("saved"), "--to", at("restored")],
    ["fsck", "--rebuild", "--data", data],
  ])
    expect((await cairnlog(args)).stderr).not.toMatch(/error/i);
  for (const name of ["data", "imported", "saved", "restored"]) expect(open(at(name)), name).toEqual([]);
});
