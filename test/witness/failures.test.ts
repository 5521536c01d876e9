/** What a failure leaves of a witness: nothing that keeps the next start from beginning, and no answer that is not on disk. */
import { hash } from "node:crypto";
import { once } from "node:events";
import fs, { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { openEnvironment } from "#cairnlog/engine/store/lmdb/environment.js";
import { WitnessRows } from "#cairnlog/server/witness/rows.js";
import { temporaryFolder } from "../server/harness.js";
import { logsFile, spawnWitness, startTestWitness } from "./harness.js";
import { newTree, type WitnessedTree } from "./logs.js";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A witness whose rows the test can reach. */
async function startWithRows(tree = newTree("log.example/failures")) {
  const opening = vi.spyOn(WitnessRows, "open");
  const witness = await startTestWitness([tree]);
  const rows = await (opening.mock.results[0]!.value as Promise<WitnessRows>);
  return { witness, rows, tree };
}

/** Another process can take the directory, as long as this one has let go of it. */
async function expectFree(dataDir: string, tree: WitnessedTree): Promise<void> {
  const other = await spawnWitness(dataDir, logsFile([tree]));
  expect(await other.end("SIGTERM")).toBe(0);
}

/** While this runs, every disk has one free page. */
async function onFullDisk(run: () => Promise<void>): Promise<void> {
  const { statfsSync } = fs;
  fs.statfsSync = (() => ({ blocks: 1000, bavail: 1, bsize: 4096 })) as unknown as typeof statfsSync;
  syncBuiltinESMExports();
  try {
    await run();
  } finally {
    fs.statfsSync = statfsSync;
    syncBuiltinESMExports();
  }
}

test("a start that fails leaves the directory to the next one", async () => {
  const tree = newTree("log.example/failures");
  const dataDir = temporaryFolder();
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  for (let tries = 0; tries < 2; tries++)
    await expect(startTestWitness([tree], { dataDir, port })).rejects.toMatchObject({ code: "precondition-failed" });
  other.close();
  await expectFree(dataDir, tree);
  const witness = await startTestWitness([tree], { dataDir });
  await witness.expectCosigned(await witness.add(tree.body(0, 3)), tree, 3);
});

test("one damaged row keeps it from starting, each time with the same words", async () => {
  const tree = newTree("log.example/failures");
  const witness = await startTestWitness([tree]);
  const { dataDir } = witness;
  await witness.expectCosigned(await witness.add(tree.body(0, 3)), tree, 3);
  await witness.running.close();
  const path = join(dataDir, "witness");
  const options = { mapSize: 2 ** 30, maxDbs: 1, readOnly: false, noSync: false, advice: null, mustExist: true };
  const environment = openEnvironment({ ...options, path });
  const rows = environment.openDB<string, string>({ name: "checkpoints", encoding: "string" });
  // The row of another log says what that log never signed.
  const damaged = hash("sha256", "log.example/another");
  await rows.put(damaged, rows.get(hash("sha256", tree.origin))!);
  await environment.close();
  for (let tries = 0; tries < 2; tries++)
    await expect(startTestWitness([tree], { dataDir })).rejects.toMatchObject({
      code: "corrupt-log",
      message: expect.stringContaining(`The row ${damaged} of the witness is damaged.`),
    });
  // Whoever tries again for ever holds no file of any try.
  expect(readFileSync("/proc/self/maps", "utf8")).not.toContain(path);
  const mended = openEnvironment({ ...options, path });
  await mended.openDB<string, string>({ name: "checkpoints", encoding: "string" }).remove(damaged);
  await mended.close();
  await expectFree(dataDir, tree);
});

test("a request under way is answered before the rows are closed", async () => {
  const { witness, rows, tree } = await startWithRows();
  const replace = rows.replace.bind(rows);
  let go: () => void = () => {};
  const gate = new Promise<void>((resolve) => (go = resolve));
  const replacing = vi.spyOn(rows, "replace").mockImplementation(async (...row) => {
    await gate;
    return replace(...row);
  });
  const reply = witness.add(tree.body(0, 3));
  await expect.poll(() => replacing.mock.calls.length, { interval: 2 }).toBe(1);
  const closed = witness.running.close();
  go();
  await witness.expectCosigned(await reply, tree, 3);
  await closed;
  await expectFree(witness.dataDir, tree);
  const again = await startTestWitness([tree], { dataDir: witness.dataDir });
  expect((await again.add(tree.body(0, 4))).text).toBe("3\n");
});

test("a witness that would cosign nothing is not ready, and says why", async () => {
  const tree = newTree("log.example/failures");
  const file = logsFile([]);
  const witness = await startTestWitness([], { logsFile: file });
  const ready = async () => {
    const { status, text } = await witness.send("/readyz");
    return [status, JSON.parse(text)];
  };
  expect(await ready()).toMatchObject([503, { detail: "The file of logs names no log." }]);
  expect((await witness.send("/livez")).status).toBe(200);
  writeFileSync(file, `log ${tree.signer.vkey}\n`);
  witness.running.reload();
  const isReady = [200, { status: "ok", vkey: witness.running.vkey, logs: 1 }];
  expect(await ready()).toEqual(isReady);
  await onFullDisk(async () => {
    expect(await ready()).toMatchObject([503, { detail: "Only 4096 bytes are free on the disk of the witness." }]);
  });
  expect(await ready()).toEqual(isReady);
});

// LMDB would begin to write, and after a failed write the process must end: at each request again.
test("a disk without room refuses what must be written, and ends nothing", async () => {
  const { witness, rows, tree } = await startWithRows();
  await witness.expectCosigned(await witness.add(tree.body(0, 3)), tree, 3);
  await onFullDisk(async () => {
    const { status, text } = await witness.add(tree.body(3, 4));
    expect([status, JSON.parse(text)]).toMatchObject([503, { code: "storage-full" }]);
    expect((await witness.send(`/${hash("sha256", tree.origin)}/checkpoint`)).status).toBe(200);
  });
  expect(rows.health.failure).toBeNull();
  await witness.expectCosigned(await witness.add(tree.body(3, 4)), tree, 4);
});

test("after a write that failed nothing is answered from rows that may be either one, and the process is told to end", async () => {
  const { witness, rows, tree } = await startWithRows();
  await witness.expectCosigned(await witness.add(tree.body(0, 3)), tree, 3);
  const path = `/${hash("sha256", tree.origin)}/checkpoint`;
  const statuses = async () => {
    const replies = [witness.add(tree.body(3, 4)), witness.add(tree.body(3, 3)), witness.add(tree.body(0, 3))];
    const reads = [path, "/livez", "/readyz"].map((read) => witness.send(read));
    return (await Promise.all([...replies, ...reads])).map(({ status }) => status);
  };
  expect(await statuses()).not.toContain(503);
  const failure = new CairnlogError("storage-failed", "A write to the log failed.");
  rows.health.end(failure);
  expect(await witness.running.failed).toBe(failure);
  for (const status of await statuses()) expect(status).toBeGreaterThanOrEqual(500);
  const row = { origin: tree.origin, treeSize: 9, rootHash: "0".repeat(64), note: tree.note(9) };
  await expect(rows.replace(undefined, row)).rejects.toBe(failure);
  // LMDB is not called any more, so this neither waits nor fails.
  await witness.running.close();
});
