/** Verification of many stretches: its progress, the length of its report, and cancelling it. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/signatures.js";
import { createPool, type Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { operatorKey } from "#cairnlog/engine/crypto/signer/operator-key.js";
import { LogVerification, verifyLog } from "#cairnlog/engine/log/check/verify.js";
import { rotateOperatorKey } from "#cairnlog/engine/log/history/rotate.js";
import { Operators } from "#cairnlog/engine/log/operator/operators.js";
import { noProjection } from "#cairnlog/engine/log/state/projection.js";
import { MAP_SIZE, openTestLog, openTestReader, testOperator, testPool } from "../harness.js";
import { replaceHeads } from "../tamper.js";

const CHUNK = 4096;
const operators = Operators.of(testOperator.public).chain;

/** A closed log of this size. */
async function builtLog(size: number): Promise<string> {
  const { log, path } = await openTestLog();
  for (let n = 0; n < size; n += 512)
    await log.append(Array.from({ length: Math.min(512, size - n) }, () => ({ event_type: "note", payload: {} })));
  await log.close();
  return path;
}

test("every stretch is checked, and reported when it is done", async () => {
  const path = await builtLog(CHUNK + 1);
  for (const [size, told] of [
    [0, []],
    [1, [1]],
    [CHUNK, [CHUNK]],
    [CHUNK + 1, [CHUNK, CHUNK + 1]],
  ] as const) {
    const progress: number[] = [];
    const report = await verifyLog(testPool, { path, size, operators }, { progress: (done) => progress.push(done) });
    expect(report).toEqual({ valid: true, entry_count: size, errors: [], warnings: [] });
    expect(progress).toEqual(told);
  }
});

test("errors come in the order of the log, and a thousand of them at most", async () => {
  const path = await builtLog(CHUNK + 512);
  const unsigned = (first: number) =>
    replaceHeads(path, first, (heads) => heads.map((head) => ({ ...head, signature: new Uint8Array(64) })));
  await unsigned(CHUNK);
  await unsigned(512);
  const pool = createPool(2);
  const report = await verifyLog(pool, { path, size: CHUNK + 512, operators });
  await pool.close();
  expect(report.valid).toBe(false);
  expect(report.errors).toHaveLength(1000);
  expect(report.errors.map(({ tree_size }) => tree_size)).toEqual([
    ...Array.from({ length: 512 }, (_, i) => 513 + i),
    ...Array.from({ length: 488 }, (_, i) => CHUNK + 1 + i),
  ]);
});

test("findings are taken stretch by stretch, and not all of them in one turn at the end", async () => {
  const [stretches, workers] = [50, 2];
  const finding = { id: 1, tree_size: null, code: "code", message: "message" };
  let read = 0;
  const readBetween: number[] = [];
  const report = {
    get errors() {
      read++;
      return Array.from({ length: CHUNK }, () => finding);
    },
    warnings: [],
  };
  const pool: Pool = {
    workers,
    async run<T>() {
      readBetween.push(read);
      read = 0;
      return report as T;
    },
    close: async () => {},
  };
  const { errors } = await verifyLog(pool, { path: "", size: stretches * CHUNK, operators });
  expect(errors).toHaveLength(1000);
  expect(readBetween).toHaveLength(stretches);
  expect(Math.max(...readBetween, read)).toBeLessThanOrEqual(workers);
});

test("whoever asks for all entries is answered for all, and whoever asks for the newest for those, also at one time", async () => {
  const finding = { id: 1, tree_size: null, code: "code", message: "message" };
  let running = 0;
  const damaged: Pool = {
    workers: 1,
    async run<T>(_: URL, __: string, { from }: { from: number }) {
      running++;
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      return { errors: from === 0 ? [finding] : [], warnings: [] } as T;
    },
    close: async () => {},
  };
  const log = { size: CHUNK + 512, operators: Operators.of(testOperator.public) };
  const verification = new LogVerification({ path: "", pool: damaged, projection: noProjection }, log);
  const ask = { all: () => verification.all(), newest: () => verification.newest() };
  for (const order of [
    ["newest", "all"],
    ["all", "newest"],
    ["newest", "all", "newest", "all"],
  ] as const)
    expect((await Promise.all(order.map((which) => ask[which]()))).map(({ valid }) => valid)).toEqual(
      order.map((which) => which === "newest"),
    );
  // Calls at one time share a run; the next one after it is of what is there then.
  const first = ask.all();
  expect(ask.all()).toBe(first);
  await first;
  log.size++;
  expect(await ask.all()).toMatchObject({ entry_count: log.size });
  const unended = Promise.allSettled([ask.newest(), ask.all()]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(running).toBeGreaterThan(0);
  await verification.close();
  expect(running).toBe(0);
  await unended;
  await expect(ask.newest()).rejects.toMatchObject({ code: "closed" });
});

test("a rotation that the chain of operator keys does not have is an error at its entry", async () => {
  const path = await builtLog(1);
  const to = operatorKey(generatePrivateKey("ed25519"));
  await rotateOperatorKey({ path, from: testOperator, to, projection: noProjection });
  const { operators: whole } = await openTestReader(path, to);
  expect(await verifyLog(testPool, { path, size: 2, operators: whole.chain })).toMatchObject({ valid: true });
  const { errors } = await verifyLog(testPool, { path, size: 2, operators });
  expect(errors).toContainEqual(expect.objectContaining({ id: 2, code: "rotation-invalid" }));
});

test("threads that were started for one verification end with it, also where it fails", async () => {
  const path = await builtLog(1);
  const log = { size: 1, operators: Operators.of(testOperator.public) };
  const threads = () => readdirSync("/proc/self/task").length;
  for (const folder of [path, join(path, "nowhere"), path]) {
    const before = threads();
    const verification = new LogVerification({ path: folder, mapSize: MAP_SIZE, projection: noProjection }, log);
    const verified = verification.all({ workers: 2 });
    if (folder === path) expect(await verified).toMatchObject({ valid: true });
    else await expect(verified).rejects.toMatchObject({ code: "worker-failed" });
    expect(threads()).toBeLessThanOrEqual(before);
  }
});

test("one that is broken off checks no further stretch, and fails with the reason", async () => {
  const path = await builtLog(1);
  const run: number[] = [];
  const controller = new AbortController();
  const reason = new Error("broken off by the test");
  // Counts the tasks of the pool.
  const pool: Pool = {
    ...testPool,
    run(url, name, input, transfer) {
      run.push((input as { from: number }).from);
      controller.abort(reason);
      return testPool.run(url, name, { ...(input as object), to: 0, from: 0, size: 1 }, transfer);
    },
  };
  const verifying = verifyLog(pool, { path, size: 3 * CHUNK, operators }, { signal: controller.signal });
  await expect(verifying).rejects.toBe(reason);
  expect(run).toEqual([0]);
});

test("one that is under way when its log is closed ends, and the log closes", async () => {
  const path = await builtLog(2 * CHUNK);
  const { log } = await openTestLog({ path });
  const verifying = log.verify();
  const outcome = expect(verifying).rejects.toMatchObject({ code: "closed" });
  await log.close();
  await outcome;
});
