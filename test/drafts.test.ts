/**
 * Files that get their name when they are complete: where one of their steps fails, no draft stays, and no file changes. What a
 * killed process has left keeps none of its number: in a container each has the same one.
 */
import fs, { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { replaceFile } from "#cairnlog/engine/base/files.js";
import { writeKeyFile } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { HashedFile, removeDrafts, replaceManifest } from "#cairnlog/engine/log/history/backupformat.js";
import { acceptClock } from "#cairnlog/engine/log/state/clock.js";
import { openAtGate } from "#cairnlog/engine/store/lmdb/opening-gate.js";
import { preflight } from "#cairnlog/engine/store/lmdb/preflight.js";
import { writeConfig } from "#cairnlog/server/cli/connection/config-file.js";
import { StateFolder } from "#cairnlog/server/cli/connection/state.js";
import { DocumentFiles } from "#cairnlog/server/cli/files/document-files.js";
import { keepFile } from "#cairnlog/server/monitor/folder.js";
import { FolderTarget } from "#cairnlog/server/publishing/folder.js";
import { temporaryFolder } from "./server/harness.js";

const TEXT = "a text of some length";
const bytes = Buffer.from(TEXT);

/** It leaves nothing in any case, and needs no room. */
const OPENING = "who opens a log";

/** Of these there is one at a time: a log has one writer, and what a user asks for is asked for by that user. */
const ALONE: ReadonlySet<string> = new Set([
  "the clock, the newest head, the newest checkpoint",
  "a receipt",
  "a receipt with a private title",
]);

/** Everything that writes a draft, by what is written. Each writes into a folder that it has for itself. */
const WRITERS: Readonly<Record<string, (folder: string) => unknown>> = {
  "the clock, the newest head, the newest checkpoint": (folder) => replaceFile(join(folder, "file"), TEXT, 0o600),
  "a clock that is believed": (folder) => acceptClock(folder),
  "a private key": (folder) => writeKeyFile(join(folder, "new.pem"), TEXT),
  "the lock file of a log": (path) => preflight({ path, mapSize: 2 ** 20, readOnly: false, isNew: true }),
  async "a segment of a backup"(folder) {
    const file = await HashedFile.create(folder, "entries");
    await file.line(TEXT);
    await file.keep("segment");
  },
  "the manifest of a backup": (folder) => replaceManifest(folder, { tree_size: 1 } as never, undefined),
  [OPENING]: (folder) => openAtGate(folder, () => {}),
  "a file of a monitor": (folder) => keepFile(join(folder, "file"), TEXT),
  "a published tile": (folder) => new FolderTarget(folder).create("tile", bytes),
  "a published checkpoint": (folder) =>
    new FolderTarget(folder).replace("file", bytes, { bytes: readFileSync(join(folder, "file")), tag: null }),
  "what the command remembers of a log": (folder) =>
    new StateFolder("http://log.example", folder).saveSession({ TEXT } as never),
  "evidence that the command keeps": (folder) =>
    new StateFolder("http://log.example", folder).saveEvidence({ TEXT } as never),
  "the command's configuration": () => writeConfig({ services: {} }),
  "a receipt": (folder) => new DocumentFiles().keep(join(folder, "document"), "receipt", TEXT, () => false),
  "a receipt with a private title": (folder) =>
    new DocumentFiles().keep(join(folder, "document"), "receipt", '{ "private_title": {} }', () => false),
};

/** What these write can be had again after a power failure. */
const NOT_FLUSHED: ReadonlySet<string> = new Set([
  "a clock that is believed",
  "the lock file of a log",
  OPENING,
  "what the command remembers of a log",
  "the command's configuration",
  "a receipt",
]);

const full = () =>
  Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC", syscall: "write" });
const broken = () => Object.assign(new Error("EIO: i/o error"), { code: "EIO", syscall: "fsync" });

const { writeFileSync: write } = fs;
const failing = async () => {
  throw broken();
};
const refuseNames = () => {
  for (const name of ["renameSync", "linkSync"] as const)
    vi.spyOn(fs, name).mockImplementation(() => {
      throw broken();
    });
  vi.spyOn(fs.promises, "rename").mockImplementation(failing);
};
/** On a full disk, a part of what is written is there. */
const FAULTS: Readonly<Record<string, (handle: fs.promises.FileHandle) => void>> = {
  "the disk is full"(handle) {
    vi.spyOn(fs, "writeFileSync").mockImplementation((file, content, options) => {
      write(file, (content as string | Buffer).slice(0, 3), options);
      throw full();
    });
    vi.spyOn(fs, "writeSync").mockImplementation(() => {
      throw full();
    });
    for (const name of ["writeFile", "appendFile"] as const)
      vi.spyOn(handle, name).mockImplementation(async function (this: fs.promises.FileHandle) {
        await this.write("par");
        throw full();
      });
  },
  "a file cannot be flushed"(handle) {
    const isFile = (fd: number) => fs.fstatSync(fd).isFile();
    const { fsyncSync } = fs;
    vi.spyOn(fs, "fsyncSync").mockImplementation((fd) => {
      if (isFile(fd)) throw broken();
      fsyncSync(fd);
    });
    vi.spyOn(handle, "sync").mockImplementation(failing);
  },
  "a file gets no name": () => refuseNames(),
};

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  syncBuiltinESMExports();
});

/** All files below a folder, with their content. Folders may be made, and stay. */
const filesIn = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => statSync(join(folder, name)).isFile())
      .map((name) => [name, readFileSync(join(folder, name), "latin1")]),
  );

/** A folder with files of the names that the writers use. */
function folderOf(): string {
  const folder = temporaryFolder();
  vi.stubEnv("XDG_CONFIG_HOME", folder);
  mkdirSync(join(folder, "cairnlog"));
  for (const name of ["file", "document", "clock.json", "cairnlog/config.json"])
    writeFileSync(join(folder, name), "old");
  return folder;
}

const CASES = Object.keys(WRITERS).flatMap((writer) => Object.keys(FAULTS).map((fault) => [writer, fault] as const));

test.each(CASES)("%s: %s", async (writer, fault) => {
  const folder = folderOf();
  const before = filesIn(folder);
  const handle = await open(join(folder, "file"));
  FAULTS[fault]!(Object.getPrototypeOf(handle));
  syncBuiltinESMExports();
  const failure = await Promise.resolve()
    .then(() => WRITERS[writer]!(folder))
    .then(
      () => null,
      (error: Error) => error,
    );
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  await handle.close();
  // Not all of them flush, and not all that fails is of the file that is written.
  if (fault === "the disk is full" && writer !== OPENING) expect(failure?.message).toContain("ENOSPC");
  expect(failure || writer === OPENING ? filesIn(folder) : before).toEqual(before);
});

test.each(Object.entries(WRITERS))(
  "%s: on disk before it has its name, where nobody has it again",
  async (name, write) => {
    const steps: string[] = [];
    const folder = folderOf();
    const handle = await open(join(folder, "file"));
    const prototype = Object.getPrototypeOf(handle) as fs.promises.FileHandle;
    await handle.close();
    const note = () => {
      const { fsyncSync } = fs;
      vi.spyOn(fs, "fsyncSync").mockImplementation((fd) => {
        if (fs.fstatSync(fd).isFile()) steps.push("flushed");
        fsyncSync(fd);
      });
      const { sync } = prototype;
      vi.spyOn(prototype, "sync").mockImplementation(function (this: fs.promises.FileHandle) {
        steps.push("flushed");
        return sync.call(this);
      });
      for (const named of ["renameSync", "linkSync"] as const) {
        const original = fs[named];
        vi.spyOn(fs, named).mockImplementation((from, to) => {
          steps.push("named");
          original(from, to);
        });
      }
      const { rename } = fs.promises;
      vi.spyOn(fs.promises, "rename").mockImplementation(async (from, to) => {
        steps.push("named");
        await rename(from, to);
      });
    };
    await during(note, async () => write(folder));
    const isFlushed = steps.slice(0, steps.indexOf("named")).includes("flushed");
    expect(isFlushed).toBe(!NOT_FLUSHED.has(name));
  },
);

/** Mocks that are in force while `work` runs. */
async function during<T>(mock: () => void, work: () => Promise<T>): Promise<T> {
  mock();
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  }
}

test.each(Object.entries(WRITERS))("%s: after one that was killed, too", async (_, write) => {
  const folder = folderOf();
  const before = filesIn(folder);
  const killing = () => {
    refuseNames();
    for (const name of ["rmSync", "unlinkSync"] as const) vi.spyOn(fs, name).mockImplementation(() => {});
    for (const name of ["rm", "unlink"] as const) vi.spyOn(fs.promises, name).mockImplementation(async () => {});
  };
  await during(killing, async () => write(folder)).catch(() => {});
  expect(filesIn(folder)).not.toEqual(before);
  // A backup begins so.
  removeDrafts(folder);
  await write(folder);
});

/** Those of which two may be at work at once, in containers whose processes have one number. */
const SHARED = Object.entries(WRITERS).filter(([name]) => !ALONE.has(name));

test.each(SHARED)("%s: while another of the same number does so", async (_, write) => {
  const folder = folderOf();
  const { linkSync, renameSync } = fs;
  const { rename } = fs.promises;
  let other: Promise<unknown> | null | undefined;
  // The other one is done before the first draft of this one gets its name.
  const beside = () => {
    if (other !== undefined) return;
    other = null;
    other = (async () => write(folder))();
    return other.catch(() => {});
  };
  const mocks = () => {
    for (const [name, give] of Object.entries({ linkSync, renameSync }))
      vi.spyOn(fs, name as "linkSync").mockImplementation((from, to) => {
        void beside();
        give(from, to);
      });
    vi.spyOn(fs.promises, "rename").mockImplementation(async (from, to) => {
      await beside();
      await rename(from, to);
    });
  };
  const own = during(mocks, async () => write(folder));
  await own.catch(() => {});
  const ends = await Promise.allSettled([own, other]);
  const refusals = ends.flatMap((end) => (end.status === "rejected" ? [end.reason.code] : []));
  // A file that exists is not replaced, nor what another one is about to replace. Otherwise nobody is in anybody's way.
  expect([[], ["EEXIST"], ["precondition-failed"]]).toContainEqual(refusals);
  expect(other).toBeInstanceOf(Promise);
});
