/** The binary of uWebSockets.js is taken out of the archive of the package, also where the package cannot be written to. */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompressSync } from "node:zlib";
import { afterAll, beforeEach, expect, test } from "vitest";
import { scratchFolder } from "../../service.js";

const run = promisify(execFile);
const folder = scratchFolder();
afterAll(() => folder.remove());
const packaged = join(folder.path, "uws");
const temporary = join(folder.path, "tmp");
const PLATFORM = `${process.platform}_${process.arch}`;
const KEY = `${PLATFORM}_${process.versions.modules}`;
const NAME = `uws_${KEY}.node`;
const BINARY = "for this version of Node";

// Another user cannot write to what root has made; others than root take the right from themselves.
const isRoot = process.getuid!() === 0;
const OTHER = isRoot ? { uid: 65534, gid: 65534 } : {};
const USER = isRoot ? OTHER.uid : process.getuid!();
const ownFolder = join(temporary, `cairnlog-uws-${USER}`);

beforeEach(() => {
  for (const path of [packaged, temporary]) {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path);
  }
  chmodSync(folder.path, 0o755);
  chmodSync(temporary, 0o1777);
  const others = "for another version".repeat(100);
  writeFileSync(join(packaged, `${PLATFORM}.br`), brotliCompressSync(`${others}${BINARY}${others}`));
  const index = {
    [`${PLATFORM}_1`]: { offset: 0, length: others.length },
    [KEY]: { offset: others.length, length: BINARY.length },
  };
  writeFileSync(join(packaged, "index.json"), JSON.stringify(index));
});

const PROGRAM = `import("#cairnlog/server/http/servers/binary.js").then(({ uwsBinary }) => console.log(uwsBinary(process.argv[1])));`;
/** The path of the binary, as a process of its own finds it; or the error. */
const found = (options: object = {}): Promise<string> =>
  run(process.execPath, ["--eval", PROGRAM, packaged], { env: { ...process.env, TMPDIR: temporary }, ...options }).then(
    ({ stdout }) => stdout.trim(),
    ({ stderr }) => /^Error: (.*)$/m.exec(stderr)![1]!,
  );

test("processes that start at once find it beside the archive, and leave nothing else", async () => {
  const own = join(packaged, NAME);
  expect(await Promise.all([found(), found()])).toEqual([own, own]);
  expect(readFileSync(own, "utf8")).toBe(BINARY);
  expect(readdirSync(packaged).sort()).toEqual(["index.json", `${PLATFORM}.br`, NAME].sort());
  // The next start takes the file that is there.
  writeFileSync(join(packaged, `${PLATFORM}.br`), "no archive");
  expect(await found()).toBe(own);
});

test("who may not write there has it in a folder of his own", async () => {
  if (!isRoot) chmodSync(packaged, 0o555);
  const own = join(ownFolder, NAME);
  expect(await found(OTHER)).toBe(own);
  expect(readFileSync(own, "utf8")).toBe(BINARY);
  expect(statSync(ownFolder).mode & 0o777).toBe(0o700);
});

test("a folder of that name that others can write to is not used", async () => {
  if (!isRoot) chmodSync(packaged, 0o555);
  mkdirSync(ownFolder);
  writeFileSync(join(ownFolder, NAME), "planted");
  chmodSync(ownFolder, 0o777);
  expect(await found(OTHER)).toBe(`${ownFolder} can be written to by other users`);
});

test("where there is none for this Node, the reason says so", async () => {
  writeFileSync(join(packaged, "index.json"), "{}");
  expect(await found()).toBe(`there is no binary for Node ${process.versions.node} on ${PLATFORM}`);
});
