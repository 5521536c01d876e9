/** `cairnlog publish` into a folder: what readers find there, and what is never put over it. */
import { hash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { begin, cairnlog, interrupt } from "../cli/harness.js";
import { StaticLog } from "../monitor/tiled/staticlog.js";
import { temporaryFolder } from "../server/harness.js";
import { newNoteSigner } from "../verify/note/notes.js";
import { expectWhole, LiveLog, served } from "./logs.js";
import { before } from "./proxy.js";

const whole = (folder: string, size: number) =>
  expectWhole((path) => readFile(join(folder, path)).catch(() => undefined), size);
const publish = (source: string, target: string, ...args: string[]) => cairnlog(["publish", source, target, ...args]);

/** Path → SHA-256 of every file. */
function filesIn(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => !name.startsWith(".drafts"),
  );
  const files = names.filter((name) => statSync(join(folder, name)).isFile()).sort();
  return new Map(files.map((name) => [name, hash("sha256", readFileSync(join(folder, name)))]));
}

/** A target that must stay as it is. */
async function untouched(target: string, work: () => ReturnType<typeof publish>) {
  const before = filesIn(target);
  const finished = await work();
  expect(filesIn(target)).toEqual(before);
  return finished;
}

let log: LiveLog;
/** The log at 300 and at 700 entries. */
const [young, grown] = [temporaryFolder(), temporaryFolder()];
beforeAll(async () => {
  log = await LiveLog.start(300);
  const first = await publish(log.url, young);
  expect(first).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^published: 300 entries, .*; 5 objects made/),
  });
  expect(first.stderr).toContain(`The key of the log is ${await log.vkey()}. It is believed from now on`);
  cpSync(young, grown, { recursive: true });
  await log.grow(700);
});

test("a log is published twice, and is a whole one to a monitor that reads the files", async () => {
  await whole(young, 300);
  const again = await publish(log.url, grown, "--json");
  expect(again).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(again.stdout)).toMatchObject({
    ...{ published: 700, is_new: true, removed: 0, cosigned: [], head: { tree_size: 700 } },
    // Two full tiles with their bundles, those at the edge, and one of level 1.
    made: 5,
  });
  await whole(grown, 700);
  expect(readFileSync(join(grown, "vkey"), "utf8")).toBe((await log.service.send("GET", "/tlog/vkey")).text);
  const third = await untouched(grown, () => publish(log.url, grown));
  expect(third).toMatchObject({ code: 0, stdout: expect.stringMatching(/^up to date: 700 entries, .*; 0 objects/) });
  const watch = ["--vkey", await log.vkey(), "--state", temporaryFolder(), "--once", "--audit"];
  const monitor = await cairnlog(["monitor", await served(grown), ...watch]);
  expect(monitor).toMatchObject({ code: 0, stdout: expect.stringMatching(/^verified: 700 entries/) });
  // What was published is a source, too.
  const copy = temporaryFolder();
  expect(await publish(await served(grown), copy)).toMatchObject({ code: 0 });
  expect(filesIn(copy)).toEqual(new Map([...filesIn(grown)].filter(([name]) => existsSync(join(copy, name)))));
  await whole(copy, 700);
});

test("a log is followed until the command is interrupted", async () => {
  const own = await LiveLog.start(0);
  const target = temporaryFolder();
  const run = begin(["publish", own.url, target, "--follow", "--interval", "1"]);
  await run.prints(/: 0 entries/);
  await own.grow(5);
  await run.prints(/: 5 entries/);
  await whole(target, 5);
  await interrupt();
  expect(await run.ended).toMatchObject({ code: 0 });
});

test("partial tiles and bundles are removed when the full one is a day old", async () => {
  const target = temporaryFolder();
  cpSync(grown, target, { recursive: true });
  await publish(log.url, target);
  const partial = () => [...filesIn(target).keys()].filter((name) => name.includes(".p/")).sort();
  const edge = ["tile/0/002.p/188", "tile/1/000.p/2", "tile/entries/002.p/188"];
  const replaced = ["tile/0/001.p/44", "tile/1/000.p/1", "tile/entries/001.p/44"];
  expect(partial()).toEqual([...edge, ...replaced].sort());
  const dayAgo = new Date(Date.now() - 25 * 3_600_000);
  for (const name of ["tile/0/001", "tile/entries/001"]) utimesSync(join(target, name), dayAgo, dayAgo);
  await publish(log.url, target, "--keep-partial");
  expect(partial()).toHaveLength(6);
  expect((await publish(log.url, target)).stdout).toContain(", 2 removed");
  // The tile of level 1 has not become full.
  expect(partial()).toEqual([...edge, "tile/1/000.p/1"].sort());
  expect(existsSync(join(target, "tile/0/001.p"))).toBe(false);
  await whole(target, 700);
});

describe("refused, with nothing written", () => {
  test("another log than the target has, whichever key is believed", async () => {
    const other = await LiveLog.start(800, { SERVICE_LOG_NAME: "other.example" });
    for (const more of [[], ["--vkey", await other.vkey()], ["--vkey", await log.vkey()]]) {
      const { code, stderr } = await untouched(young, () => publish(other.url, young, ...more));
      expect([code, stderr]).toEqual([
        4,
        expect.stringMatching(/other\.example.*cairnlog\/|cairnlog\/.*other\.example/),
      ]);
    }
  });

  test("a log that is smaller than what was published, as a restored backup is", async () => {
    await publish(log.url, grown);
    const { code, stderr } = await untouched(grown, async () => publish(await served(young), grown));
    expect([code, stderr]).toEqual([4, expect.stringMatching(/has a larger tree .* never taken back.* 300 entries/)]);
  });

  test("a log that has signed another tree", async () => {
    const signer = newNoteSigner("tiles.example/log");
    const folderOf = async (size: number, twist?: number) => {
      const folder = temporaryFolder();
      for (const [path, bytes] of new StaticLog(size, { signer, ...(twist !== undefined && { twist }) }).files()) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), bytes);
      }
      return served(folder);
    };
    const target = temporaryFolder();
    const key = ["--vkey", signer.vkey];
    expect(await publish(await folderOf(300), target, ...key)).toMatchObject({ code: 0 });
    for (const size of [700, 300, 299]) {
      const { code, stderr, stdout } = await untouched(target, async () =>
        publish(await folderOf(size, 200), target, ...key, "--json"),
      );
      expect([code, stderr]).toEqual([3, expect.stringContaining("ALARM fork: ")]);
      expect(JSON.parse(stdout)).toMatchObject({ alarm: "fork", evidence: { logs: [signer.vkey] } });
    }
    expect(await publish(await folderOf(700), target, ...key)).toMatchObject({ code: 0 });
  });
});

test.each([
  ["whoever named no key leaves the one of the faster publisher", false],
  ["whoever named the key puts it there", true],
])("two publishers of other logs begin at the same time: %s", async (_, isPinned) => {
  const target = temporaryFolder();
  const faster = `${newNoteSigner("faster.example/log").vkey}\n`;
  // After the target was seen to have no key.
  const source = await before(log.url, async (asked, pass) => {
    if (asked.request.url!.includes("/tile/")) writeFileSync(join(target, "vkey"), faster);
    await pass(asked);
  });
  const { code } = await publish(`${source}/tlog`, target, ...(isPinned ? ["--vkey", await log.vkey()] : []));
  expect(readFileSync(join(target, "vkey"), "utf8")).toBe(isPinned ? `${await log.vkey()}\n` : faster);
  expect([code, existsSync(join(target, "checkpoint"))]).toEqual(isPinned ? [0, true] : [1, false]);
});

describe("a target that is not what was published", () => {
  const spoilt = (path: string, change: (file: string) => void) => {
    const target = temporaryFolder();
    cpSync(grown, target, { recursive: true });
    change(join(target, path));
    return target;
  };
  const flip = (file: string) => {
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(file, bytes);
  };
  const cut = (file: string) => writeFileSync(file, readFileSync(file).subarray(0, -1));
  const remove = (file: string) => rmSync(file);
  beforeAll(async () => expect(await publish(log.url, grown)).toMatchObject({ code: 0 }));

  test.each([
    ["tile/0/002.p/188", flip, []],
    ["tile/1/000.p/2", flip, []],
    ["tile/entries/002.p/188", cut, []],
    ["tile/0/000", flip, ["--audit"]],
    ["tile/entries/000", flip, ["--audit"]],
    ["tile/entries/001", cut, ["--audit"]],
  ] as const)("%s is changed: that is said, and nothing is written", async (path, change, more) => {
    const target = spoilt(path, change);
    const { code, stderr } = await untouched(target, () => publish(log.url, target, ...more));
    expect([code, stderr]).toEqual([3, expect.stringContaining(`${target} has another ${path} than the log`)]);
  });

  test("it is compared by the next round, if the first one cannot be finished", async () => {
    const target = spoilt("tile/0/000", flip);
    let asked = 0;
    const source = await before(log.url, (request, pass) =>
      asked++ ? pass(request) : request.response.writeHead(404).end(),
    );
    const more = ["--audit", "--follow", "--interval", "1", "--vkey", await log.vkey()];
    const { code, stderr } = await untouched(target, () => publish(`${source}/tlog`, target, ...more));
    expect([code, stderr]).toEqual([3, expect.stringContaining(`${target} has another tile/0/000 than the log`)]);
    expect(stderr).toContain("does not have /");
  });

  test("its checkpoint is changed: it is no target for the log", async () => {
    const target = spoilt("checkpoint", (file) =>
      writeFileSync(file, readFileSync(file, "latin1").replace("700", "701")),
    );
    const { code, stderr } = await untouched(target, () => publish(log.url, target));
    expect([code, stderr]).toEqual([4, expect.stringContaining("and not signed by")]);
  });

  test.each([
    ["tile/0/002.p/188", []],
    ["tile/entries/002.p/188", []],
    ["tile/0/001", ["--audit"]],
    ["tile/entries/000", ["--audit"]],
    ["tile/1/000.p/2", ["--audit"]],
    ["checkpoint", []],
  ] as const)("%s is lost: it is made again", async (path, more) => {
    const target = spoilt(path, remove);
    expect(await publish(log.url, target, ...more)).toMatchObject({ code: 0 });
    expect(filesIn(target)).toEqual(filesIn(grown));
  });

  test("tiles without a checkpoint are gone on with if they are right, and stay if they are not", async () => {
    const half = temporaryFolder();
    for (const path of ["tile/0/000", "tile/entries/000", "tile/entries/001"])
      cpSync(join(grown, path), join(half, path));
    const { code, stdout } = await publish(log.url, half, "--json");
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ published: 700, made: 4 })]);
    await whole(half, 700);
    const lying = temporaryFolder();
    for (const path of ["tile/0/000", "tile/entries/000"]) cpSync(join(grown, path), join(lying, path));
    flip(join(lying, "tile/entries/000"));
    const spoilt = filesIn(lying).get("tile/entries/000");
    expect(await publish(log.url, lying)).toMatchObject({ code: 3 });
    expect(filesIn(lying).get("tile/entries/000")).toBe(spoilt);
    expect(existsSync(join(lying, "checkpoint"))).toBe(false);
  });
});

test.each([
  [["http://127.0.0.1:9"], "name the URL of a log, and a target"],
  [["http://127.0.0.1:9", "a", "b"], "b is one argument too many"],
  [["somewhere", "a"], "SOURCE must be an address, such as https://log.example/tlog, or a folder that is there"],
  [["http://127.0.0.1:9", "a", "--endpoint", "http://127.0.0.1:9"], "--endpoint is for a target such as s3://"],
  [["http://127.0.0.1:9", "s3://bucket/a/../b"], "is not such as s3://bucket/prefix"],
  [["http://127.0.0.1:9", "s3://bucket/a b"], "is not such as s3://bucket/prefix"],
  [["http://127.0.0.1:9", "s3://bucket/a"], "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set"],
])("%j is not understood", async (args, sentence) => {
  const { code, stderr } = await begin(["publish", ...args], { AWS_ACCESS_KEY_ID: "" }).ended;
  expect([code, stderr]).toEqual([2, expect.stringContaining(sentence)]);
});
