/**
 * `cairnlog monitor` on a log that golang.org/x/mod/sumdb has made, as static files behind a plain web server; and the mirror
 * of a live cairnlog, which is such files, read by sumdb.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { cairnlog } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { goProgram, run } from "./programs.js";
import { liveLog, serveFolder } from "./services.js";

const ORIGIN = "go.example/log";
let makelog: string;
let sumdb: string;
let skey: string;
let vkey: string;
beforeAll(async () => {
  [makelog, sumdb] = (await Promise.all(
    ["test/interop/program/makelog.go", "docs/examples/sumdb/main.go"].map(goProgram),
  )) as [string, string];
  const { stdout } = await run(makelog, "key", ORIGIN);
  [skey, vkey] = stdout.trim().split("\n") as [string, string];
});

/** Makes a log of static files. @returns its folder */
async function made(size: number, ...more: readonly string[]): Promise<string> {
  const folder = temporaryFolder();
  const { code, stderr } = await run(makelog, folder, skey, String(size), "first", ...more);
  expect([code, stderr]).toEqual([0, ""]);
  return folder;
}

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort();

function expectSame(mirror: string, folder: string): void {
  expect(filesIn(mirror)).toEqual(filesIn(folder));
  for (const name of filesIn(folder))
    expect(readFileSync(join(mirror, name)).equals(readFileSync(join(folder, name))), name).toBe(true);
}

const monitor = (url: string, state: string, key = vkey) =>
  cairnlog(["monitor", url, "--vkey", key, "--state", state, "--once", "--audit", "--json"]);

describe("a log that Go has made", () => {
  test("is followed over a tile of tiles, and mirrored byte for byte", async () => {
    const state = temporaryFolder();
    const site = await serveFolder(temporaryFolder());
    for (const size of [1, 300, 66_000, 66_100]) {
      site.folder = await made(size);
      const { code, stdout, stderr } = await monitor(site.url, state);
      // A slow machine shows how far it has come.
      expect(code, stderr).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ verified: size, head: { origin: ORIGIN, tree_size: size } });
      expectSame(join(state, "mirror"), site.folder);
    }
  });

  test("and then rewritten is a fork", async () => {
    const state = temporaryFolder();
    const site = await serveFolder(await made(700));
    expect((await monitor(site.url, state)).code).toBe(0);
    site.folder = await made(900, "650", "second");
    const { code, stdout, stderr } = await monitor(site.url, state);
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining("ALARM fork: The first 700 entries of the tree of 900"),
    ]);
    const { evidence_file, head } = JSON.parse(stdout);
    expect(head.tree_size).toBe(700);
    expect(JSON.parse(readFileSync(evidence_file, "utf8")).evidence).toMatchObject({
      logs: [vkey],
      prefixRoot: expect.any(String),
    });
  });
});

test("the mirror of a live cairnlog is a log for Go", async () => {
  const { service, vkey: own } = await liveLog(700);
  const state = temporaryFolder();
  const { code, stderr } = await monitor(`${service.url}/tlog`, state, own);
  expect([code, stderr]).toEqual([0, ""]);
  const site = await serveFolder(state, (path) => path.replace("/tlog/", "/mirror/"));
  const { stdout } = await run(sumdb, site.url, own);
  expect(stdout).toContain("signed by log.example/tlog size 700 root equal true");
});
