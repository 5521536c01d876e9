/**
 * A power failure while a log is created: whatever part of it reached the disk, there is either no log yet, or a log
 * that opens.
 */
import fs, { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test, vi } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { openLog } from "#cairnlog/engine/log/log.js";
import { openStore } from "#cairnlog/engine/store/store.js";
import { anyEvent } from "../../anyevent.js";
import { chain } from "../../log/history/entries.js";
import { PAGE } from "./damages.js";

const folder = mkdtempSync(join(tmpdir(), "cairnlog-creation-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const signer = operatorKey(generatePrivateKey("ed25519"));

/** The two meta pages of a file that no transaction has written to. */
function firstPages(): Buffer {
  const pages = Buffer.alloc(2 * PAGE);
  for (const page of [0, 1]) {
    const at = PAGE * page;
    pages.writeUInt32LE(page, at);
    pages.writeUInt16LE(8, at + 18);
    pages.writeUInt32LE(0xbeefc0de, at + 24);
    pages.writeUInt32LE(2, at + 28);
    pages.writeUInt32LE(2 ** 20, at + 40);
    pages.writeUInt32LE(PAGE, at + 48);
    pages.writeUInt16LE(8, at + 52);
    for (const root of [88, 136]) pages.fill(0xff, at + root, at + root + 8);
    pages.writeUInt32LE(1, at + 144);
  }
  return pages;
}

const written = firstPages();
/** The possible states of a file's first two pages after a power failure. */
const LEFT: Readonly<Record<string, Buffer>> = {
  "an empty file": Buffer.alloc(0),
  "zeros for both pages": Buffer.alloc(2 * PAGE),
  "zeros for a page of 16 KiB": Buffer.alloc(2 ** 15),
  "the first page": written.subarray(0, PAGE),
  "the first 512 bytes": written.subarray(0, 512),
  "the first page and zeros": Buffer.concat([written.subarray(0, PAGE), Buffer.alloc(PAGE)]),
  "zeros and the second page": Buffer.concat([Buffer.alloc(PAGE), written.subarray(PAGE)]),
  "both pages": written,
};

const made = join(folder, "made");
/** A log with one entry. */
async function makeLog(path: string): Promise<void> {
  const log = await openLog({ path, signer });
  await log.append(anyEvent());
  await log.close();
}

test.each(Object.keys(LEFT))("a log of which only %s was written is made anew", async (left) => {
  const path = join(folder, left, "log");
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "data.mdb"), LEFT[left]!);
  await makeLog(path);
  const log = await openLog({ path, signer });
  expect([log.size, (await log.verify()).valid]).toEqual([1, true]);
  await log.close();
});

test.each(Object.keys(LEFT))("postings of which only %s was written are made anew", async (left) => {
  if (!existsSync(made)) await makeLog(made);
  const path = join(folder, `postings of ${left}`);
  cpSync(made, path, { recursive: true });
  writeFileSync(join(path, "postings", "data.mdb"), LEFT[left]!);
  const log = await openLog({ path, signer });
  expect([log.size, log.stateDifferences()]).toEqual([1, []]);
  await log.close();
});

test("a log that was there is not made anew", async () => {
  const path = join(folder, "lost");
  await makeLog(path);
  for (const left of ["an empty file", "zeros for both pages", "the first page"]) {
    writeFileSync(join(path, "data.mdb"), LEFT[left]!);
    await expect(openLog({ path, signer })).rejects.toMatchObject({ code: "corrupt-log" });
  }
  rmSync(join(path, "data.mdb"));
  await expect(openLog({ path, signer })).rejects.toMatchObject({
    code: "corrupt-log",
    message: expect.stringMatching(/data\.mdb is missing\. .*cairnlog restore/),
  });
  // The postings on disk belong to other entries.
  await expect(importEntries({ path, signer }, chain([{}]))).rejects.toMatchObject({ code: "corrupt-log" });
});

test("files and folders are flushed, and the log's own before the postings are begun", async () => {
  const data = join(folder, "new", "data");
  const path = join(data, "log");
  const names = new Map<number, string>();
  const steps: string[] = [];
  const { openSync, fsyncSync } = fs;
  vi.spyOn(fs, "openSync").mockImplementation((name, ...more) => {
    const file = openSync(name, ...more);
    names.set(file, String(name));
    return file;
  });
  vi.spyOn(fs, "fsyncSync").mockImplementation((file) => {
    fsyncSync(file);
    steps.push(`${names.get(file)}${existsSync(join(path, "postings", "data.mdb")) ? ", with postings" : ""}`);
  });
  syncBuiltinESMExports();
  try {
    const store = openStore({ path });
    store.postings.runIds();
    await store.close();
  } finally {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  }
  const postings = join(path, "postings");
  const own = [postings, path, data, dirname(data)];
  expect(steps.filter((step) => step.startsWith(dirname(data)))).toEqual([
    ...[join(path, "data.mdb"), ...own.slice(1)],
    ...[join(postings, "data.mdb"), ...own].map((name) => `${name}, with postings`),
  ]);
});
