/**
 * The service is killed at random moments while keys ask each other for attestations and answer. A request, its answer
 * and the notification that tells of it are there together or not at all, and whatever was acknowledged is there.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openOperatorKey } from "#cairnlog/engine/crypto/operator-key.js";
import { createPool } from "#cairnlog/engine/crypto/pool.js";
import { openRegistry, type Registry } from "#cairnlog/engine/registry/registry.js";
import { newSigner, registration, type TestSigner } from "../server/signers.js";
import { scratchFolder, startService } from "../service.js";

const ROUNDS = 8;
const WORKERS = 8;
/** Of one worker in one round: few enough for its keys' inboxes to hold them all. */
const MAX_REQUESTS = 400;

const folder = scratchFolder();
afterAll(() => folder.remove());

/** Ids of entries that the service said it has written. */
type Acknowledged = Set<number>;

async function post(url: string, path: string, body: object, token?: string) {
  const headers = { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(`${url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${JSON.stringify(answer)}`);
  return answer;
}

/** A registered key with a session. */
async function signIn(url: string): Promise<{ signer: TestSigner; token: string }> {
  const signer = newSigner();
  await post(url, "/keys/register", registration(signer));
  const { challenge_id, nonce } = await post(url, "/auth/challenge", { fingerprint: signer.fingerprint });
  const { token } = await post(url, "/auth/login", { challenge_id, challenge_signature: signer.sign(nonce) });
  return { signer, token };
}

/** Asks and answers until the service dies; every second worker's target declines by a policy. */
async function work(url: string, worker: number, acknowledged: Acknowledged): Promise<void> {
  try {
    const [asker, target] = [await signIn(url), await signIn(url)];
    const isPolicy = worker % 2 === 1;
    const policy = { predicates: { any: [] }, default_action_on_failure: "decline" };
    if (isPolicy) acknowledged.add((await post(url, "/log/request-policies", policy, target.token)).log_entry_id);
    for (let i = 0; i < MAX_REQUESTS; i++) {
      const { fingerprint: target_fingerprint } = target.signer;
      const body = { target_fingerprint, attestation_type: "authorship", nonce: randomUUID() };
      const request = await post(url, "/log/attestation-requests", body, asker.token);
      acknowledged.add(request.log_entry_id);
      if (isPolicy) acknowledged.add(request.response.log_entry_id);
      else {
        const path = `/log/attestation-requests/${request.request_id}/respond`;
        acknowledged.add((await post(url, path, { decision: "decline" }, target.token)).log_entry_id);
      }
    }
  } catch (error) {
    // Being cut off is what this load is for; an answer that is not 200 is not.
    if (!(error instanceof TypeError || error instanceof SyntaxError)) throw error;
  }
}

/** What every inbox must hold, from the entries alone; as `fingerprint id kind`. */
function expectedNotifications({ log }: Registry, operator: string): string[] {
  const requests = new Map<unknown, { id: number; asker: unknown; target: unknown }>();
  const expected: string[] = [];
  for (const { id, event_type, payload } of log.entries()) {
    const { request_id, requester_fingerprint: asker, target_fingerprint: target } = payload;
    if (event_type === "attestation_request") {
      requests.set(request_id, { id, asker, target });
      if (payload.policy_entry_id === null) expected.push(`${target} ${id} attestation_request`);
      else expect(log.entry(id + 1)?.payload).toMatchObject({ request_id, responder_fingerprint: operator });
    }
    if (event_type === "attestation_request_response")
      expected.push(`${requests.get(request_id)!.asker} ${id} attestation_request_declined`);
  }
  return expected.sort();
}

async function checkDataDirectory(acknowledged: Acknowledged): Promise<void> {
  const pool = createPool(1);
  const operator = openOperatorKey(join(folder.path, "operator.pem"));
  const predicateBase = "https://x-service.example/predicates";
  const registry = await openRegistry({ path: join(folder.path, "log"), operator, pool, predicateBase });
  try {
    const { log } = registry;
    expect(log.stateDifferences()).toEqual([]);
    const found = [...log.rows("notifications", ["", 0], ["z", 0])];
    const held = found.map(({ key: [fingerprint, id], row: { kind } }) => `${fingerprint} ${id} ${kind}`);
    expect(held.sort()).toEqual(expectedNotifications(registry, operator.fingerprint));
    for (const id of acknowledged) expect(log.entry(id), `entry ${id} was acknowledged`).toBeDefined();
    expect((await log.verify()).errors).toEqual([]);
  } finally {
    await registry.close();
    await pool.close();
  }
}

test(`${ROUNDS} rounds of SIGKILL leave no request, answer or notification without the others`, {
  timeout: 300_000,
}, async () => {
  const acknowledged: Acknowledged = new Set();
  for (let round = 0; round < ROUNDS; round++) {
    const service = await startService(folder.path);
    const exited = once(service.process, "exit");
    const load = Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(service.url, worker, acknowledged)));
    await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 500));
    service.process.kill("SIGKILL");
    await load;
    await exited;
    await checkDataDirectory(acknowledged);
  }
  expect(acknowledged.size).toBeGreaterThan(ROUNDS * WORKERS);
});
