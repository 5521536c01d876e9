/** Imports that are killed before each of the steps by which the new log takes the place of the empty one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { importEntries } from "#cairnlog/engine/log/history/import.js";
import { MAP_SIZE, openTestLog, temporaryFolder } from "../harness.js";
import { runIn } from "../inline.js";
import { chain, type Wanted } from "./entries.js";

/** More than a run holds, so that there are postings on disk. */
const ENTRIES = 4500;
const CHILD = fileURLToPath(new URL("killedimport.mjs", import.meta.url));

const pem = generatePrivateKey("ed25519");
const signer = operatorKey(pem);
const folder = temporaryFolder();
const [file, key] = [join(folder, "history.ndjson"), join(folder, "key.pem")];
writeFileSync(key, pem);
const history = chain(Array<Wanted>(ENTRIES).fill({ payload: { tags: ["imported"] } }));
writeFileSync(file, history.map((entry) => `${JSON.stringify(entry)}\n`).join(""));

/** @returns whether it was killed */
async function importedUntil(path: string, call: number): Promise<boolean> {
  const child = spawn(process.execPath, [CHILD, path, file, key, String(call)], { stdio: "inherit" });
  const [code, signal] = await once(child, "exit");
  expect([code, signal]).toEqual(signal ? [null, "SIGKILL"] : [0, null]);
  return signal !== null;
}

/** An empty log that has been in use: it has files, among them those of the postings, and a private row. */
async function emptyLog(path: string): Promise<void> {
  const { log } = await openTestLog({ path, signer });
  await runIn(log, (transaction) => transaction.put("passwords", "a key", { hash: "a hash" }));
  await log.close();
}

test.each([
  ["no log", async () => {}],
  ["an empty log", emptyLog],
] as const)("in the place of %s there is always an empty log or a whole one", async (_, prepare) => {
  const sizes: number[] = [];
  let wasKilled = true;
  for (let call = 0; wasKilled; call++) {
    const path = join(temporaryFolder(), "log");
    await prepare(path);
    wasKilled = await importedUntil(path, call);
    const { log } = await openTestLog({ path, signer });
    const { size } = log;
    sizes.push(size);
    expect(log.stateDifferences()).toEqual([]);
    expect(log.find({ tags: ["imported"] }, 0, 1).total).toBe(size);
    expect(log.row("passwords", "a key")).toEqual(prepare === emptyLog ? { hash: "a hash" } : undefined);
    await log.close();

    const again = importEntries({ path, signer, mapSize: MAP_SIZE }, history);
    if (size) await expect(again).rejects.toMatchObject({ code: "precondition-failed" });
    else await expect(again).resolves.toMatchObject({ entry_count: ENTRIES });
    expect(existsSync(`${path}.importing`)).toBe(false);
  }
  // First they are empty, then whole; of each there are some, also of those that were killed.
  const empty = sizes.lastIndexOf(0) + 1;
  expect(sizes).toEqual(sizes.map((_, i) => (i < empty ? 0 : ENTRIES)));
  expect(empty).toBeGreaterThan(0);
  expect(sizes.length - empty).toBeGreaterThan(2);
});
