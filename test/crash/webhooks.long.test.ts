/**
 * The service is killed between append and delivery, repeatedly, in one data directory. In the end every acknowledged
 * entry is delivered, some of them more than once.
 */
import { once } from "node:events";
import { afterAll, expect, test } from "vitest";
import { type Acknowledged, attestUntilGone } from "../server/attesting.js";
import { newSigner, registration, submission } from "../server/signers.js";
import { type RunningService, scratchFolder, startService } from "../service.js";
import { startReceiver } from "../webhooks/receiver.js";

const ROUNDS = 6;
const folder = scratchFolder();
afterAll(() => folder.remove());

async function post<T>(service: RunningService, path: string, body: unknown, token?: string): Promise<T> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${service.url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

async function subscribe(service: RunningService, url: string): Promise<void> {
  const owner = newSigner();
  await post(service, "/keys/register", registration(owner));
  const { fingerprint } = owner;
  const challenge = await post<{ challenge_id: string; nonce: string }>(service, "/auth/challenge", { fingerprint });
  const { challenge_id, nonce } = challenge;
  const proof = { challenge_id, challenge_signature: owner.sign(nonce) };
  const { token } = await post<{ token: string }>(service, "/auth/login", proof);
  await post(service, "/webhooks", { url, events: ["attestation.created"] }, token);
}

test(`${ROUNDS} rounds of SIGKILL between append and delivery lose none`, async () => {
  const receiver = await startReceiver();
  const start = () => startService(folder.path, { SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" });
  const acknowledged = new Set<number>();
  /** Entries that the receiver has acknowledged. */
  const taken = new Set<number>();
  for (let round = 0; round < ROUNDS; round++) {
    const service = await start();
    if (round === 0) await subscribe(service, receiver.url);
    // In every other round, the receiver accepts some deliveries before the service is killed. In the others it never
    // answers.
    receiver.answer = (response, { body }) => {
      if (round % 2 === 0) return;
      taken.add(JSON.parse(body.toString()).data.entry_id);
      response.writeHead(204).end();
    };
    const exited = once(service.process, "exit");
    const receipts: Acknowledged[] = [];
    const load = attestUntilGone(service.url, 24, receipts);
    await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 300));
    // On a slow machine nothing may have been done by then.
    await expect.poll(() => receipts.length, { interval: 5 }).toBeGreaterThan(5);
    service.process.kill("SIGKILL");
    await load;
    for (const { log_entry_id } of receipts) acknowledged.add(log_entry_id);
    await exited;
  }
  const before = taken.size;
  receiver.answer = (response, { body }) => {
    taken.add(JSON.parse(body.toString()).data.entry_id);
    response.writeHead(204).end();
  };
  const service = await start();
  // An append after the crashes links to the entries before them.
  const last = await post<{ log_entry_id: number }>(service, "/attestations", submission(newSigner()));
  acknowledged.add(last.log_entry_id);
  const missing = () => [...acknowledged].filter((id) => !taken.has(id));
  await expect.poll(missing, { interval: 50 }).toEqual([]);
  expect(taken.size).toBeGreaterThan(before);
  expect(acknowledged.size).toBeGreaterThan(ROUNDS * 5);
  expect(await service.stop()).toBe(0);
});
