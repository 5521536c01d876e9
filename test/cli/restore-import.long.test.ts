/** Output and exit codes of `cairnlog restore` and `cairnlog import`. */
import { chmodSync, copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { COMMANDS } from "#cairnlog/server/cli/commands.js";
import { anyEvent } from "../anyevent.js";
import { buildData, copyOf, newFolder, openData, removeFolders } from "../fsck/everykind.js";
import { chain } from "../log/history/entries.js";
import { startService } from "../service.js";
import { begin, cairnlog, interrupt } from "./harness.js";

const pool = createPool(1);
/** A few entries of every kind. */
let data: string;
let size: number;
let otherKey: string;
beforeAll(async () => {
  data = await buildData(pool, 8);
  size = (await headOf(data)).tree_size;
  otherKey = join(newFolder(), "other.pem");
  writeFileSync(otherKey, generatePrivateKey("ed25519"), { mode: 0o600 });
});
afterAll(async () => {
  removeFolders();
  await pool.close();
});

async function headOf(dataDir: string) {
  const { log, close } = await openData(dataDir, pool);
  const head = log.treeHead()!;
  await close();
  return head;
}

/** A new folder for this test, with the key that signs the log of `data`. */
function withKey(): string {
  const folder = newFolder();
  copyFileSync(join(data, "operator.pem"), join(folder, "operator.pem"));
  return folder;
}

describe("restore", () => {
  let backup: string;
  beforeAll(async () => {
    backup = join(newFolder(), "backup");
    expect(await cairnlog(["backup", "--data", data, "--to", backup])).toMatchObject({ code: 0 });
  });
  const restore = (to: string, ...more: string[]) => cairnlog(["restore", backup, "--to", to, ...more]);
  const kept = (content: string | object) => {
    const file = join(newFolder(), "published");
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
    return file;
  };
  test("0: under a head that was published, in any of its forms", async () => {
    const head = await headOf(data);
    for (const published of [head, { sth: head }, { head }, `\n ${JSON.stringify(head)}`]) {
      const to = withKey();
      const run = await restore(to, "--published", kept(published));
      expect(run).toEqual({
        code: 0,
        stdout: `${size} entries in ${to}; signed by ${head.key_id}\n`,
        stderr: "",
      });
      expect(await cairnlog(["fsck", "--data", to])).toMatchObject({ code: 0 });
    }
  });

  test("0: under the head and the checkpoint that a service shows", async () => {
    const service = await startService(copyOf(data));
    const note = await (await fetch(`${service.url}/api/v1/log/checkpoint`)).text();
    const to = withKey();
    const run = await restore(to, "--published", service.url, "--published", kept(note), "--json");
    await service.stop();
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse(run.stdout)).toEqual({ tree_size: size, from_mirror: 0, operator: (await headOf(data)).key_id });
  });

  test("0: with --may-fork, into a directory without a key", async () => {
    const to = join(newFolder(), "new");
    expect(await restore(to, "--may-fork")).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(to).sort()).toEqual(["log", "operator.pub.pem"]);
    expect(statSync(to).mode & 0o777).toBe(0o700);
  });

  test("0: missing entries come from a mirror, 1 without it", async () => {
    const longer = copyOf(data);
    const { log, close } = await openData(longer, pool);
    await log.append([1, 2].map((n) => anyEvent({ n })));
    await close();
    const published = ["--published", kept(await headOf(longer))];
    const to = withKey();
    expect(await restore(to, ...published)).toMatchObject({ code: 1, stdout: "" });
    expect(readdirSync(to)).toEqual(["operator.pem"]);
    expect((await restore(to, ...published, "--mirror", longer)).stdout).toMatch(
      new RegExp(`^${size + 2} entries in ${to}, the last 2 of them from the mirror; signed by sha256:`),
    );
    const other = withKey();
    expect(await restore(other, ...published, "--may-fork")).toMatchObject({ code: 0 });
    // The head that the directory itself stores as published counts as well.
    const third = withKey();
    writeFileSync(join(third, "published.json"), JSON.stringify(await headOf(longer)));
    expect(await restore(third)).toMatchObject({ code: 1, stdout: "" });
    // Of all that is named or stored, the newest counts, in whatever order.
    const older = ["--published", kept(await headOf(data))];
    for (const sources of [
      [...published, ...older],
      [...older, ...published],
    ])
      expect(await restore(withKey(), ...sources)).toMatchObject({ code: 1, stdout: "" });
    expect(await restore(third, ...older)).toMatchObject({ code: 1, stdout: "" });
    expect(await restore(third, ...older, "--mirror", longer)).toMatchObject({ code: 0 });
  });

  test("1: refused, and nothing was written", async () => {
    const cases: [string[], RegExp][] = [
      [[], /--may-fork/],
      [["--published", "http://127.0.0.1:10"], /^cairnlog: No service answers at/],
      [["--published", join(newFolder(), "none")], /^cairnlog: There is no file .*none \(ENOENT\)\./],
      [["--may-fork", "--operator-key", otherKey], /operator key/],
      [["--may-fork", "--operator-key", kept("no key")], /./],
    ];
    for (const [more, sentence] of cases) {
      const to = withKey();
      const run = await restore(to, ...more);
      expect(run).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(sentence) });
      expect(readdirSync(to)).toEqual(["operator.pem"]);
    }
    const full = copyOf(data);
    expect(await restore(full, "--may-fork")).toMatchObject({ code: 1, stdout: "" });
    const none = join(newFolder(), "none");
    expect(await cairnlog(["restore", none, "--to", none, "--may-fork"])).toEqual({
      code: 1,
      stdout: "",
      stderr: `cairnlog: There is no backup in ${none}.\n`,
    });
    const { run } = await COMMANDS.restore!.load();
    await expect(
      (async () => run([none], { to: none, "may-fork": true, published: [] } as never, ""))(),
    ).rejects.toMatchObject({
      code: "not-found",
    });
    expect(existsSync(none)).toBe(false);
  });

  test("1: interrupted, and nothing was written", async () => {
    const to = withKey();
    const run = begin(["restore", backup, "--to", to, "--may-fork"]);
    await interrupt();
    expect(await run.ended).toEqual({ code: 1, stdout: "", stderr: "cairnlog: Interrupted.\n" });
    expect(readdirSync(to)).toEqual(["operator.pem"]);
  });

  test("2: an argument is not of the right form", async () => {
    const head = await headOf(data);
    const to = withKey();
    const cases: [string[], RegExp][] = [
      [["restore", "--to", to], /^cairnlog: name one BACKUP\n/],
      [["restore", backup, backup, "--to", to], /^cairnlog: name one BACKUP\n/],
      [["restore", backup], /^cairnlog: --to is missing\n/],
      [["restore", backup, "--to", to, "--mirror", newFolder()], /^cairnlog: there is no log in /],
      [["restore", backup, "--to", to, "--published", kept("{")], /is neither a tree head nor a checkpoint\n/],
      [
        ["restore", backup, "--to", to, "--published", kept("a\n1\nb\n")],
        /has no checkpoint that is signed by the operator key sha256:/,
      ],
      [["restore", backup, "--to", to, "--published", kept("")], /has no checkpoint that is signed/],
      [
        ["restore", backup, "--to", to, "--published", kept({ ...head, tree_size: 7 })],
        /has no tree head that is signed by the operator key sha256:/,
      ],
    ];
    for (const [args, sentence] of cases)
      expect(await cairnlog(args), args.join(" ")).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(sentence),
      });
    expect(readdirSync(to)).toEqual(["operator.pem"]);
  });
});

describe("import", () => {
  const written = (text: string) => {
    const file = join(newFolder(), "history.ndjson");
    writeFileSync(file, text);
    return file;
  };
  const lines = chain([{}, {}, { chain_version: 2 }, {}]).map((entry) => `${JSON.stringify(entry)}\n`);
  const importAll = (file: string, dataDir: string, ...more: string[]) =>
    cairnlog(["import", file, "--data", dataDir, ...more]);

  test("0: imported, also with warnings; 1: a second time", async () => {
    const dataDir = join(newFolder(), "data");
    const file = written(lines.join(""));
    const run = await importAll(file, dataDir);
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toMatch(
      new RegExp(
        `^imported 4 entries into ${dataDir}\nlast entry 4, [0-9a-f]{64}\nwarning: line 4, entry 4: A version 1 entry follows .*\n$`,
      ),
    );
    const again = await importAll(file, dataDir);
    expect(again).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^cairnlog: .* already has 4 entries/),
    });
    expect(await cairnlog(["fsck", "--data", dataDir])).toMatchObject({ code: 0 });
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });

  test("0: imported, and a key that others can read is warned of", async () => {
    const dataDir = newFolder();
    writeFileSync(join(dataDir, "operator.pem"), generatePrivateKey("ed25519"));
    chmodSync(join(dataDir, "operator.pem"), 0o644);
    expect(await importAll(written(lines.join("")), dataDir)).toMatchObject({
      code: 0,
      stderr: "cairnlog: the operator key can be read by others than its owner: set the file's mode to 0600\n",
    });
  });

  test("0: twenty warnings are printed, and how many more there are", async () => {
    const many = (count: number) => {
      const wanted = Array.from({ length: count }, () => [{ chain_version: 2 as const }, {}]).flat();
      return written(
        chain(wanted)
          .map((entry) => `${JSON.stringify(entry)}\n`)
          .join(""),
      );
    };
    const twenty = await importAll(many(20), newFolder());
    expect(twenty.stdout.match(/^warning: /gm)).toHaveLength(20);
    expect(twenty.stdout).not.toContain("more");
    const one = await importAll(many(21), newFolder());
    expect(one.stdout).toMatch(/\nand 1 more warnings\n$/);
    const more = await importAll(many(22), newFolder());
    expect(more.stdout.match(/^warning: /gm)).toHaveLength(20);
    expect(more.stdout).toMatch(/\nand 2 more warnings\n$/);
  });

  test.each([
    [
      "a line that is wrong after lines that are right",
      [...lines.slice(0, 2), lines[3]!].join(""),
      /^cairnlog: Line 3: .* Nothing was imported\.\n$/,
    ],
    ["a line cut short", lines.join("").slice(0, -9), /^cairnlog: Line 4: /],
    ["no entries", "", /^cairnlog: /],
  ])("1: refused: %s", async (_, text, sentence) => {
    const dataDir = newFolder();
    const run = await importAll(written(text), dataDir);
    expect(run).toMatchObject({ code: 1, stdout: "", stderr: expect.stringMatching(sentence) });
    expect(existsSync(join(dataDir, "log"))).toBe(false);
    // The true history can still be imported.
    expect(await importAll(written(lines.join("")), dataDir)).toMatchObject({ code: 0 });
  });

  test("1: a file that is not there leaves no data directory; 2: no file, or two", async () => {
    const dataDir = join(newFolder(), "data");
    expect(await importAll(join(dataDir, "none"), dataDir)).toMatchObject({ code: 1, stdout: "" });
    expect(existsSync(dataDir)).toBe(false);
    expect(await cairnlog(["import", "--data", dataDir])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/: name the FILE/),
    });
    expect(await cairnlog(["import", "a", "b", "--data", dataDir])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/: b is one argument too many/),
    });
    expect(existsSync(dataDir)).toBe(false);
  });
});
