/**
 * A service with several front ends is one service: what any of them answered can be read at every other one, and what
 * counts or remembers something counts over all of them.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestService, type TestService } from "../harness.js";
import { newManifest, newSigner, registration, submission, type TestSigner } from "../signers.js";
import { type Connection, connectToEach, frontOf } from "./connections.js";

const FRONT_ENDS = 3;
let service: TestService;
let each: Connection[];
beforeAll(async () => {
  service = await startTestService({ SERVICE_FRONT_ENDS: `${FRONT_ENDS}`, SERVICE_TRANSPORT: "uws" });
  each = await connectToEach(service.url, FRONT_ENDS);
});
afterAll(() => {
  for (const connection of each) connection.close();
});

const register = (connection: Connection, signer: TestSigner) =>
  connection.post("/keys/register", registration(signer));
const others = (one: Connection): Connection[] => each.filter((connection) => connection !== one);

/** Solves a challenge that `connection` asked for. */
async function challenged(connection: Connection, signer: TestSigner): Promise<object> {
  const { body } = await connection.post("/auth/challenge", { fingerprint: signer.fingerprint });
  return { challenge_id: body.challenge_id, challenge_signature: signer.sign(body.nonce) };
}

test("each connection keeps its front end, and there are as many as were set", async () => {
  const fronts = await Promise.all(each.map(async (connection) => frontOf(await connection.get("/health"))));
  expect(new Set(fronts).size).toBe(FRONT_ENDS);
  for (const [i, connection] of each.entries()) expect(frontOf(await connection.get("/log/head"))).toBe(fronts[i]);
});

describe("what one front end answered, every other one shows at once", () => {
  test("entries, heads, proofs and searches of 300 attestations", async () => {
    const signer = newSigner();
    for (let n = 0; n < 300; n++) {
      const writer = each[n % FRONT_ENDS]!;
      const title = `document ${n}`;
      const made = await writer.post("/attestations", submission(signer, newManifest(title)));
      expect(made.status, made.text).toBe(200);
      const { log_entry_id, leaf_index, entry_hash, sth } = made.body;
      const reader = others(writer)[n % (FRONT_ENDS - 1)]!;
      const [head, entry, proof, found] = await Promise.all([
        reader.get("/log/sth"),
        reader.get(`/log/${log_entry_id}`),
        reader.get(`/log/proof/${leaf_index}`),
        reader.get(`/log/by-fingerprint/${signer.fingerprint}`),
      ]);
      expect(head.body).toEqual(sth);
      expect(entry.body.entry_hash).toBe(entry_hash);
      expect(proof.body).toMatchObject({ tree_size: leaf_index + 1, root_hash: sth.root_hash, entry_hash });
      // Its attestations, and its registration.
      expect(found.body.total).toBe(n + 2);
    }
  });

  test("a duplicate gets the receipt of the first, wherever each was sent", async () => {
    const sent = submission(newSigner(), newManifest("twice"));
    const [first, second] = [await each[0]!.post("/attestations", sent), await each[1]!.post("/attestations", sent)];
    expect(second.body).toEqual({ ...first.body, duplicate: true });
  });

  test("a key that was registered, a password that was set, and a revocation", async () => {
    const signer = newSigner();
    const [first, second, third] = each as [Connection, Connection, Connection];
    expect((await register(first, signer)).status).toBe(200);
    const attest = (connection: Connection, title: string, more: object = {}) =>
      connection.post("/attestations", { ...submission(signer, newManifest(title)), ...more });
    for (const connection of each)
      expect((await attest(connection, `before ${each.indexOf(connection)}`)).status).toBe(200);
    const password = "correct horse battery";
    const set = await second.post("/auth/password", { ...(await challenged(third, signer)), password });
    expect(set.status, set.text).toBe(200);
    for (const connection of each) {
      const number = each.indexOf(connection);
      expect((await attest(connection, `without ${number}`)).status).toBe(403);
      expect((await attest(connection, `with ${number}`, { password })).status).toBe(200);
    }
    const auth = await challenged(first, signer);
    const { fingerprint } = signer;
    const revoked = await first.post("/keys/revoke", { payload: { fingerprint }, auth });
    expect(revoked.status, revoked.text).toBe(200);
    for (const connection of each)
      expect((await attest(connection, `after ${each.indexOf(connection)}`, { password })).body.code).toBe(
        "key-not-active",
      );
  });
});

describe("what remembers something remembers it for all of them", () => {
  test("a challenge of one is answered at another, once", async () => {
    const signer = newSigner();
    await register(each[0]!, signer);
    const answer = await challenged(each[1]!, signer);
    const answers = await Promise.all([...each, ...each].map((connection) => connection.post("/auth/login", answer)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
    const { token } = answers.find(({ status }) => status === 200)!.body;
    const renewed = await each[2]!.post("/auth/renew", {}, { authorization: `Bearer ${token}` });
    expect(renewed.status, renewed.text).toBe(200);
  });

  test("wrong passwords are counted together: five tries, however many front ends", async () => {
    const signer = newSigner();
    await register(each[0]!, signer);
    const password = "correct horse battery";
    await each[0]!.post("/auth/password", { ...(await challenged(each[0]!, signer)), password });
    const statuses: number[] = [];
    for (let n = 0; n < 9; n++) {
      const body = { ...submission(signer, newManifest(`guess ${n}`)), password: `wrong password ${n}` };
      statuses.push((await each[n % FRONT_ENDS]!.post("/attestations", body)).status);
    }
    expect(statuses).toEqual([403, 403, 403, 403, 403, 429, 429, 429, 429]);
  });

  test("metrics sum what all of them counted, whoever is asked", async () => {
    const requests = async (connection: Connection) => {
      const { text } = await connection.send("GET", "/metrics");
      const line = /^cairnlog_http_requests_total\{method="GET",route="\/api\/v1\/health",status="200"\} (\d+)$/m;
      return Number(line.exec(text)![1]);
    };
    const before = await requests(each[0]!);
    for (const connection of each) for (let n = 0; n < 5; n++) await connection.get("/health");
    for (const connection of each) expect(await requests(connection)).toBe(before + 5 * FRONT_ENDS);
    const { text } = await each[1]!.send("GET", "/metrics");
    expect(text).toMatch(new RegExp(`^cairnlog_http_connections ${FRONT_ENDS}\\d*$`, "m"));
    for (const thread of ["writer", "front-1", "front-2", "front-3"])
      expect(text).toContain(`nodejs_eventloop_lag_p50_seconds{thread="${thread}"}`);
  });
});

test("an error of the writer's thread is answered as if there were none between", async () => {
  const unknown = await each[0]!.post("/auth/challenge", { fingerprint: `sha256:${"0".repeat(64)}` });
  expect(unknown).toMatchObject({ status: 404, body: { code: "not-found" } });
  const weak = newSigner();
  await register(each[0]!, weak);
  const short = await each[1]!.post("/auth/password", { ...(await challenged(each[2]!, weak)), password: "short" });
  expect(short).toMatchObject({ status: 422, body: { errors: [{ path: "/password" }] } });
});

test("a second service on the port is refused, though the front ends share it", async () => {
  const taken = new URL(service.url).port;
  for (const frontEnds of ["0", "1", "3"])
    await expect(
      startTestService({ PORT: taken, SERVICE_FRONT_ENDS: frontEnds, SERVICE_TRANSPORT: "uws" }),
    ).rejects.toMatchObject({ code: "precondition-failed" });
});
