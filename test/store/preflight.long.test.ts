/** What keeps LMDB from opening an environment is met before LMDB, which would end the process with SIGSEGV. */
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { MAIN, scratchFolder, startService } from "../service.js";

const folder = scratchFolder();
afterAll(() => folder.remove());

/** Runs `cairnlog serve`, which is expected to end by itself; `before` runs first in the same shell. */
function serve(data: string, before = ":"): { status: number | null; signal: string | null; stderr: string } {
  const env = { ...process.env, PORT: "0", SERVICE_DATA_DIR: data, LOG_LEVEL: "silent" };
  const command = `${before}; exec "$0" "$1" serve`;
  return spawnSync("bash", ["-c", command, process.execPath, MAIN], { env, encoding: "utf8" });
}

async function startsAndStops(data: string): Promise<void> {
  const service = await startService(data);
  expect(await service.stop()).toBe(0);
}

test.each(["log", "log/postings", "log/writer"])("a lock file in %s that is a folder is named", async (where) => {
  const data = join(folder.path, where.replace("/", "-"));
  const lock = join(data, where, "lock.mdb");
  await startsAndStops(data);
  rmSync(lock);
  mkdirSync(lock);
  expect(serve(data)).toMatchObject({
    status: 1,
    signal: null,
    stderr: expect.stringContaining(`${lock} is not a file`),
  });
  rmSync(lock, { recursive: true });
  await startsAndStops(data);
});

test("too little address space is named", async () => {
  const data = join(folder.path, "narrow");
  const { status, signal, stderr } = serve(data, "ulimit -v 60000000");
  expect([status, signal, stderr]).toEqual([
    1,
    null,
    expect.stringMatching(/^cairnlog: .*address space \(ulimit -v\)/),
  ]);
  await startsAndStops(data);
});

test("a disk that takes no byte is named, and nothing is left of the attempt", async () => {
  const data = join(folder.path, "full");
  await startsAndStops(data);
  rmSync(join(data, "log"), { recursive: true });
  // The file of the operator key is written again at each start, and must fit. Its block is 1 KiB long.
  const { status, signal, stderr } = serve(data, "trap '' XFSZ; ulimit -f 1");
  expect([status, signal, stderr]).toEqual([1, null, expect.stringMatching(/^cairnlog: .*cannot be opened: EFBIG/)]);
  expect(readdirSync(join(data, "log", "writer"))).toEqual([]);
  await startsAndStops(data);
});

test("a file system that cannot be written is named to readers, which cannot share the log there, and to writers", async () => {
  const data = join(folder.path, "read-only");
  await startsAndStops(data);
  // A mount needs rights. What Node says of one is all that counts here.
  const mounted = `import fs from "node:fs"; import { syncBuiltinESMExports } from "node:module";
    const { accessSync, openSync } = fs;
    const refuse = () => { throw Object.assign(new Error("EROFS"), { code: "EROFS" }) };
    fs.accessSync = (path, mode) => mode & fs.constants.W_OK ? refuse() : accessSync(path, mode);
    fs.openSync = (path, flags = "r", ...mode) => flags === "r" || !flags ? openSync(path, flags, ...mode) : refuse();
    syncBuiltinESMExports();`;
  const load = `data:text/javascript,${encodeURIComponent(mounted)}`;
  const commands = [["backup", "--to", join(folder.path, "backup")], ["fsck"], ["replicate", "leave"]];
  const said = commands.map((command) => {
    const argv = ["--import", load, MAIN, ...command, "--data", data];
    const { status, stderr } = spawnSync(process.execPath, argv, { encoding: "utf8" });
    return [status, stderr];
  });
  const refusal =
    /^cairnlog: .* is on a file system that cannot be written, and who reads a log writes there, too: copy the data directory/;
  expect(said).toEqual(commands.map(() => [1, expect.stringMatching(refusal)]));
});

test("a new lock file has all of its blocks, and one that was cut short is made longer", async () => {
  const data = join(folder.path, "lock");
  await startsAndStops(data);
  const lock = join(data, "log", "lock.mdb");
  const { size, blocks, mode } = statSync(lock);
  expect(blocks * 512).toBeGreaterThanOrEqual(size);
  expect(mode & 0o777).toBe(0o600);
  truncateSync(lock, 100);
  await startsAndStops(data);
  expect(statSync(lock).size).toBe(size);
  closeSync(openSync(join(data, "log", "preflight.1"), "w"));
  await startsAndStops(data);
  expect(existsSync(lock)).toBe(true);
});
