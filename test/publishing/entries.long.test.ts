/** `cairnlog publish --entries`: the entries as they are served, and an index of them, beside the tiles. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeAll, expect, test } from "vitest";
import { cairnlog } from "../cli/harness.js";
import { temporaryFolder } from "../server/harness.js";
import { newManifest, newSigner, sha256 } from "../server/signers.js";
import { expectEntries } from "./entries.js";
import { expectWhole, LiveLog, listening, served } from "./logs.js";

const reader = (folder: string) => (path: string) => readFile(join(folder, path)).catch(() => undefined);
const publish = (source: string, target: string, ...args: string[]) => cairnlog(["publish", source, target, ...args]);

let log: LiveLog;
/** The log at 300 and at 700 entries. */
const [young, grown] = [temporaryFolder(), temporaryFolder()];
const whole = async (folder: string, size: number) => {
  await expectWhole(reader(folder), size);
  await expectEntries(reader(folder), log.service, size);
};
const copyOf = (folder: string) => {
  const copy = temporaryFolder();
  cpSync(folder, copy, { recursive: true });
  return copy;
};

beforeAll(async () => {
  log = await LiveLog.start(250);
  const [ada, bob] = [newSigner(), newSigner()];
  await log.register(ada, "Ada");
  const manifest = newManifest();
  for (const signer of [ada, bob]) await log.attest(signer, manifest);
  await log.grow(300);
  expect(await publish(log.url, young, "--entries")).toMatchObject({ code: 0 });
  cpSync(young, grown, { recursive: true });
  await log.attest(ada, manifest);
  await log.grow(700);
});

test("entries are published twice, and are those of the service; a target that has some gets all without being told", async () => {
  await whole(young, 300);
  const again = await publish(log.url, grown, "--json");
  // Five of tiles; two bundles and the run of 512 entries, which has a fence and a part.
  expect([again.code, again.stderr, JSON.parse(again.stdout)]).toEqual([0, "", expect.objectContaining({ made: 9 })]);
  await whole(grown, 700);
  const third = await publish(log.url, grown, "--audit", "--json");
  expect([third.code, JSON.parse(third.stdout)]).toEqual([0, expect.objectContaining({ made: 0, is_new: false })]);
});

test("a target without entries gets those that it lacks when they are asked for", async () => {
  const target = temporaryFolder();
  expect(await publish(log.url, target)).toMatchObject({ code: 0 });
  expect(existsSync(join(target, "entries"))).toBe(false);
  expect(await publish(log.url, target, "--entries")).toMatchObject({ code: 0 });
  await whole(target, 700);
});

test("the explorer is put there, replaces an earlier version, and goes on where it was; a page of somebody else stays", async () => {
  const page = readFileSync(join(young, "index.html"), "utf8");
  const parts = readdirSync(join(young, "explorer")).sort();
  for (const [, part] of page.matchAll(/(?:src|href)="\.\/explorer\/([^"]+)"/g)) expect(parts).toContain(part);
  expect(parts.filter((name) => !/-[\w-]{8}\.(?:js|css|svg)$/.test(name))).toEqual([]);
  const target = copyOf(grown);
  writeFileSync(join(target, "index.html"), page.replace("</title>", " of an earlier version</title>"));
  for (const name of ["earlier-12345678.js", "notes.txt"]) writeFileSync(join(target, "explorer", name), "");
  rmSync(join(target, "explorer", parts[0]!));
  await publish(log.url, target);
  expect(readFileSync(join(target, "index.html"), "utf8")).toBe(page);
  const there = () => readdirSync(join(target, "explorer")).sort();
  expect(there()).toEqual([...parts, "earlier-12345678.js", "notes.txt"].sort());
  const dayAgo = new Date(Date.now() - 25 * 3_600_000);
  for (const name of parts) utimesSync(join(target, "explorer", name), dayAgo, dayAgo);
  rmSync(join(target, "explorer", parts[1]!));
  await publish(log.url, target, "--audit");
  // The one that was made again is young.
  expect(there()).toEqual([...parts, "earlier-12345678.js", "notes.txt"].sort());
  utimesSync(join(target, "explorer", parts[1]!), dayAgo, dayAgo);
  await publish(log.url, target);
  expect(there()).toEqual([...parts, "notes.txt"].sort());
  writeFileSync(join(target, "index.html"), "<h1>My log</h1>");
  const { code, stderr } = await publish(log.url, target);
  expect([code, stderr]).toEqual([0, expect.stringContaining("has an index.html of its own, which stays")]);
  expect(readFileSync(join(target, "index.html"), "utf8")).toBe("<h1>My log</h1>");
});

test("what was replaced a day ago is removed", async () => {
  await publish(log.url, grown);
  const target = copyOf(grown);
  const dayAgo = new Date(Date.now() - 25 * 3_600_000);
  for (const name of ["entries/001", "index/0-512/fence"]) utimesSync(join(target, name), dayAgo, dayAgo);
  expect((await publish(log.url, target)).stdout).toContain(", 3 removed");
  expect(readdirSync(join(target, "index"))).toEqual(["0-512"]);
  expect(existsSync(join(target, "entries/001.p"))).toBe(false);
  await whole(target, 700);
});

const flip = (bytes: Buffer) => {
  bytes[bytes.length - 1]! ^= 1;
  return bytes;
};
/** Another text in an entry, or another head. */
const changed = (from: RegExp, to: string) => (bytes: Buffer) =>
  gzipSync(gunzipSync(bytes).toString().replace(from, to));

test.each([
  ["entries/000", flip],
  ["entries/000", changed(/"ciphertext":""/, '"ciphertext":"x"')],
  ["entries/000", changed(/"root_hash":"./, '"root_hash":"z')],
  ["entries/001", changed(/"tree_size":257/, '"tree_size":258')],
  ["entries/002.p/188", changed(/("signature":")(..)(..)/, "$1$3$2")],
  ["index/0-512/0", flip],
  ["index/0-512/fence", flip],
] as const)("%s is another one than the log's: that is said, and it stays", async (path, change) => {
  await publish(log.url, grown);
  const target = copyOf(grown);
  writeFileSync(join(target, path), change(readFileSync(join(target, path))));
  const before = readFileSync(join(target, path));
  const { code, stderr } = await publish(log.url, target, "--audit");
  expect([code, stderr]).toEqual([3, expect.stringContaining(`${target} has another ${path} than the log`)]);
  expect(readFileSync(join(target, path))).toEqual(before);
});

test.each(["entries/000", "entries/002.p/188", "index/0-512/0", "index/0-512/fence", "log/operator-key"])(
  "%s is lost: it is made again",
  async (path) => {
    await publish(log.url, grown);
    const target = copyOf(grown);
    rmSync(join(target, path));
    expect(await publish(log.url, target, "--entries", "--audit")).toMatchObject({ code: 0 });
    await whole(target, 700);
  },
);

test("a service that shows another entry than its tree has is not published", async () => {
  const liar = await listening(
    createServer(async (request, response) => {
      // The command ends without waiting for all that it has asked for.
      const answer = await fetch(log.service.url + request.url).catch(() => new Response(null, { status: 503 }));
      const text = Buffer.from(await answer.arrayBuffer()).toString("latin1");
      const isEntries = request.url!.startsWith("/api/v1/log?");
      response.writeHead(answer.status);
      response.end(isEntries ? text.replace('"ciphertext":""', '"ciphertext":"x"') : text, "latin1");
    }),
  );
  const target = temporaryFolder();
  const { code, stderr } = await publish(`${liar}/tlog`, target, "--entries");
  expect([code, stderr]).toEqual([1, expect.stringContaining("shows other entries than its tree has. Entry ")]);
  for (const name of ["checkpoint", "entries/000"]) expect(existsSync(join(target, name))).toBe(false);
});

/** Path → SHA-256 of every file, but for drafts. */
const filesIn = (folder: string) =>
  new Map(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => !name.startsWith(".drafts") && statSync(join(folder, name)).isFile())
      .sort()
      .map((name) => [name, sha256(readFileSync(join(folder, name)))]),
  );

test("what was published is a source of entries, too: a copy of a copy has the same bytes", async () => {
  const first = temporaryFolder();
  expect(await publish(log.url, first, "--entries")).toMatchObject({ code: 0 });
  // A server that has /tlog in its address, and is no service.
  const above = temporaryFolder();
  cpSync(first, join(above, "tlog"), { recursive: true });
  let source = `${await served(above)}/tlog`;
  for (const copy of [temporaryFolder(), temporaryFolder()]) {
    expect(await publish(source, copy, "--entries")).toMatchObject({ code: 0 });
    expect(filesIn(copy)).toEqual(filesIn(first));
    source = copy;
  }
  const late = copyOf(young);
  expect(await publish(source, late)).toMatchObject({ code: 0 });
  await whole(late, 700);
});

test("a source whose publisher has removed a partial bundle gives the beginning of the full one", async () => {
  const [source, late] = [temporaryFolder(), temporaryFolder()];
  cpSync(young, source, { recursive: true });
  cpSync(join(grown, "entries/001"), join(source, "entries/001"));
  rmSync(join(source, "entries/001.p"), { recursive: true });
  expect(await publish(source, late, "--entries")).toMatchObject({ code: 0 });
  await whole(late, 300);
});

test.each([
  ["another text in an entry", changed(/"ciphertext":""/, '"ciphertext":"x"'), "shows other entries than its tree has"],
  ["a head by somebody else", changed(/("signature":")(..)(..)/, "$1$3$2"), "is not signed by the operator key"],
  ["what is no bundle", flip, "has something else than 256 entries in bundle 0"],
] as const)("a copy with %s is not copied", async (_, change, sentence) => {
  const [source, target] = [copyOf(young), temporaryFolder()];
  writeFileSync(join(source, "entries/000"), change(readFileSync(join(source, "entries/000"))));
  const { code, stderr } = await publish(source, target, "--entries");
  expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
  for (const name of ["checkpoint", "entries/000"]) expect(existsSync(join(target, name))).toBe(false);
});

test("entries of a source that has none are not to be had", async () => {
  const bare = temporaryFolder();
  expect(await publish(log.url, bare)).toMatchObject({ code: 0 });
  for (const source of [bare, await served(bare)]) {
    const { code, stderr } = await publish(source, temporaryFolder(), "--entries");
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining("--entries: SOURCE must be the /tlog of a cairnlog, or"),
    ]);
  }
  const other = await publish(bare, copyOf(young));
  expect([other.code, other.stderr]).toEqual([
    2,
    expect.stringContaining("has entries, too: SOURCE must be the /tlog"),
  ]);
});
