/**
 * Folders that are made on the way to a file: after a power failure it can be found only if each of them is on disk under its
 * name, in a folder that was flushed.
 */
import fs, { mkdtempSync, rmSync, statSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool } from "#cairnlog/engine/crypto/pool/pool.js";
import { openOperatorKey, operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { backUp } from "#cairnlog/engine/log/history/backup.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { restore } from "#cairnlog/engine/log/history/restore.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { keepFile } from "#cairnlog/server/monitor/folder.js";
import { anyEvent } from "../../anyevent.js";
import { chain } from "../../log/history/entries.js";

const folder = mkdtempSync(join(tmpdir(), "cairnlog-folders-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const signer = operatorKey(generatePrivateKey("ed25519"));
const operatorPem = signer.public.pem;
const pool = createPool(1);
afterAll(() => pool.close());

/** The folders above a path that are on its file system, all flushed: any of them may be new. */
function above(path: string): string[] {
  const parent = dirname(path);
  if (parent === path || statSync(parent).dev !== statSync(path).dev) return [];
  return [parent, ...above(parent)];
}

/** The files and folders that are flushed while `work` runs. */
async function flushedBy(work: () => unknown): Promise<Set<string>> {
  const names = new Map<number, string>();
  const flushed = new Set<string>();
  const { openSync, fsyncSync } = fs;
  vi.spyOn(fs, "openSync").mockImplementation((name, ...more) => {
    const file = openSync(name, ...more);
    names.set(file, String(name));
    return file;
  });
  vi.spyOn(fs, "fsyncSync").mockImplementation((file) => {
    fsyncSync(file);
    flushed.add(names.get(file)!);
  });
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  }
  return flushed;
}

const source = join(folder, "source");
const backup = join(folder, "b", "backups", "today");

async function makeSource(): Promise<void> {
  const log = await openLog({ path: source, signer });
  await log.append(anyEvent());
  await log.close();
}

/** What makes the folder of a path, and those above it. */
const MAKERS: readonly (readonly [string, string, (path: string) => unknown])[] = [
  ["a new log", join(folder, "n", "srv", "data", "log"), async (path) => (await openLog({ path, signer })).close()],
  ["an import", join(folder, "i", "srv", "data", "log"), (path) => importEntries({ path, signer }, chain([{}]))],
  [
    "a backup",
    backup,
    async (to) => {
      await makeSource();
      await backUp({ path: source, to, operatorKey: operatorPem });
    },
  ],
  [
    "a restored log",
    join(folder, "r", "srv", "data", "log"),
    (path) => restore({ from: backup, path, projection: noProjection, pool, published: [], mayFork: true }),
  ],
  ["an operator key", join(folder, "k", "keys", "operator.pem"), (path) => openOperatorKey(path)],
  ["a file of the monitor", join(folder, "m", "state", "head.json"), (path) => keepFile(path, "{}")],
];

test.each(MAKERS)("%s is found after a power failure, also in folders that are new", async (_, path, make) => {
  const flushed = await flushedBy(() => make(path));
  expect(above(path).filter((name) => !flushed.has(name))).toEqual([]);
});
