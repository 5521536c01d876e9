/** Limits that several threads count in the same memory, also when some of them are ended at any moment. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { LIMITS, type LimitName, Limits } from "#cairnlog/server/http/limits/limits.js";

const THREADS = 4;
const LIMIT = 500;
const ADDRESSES = 3_000;
const FEW = 3;

const each = (requests: number) =>
  Object.fromEntries(Object.keys(LIMITS).map((name) => [name, requests])) as Record<LimitName, number>;
const addressOf = (i: number): string => `10.0.${i >> 8}.${i & 255}`;

/**
 * A front end: it waits until all have come, and then counts. It notes how many requests of each address passed, in memory
 * that outlives it.
 */
const FRONT_END = `
const { workerData } = require("node:worker_threads");
const { requests, buffer, waiting, passed, rounds, addresses, first } = workerData;
import("#cairnlog/server/http/limits/limits.js").then(({ Limits }) => {
  const limits = new Limits(requests, buffer);
  const addressOf = ${addressOf};
  Atomics.sub(waiting, 0, 1);
  Atomics.notify(waiting, 0);
  for (let left; (left = Atomics.load(waiting, 0)) > 0; ) Atomics.wait(waiting, 0, left);
  for (let round = 0; round < rounds; round++)
    for (let i = 0; i < addresses; i++) {
      const address = (i + first) % addresses;
      if (!limits.count("key-registration", addressOf(address)).exceeded) Atomics.add(passed, address, 1);
    }
});
`;

interface Work {
  readonly requests: Record<LimitName, number>;
  readonly rounds: number;
  readonly addresses: number;
}

const started: Worker[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.terminate()));
});

/** Four front ends that count together with `limits`. */
function frontEnds(limits: Limits, work: Work): { workers: Worker[]; passed: Int32Array; begun: () => Promise<void> } {
  const waiting = new Int32Array(new SharedArrayBuffer(4)).fill(THREADS);
  const passed = new Int32Array(new SharedArrayBuffer(4 * work.addresses));
  const workers = Array.from({ length: THREADS }, (_, i) => {
    // Half of them begin with the same address.
    const first = i % 2 ? 0 : i * 100;
    const workerData = { ...work, buffer: limits.buffer, waiting, passed, first };
    return new Worker(FRONT_END, { eval: true, workerData });
  });
  started.push(...workers);
  const begun = async (): Promise<void> => {
    while (Atomics.load(waiting, 0) > 0 || !passed.some(Boolean))
      await new Promise((resolve) => setTimeout(resolve, 1));
  };
  return { workers, passed, begun };
}

test("of one address exactly as many requests pass as the limit allows", async () => {
  const requests = each(LIMIT);
  const limits = Limits.create(requests);
  const { workers, passed } = frontEnds(limits, { requests, rounds: LIMIT, addresses: 1 });
  await Promise.all(workers.map((worker) => once(worker, "exit")));
  expect([...passed]).toEqual([LIMIT]);
  expect(limits.look("key-registration", addressOf(0))).toMatchObject({ remaining: 0 });
});

test("of many addresses, too: windows are opened once, whoever comes first", async () => {
  const requests = each(FEW);
  const limits = Limits.create(requests);
  const { workers, passed } = frontEnds(limits, { requests, rounds: 2, addresses: ADDRESSES });
  await Promise.all(workers.map((worker) => once(worker, "exit")));
  expect(new Set(passed)).toEqual(new Set([FEW]));
});

test("front ends that are ended leave nothing behind that stops the others or lets more pass", async () => {
  const requests = each(1_000_000_000);
  const limits = Limits.create(requests);
  let kills = 0;
  let answered = 0;
  for (let round = 0; round < 3; round++) {
    const { workers, passed, begun } = frontEnds(limits, { requests, rounds: 1_000_000, addresses: ADDRESSES });
    await begun();
    for (const worker of workers) {
      await worker.terminate();
      kills++;
    }
    for (const count of passed) answered += count;
  }
  let counted = 0;
  for (let i = 0; i < ADDRESSES; i++) {
    const { remaining } = limits.look("key-registration", addressOf(i));
    counted += requests["key-registration"] - remaining;
    expect(limits.count("key-registration", addressOf(i)).remaining).toBe(remaining - 1);
  }
  // A thread may have ended after it counted a request and before it noted that this one passed.
  expect(counted).toBeGreaterThanOrEqual(answered);
  expect(counted).toBeLessThanOrEqual(answered + kills);
});
