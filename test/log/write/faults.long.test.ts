/**
 * Signer and disk fail, before and after the bytes are on disk: afterwards memory equals the disk, and the log
 * continues.
 */

import { describe, expect, test } from "vitest";
import type { Receipt } from "#cairnlog/engine/log/state/executor.js";
import { openFaultyLog, openTestLog, testOperator } from "../harness.js";
import { runIn } from "../inline.js";

const event = (n: number) => ({ event_type: "note", payload: { n, fingerprint: `sha256:${"ab".repeat(32)}` } });

async function checkWhole(log: Awaited<ReturnType<typeof openTestLog>>["log"], acknowledged: readonly Receipt[]) {
  expect(await log.verify()).toMatchObject({ valid: true, entry_count: log.size, errors: [] });
  expect(log.stateDifferences()).toEqual([]);
  for (const receipt of acknowledged) {
    expect(log.entry(receipt.log_entry_id)?.entry_hash).toBe(receipt.entry_hash);
    expect(log.treeHead(receipt.sth.tree_size)).toEqual(receipt.sth);
  }
}

describe.each(["not persisted", "persisted anyway"] as const)("a commit that fails, %s", (fate) => {
  test.each([0, 1, 2])(
    "with %i commits before it: everybody built on it is told, and the log goes on",
    async (before) => {
      const { log, path, faults } = await openFaultyLog();
      await log.append(event(0));
      faults.plan = [...Array<"works">(before).fill("works"), fate];
      const outcomes: PromiseSettledResult<Receipt>[] = [];
      const waves: Promise<unknown>[] = [];
      for (let wave = 0; wave < 6; wave++) {
        // Enough appends that a batch is formed and signed while another one is written.
        for (let n = 0; n < 150; n++)
          waves.push(
            log.append(event(n)).then(
              (value) => outcomes.push({ status: "fulfilled", value }),
              (reason) => outcomes.push({ status: "rejected", reason }),
            ),
          );
        await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(waves);
      const refused = outcomes.filter((outcome) => outcome.status === "rejected");
      expect(refused.length).toBeGreaterThan(0);
      for (const { reason } of refused) expect(reason).toMatchObject({ code: "storage-failed" });
      const acknowledged = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
      acknowledged.push(await log.append(event(1)));
      if (fate === "not persisted") expect(log.size).toBe(1 + acknowledged.length);
      else expect(log.size).toBeGreaterThan(1 + acknowledged.length);
      await checkWhole(log, acknowledged);
      await log.close();
      const { log: again } = await openTestLog({ path });
      await checkWhole(again, acknowledged);
    },
  );
});

test("a signer that rejects makes appends fail with `signer-unavailable`, and the log is as before", async () => {
  let available = true;
  const signer = {
    ...testOperator,
    sign: (messages: readonly Uint8Array[]) =>
      available ? testOperator.sign(messages) : Promise.reject(new Error("token removed")),
  };
  const { log } = await openTestLog({ signer });
  const first = await log.append(event(0));
  available = false;
  const outcomes = await Promise.allSettled([log.append(event(1)), log.append(event(2))]);
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({ status: "rejected", reason: { code: "signer-unavailable" } });
  expect(log.size).toBe(1);
  available = true;
  const next = await log.append(event(3));
  expect(next.leaf_index).toBe(1);
  await checkWhole(log, [first, next]);
});

test("batches behind one that cannot be signed fail with it, none is lost silently", async () => {
  let calls = 0;
  const signer = {
    ...testOperator,
    sign: async (messages: readonly Uint8Array[]) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      if (++calls === 2) throw new Error("interrupted");
      return testOperator.sign(messages);
    },
  };
  const { log } = await openTestLog({ signer });
  const appends: Promise<PromiseSettledResult<Receipt>[]>[] = [];
  for (let n = 0; n < 60; n++) {
    appends.push(Promise.allSettled([log.append(event(n))]));
    if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 3));
  }
  const outcomes = (await Promise.all(appends)).flat();
  const acknowledged = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  expect(outcomes.length - acknowledged.length).toBeGreaterThan(0);
  expect(log.size).toBe(acknowledged.length);
  expect(acknowledged.map((receipt) => receipt.leaf_index)).toEqual(acknowledged.map((_, i) => i));
  await checkWhole(log, acknowledged);
});

test("refusals wait for the batches they are based on", async () => {
  const { log, faults } = await openFaultyLog();
  faults.plan = ["not persisted"];
  const put = runIn(log, (transaction) => {
    transaction.put("keys", "k", { pseudonym: "k" } as never);
    transaction.append(event(0));
  });
  const refused = runIn(log, (transaction) => {
    if (transaction.get("keys", "k")) throw new Error("taken");
  });
  await expect(put).rejects.toMatchObject({ code: "storage-failed" });
  // It was refused because of a row that never reached the disk, so its error is that of the disk.
  await expect(refused).rejects.toMatchObject({ code: "storage-failed" });
  await expect(runIn(log, (transaction) => transaction.get("keys", "k"))).resolves.toMatchObject({ value: undefined });
});

test("while the disk is busy, appends gather instead of queueing up as small batches", async () => {
  const { log, faults } = await openFaultyLog();
  let release = () => {};
  faults.hold = new Promise((resolve) => {
    release = resolve;
  });
  const appends: Promise<Receipt>[] = [];
  for (let n = 0; n < 100; n++) {
    appends.push(log.append(event(n)));
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  release();
  const receipts = await Promise.all(appends);
  expect(receipts.map((receipt) => receipt.leaf_index)).toEqual(receipts.map((_, i) => i));
  // The batch that is being written, and one batch with all other appends.
  expect(log.batches).toBe(2);
});

test("many appends are formed and signed while the disk is busy", async () => {
  const signed: number[] = [];
  const signer = {
    ...testOperator,
    sign: (messages: readonly Uint8Array[]) => {
      signed.push(messages.length);
      return testOperator.sign(messages);
    },
  };
  const { log, faults } = await openFaultyLog({ signer });
  let release = () => {};
  faults.hold = new Promise((resolve) => {
    release = resolve;
  });
  const turns = async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  const appends = [log.append(event(0))];
  await turns();
  for (let n = 0; n < 1200; n++) appends.push(log.append(event(n)));
  await turns();
  // The first batch is being written, the next is signed and waits for the disk, and one more is formed. The rest is
  // queued.
  expect(signed).toEqual([1, 512]);
  expect(log.queued).toBe(1200 - 2 * 512);
  release();
  await Promise.all(appends);
  expect(log.batches).toBe(4);
  await checkWhole(log, await Promise.all(appends));
});

test("an observer of a table gets the rows that a batch changed when it is on disk, and null after a failure", async () => {
  const { log, faults } = await openFaultyLog();
  const seen: unknown[] = [];
  log.observeRows("counters", (changes) =>
    seen.push([
      log.size,
      log.row("counters", "webhook")?.last,
      changes?.map(({ key, row }) => [key, row?.last]) ?? null,
    ]),
  );
  const count = (last: number | undefined) =>
    runIn(log, (transaction) => {
      transaction.put("counters", "webhook", last === undefined ? undefined : { last });
      transaction.append(event(0));
    });
  await count(1);
  await log.append(event(1));
  await count(undefined);
  expect(seen.splice(0)).toEqual([
    [1, 1, [["webhook", 1]]],
    [3, undefined, [["webhook", undefined]]],
  ]);
  faults.plan = ["persisted anyway"];
  await expect(count(2)).rejects.toMatchObject({ code: "storage-failed" });
  expect(seen).toEqual([[4, 2, null]]);
});
