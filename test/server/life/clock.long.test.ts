/**
 * The system clock is set, forward and back, while the service runs. The log's time never goes back, and takes no jump ahead
 * that the operator has not confirmed; then sign-in, sessions and deliveries continue at once.
 */
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { acceptClock } from "#cairnlog/engine/log/state/clock.js";
import { startReceiver } from "../../webhooks/receiver.js";
import { expectProblem, startTestService, type TestService } from "../harness.js";
import { bearerOf, challengeOf, proofOf, registeredSigner } from "../proofs.js";
import { newManifest, newSigner, registration, submission } from "../signers.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const realNow = Date.now.bind(Date);

afterEach(() => {
  vi.restoreAllMocks();
});

/** The clock that is set here is that of this thread, so it serves, too. */
const ONE_THREAD = { SERVICE_FRONT_ENDS: "0" };

/** From now on the clock differs from the real time by this much. */
function setDay(ahead: number): void {
  vi.spyOn(Date, "now").mockImplementation(() => realNow() + ahead);
}

/** Whether a write is refused because of the clock. */
async function isSuspect(service: TestService): Promise<boolean> {
  const reply = await service.post("/keys/register", registration(newSigner()));
  if (reply.status === 200) return false;
  expectProblem(reply, 503, "clock-suspect");
  return true;
}

/** The operator confirms the clock, and the service goes on. */
async function accept(service: TestService): Promise<void> {
  acceptClock(join(service.server.dataDir, "log"));
  await expect.poll(() => isSuspect(service)).toBe(false);
}

test("appends, sessions, challenges and deliveries go on when the time of day is set", async () => {
  const receiver = await startReceiver();
  const told = new Set<number>();
  let refusals = 0;
  receiver.answer = (response, { body }) => {
    if (refusals-- > 0) return void response.writeHead(500).end();
    told.add(JSON.parse(body.toString()).data.entry_id);
    response.writeHead(204).end();
  };
  const service = await startTestService({ ...ONE_THREAD, SERVICE_WEBHOOK_ALLOW_PRIVATE: "on" });
  const signer = await registeredSigner(service);
  const subscription = { url: receiver.url, events: ["attestation.created"] };
  expect((await service.post("/webhooks", subscription, await bearerOf(service, signer))).status).toBe(200);
  const times: number[] = [];
  let suspected = 0;
  for (const ahead of [0, 2 * HOUR_MS, HOUR_MS, 30 * DAY_MS, -DAY_MS, 31 * DAY_MS, 0]) {
    setDay(ahead);
    if (await isSuspect(service)) {
      suspected++;
      await accept(service);
    }
    const bearer = await bearerOf(service, signer);
    expect((await service.post("/auth/renew", {}, bearer)).status).toBe(200);
    // The first attempt at every third of them fails, and is repeated after 5 s by any clock.
    refusals = times.length % 3 === 1 ? 1 : 0;
    const sent = Date.now();
    const receipt = await service.post("/attestations", submission(signer, newManifest(`${ahead}`)));
    expect(receipt.status, receipt.text).toBe(200);
    await expect.poll(() => told.has(receipt.body.log_entry_id), { interval: 20 }).toBe(true);
    const { timestamp } = (await service.get(`/log/${receipt.body.log_entry_id}`)).body;
    times.push(Date.parse(timestamp));
    // The microseconds come from another source, which may differ by a tenth of a second.
    expect(times.at(-1)).toBeGreaterThanOrEqual(sent - 100);
  }
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  // To 2 hours, 30 days and 31 days: the others were back.
  expect(suspected).toBe(3);
  expect((await service.post("/log/verify")).body).toMatchObject({ valid: true, errors: [] });
  const { retry_count, healthy } = (await service.get("/webhooks", await bearerOf(service, signer))).body[0];
  expect({ retry_count, healthy }).toEqual({ retry_count: 0, healthy: true });
});

test("a challenge and a session end when the time of day passes their end, and new ones do not", async () => {
  const service = await startTestService(ONE_THREAD);
  const signer = await registeredSigner(service);
  const { challenge_id, nonce } = await challengeOf(service, signer);
  const bearer = await bearerOf(service, signer);
  setDay(DAY_MS);
  const late = { challenge_id, challenge_signature: signer.sign(nonce) };
  expect((await service.post("/auth/login", late)).status).toBe(410);
  expect((await service.get("/webhooks", bearer)).status).toBe(401);
  await accept(service);
  expect((await service.post("/auth/login", await proofOf(service, signer))).status).toBe(200);
  // A token issued a day ahead is still valid when the clock is right again.
  const ahead = await proofOf(service, signer);
  const session = await bearerOf(service, signer);
  setDay(0);
  expect((await service.post("/auth/login", ahead)).status).toBe(200);
  expect((await service.get("/webhooks", session)).status).toBe(200);
});
