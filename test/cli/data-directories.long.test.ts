/** Output and exit codes of `cairnlog fsck` and `cairnlog backup`. */
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { buildData, copyOf, newFolder, openData, removeFolders, tamper } from "../fsck/everykind.js";
import { cairnlog as spawned, startService } from "../service.js";
import { begin, cairnlog, interrupt } from "./harness.js";

const pool = createPool(1);
/** A few entries of every kind. */
let data: string;
let size: number;
let otherKey: string;
beforeAll(async () => {
  data = await buildData(pool, 8);
  const { log, close } = await openData(data, pool);
  size = log.size;
  await close();
  otherKey = join(newFolder(), "other.pem");
  writeFileSync(otherKey, generatePrivateKey("ed25519"), { mode: 0o600 });
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

/** Ways to damage a directory, by the damaged part. */
const damage = {
  derived: (dataDir: string) => tamper(dataDir, (table) => table("keys").put("planted\u001b[2J", {})),
  private: (dataDir: string) => tamper(dataDir, (table) => table("inboxes").put("planted", { count: 2 })),
  entries: (dataDir: string) =>
    tamper(dataDir, async (_, bytes) => {
      const [key] = [...bytes("batches").getKeys()];
      await bytes("batches").remove(key!);
    }),
};
type Area = keyof typeof damage;

test.each([
  ["fsck", []],
  ["backup", ["--to"]],
])("%s takes the directory of SERVICE_DATA_DIR, or ./data", async (command, options) => {
  const cwd = newFolder();
  cpSync(data, join(cwd, "data"), { recursive: true });
  const args = () => [command, ...options.flatMap((option) => [option, join(newFolder(), "out")])];
  // It is read when the command is loaded.
  for (const SERVICE_DATA_DIR of [data, "", undefined])
    expect(await spawned(args(), { cwd, env: { ...process.env, SERVICE_DATA_DIR } })).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining("cairnlog:"),
    });
  const env = { ...process.env, SERVICE_DATA_DIR: join(cwd, "none") };
  expect(await spawned(args(), { cwd, env })).toMatchObject({ code: 2, stderr: expect.stringContaining("none") });
});

describe("fsck", () => {
  const fsck = (dataDir: string, ...more: string[]) => cairnlog(["fsck", "--data", dataDir, ...more]);
  const derived = "1 in derived from the entries";
  const own = "1 in private rows";
  const planted = '  keys "planted\\u001b[2J" is on disk, but the entries do not make it.';
  const rebuildAdvice = "cairnlog fsck --rebuild restores what follows from the entries.";
  const backupAdvice = "Private rows follow from nothing: a backup has them (cairnlog restore).";

  test.each<[areas: Area[], checked: number, rebuilt: number, isRebuilt: boolean]>([
    [[], 0, 0, false],
    [["derived"], 1, 0, true],
    [["private"], 1, 1, false],
    [["derived", "private"], 1, 1, true],
    [["entries"], 1, 1, false],
    [["entries", "derived"], 1, 1, false],
  ])("with damage in %j: %d; with --rebuild %d", async (areas, checked, rebuilt, isRebuilt) => {
    const dataDir = copyOf(data);
    for (const area of areas) await damage[area](dataDir);
    for (const more of [[], ["--json"]]) expect((await fsck(dataDir, ...more)).code).toBe(checked);
    const run = await fsck(dataDir, "--rebuild", "--json");
    expect(run).toMatchObject({ code: rebuilt, stderr: "" });
    const report = JSON.parse(run.stdout);
    expect(report).toMatchObject({ ok: rebuilt === 0, rebuilt: isRebuilt });
    // Only data derived from the entries is repaired.
    expect((await fsck(dataDir)).code).toBe(rebuilt);
  });

  test("the message for each", async () => {
    const dataDir = copyOf(data);
    const whole = `${size} entries, and nothing differs.`;
    expect((await fsck(dataDir)).stdout).toBe(`${whole}\n`);
    await damage.derived(dataDir);
    const one = [`${size} entries, and one difference: ${derived}.`, planted, rebuildAdvice].join("\n");
    expect((await fsck(dataDir)).stdout).toBe(`${one}\n`);
    expect((await fsck(dataDir, "--rebuild")).stdout).toBe(`${one}\nRebuilt.\n${whole}\n`);
    await damage.derived(dataDir);
    await damage.private(dataDir);
    const both = await fsck(dataDir);
    expect(both.stdout.split("\n")).toEqual([
      `${size} entries, and 2 differences: ${derived}, ${own}.`,
      planted,
      "  inboxes planted: 2 are counted, but notifications has none.",
      rebuildAdvice,
      backupAdvice,
      "",
    ]);
    await damage.entries(dataDir);
    const lost = (await fsck(dataDir)).stdout.trimEnd().split("\n");
    expect(lost[0]).toBe("0 entries, and one difference: 1 in entries and heads.");
    expect(lost.at(-1)).toMatch(/^Entries or heads are damaged, which nothing here can repair: restore a backup/);
  });

  test("fifty differences are shown, and the number of the others", async () => {
    const dataDir = copyOf(data);
    const plant = (count: number) =>
      tamper(dataDir, async (table) => {
        for (let n = 0; n < count; n++) await table("keys").put(`planted ${n}`, {});
      });
    await plant(50);
    const fifty = (await fsck(dataDir)).stdout.split("\n");
    expect(fifty.filter((line) => line.startsWith("  "))).toHaveLength(50);
    expect(fifty.join()).not.toContain("more");
    await plant(52);
    const more = (await fsck(dataDir)).stdout.split("\n");
    expect(more.filter((line) => line.startsWith("  keys"))).toHaveLength(50);
    expect(more).toContain("  … and 2 more");
  });

  test("1: a log that is shorter than the published head", async () => {
    const dataDir = copyOf(data);
    const { log, close } = await openData(dataDir, pool);
    const head = log.treeHead()!;
    await close();
    const shown = (tree_size: number) =>
      writeFileSync(join(dataDir, "published.json"), JSON.stringify({ ...head, tree_size }));
    shown(size);
    expect((await fsck(dataDir)).code).toBe(0);
    shown(size + 1);
    expect(await fsck(dataDir)).toMatchObject({ code: 1, stdout: expect.stringContaining("was signed and shown") });
  });

  test("1: refused, and nothing was checked", async () => {
    const used = copyOf(data);
    const service = await startService(used);
    expect(await fsck(used)).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/is in use by process/),
    });
    await service.stop();
    expect(await fsck(used)).toMatchObject({ code: 0 });
    writeFileSync(join(used, "no.pem"), "no key");
    expect(await fsck(used, "--operator-key", join(used, "no.pem"))).toMatchObject({ code: 1, stdout: "" });
    expect(await fsck(used, "--operator-key", join(used, "none.pem"))).toMatchObject({ code: 1, stdout: "" });
    expect(await fsck(used, "--operator-key", otherKey)).toMatchObject({ code: 1 });
  });

  test("1: a file that is no log is named, and nothing tries to read it", async () => {
    const dataDir = copyOf(data);
    writeFileSync(join(dataDir, "log", "data.mdb"), "no log");
    const { code, stdout } = await fsck(dataDir, "--json");
    const { entries, differences, rebuilt } = JSON.parse(stdout);
    expect({ code, entries, rebuilt }).toEqual({ code: 1, entries: 0, rebuilt: false });
    expect(differences).toEqual([{ area: "entries", message: expect.stringMatching(/data\.mdb is damaged: /) }]);
  });

  test("1: the process that reads the log ended before it could answer", async () => {
    const preload = join(newFolder(), "exit.cjs");
    writeFileSync(preload, 'if (process.argv[1]?.includes("fsck-worker")) process.exit(7);\n');
    const { code, stdout } = await cairnlog(["fsck", "--data", data], { NODE_OPTIONS: `--require=${preload}` });
    expect(code).toBe(1);
    expect(stdout).toContain("Reading the log ended with exit code 7 before it could read an entry.");
    const asJson = await cairnlog(["fsck", "--data", data, "--json"], { NODE_OPTIONS: `--require=${preload}` });
    expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: false, entries: 0, rebuilt: false });
  });

  test.each([
    [
      "failed",
      'task = Object.defineProperty(task, "files", { get() { throw new Error("a fault"); } });',
      /^Reading the log failed \(a fault\) before it could read an entry\.$/,
    ],
    ["was killed", 'process.kill(process.pid, "SIGKILL");', /^Reading the log ended with SIGKILL before it could /],
  ])("1: the process that reads the log %s", async (_, deed, sentence) => {
    const preload = join(newFolder(), "deed.cjs");
    writeFileSync(
      preload,
      `const { emit } = process;
process.emit = function (name, task, ...more) {
  if (name === "message" && process.argv[1].includes("fsck-worker")) { ${deed} }
  return emit.call(this, name, task, ...more);
};
`,
    );
    const run = await cairnlog(["fsck", "--data", data, "--json"], { NODE_OPTIONS: `--require=${preload}` });
    expect(run).toMatchObject({ code: 1, stderr: "" });
    const { differences, ...rest } = JSON.parse(run.stdout);
    expect(rest).toMatchObject({ ok: false, entries: 0, rebuilt: false });
    expect(differences).toEqual([{ area: "entries", message: expect.stringMatching(sentence) }]);
  });

  test("1: interrupted while the log is read", async () => {
    const long = await buildData(pool, 5_000);
    const { log, close } = await openData(long, pool);
    const { size: entries } = log;
    await close();
    // Each look at the clock is five seconds after the one before, so that all progress is told.
    let now = Date.now();
    const clock = vi.spyOn(Date, "now").mockImplementation(() => {
      now += 5_000;
      return now;
    });
    const run = begin(["fsck", "--data", long]);
    await run.prints(/^Deriving: 1024 of /, "stderr");
    await interrupt("SIGINT");
    const { code, stdout, stderr } = await run.ended;
    clock.mockRestore();
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/\ncairnlog: Interrupted\.\n$/);
    expect(stderr).not.toContain(`Verifying: ${entries} of`);
    expect(await fsck(long)).toMatchObject({ code: 0 });
  });

  test("1: interrupted, and it can be run again", async () => {
    const run = begin(["fsck", "--data", data]);
    await interrupt("SIGINT");
    expect(await run.ended).toEqual({ code: 1, stdout: "", stderr: "cairnlog: Interrupted.\n" });
    expect(await fsck(data)).toMatchObject({ code: 0 });
  });

  test("2: no log, no key, one argument too many", async () => {
    const keyless = copyOf(data);
    rmSync(join(keyless, "operator.pem"));
    expect(await fsck(keyless)).toMatchObject({ code: 0 });
    rmSync(join(keyless, "operator.pub.pem"));
    for (const [args, sentence] of [
      [["--data", newFolder()], /^cairnlog: there is no log in \//],
      [["--data", keyless], /^cairnlog: --operator-key is missing, and there is none in the data directory\n/],
      [["--data", data, "files"], /published files need --vkey or --policy/],
      [["--data", data, "files", "surplus"], /surplus is one argument too many/],
    ] as const)
      expect(await cairnlog(["fsck", ...args])).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(sentence),
      });
    expect(await fsck(keyless, "--operator-key", join(data, "operator.pem"))).toMatchObject({ code: 0 });
  });
});

describe("backup", () => {
  const backUp = (to: string, ...more: string[]) => cairnlog(["backup", "--data", data, "--to", to, ...more]);

  test("0: made, and brought up to date", async () => {
    const to = join(newFolder(), "backup");
    expect(await backUp(to)).toEqual({
      code: 0,
      stdout: `${size} entries in ${to}, ${size} of them new\n`,
      stderr: "",
    });
    const again = await backUp(to, "--json");
    expect(again).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(again.stdout)).toEqual({
      tree_size: size,
      added: 0,
      head: expect.objectContaining({ tree_size: size }),
    });
  });

  test("1: where no directory can be, under another key, interrupted; the backup is as it was", async () => {
    const to = join(newFolder(), "backup");
    await backUp(to);
    const manifest = readFileSync(join(to, "manifest.json"), "utf8");
    expect(await backUp(join(to, "manifest.json"))).toMatchObject({ code: 1, stdout: "" });
    expect(await backUp(to, "--operator-key", otherKey)).toMatchObject({ code: 1, stdout: "" });
    const run = begin(["backup", "--data", data, "--to", to]);
    await interrupt();
    expect(await run.ended).toEqual({ code: 1, stdout: "", stderr: "cairnlog: Interrupted.\n" });
    expect(readFileSync(join(to, "manifest.json"), "utf8")).toBe(manifest);
  });

  test("2: no log, no key, nowhere to", async () => {
    const keyless = copyOf(data);
    for (const name of ["operator.pem", "operator.pub.pem"]) rmSync(join(keyless, name));
    const to = join(newFolder(), "backup");
    for (const [args, sentence] of [
      [["--data", data], /^cairnlog: --to is missing/],
      [["--to", to, "--data", newFolder()], /^cairnlog: there is no log in /],
      [
        ["--to", to, "--data", keyless],
        /^cairnlog: --operator-key is missing, and there is none in the data directory\n/,
      ],
    ] as const)
      expect(await cairnlog(["backup", ...args])).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(sentence),
      });
    expect(existsSync(to)).toBe(false);
  });
});
