/**
 * Every target does what `target.ts` says, whatever came before and whoever else writes there: a folder, a bucket of each kind
 * of store, and the store in memory with which publishers are tested. And what a folder has on disk when a power failure comes.
 */
import fs, { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { BucketTarget } from "#cairnlog/server/publishing/bucket.js";
import { FolderTarget } from "#cairnlog/server/publishing/folder.js";
import type { Stored, Target } from "#cairnlog/server/publishing/target.js";
import { temporaryFolder } from "../log/harness.js";
import { CONDITIONS, MemoryS3, MemoryTarget } from "./memory.js";

const PATHS = ["checkpoint", "tile/0/000", "tile/0/000.p/3"];
/** Objects that are only listed. */
const STILL = ["tile/0/000.p/30", "tile/0/001", "tile/1/000.p/1", "tile/entries/000", "index/a/0"];
const CONTENTS = ["", "one", "two"].map((text) => Buffer.from(text));

/** A target, and the way by which somebody else writes there. */
interface Scene {
  readonly target: Target;
  put(path: string, bytes: Buffer): void;
  /** Has the next writes met by other requests for the same object, so many. */
  busy?(requests: number): void;
}

function bucketOf(conditions: (typeof CONDITIONS)[number]) {
  const store = new MemoryS3(conditions);
  const keys = { region: "r", accessKeyId: "a", secretAccessKey: "s" };
  const at = { endpoint: "http://store.example", bucket: "logs", prefix: "a/" };
  const target = new BucketTarget({ ...keys, ...at, patient: () => store.fetch });
  store.objects.set("b/checkpoint", Buffer.from("of another prefix"));
  return { store, target };
}

const SCENES: Readonly<Record<string, () => Scene>> = {
  memory() {
    const target = new MemoryTarget();
    return { target, put: (path, bytes) => void target.objects.set(path, bytes) };
  },
  "a folder"() {
    const folder = temporaryFolder();
    const put = (path: string, bytes: Buffer) => {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), bytes);
    };
    return { target: new FolderTarget(folder), put };
  },
  ...Object.fromEntries(
    CONDITIONS.map((conditions) => [
      `a bucket of a store where conditions are ${conditions}`,
      () => {
        const { store, target } = bucketOf(conditions);
        return {
          target,
          put: (path: string, bytes: Buffer) => void store.objects.set(`a/${path}`, bytes),
          busy: (requests: number) => {
            store.busy = requests;
          },
        };
      },
    ]),
  ),
};

const path = fc.constantFrom(...PATHS);
const bytes = fc.constantFrom(...CONTENTS);
const step = fc.oneof(
  fc.record({ does: fc.constant("read" as const), path }),
  fc.record({
    does: fc.constantFrom("create" as const, "replace" as const, "put" as const, "overtaken" as const),
    path,
    bytes,
  }),
  fc.record({ does: fc.constant("remove" as const), path }),
  fc.record({ does: fc.constant("list" as const), path: fc.constantFrom("tile", "tile/0/000.p", "index", "none") }),
  fc.record({ does: fc.constant("busy" as const), path: fc.constant(""), requests: fc.constantFrom(1, 3) }),
);

test.each(Object.keys(SCENES))("%s keeps the contract of targets", async (name) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async (steps) => {
      const { target, put, busy } = SCENES[name]!();
      const model = new Map<string, Buffer>();
      const known = new Map<string, Stored>();
      for (const path of STILL) {
        put(path, CONTENTS[1]!);
        model.set(path, CONTENTS[1]!);
      }
      for (const one of steps) {
        const there = model.get(one.path);
        if (one.does === "read") {
          const stored = await target.read(one.path);
          expect(stored && Buffer.from(stored.bytes)).toEqual(there);
          if (stored) known.set(one.path, stored);
        } else if (one.does === "create") {
          expect(await target.create(one.path, one.bytes)).toBe(!there);
          if (!there) model.set(one.path, one.bytes);
        } else if (one.does === "replace") {
          // What was read may be replaced since, or gone.
          const before = known.get(one.path);
          if (!before) continue;
          const isSame = there?.equals(before.bytes) ?? false;
          expect(await target.replace(one.path, one.bytes, before)).toBe(isSame);
          if (isSame) model.set(one.path, one.bytes);
        } else if (one.does === "put") {
          put(one.path, one.bytes);
          model.set(one.path, one.bytes);
        } else if (one.does === "overtaken") {
          const before = await target.read(one.path);
          if (!before) continue;
          put(one.path, one.bytes);
          const isSame = one.bytes.equals(before.bytes);
          expect(await target.replace(one.path, Buffer.from("own"), before)).toBe(isSame);
          model.set(one.path, isSame ? Buffer.from("own") : one.bytes);
        } else if (one.does === "remove") {
          await target.remove(one.path);
          model.delete(one.path);
        } else if (one.does === "busy") busy?.(one.requests);
        else {
          const listed: string[] = [];
          for await (const { path, modified } of target.list(one.path)) {
            listed.push(path);
            expect(Math.abs(Date.now() - modified)).toBeLessThan(60_000);
          }
          expect(listed).toEqual([...model.keys()].filter((path) => path.startsWith(`${one.path}/`)).sort());
        }
      }
      for (const path of PATHS) {
        const stored = await target.read(path);
        expect(stored && Buffer.from(stored.bytes)).toEqual(model.get(path));
      }
    }),
    { numRuns: 25 },
  );
});

test.each(Object.keys(SCENES))(
  "%s is listed to its end while another publisher removes what is listed",
  async (name) => {
    const { target, put } = SCENES[name]!();
    for (const path of [...PATHS, ...STILL]) put(path, CONTENTS[1]!);
    const listed: string[] = [];
    for await (const { path } of target.list("tile")) {
      if (!listed.length) for (const path of STILL) await target.remove(path);
      listed.push(path);
    }
    expect(listed).toEqual(expect.arrayContaining(PATHS.slice(1)));
  },
);

test.each(Object.keys(SCENES))(
  "%s takes the next checkpoint after a file that was read was removed, alone in its folder",
  async (name) => {
    const { target, put } = SCENES[name]!();
    const [alone, checkpoint] = ["index/0-256/000", "checkpoint"];
    for (const path of [alone, checkpoint]) put(path, CONTENTS[1]!);
    expect(await target.read(alone)).toBeDefined();
    await target.remove(alone);
    expect(await target.replace(checkpoint, CONTENTS[2]!, (await target.read(checkpoint))!)).toBe(true);
  },
);

test("a draft that another publisher removes meanwhile keeps nothing from being published", async () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, ".drafts"));
  // Listed, and not there when it is looked at.
  symlinkSync("nowhere", join(folder, ".drafts/gone"));
  expect(await new FolderTarget(folder).create("tile/0/000", CONTENTS[1]!)).toBe(true);
});

describe("a bucket", () => {
  test.each([
    ["known", true],
    ["quoted", true],
    ["refused", false],
    ["ignored", false],
    ["half known", false],
  ] as const)("says whether two publishers are safe where conditions are %s", async (conditions, isSafe) => {
    for (const isThere of [false, true]) {
      const { store, target } = bucketOf(conditions);
      if (isThere) store.objects.set("a/tile/0/000", Buffer.from("another"));
      expect(target.hasConditions).toBe(null);
      expect(await target.create("tile/0/000", Buffer.from("own"))).toBe(!isThere);
      expect(target.hasConditions).toBe(isSafe);
      expect(`${store.objects.get("a/tile/0/000")}`).toBe(isThere ? "another" : "own");
    }
  });

  test.each([
    [503, "<Code>SlowDown</Code>", "no-answer", "the store answers 503 (SlowDown) to "],
    [403, "<Code>AccessDenied</Code>", "storage-failed", "the store answers 403 (AccessDenied) to "],
    [404, "<Code>NoSuchBucket</Code>", "storage-failed", "the store answers 404 (NoSuchBucket) to "],
    [301, "", "storage-failed", "the store answers 301 to "],
  ])("whose store answers %i %s is in trouble, and no object is missing", async (status, body, code, message) => {
    const { store, target } = bucketOf("known");
    await target.create("vkey", Buffer.from("v"));
    const stored = (await target.read("vkey"))!;
    store.instead = { status, body };
    const asked = [
      () => target.read("vkey"),
      () => target.create("checkpoint", Buffer.from("c")),
      () => target.replace("vkey", Buffer.from("w"), stored),
      () => target.remove("vkey"),
      () => target.list("tile")[Symbol.asyncIterator]().next(),
    ];
    for (const ask of asked)
      await expect(ask()).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });
});

describe("a folder after a power failure", () => {
  const { openSync, fsyncSync, mkdirSync: makeSync, linkSync, renameSync } = fs;
  const original = { openSync, fsyncSync, linkSync, renameSync, mkdirSync: makeSync };
  afterEach(() => {
    Object.assign(fs, original);
    syncBuiltinESMExports();
  });

  /**
   * Follows what is on disk; nothing waits for it.
   * @param naming called before a file gets a name, with the names that a power failure may take, and whether its content is safe
   * @returns these names
   */
  function recorded(naming: (name: string, unflushed: ReadonlySet<string>, isWhole: boolean) => void) {
    const names = new Set<string>();
    const contents = new Set<string>();
    const opened = new Map<number, string>();
    fs.openSync = ((path: string, flags: string, mode?: number) => {
      const file = original.openSync(path, flags, mode);
      opened.set(file, path);
      if (flags.startsWith("w")) contents.add(path);
      return file;
    }) as typeof fs.openSync;
    fs.fsyncSync = (file) => {
      const path = opened.get(file)!;
      contents.delete(path);
      for (const name of names) if (dirname(name) === path) names.delete(name);
    };
    fs.mkdirSync = ((path: string, options) => {
      const made = original.mkdirSync(path, options);
      names.add(path);
      return made;
    }) as typeof fs.mkdirSync;
    const move = (work: typeof fs.linkSync) => (from: string, to: string) => {
      naming(to, names, !contents.has(from));
      work(from, to);
      names.add(to);
    };
    fs.linkSync = move(original.linkSync) as typeof fs.linkSync;
    fs.renameSync = move(original.renameSync) as typeof fs.renameSync;
    syncBuiltinESMExports();
    return names;
  }

  /** A file below a folder, and the folders between. */
  function* namesOf(file: string, folder: string) {
    for (let name = file; name !== folder; name = dirname(name)) yield name;
  }

  test("has all that was made or read before a name at its top, and the content of every name", async () => {
    const writing = fc.record({
      path,
      does: fc.constantFrom("create" as const, "replace" as const, "left" as const, "read" as const),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(writing, { minLength: 5, maxLength: 20 }), async (steps) => {
        const folder = temporaryFolder();
        const target = new FolderTarget(folder);
        // What a killed publisher has left, and this one has not seen, it does not rely on.
        const unseen = new Set<string>();
        const lost: string[] = [];
        const names = recorded((name, unflushed, isWhole) => {
          if (!isWhole) lost.push(`the content of ${name}`);
          if (dirname(name) !== folder) return;
          for (const one of unflushed)
            if (!unseen.has(one) && !one.includes("/.drafts")) lost.push(`${one} before ${name}`);
        });
        for (const [n, { path, does }] of steps.entries()) {
          const content = Buffer.from(`${n}`);
          const whole = join(folder, path);
          if (does === "left" && !existsSync(whole)) {
            original.mkdirSync(dirname(whole), { recursive: true });
            writeFileSync(whole, content);
            for (const one of [names, unseen]) for (const name of namesOf(whole, folder)) one.add(name);
          }
          if (does === "left") continue;
          if (does === "create" || existsSync(whole)) for (const name of namesOf(whole, folder)) unseen.delete(name);
          if (does === "create") await target.create(path, content);
          const stored = does === "create" ? undefined : await target.read(path);
          if (does === "replace" && stored) await target.replace(path, content, stored);
        }
        expect(lost).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });
});
