/** Attestation requests over HTTP: the contract's table of errors, row by row, and the queries. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { parseIJson } from "#cairnlog/engine/verify/json/canonical.js";
import { expectProblem, startTestService, type TestService } from "../../../server/harness.js";
import { bearerOf, proofOf, registeredSigner } from "../../../server/proofs.js";
import {
  answerTo,
  decline,
  POLICIES,
  policy,
  REQUESTS,
  type RequestScene,
  startRequestScene,
} from "../../../server/requestscene.js";
import { newSigner, sha256 } from "../../../server/signers.js";

const DAY = 86_400_000_000;

let scene: RequestScene;
let service: TestService;
beforeAll(async () => {
  scene = await startRequestScene();
  ({ service } = scene);
});

describe("a request", () => {
  test("is answered with all of it, and is in the log without the proof", async () => {
    const before = await service.entryCount();
    const auth = await proofOf(service, scene.asker);
    const body = scene.request({ intent_statement: "Please.", claims: { topic: "rocks 🪨" }, auth });
    const reply = await service.post(REQUESTS, body);
    expect(reply.status, reply.text).toBe(200);
    const fields = {
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      status: "open",
      deadline: "2025-01-15T00:00:00.000000Z",
      requester_fingerprint: scene.asker.fingerprint,
      target_fingerprint: scene.target.fingerprint,
      attestation_type: "peer_review",
      nonce: body.nonce,
      intent_statement: "Please.",
      claims: { topic: "rocks 🪨" },
      policy_entry_id: null,
    };
    const place = { log_entry_id: before + 1, leaf_index: before, created_at: "2025-01-01T00:00:00.000000Z" };
    expect(reply.body).toEqual({ ...fields, ...place, response: null, responses: [] });
    const entry = (await service.get(`/log/${before + 1}`)).body;
    expect(entry.event_type).toBe("attestation_request");
    const event_type = "attestation_request";
    expect(entry.payload).toEqual({ event_type, ...fields, request_id: reply.body.request_id });
    expect(entry.payload).not.toHaveProperty("auth");
    expect((await service.get(`${REQUESTS}/${reply.body.request_id}`)).body).toEqual(reply.body);
  });

  test("nests no deeper than whoever reads the log can follow it, alone and on a page", async () => {
    const nested = (levels: number): object => (levels > 1 ? { a: nested(levels - 1) } : {});
    const taken: number[] = [];
    for (let levels = 48; levels <= 64; levels++) {
      const reply = await service.post(REQUESTS, scene.request({ claims: nested(levels) }), scene.bearer);
      if (reply.status === 200) taken.push(reply.body.log_entry_id);
      else expectProblem(reply, 422, "not-i-json");
    }
    expect(taken.length).toBeGreaterThan(1);
    const newest = taken.at(-1)!;
    for (const path of [`/log/${newest}`, `/log?per_page=200`, `/audit/export?after_id=${newest - 1}`])
      expect(parseIJson((await service.get(path)).text), path).toMatchObject({});
  });

  test("to oneself is valid", async () => {
    const reply = await service.post(
      REQUESTS,
      scene.request({ target_fingerprint: scene.asker.fingerprint }),
      scene.bearer,
    );
    expect(reply.body).toMatchObject({ status: "open", target_fingerprint: scene.asker.fingerprint });
  });

  test("to the operator is valid", async () => {
    const reply = await service.post(
      REQUESTS,
      scene.request({ target_fingerprint: scene.world.operatorFingerprint }),
      scene.bearer,
    );
    expect(reply.body).toMatchObject({ status: "open", target_fingerprint: scene.world.operatorFingerprint });
  });

  test.each([
    ["as the registry writes it", (fingerprint: string) => fingerprint],
    ["in upper case and bare", (fingerprint: string) => fingerprint.slice(7).toUpperCase()],
    ["empty", () => ""],
    ["null", () => null],
  ])("a requester_fingerprint %s is the session's", async (_, spell) => {
    const requester_fingerprint = spell(scene.asker.fingerprint);
    const reply = await service.post(REQUESTS, scene.request({ requester_fingerprint }), scene.bearer);
    expect(reply.body.requester_fingerprint).toBe(scene.asker.fingerprint);
  });
});

describe("POST /log/attestation-requests", () => {
  const path = REQUESTS;
  test("401: no session and no auth proof, before the body is looked at", async () => {
    for (const body of [
      scene.request(),
      {},
      { nonce: 7 },
      scene.request({ target_fingerprint: newSigner().fingerprint }),
    ])
      expectProblem(await service.post(path, body), 401, "unauthenticated");
    expectProblem(await service.post(path, {}, { authorization: "Bearer x.y.z" }), 401);
    expectProblem(await service.post(path, scene.request(), { authorization: `${scene.bearer.authorization}x` }), 401);
  });

  test("403: proof or session for a different key", async () => {
    const before = await service.entryCount();
    for (const requester_fingerprint of [scene.target.fingerprint, newSigner().fingerprint, "somebody", " "]) {
      const body = scene.request({ requester_fingerprint });
      expectProblem(await service.post(path, body, scene.bearer), 403, "forbidden");
      expectProblem(await service.post(path, { ...body, nonce: 7 }, scene.bearer), 403, "forbidden");
      expectProblem(await service.post(path, { ...body, auth: await proofOf(service, scene.asker) }), 403, "forbidden");
    }
    expect(await service.entryCount()).toBe(before);
  });

  test("403: a proof signed by another key, and 409: one that was used", async () => {
    const forged = { ...(await proofOf(service, scene.asker)), challenge_signature: scene.target.sign("nonsense") };
    expectProblem(await service.post(path, scene.request({ auth: forged })), 403, "forbidden");
    const auth = await proofOf(service, scene.asker);
    expect((await service.post(path, scene.request({ auth }))).status).toBe(200);
    expectProblem(await service.post(path, scene.request({ auth })), 409, "challenge-used");
    expectProblem(await service.post(path, scene.request({ auth: { ...auth, challenge_id: "none" } })), 404);
    const login = await proofOf(service, scene.asker, { purpose: "login" });
    expectProblem(await service.post(path, scene.request({ auth: login })), 403, "forbidden");
  });

  test("404: the target is not a registered key", async () => {
    for (const target_fingerprint of [newSigner().fingerprint, "somebody"])
      expectProblem(await service.post(path, scene.request({ target_fingerprint }), scene.bearer), 404, "not-found");
  });

  test("409: duplicate nonce", async () => {
    const body = scene.request();
    expect((await service.post(path, body, scene.bearer)).status).toBe(200);
    const before = await service.entryCount();
    expectProblem(await service.post(path, body, scene.bearer), 409, "already-exists");
    expectProblem(await service.post(path, { ...body, claims: { other: 1 } }, scene.bearer), 409, "already-exists");
    expect(await service.entryCount()).toBe(before);
    expect((await service.post(path, body, scene.targetBearer)).status).toBe(200);
  });

  test("409: of 50 at once with one nonce, for all but one", async () => {
    await scene.renew();
    const body = scene.request();
    const before = await service.entryCount();
    const replies = await Promise.all(Array.from({ length: 50 }, () => service.post(path, body, scene.bearer)));
    expect(replies.map(({ status }) => status).sort()).toEqual([200, ...Array(49).fill(409)]);
    expect(await service.entryCount()).toBe(before + 1);
  });

  test("422: missing members and members of another type are named", async () => {
    const reply = await service.post(path, { claims: [], deadline: "soon" }, scene.bearer);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors.map((error: { path: string }) => error.path).sort()).toEqual(
      ["/attestation_type", "/claims", "/deadline", "/nonce", "/target_fingerprint"].sort(),
    );
  });

  test("422: a deadline that has passed or is more than 90 days ahead", async () => {
    const iso = (micros: number) => new Date(micros / 1000).toISOString();
    for (const deadline of [iso(scene.world.now), iso(scene.world.now - DAY), iso(scene.world.now + 90 * DAY + 1000)]) {
      const reply = await service.post(path, scene.request({ deadline }), scene.bearer);
      expectProblem(reply, 422, "invalid-input");
      expect(reply.body.errors[0].path).toBe("/deadline");
    }
    const deadline = iso(scene.world.now + 90 * DAY).replace("Z", "+00:00");
    expect((await service.post(path, scene.request({ deadline }), scene.bearer)).body.deadline).toBe(
      "2025-04-01T00:00:00.000000Z",
    );
  });

  test("429: target's hourly quota exhausted", async () => {
    const limited = await startTestService({
      SERVICE_RATE_LIMITS: "on",
      SERVICE_RATE_LIMIT_GENERAL: "1000",
      RATE_LIMIT_ATTESTATION_REQUEST_PER_TARGET: "3",
    });
    const [one, other, victim] = [
      await registeredSigner(limited),
      await registeredSigner(limited),
      await registeredSigner(limited),
    ];
    const headers = [await bearerOf(limited, one), await bearerOf(limited, other)];
    const ask = (i: number, nonce: string = randomUUID()) =>
      limited.post(path, scene.request({ target_fingerprint: victim.fingerprint, nonce }), headers[i]);
    expect((await ask(0, "n")).status).toBe(200);
    for (let i = 0; i < 5; i++) expectProblem(await ask(0, "n"), 409);
    expect((await ask(0)).status).toBe(200);
    expect((await ask(1)).status).toBe(200);
    for (const i of [0, 1]) {
      const reply = await ask(i);
      expectProblem(reply, 429, "rate-limited");
      const wait = Number(reply.headers.get("retry-after"));
      expect(wait).toBeGreaterThan(3500);
      expect(wait).toBeLessThanOrEqual(3600);
    }
    expect((await limited.post(path, scene.request({ target_fingerprint: one.fingerprint }), headers[1])).status).toBe(
      200,
    );
  });
});

test("403: recovery-only sessions and proofs are refused everywhere", async () => {
  const expiring = await registeredSigner(service, {
    expiration_date: new Date(scene.world.now / 1000 + 1000).toISOString(),
  });
  const id = await scene.created();
  scene.world.now += 2_000_000;
  const headers = await bearerOf(service, expiring, { recovery: true });
  const writes: [string, Record<string, unknown>][] = [
    [REQUESTS, scene.request()],
    [answerTo(id), decline()],
    [POLICIES, policy()],
  ];
  for (const [path, body] of writes) {
    expectProblem(await service.post(path, body, headers), 403, "forbidden");
    const auth = { ...(await proofOf(service, expiring, { recovery: true })), recovery: true };
    expectProblem(await service.post(path, { ...body, auth }), 403, "forbidden");
  }
  expectProblem(await service.get("/inbox", headers), 403, "forbidden");
});

describe("reading", () => {
  test("lists by target or requester and by status, a page at a time", async () => {
    await scene.renew();
    const ids = [await scene.created(), await scene.created(), await scene.created()];
    await service.post(answerTo(ids[1]!), decline(), scene.targetBearer);
    const listed = async (query: string) => {
      const { body } = await service.get(`${REQUESTS}?${query}`);
      return [body.requests.map((row: { request_id: string }) => ids.indexOf(row.request_id)), body.total];
    };
    expect(await listed(`target=${scene.target.fingerprint}`)).toEqual([[0, 1, 2], 3]);
    expect(await listed(`requester=${scene.asker.fingerprint}&page=2&per_page=2`)).toEqual([[2], 3]);
    expect(await listed(`target=${scene.target.fingerprint}&status=open`)).toEqual([[0, 2], 2]);
    expect(await listed(`target=${scene.target.fingerprint}&status=declined`)).toEqual([[1], 1]);
    expect(await listed(`requester=${scene.target.fingerprint}`)).toEqual([[], 0]);
    // With both, requests by one key to the other.
    const both = `target=${scene.target.fingerprint}&requester=${scene.asker.fingerprint}`;
    expect(await listed(both)).toEqual([[0, 1, 2], 3]);
    expect(await listed(`${both}&status=declined`)).toEqual([[1], 1]);
    expect(await listed(`${both}&status=open&page=2&per_page=1`)).toEqual([[2], 2]);
    const reverse = `target=${scene.asker.fingerprint}&requester=${scene.target.fingerprint}`;
    expect(await listed(reverse)).toEqual([[], 0]);
    const own = `target=${scene.target.fingerprint}&requester=${scene.target.fingerprint}`;
    expect(await listed(own)).toEqual([[], 0]);
    const { body } = await service.get(`${REQUESTS}?target=${scene.target.fingerprint}`);
    expect(body).toMatchObject({ page: 1, per_page: 50 });
    expect(body.requests[0]).not.toHaveProperty("claims");
  });

  test.each(["", "?status=open", "?target=a&status=late", "?target=a&page=0", "?target=a&per_page=201"])(
    "GET /log/attestation-requests%s is 422",
    async (query) => {
      expectProblem(await service.get(`${REQUESTS}${query}`), 422, "invalid-input");
    },
  );

  test("a key or a request that is not there is 404", async () => {
    const nobody = `sha256:${sha256("nobody")}`;
    for (const query of [`target=${nobody}`, `target=${scene.target.fingerprint}&requester=${nobody}`])
      expectProblem(await service.get(`${REQUESTS}?${query}`), 404, "not-found");
    for (const id of [randomUUID(), "none", "respond"]) expectProblem(await service.get(`${REQUESTS}/${id}`), 404);
  });
});

describe("paths beside /log/{entry_id}", () => {
  test("are not confused with the id of an entry, and vice versa", async () => {
    const { log_entry_id } = (await service.get(`${REQUESTS}/${await scene.created()}`)).body;
    expect((await service.get(`/log/${log_entry_id}`)).body.event_type).toBe("attestation_request");
    expectProblem(await service.get("/log/attestation-requestz"), 422);
    expectProblem(await service.get(POLICIES), 405);
    expectProblem(await service.get(`${REQUESTS}/x/respond`), 405);
    expectProblem(await service.post(`${REQUESTS}/x`), 405);
    expectProblem(await service.get(`${REQUESTS}/x/y/z`), 404);
    expectProblem(await service.post(`/log/${log_entry_id}`), 405);
    const allowed = (await service.send("DELETE", `/api/v1${REQUESTS}`)).headers.get("allow");
    expect(allowed?.split(", ").sort()).toEqual(["GET", "HEAD", "OPTIONS", "POST"]);
  });
});

test("the state follows from the entries", () => {
  expect(scene.world.registry.log.stateDifferences()).toEqual([]);
});
