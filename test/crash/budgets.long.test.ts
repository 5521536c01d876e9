/**
 * The service is killed while strangers spend their budget of bytes, repeatedly, in one data directory. In the end they have
 * stored no more than the budget, and each kill has cost them at most the part that is reserved at once.
 */
import { once } from "node:events";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { type Acknowledged, attest, attestUntilGone } from "../server/attesting.js";
import { scratchFolder, startService } from "../service.js";

const ROUNDS = 4;
const BUDGET = 2 ** 20;
const PAGE = 200;
const folder = scratchFolder();
afterAll(() => folder.remove());

const start = () =>
  startService(folder.path, {
    SERVICE_RATE_LIMITS: "on",
    SERVICE_RATE_LIMIT_GENERAL: "1000000",
    SERVICE_RATE_LIMIT_ATTESTATION: "1000000",
    SERVICE_BYTES_FROM_STRANGERS: `${BUDGET}`,
    SERVICE_FRONT_ENDS: "2",
  });

/** Bytes of the payloads of all attestations, whether they were acknowledged or not. */
async function storedBytes(url: string): Promise<number> {
  let bytes = 0;
  for (let page = 1; ; page++) {
    const answer = await fetch(`${url}/api/v1/log?page=${page}&per_page=${PAGE}`);
    const { entries } = (await answer.json()) as { entries: { payload: { document_hash?: string } }[] };
    for (const { payload } of entries) if (payload.document_hash) bytes += Buffer.byteLength(JSON.stringify(payload));
    if (entries.length < PAGE) return bytes;
  }
}

/** Attests until the budget is spent. */
async function spendAll(url: string): Promise<void> {
  const work = async (_: unknown, worker: number) => {
    for (let n = 0; ; n++) {
      const answer = await attest(url, `to the end ${worker} ${n}`);
      const body = (await answer.json()) as { code?: string };
      if (answer.status === 200) continue;
      expect([answer.status, body.code]).toEqual([429, "budget-spent"]);
      return;
    }
  };
  await Promise.all(Array.from({ length: 8 }, work));
}

test(`${ROUNDS} rounds of SIGKILL give strangers no byte more, and take little`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const service = await start();
    const exited = once(service.process, "exit");
    const receipts: Acknowledged[] = [];
    const load = attestUntilGone(service.url, 8, receipts);
    await expect.poll(() => receipts.length, { interval: 5 }).toBeGreaterThan(50);
    service.process.kill("SIGKILL");
    await load;
    await exited;
  }
  const service = await start();
  onTestFinished(() => void service.process.kill("SIGKILL"));
  const before = await storedBytes(service.url);
  expect(before).toBeLessThan(BUDGET);
  await spendAll(service.url);
  const spent = await storedBytes(service.url);
  expect(spent).toBeLessThanOrEqual(BUDGET);
  const largest = 2_000;
  expect(spent).toBeGreaterThan(BUDGET - (ROUNDS + 1) * (BUDGET / 1024) - largest);
  expect(await service.stop()).toBe(0);
});
