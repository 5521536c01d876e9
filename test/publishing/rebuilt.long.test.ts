/** `cairnlog restore` and `cairnlog fsck` of published files: a mirror made of them alone, and what is missing or wrong in them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeAll, expect, test, vi } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { parsePolicy } from "#cairnlog/engine/verify/index.js";
import { filesAt } from "#cairnlog/server/cli/static/place.js";
import { checkPublished } from "#cairnlog/server/publishing/check.js";
import { anyEvent } from "../anyevent.js";
import { cairnlog } from "../cli/harness.js";
import { startTestService, temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner } from "../server/signers.js";
import { MAIN } from "../service.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { LiveLog, listening, served } from "./logs.js";

const UNPACKING = DecompressionStream;

let log: LiveLog;
let vkey: string;
const [small, folder] = [temporaryFolder(), temporaryFolder()];
const ada = newSigner();
const manifest = newManifest();
beforeAll(async () => {
  log = await LiveLog.start(100);
  await log.register(ada, "Ada");
  await log.attest(ada, manifest);
  await log.grow(300);
  expect(await cairnlog(["publish", log.url, small, "--entries"])).toMatchObject({ code: 0 });
  cpSync(small, folder, { recursive: true });
  await log.grow(700);
  expect(await cairnlog(["publish", log.url, folder, "--entries"])).toMatchObject({ code: 0 });
  vkey = await log.vkey();
});

const restore = (from: string, to: string, ...more: string[]) =>
  cairnlog(["restore", from, "--to", to, "--vkey", vkey, ...more]);
const fsck = (place: string, ...more: string[]) => cairnlog(["fsck", place, "--vkey", vkey, ...more]);

test("a mirror is made of the files, in two runs, and serves the bytes of the first service", async () => {
  const to = temporaryFolder();
  const first = await restore(small, to, "--json");
  expect([first.code, JSON.parse(first.stdout)]).toEqual([0, expect.objectContaining({ tree_size: 300 })]);
  expect(await restore(await served(folder), to)).toMatchObject({ code: 0 });
  expect(await restore(small, to)).toMatchObject({ code: 1, stderr: expect.stringContaining("more than the 300") });
  const mirror = await startTestService({ SERVICE_DATA_DIR: to, SERVICE_READ_ONLY: "on" });
  await mirror.checkpointed(700);
  for (const path of [
    ...["/log?per_page=200", "/log?page=4&per_page=200", "/log/103", "/log/heads?from=1&limit=1000", "/log/sth/1"],
    ...[
      "/log/sth",
      "/log/proof/102",
      "/log/103/proof",
      "/log/proof/3?tree_size=257",
      "/log/consistency?from=99&to=612",
    ],
    ...["/log/operator-key", `/log/by-fingerprint/${ada.fingerprint}`, `/keys/${ada.fingerprint}`, "/log/tile/2/0/1"],
  ])
    expect(await mirror.get(path), path).toMatchObject({ status: 200, text: (await log.service.get(path)).text });
  for (const path of ["checkpoint", "vkey", "tile/0/000", "tile/1/000.p/2", "tile/entries/002.p/188"]) {
    const [ours, theirs] = [await mirror.send("GET", `/tlog/${path}`), await log.service.send("GET", `/tlog/${path}`)];
    expect(ours.bytes.equals(theirs.bytes), path).toBe(true);
  }
});

test("killed after any of its requests, it goes on where it was", async () => {
  const to = temporaryFolder();
  let kills = 0;
  for (let last = 6; ; last++, kills++) {
    let asked = 0;
    const source = await listening(
      createServer(async (request, response) => {
        const bytes = await readFile(join(folder, request.url!)).catch(() => null);
        if (++asked === last) child.kill("SIGKILL");
        response.writeHead(bytes ? 200 : 404).end(bytes);
      }),
    );
    const args = [MAIN, "restore", source, "--to", to, "--vkey", vkey, "--json"];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    const [code] = await once(child, "close");
    if (code === null) continue;
    expect([code, JSON.parse(said)]).toEqual([0, expect.objectContaining({ tree_size: 700 })]);
    break;
  }
  expect(kills).toBeGreaterThan(2);
  expect(await cairnlog(["fsck", "--data", to])).toMatchObject({ code: 0 });
});

test("a log that was handed to another operator key is published on, and is made again from the files", async () => {
  const [data, files, to, keys] = [temporaryFolder(), temporaryFolder(), temporaryFolder(), temporaryFolder()];
  const settings = { SERVICE_DATA_DIR: data, SERVICE_CHECKPOINT_INTERVAL_S: "1" };
  const before = await LiveLog.start(300, settings);
  const first = await before.vkey();
  expect(await cairnlog(["publish", before.url, files, "--entries"])).toMatchObject({ code: 0 });
  await before.service.close();
  writeFileSync(join(keys, "next.pem"), generatePrivateKey("ed25519"), { mode: 0o600 });
  expect(await cairnlog(["operator", "rotate", "--to", join(keys, "next.pem"), "--data", data])).toMatchObject({
    code: 0,
  });
  const after = await startTestService(settings);
  await after.server.registry.log.append([anyEvent(), anyEvent()]);
  await after.checkpointed(303);
  const second = (await after.send("GET", "/tlog/vkey")).text.trim();
  writeFileSync(join(keys, "policy"), `log ${first}\nlog ${second}\nquorum none\n`);
  const policy = ["--policy", join(keys, "policy")];
  const published = await cairnlog(["publish", `${after.url}/tlog`, files, ...policy]);
  expect([published.code, published.stdout]).toEqual([0, expect.stringMatching(/^published: 303 entries/)]);
  expect(JSON.parse(readFileSync(join(files, "log/operator-key"), "utf8")).operators).toHaveLength(2);
  expect(await cairnlog(["fsck", files, ...policy])).toMatchObject({ code: 0 });
  expect(await cairnlog(["restore", files, "--to", to, ...policy])).toMatchObject({ code: 0 });
  const mirror = await startTestService({ SERVICE_DATA_DIR: to, SERVICE_READ_ONLY: "on" });
  for (const path of ["/log/heads?from=299&limit=5", "/log/operator-key", "/log/301", "/log/proof/302"])
    expect((await mirror.get(path)).text, path).toBe((await after.get(path)).text);
});

test("a directory with another log, or with its private key, stays as it is", async () => {
  const other = await LiveLog.start(300);
  const [files, to] = [temporaryFolder(), temporaryFolder()];
  await cairnlog(["publish", other.url, files, "--entries"]);
  expect(await cairnlog(["restore", files, "--to", to, "--vkey", await other.vkey()])).toMatchObject({ code: 0 });
  expect(await restore(folder, to)).toMatchObject({ code: 1, stdout: "" });
  writeFileSync(join(to, "operator.pem"), "");
  expect(await restore(folder, to)).toMatchObject({ code: 2, stderr: expect.stringContaining("has the private key") });
});

test("files in which nothing differs", async () => {
  for (const place of [folder, await served(folder)])
    expect(await fsck(place)).toMatchObject({
      ...{ code: 0, stderr: "" },
      stdout: expect.stringMatching(/^700 entries of \S+ in 16 objects, and nothing differs\.\n$/),
    });
  const bare = temporaryFolder();
  await cairnlog(["publish", log.url, bare]);
  expect((await fsck(bare)).stdout).toContain("objects, of hashes alone, and nothing differs");
});

/** Objects of the newest checkpoint. */
const OBJECTS = [
  ...["vkey", "tile/0/000", "tile/0/001", "tile/0/002.p/188", "tile/1/000.p/2"],
  ...["tile/entries/000", "tile/entries/001", "tile/entries/002.p/188"],
  ...["entries/000", "entries/001", "entries/002.p/188", "index/0-512/fence", "index/0-512/0", "log/operator-key"],
];

test("each object that is missing is named, and each that has other bytes", async () => {
  const others = /\.drafts|001\.p|1\/000\.p\/1$|000\.p\/(?!2$)|0-256|^index\.html|^explorer\//;
  const everything = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => statSync(join(folder, name)).isFile() && !others.test(name),
  );
  expect(everything.sort()).toEqual([...OBJECTS, "checkpoint"].sort());
  const target = temporaryFolder();
  cpSync(folder, target, { recursive: true });
  const flipped = (path: string, bytes: Buffer) => {
    if (path.startsWith("entries/"))
      return gzipSync(gunzipSync(bytes).toString().replace('"ciphertext":""', '"ciphertext":"x"'));
    bytes[bytes.length - 3]! ^= 1;
    return bytes;
  };
  for (const path of OBJECTS) {
    const bytes = readFileSync(join(target, path));
    for (const [what, change] of [
      ["missing", () => rmSync(join(target, path))],
      ["wrong", () => writeFileSync(join(target, path), flipped(path, Buffer.from(bytes)))],
    ] as const) {
      change();
      const { code, stdout } = await fsck(target, "--json");
      const found = JSON.parse(stdout).differences.map((one: { path: string; what: string }) => [one.path, one.what]);
      expect([code, found]).toEqual([1, [[path, what]]]);
      writeFileSync(join(target, path), bytes);
    }
  }
  expect(await fsck(target)).toMatchObject({ code: 0 });
});

test("a tree that contradicts its checkpoint, and what is no such place", async () => {
  const target = temporaryFolder();
  cpSync(folder, target, { recursive: true });
  for (const path of ["tile/0/002.p/188", "tile/entries/002.p/188"])
    cpSync(join(folder, path.replace("002.p/188", "001.p/44")), join(target, path));
  const { code, stdout } = await fsck(target);
  expect([code, stdout]).toEqual([1, expect.stringContaining("tile/0/002.p/188 is wrong.")]);
  const other = ["fsck", folder, "--vkey", newNoteSigner("other.example").vkey];
  expect(await cairnlog(other)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is not signed as the policy"),
  });
  expect(await fsck(temporaryFolder())).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("There is no checkpoint"),
  });
  expect(await cairnlog(["fsck", folder])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--vkey or --policy"),
  });
});

test("one bundle after the other is unpacked for a check, since each may be hundreds of megabytes", async () => {
  let [under, most, unpacked] = [0, 0, 0];
  vi.stubGlobal(
    "DecompressionStream",
    class {
      readonly writable: WritableStream;
      readonly readable: ReadableStream;
      constructor(format: CompressionFormat) {
        most = Math.max(most, ++under);
        unpacked++;
        const stream = new UNPACKING(format);
        this.writable = stream.writable;
        this.readable = stream.readable.pipeThrough(new TransformStream({ flush: () => void under-- }));
      }
    },
  );
  const files = filesAt(folder, () => fetch);
  const policy = parsePolicy(`log ${vkey}\nquorum none`);
  const report = await checkPublished({ files, policy, signal: new AbortController().signal });
  expect([report.differences, unpacked, most]).toEqual([[], 3, 1]);
});
