/** The memory that a backup needs, in a process of its own. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { MAP_SIZE, openTestLog, temporaryFolder, testOperator } from "../log/harness.js";
import { chain, type Wanted } from "../log/history/entries.js";

const MIB = 2 ** 20;
const CHILD = fileURLToPath(new URL("memorychild.mjs", import.meta.url));
/** Bytes of an entry, about. */
const ENTRY = 64 * 1024;

/** The path of a closed log with so many bytes of entries. */
async function logOf(bytes: number): Promise<string> {
  const path = join(temporaryFolder(), "log");
  const wanted = Array<Wanted>(bytes / ENTRY).fill({ payload: { text: "x".repeat(ENTRY) } });
  await importEntries({ path, signer: testOperator, mapSize: MAP_SIZE }, chain(wanted));
  return path;
}

async function backedUp(path: string, to: string): Promise<{ readonly size: number; readonly bytes: number }> {
  const { pem } = testOperator.public;
  const { stdout } = await promisify(execFile)(process.execPath, [CHILD, path, to, pem]);
  return JSON.parse(stdout);
}

test("it does not grow with the log, mapped pages of its file included", async () => {
  const [small, large] = [await logOf(64 * MIB), await logOf(320 * MIB)];
  const { bytes } = await backedUp(small, `${small}.backup`);
  const { size, bytes: ofLarge } = await backedUp(large, `${large}.backup`);
  expect(size).toBe((320 * MIB) / ENTRY);
  expect(ofLarge - bytes).toBeLessThan(128 * MIB);

  // Also beside a writer that has the log open.
  const { log } = await openTestLog({ path: large });
  const beside = await backedUp(large, `${large}.beside`);
  expect(beside.bytes - bytes).toBeLessThan(128 * MIB);
  await log.close();
});
