/** The files of a backup: the manifest, the segments, and the lines of private rows. */
import { createHash } from "node:crypto";
import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { container } from "#cairnlog/engine/base/process.js";
import { readRowLine, rowLine } from "#cairnlog/engine/journal/rows.js";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import {
  type BackupManifest,
  HashedFile,
  linesOf,
  readBackupManifest,
  removeDrafts,
  replaceManifest,
} from "#cairnlog/engine/log/history/backupformat.js";
import { anyEvent } from "../anyevent.js";
import { openTestLog, temporaryFolder, testOperator } from "../log/harness.js";
import { runIn } from "../log/inline.js";

const sha256 = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const corrupt = (message: RegExp | string) =>
  expect.objectContaining({ code: "corrupt-log", message: expect.stringMatching(message) });

async function written(folder: string, lines: readonly (string | Uint8Array)[]) {
  const file = await HashedFile.create(folder, "entries");
  for (const line of lines) await file.line(line);
  return file.keep("lines.ndjson");
}

/** The files in a folder that this process has open, removed ones too. */
const openIn = (folder: string): string[] =>
  readdirSync("/proc/self/fd")
    .map((fd) => join("/proc/self/fd", fd))
    // The list itself was open while it was read.
    .filter((link) => lstatSync(link, { throwIfNoEntry: false }))
    .map((link) => readlinkSync(link))
    .filter((path) => path.startsWith(`${folder}/`));

async function read(folder: string, file: Parameters<typeof linesOf>[1]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(folder, file)) lines.push(line.toString("utf8"));
  return lines;
}

describe("a file", () => {
  // More than a chunk of 1 MiB, with ends of lines and characters at any place; empty lines, and one longer than a
  // chunk.
  const LONG = [
    ...Array.from({ length: 3000 }, (_, i) => `${i} ${"é€".repeat(i % 180)}`),
    "",
    "x".repeat(2 ** 21 + 1),
    "",
    "the end",
  ];
  test.each([
    ["no line", []],
    ["an empty line", [""]],
    ["lines of every length", LONG],
  ])("of %s is read as it was written", async (_, lines) => {
    const folder = temporaryFolder();
    const file = await written(folder, lines);
    const bytes = readFileSync(join(folder, "lines.ndjson"));
    expect(file).toEqual({ file: "lines.ndjson", bytes: bytes.length, sha256: sha256(bytes) });
    expect(bytes.toString("utf8")).toBe(lines.map((line) => `${line}\n`).join(""));
    expect(await read(folder, file)).toEqual(lines);
    expect(readdirSync(folder)).toEqual(["lines.ndjson"]);
    expect(statSync(join(folder, "lines.ndjson")).mode & 0o777).toBe(0o600);
  });

  test("takes bytes as they are, and a name from its hash", async () => {
    const folder = temporaryFolder();
    const file = await HashedFile.create(folder, "entries");
    await file.line(Buffer.from([0xff, 0x00]));
    expect(readdirSync(folder)).toEqual([file.draft]);
    const kept = await file.keep((digest) => `by-${digest}.ndjson`);
    const digest = sha256(Buffer.from([0xff, 0x00, 0x0a]));
    expect(kept).toEqual({ file: `by-${digest}.ndjson`, bytes: 3, sha256: digest });
    expect(readdirSync(folder)).toEqual([`by-${digest}.ndjson`]);
  });

  test("that is not what was written is refused when it has been read", async () => {
    const folder = temporaryFolder();
    const file = await written(folder, ["one", "two"]);
    const differs = corrupt(/^The backup's file lines\.ndjson is not the one that was written: its hash differs\.$/);
    writeFileSync(join(folder, file.file), "one\ntwx\n");
    await expect(read(folder, file)).rejects.toEqual(differs);
    writeFileSync(join(folder, file.file), "one\ntwo\n");
    await expect(read(folder, { ...file, bytes: 7 })).rejects.toEqual(differs);
    await expect(read(folder, { ...file, sha256: sha256("") })).rejects.toEqual(differs);
    expect(await read(folder, file)).toEqual(["one", "two"]);
    rmSync(join(folder, file.file));
    await expect(read(folder, file)).rejects.toEqual(corrupt(/^The backup's file lines\.ndjson is missing\.$/));
    // An error that is not a fault of the backup is reported unchanged.
    mkdirSync(join(folder, file.file));
    await expect(read(folder, file)).rejects.toMatchObject({ code: "EISDIR" });
  });
});

describe("a manifest", () => {
  const FILE = { bytes: 8, sha256: "ab".repeat(32) };
  const HEAD = {
    tree_size: 5,
    root_hash: "cd".repeat(32),
    signature: "AA==",
    timestamp: "2025-01-01T00:00:00.000000Z",
    key_id: testOperator.fingerprint,
    tree_version: 2,
  };
  const SOUND = {
    format: "cairnlog-backup/v1",
    operator_key: testOperator.public.pem,
    meta: { format: 1 },
    tree_size: 5,
    entry_hash: "ef".repeat(32),
    head: HEAD,
    made_at: "2025-01-01T00:00:00.000000Z",
    segments: [
      { ...FILE, file: "entries-0-3.ndjson", from: 0, to: 3 },
      { ...FILE, file: "entries-3-5.ndjson", from: 3, to: 5 },
    ],
    private_rows: { ...FILE, file: "private-5-x.ndjson" },
  };
  function readOf(text: string) {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "manifest.json"), text);
    return readBackupManifest(folder);
  }
  const without = (name: string) => Object.fromEntries(Object.entries(SOUND).filter(([member]) => member !== name));

  test("is read as it stands, with members that nobody knows", () => {
    expect(readOf(JSON.stringify(SOUND))).toEqual(SOUND);
    expect(readOf(JSON.stringify({ ...SOUND, later: 1 }))).toEqual({ ...SOUND, later: 1 });
    const empty = { ...SOUND, tree_size: 0, entry_hash: null, head: null, segments: [] };
    expect(readOf(JSON.stringify(empty))).toEqual(empty);
    expect(readBackupManifest(temporaryFolder())).toBeUndefined();
  });

  test("lacks no member", () => {
    for (const name of Object.keys(SOUND))
      expect(() => readOf(JSON.stringify(without(name))), name).toThrow(corrupt(`is not valid\\. /${name} is missing`));
    for (const name of ["file", "bytes", "sha256", "from", "to"]) {
      const [first, ...others] = SOUND.segments;
      const segments = [{ ...first, [name]: undefined }, ...others];
      expect(() => readOf(JSON.stringify({ ...SOUND, segments })), name).toThrow(
        corrupt(`/segments/0/${name} is missing`),
      );
    }
    for (const name of ["file", "bytes", "sha256"]) {
      const private_rows = { ...SOUND.private_rows, [name]: undefined };
      expect(() => readOf(JSON.stringify({ ...SOUND, private_rows }))).toThrow(
        corrupt(`/private_rows/${name} is missing`),
      );
    }
  });

  test.each<[string, object, RegExp]>([
    ["another format", { format: "cairnlog-backup/v2" }, /\/format must be "cairnlog-backup\/v1"/],
    ["a key that is no text", { operator_key: 7 }, /\/operator_key/],
    ["meta that is no object", { meta: [] }, /\/meta/],
    ["a size that is none", { tree_size: -1 }, /\/tree_size/],
    ["a hash that is none", { entry_hash: "EF".repeat(32) }, /\/entry_hash/],
    ["a head that is none", { head: { ...HEAD, tree_version: 3 } }, /\/head\/tree_version/],
    ["a time that is no text", { made_at: 7 }, /\/made_at/],
    ["segments that are no list", { segments: {} }, /\/segments/],
    ["private rows that are no file", { private_rows: "x.ndjson" }, /\/private_rows/],
    ...["../x.ndjson", "x.ndjson/y", "x.json", ".ndjson", "a/b.ndjson", "x.ndjsonl", "", 7].map(
      (file): [string, object, RegExp] => [
        `a file named ${JSON.stringify(file)}`,
        { private_rows: { ...SOUND.private_rows, file } },
        /\/private_rows\/file must be the name of a file/,
      ],
    ),
  ])("is none with %s", (_, change, message) => {
    expect(() => readOf(JSON.stringify({ ...SOUND, ...change }))).toThrow(corrupt(message));
  });

  test.each([
    [
      "begins late",
      [
        { from: 1, to: 3 },
        { from: 3, to: 5 },
      ],
      /entries-0 does not begin where the one before ends/,
    ],
    [
      "leaves a gap",
      [
        { from: 0, to: 3 },
        { from: 4, to: 5 },
      ],
      /entries-1 does not begin/,
    ],
    [
      "overlaps",
      [
        { from: 0, to: 3 },
        { from: 2, to: 5 },
      ],
      /entries-1 does not begin/,
    ],
    [
      "holds nothing",
      [
        { from: 0, to: 5 },
        { from: 5, to: 5 },
      ],
      /entries-1 does not begin/,
    ],
    [
      "runs backwards",
      [
        { from: 0, to: 5 },
        { from: 5, to: 4 },
      ],
      /entries-1 does not begin/,
    ],
    [
      "ends early",
      [
        { from: 0, to: 3 },
        { from: 3, to: 4 },
      ],
      /segments hold 4 entries, not 5/,
    ],
    [
      "ends late",
      [
        { from: 0, to: 3 },
        { from: 3, to: 6 },
      ],
      /segments hold 6 entries, not 5/,
    ],
  ])("is refused where a segment %s", (_, stretches, message) => {
    const segments = stretches.map((stretch, i) => ({ ...FILE, file: `entries-${i}.ndjson`, ...stretch }));
    const said = new RegExp(message.source.replace(/entries-(\d)/, "entries-$1\\.ndjson"));
    expect(() => readOf(JSON.stringify({ ...SOUND, segments }))).toThrow(corrupt(said));
  });

  test("that is no JSON is damaged, and one that cannot be read is no missing one", () => {
    for (const text of ["", "{", "x"]) expect(() => readOf(text)).toThrow(corrupt(/^The manifest of .* is damaged\.$/));
    const folder = temporaryFolder();
    mkdirSync(join(folder, "manifest.json"));
    expect(() => readBackupManifest(folder)).toThrow(expect.objectContaining({ code: "EISDIR" }));
  });

  test("that processes of one number replace at once is replaced by one at most", async () => {
    const folder = temporaryFolder();
    const made = (n: number) => ({ ...SOUND, made_at: `${n}` }) as unknown as BackupManifest;
    const ends = await Promise.allSettled([1, 2, 3].map((n) => replaceManifest(folder, made(n), undefined)));
    expect(ends.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(1);
    for (const end of ends) if (end.status === "rejected") expect(end.reason.code).toBe("precondition-failed");
  });
});

describe("a private row", () => {
  test.each([
    ["texts, numbers and nothing", { a: "x\n", b: 7, c: null, d: [1], e: { f: "g" } }],
    ["bytes", { proof: Buffer.from([0, 255, 10]), status: "pending" }],
    ["no bytes", { proof: Buffer.alloc(0) }],
    ["no members", {}],
  ])("with %s comes back", (_, row) => {
    const line = rowLine({ table: "anchors", key: 7, row });
    expect(line).not.toContain("\n");
    expect(readRowLine(line)).toEqual({ table: "anchors", key: 7, row });
  });

  test("of a table that follows from the entries, or that nobody knows, is refused", () => {
    expect(readRowLine('["outbox",[7,1],{"a":{"base64":1}}]')).toEqual({
      table: "outbox",
      key: [7, 1],
      row: { a: { base64: 1 } },
    });
    for (const table of ["keys", "nothing"])
      expect(() => readRowLine(JSON.stringify([table, "x", {}]))).toThrow(corrupt(`Rows of the table "${table}"`));
  });
});

describe("drafts that a backup finds", () => {
  // No process has this number; the first one runs.
  const GONE = 2 ** 22 + 1;
  const HERE = `-${container().toString(16)}-0123abcd`;
  const ELSEWHERE = `-${((container() ^ 1) >>> 0).toString(16)}-0123abcd`;
  const MINUTE = 60_000;
  const DAY = 24 * 60 * MINUTE;
  const AGES = [0, 9 * MINUTE, 11 * MINUTE, DAY - MINUTE, DAY + MINUTE];
  const draftsOf = (makers: readonly string[]) => [
    ...makers.flatMap((maker) => [".entries", ".private", ".manifest"].map((what) => `draft.${maker}${what}.partial`)),
    // Of the first versions.
    ...makers.filter((maker) => !maker.includes("-")).map((maker) => `draft.${maker}.partial`),
  ];
  const stayingOf = (makers: readonly string[], age: number) => {
    const folder = temporaryFolder();
    for (const name of draftsOf(makers)) {
      writeFileSync(join(folder, name), "half of something");
      utimesSync(join(folder, name), new Date(), new Date(Date.now() - age));
    }
    removeDrafts(folder);
    return readdirSync(folder).sort();
  };

  test.each(AGES)("are removed if their process has ended, or had the number of this one: %i ms old", (age) => {
    const makers = [GONE, process.pid].flatMap((pid) => [`${pid}`, `${pid}${HERE}`]);
    expect(stayingOf(makers, age)).toEqual([]);
  });

  test.each([...AGES, -11 * MINUTE, -DAY - MINUTE])("stay for a while if that may run: %i ms old", (age) => {
    const makers = ["1", `1${HERE}`, ...[1, GONE, process.pid].map((pid) => `${pid}${ELSEWHERE}`)];
    const lasts = (name: string) => Math.abs(age) < (name.endsWith(".manifest.partial") ? 10 * MINUTE : DAY);
    expect(stayingOf(makers, age)).toEqual(draftsOf(makers).filter(lasts).sort());
  });

  test("are not what only looks like one", () => {
    const folder = temporaryFolder();
    const others = [`draft.${GONE}.entries.partialx`, `xdraft.${GONE}.entries.partial`, "draft.x.partial"];
    for (const name of others) writeFileSync(join(folder, name), "something");
    removeDrafts(folder);
    expect(readdirSync(folder).sort()).toEqual(others.sort());
  });

  test("are gone when it is done", async () => {
    const { log, path } = await openTestLog();
    await log.append(anyEvent());
    await log.close();
    const to = temporaryFolder();
    writeFileSync(join(to, `draft.${GONE}.entries.partial`), "half of something");
    await backUp({ path, to, operatorKey: testOperator.public.pem });
    const { segments, private_rows } = readBackupManifest(to)!;
    expect(readdirSync(to).sort()).toEqual(["manifest.json", segments[0]!.file, private_rows.file].sort());
    expect(private_rows.file).toBe(`private-1-${private_rows.sha256.slice(0, 16)}.ndjson`);
  });
});

test("files that processes of one number write at once are what their hashes say", async () => {
  const folder = temporaryFolder();
  const lines = ["a line", "another one", "yet another"];
  const files = await Promise.all(lines.map(() => HashedFile.create(folder, "entries")));
  for (const n of [1, 2]) for (const [i, file] of files.entries()) await file.line(`${lines[i]} ${n}`);
  const kept = await Promise.all(files.map((file, i) => file.keep(`${i}.ndjson`)));
  for (const [i, file] of kept.entries())
    expect(await read(folder, file)).toEqual([1, 2].map((n) => `${lines[i]} ${n}`));
});

test("a backup that is broken off leaves no draft, and the one before as it was", async () => {
  const { log, path } = await openTestLog();
  await log.append(anyEvent());
  await log.close();
  const to = join(temporaryFolder(), "backup");
  const operatorKey = testOperator.public.pem;
  const signal = AbortSignal.abort(new Error("broken off by the test"));
  await expect(backUp({ path, to, operatorKey, signal })).rejects.toThrow("broken off by the test");
  expect([readdirSync(to), openIn(to)]).toEqual([[], []]);
  await backUp({ path, to, operatorKey });
  const before = readdirSync(to).sort();
  const manifest = readFileSync(join(to, "manifest.json"), "utf8");
  expect(JSON.parse(manifest)).toMatchObject({ head: { tree_size: 1 } });
  // There are no new entries, so the backup is interrupted while it writes private rows. This needs a private row.
  const { log: again } = await openTestLog({ path });
  await runIn(again, (transaction) => transaction.put("passwords", "a key", { hash: "a hash" }));
  await again.close();
  await expect(backUp({ path, to, operatorKey, signal })).rejects.toThrow("broken off by the test");
  expect([readdirSync(to).sort(), openIn(to)]).toEqual([before, []]);
  expect(readFileSync(join(to, "manifest.json"), "utf8")).toBe(manifest);
  expect((await backUp({ path, to, operatorKey })).added).toBe(0);
  // The earlier private rows are removed with their manifest.
  expect(readdirSync(to)).toHaveLength(3);
});

test("what an interrupted backup has left under names of its own, the next one removes, and nothing else", async () => {
  const [{ log, path }, to] = [await openTestLog(), temporaryFolder()];
  const given = { path, to, operatorKey: testOperator.public.pem };
  const own = ({ segments, private_rows }: NonNullable<ReturnType<typeof readBackupManifest>>) =>
    [...segments, private_rows, { file: "manifest.json" }].map(({ file }) => file);
  await log.append([1, 2].map((n) => anyEvent({ n })));
  await backUp(given);
  await log.append([3, 4].map((n) => anyEvent({ n })));
  const manifest = join(to, "manifest.json");
  const interfering = () =>
    writeFileSync(manifest, JSON.stringify({ ...readBackupManifest(to), made_at: "2025-01-01T00:00:00.000000Z" }));
  await expect(backUp({ ...given, progress: interfering })).rejects.toMatchObject({ code: "precondition-failed" });
  const before = readBackupManifest(to)!;
  expect(readdirSync(to)).toEqual(expect.arrayContaining(own(before)));
  const hash = "0123456789abcdef";
  for (const left of [`entries-0-2-${hash}`, "entries-2-3", `private-3-${hash}`])
    writeFileSync(join(to, `${left}.ndjson`), "");
  const others = [
    "notes.txt",
    "entries-of-mine.ndjson",
    "entries-0-9.ndjson.asc",
    "private.ndjson",
    "old-entries-0-9.ndjson",
  ];
  for (const other of others) writeFileSync(join(to, other), "");
  await log.append(anyEvent({ n: 5 }));
  const { manifest: after } = await backUp(given);
  expect(readdirSync(to).sort()).toEqual([...own(after), ...others].sort());
});

test.each<[string, (path: string) => void]>([
  ["missing", (path) => rmSync(path)],
  ["cut", (path) => truncateSync(path, 10)],
  ["longer", (path) => appendFileSync(path, "\n")],
])("a segment whose file is %s is written again, and the others stay as they are", async (_, damage) => {
  const [{ log, path }, to] = [await openTestLog(), temporaryFolder()];
  const given = { path, to, operatorKey: testOperator.public.pem };
  // Each is longer than what follows it.
  for (const n of [4, 2, 1]) {
    await log.append(Array(n).fill(anyEvent({ n })));
    await backUp(given);
  }
  const linesIn = ({ segments }: BackupManifest) => Promise.all(segments.map((segment) => read(to, segment)));
  const manifest = () => readBackupManifest(to)!;
  const before = await linesIn(manifest());
  // The second time, it has the name that it was given the first time.
  for (const _ of [1, 2]) {
    const [first, damaged, last] = manifest().segments;
    const untouched = () => [first, last].map((segment) => statSync(join(to, segment!.file), { bigint: true }).ino);
    const files = untouched();
    damage(join(to, damaged!.file));
    expect((await backUp(given)).added).toBe(0);
    expect(await linesIn(manifest())).toEqual(before);
    expect(untouched()).toEqual(files);
  }
});

test("progress is told every thousand entries", async () => {
  const { log, path } = await openTestLog();
  for (let n = 0; n < 4; n++) await log.append(Array(512).fill(anyEvent()));
  await log.append(anyEvent());
  await log.close();
  const to = join(temporaryFolder(), "backup");
  const told: [number, number][] = [];
  const progress = (done: number, total: number) => told.push([done, total]);
  await backUp({ path, to, operatorKey: testOperator.public.pem, progress });
  expect(told).toEqual([
    [0, 2049],
    [1024, 2049],
    [2048, 2049],
  ]);
});
