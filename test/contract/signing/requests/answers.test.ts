/** Answers to attestation requests and request policies over HTTP: the contract's table of errors, row by row. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, type TestService } from "../../../server/harness.js";
import { proofOf } from "../../../server/proofs.js";
import {
  answerTo,
  decline,
  POLICIES,
  policy,
  REQUESTS,
  type RequestScene,
  startRequestScene,
} from "../../../server/requestscene.js";
import { newSigner, submission } from "../../../server/signers.js";

const DAY = 86_400_000_000;

let scene: RequestScene;
let service: TestService;
beforeAll(async () => {
  scene = await startRequestScene();
  ({ service } = scene);
});

describe("POST /log/attestation-requests/{request_id}/respond", () => {
  test("by the target, or by the holder of any other key", async () => {
    for (const headers of [scene.targetBearer, scene.bearer]) {
      const id = await scene.created();
      const before = await service.entryCount();
      const reply = await service.post(answerTo(id), decline({ reason: "No time." }), headers);
      const responder_fingerprint = headers === scene.bearer ? scene.asker.fingerprint : scene.target.fingerprint;
      const response = { responder_fingerprint, decision: "decline", attestation_id: null, reason: "No time." };
      const fields = { request_id: id, ...response };
      expect(reply.body).toEqual({ ...fields, status: "declined", log_entry_id: before + 1, leaf_index: before });
      const entry = (await service.get(`/log/${before + 1}`)).body;
      expect(entry).toMatchObject({ event_type: "attestation_request_response", payload: fields });
      expect((await service.get(`${REQUESTS}/${id}`)).body).toMatchObject({
        status: "declined",
        response,
      });
    }
  });

  test("with the attestation that was asked for", async () => {
    const id = await scene.created();
    const { attestation } = (await service.post("/attestations", submission(scene.target))).body;
    const body = { decision: "accept", attestation_id: attestation.id, auth: await proofOf(service, scene.target) };
    const reply = await service.post(answerTo(id), { ...body, responder_fingerprint: "" });
    expect(reply.body).toMatchObject({ status: "accepted", attestation_id: attestation.id, reason: null });
    expect((await service.get(`/log/${reply.body.log_entry_id}`)).body.payload).not.toHaveProperty("auth");
  });

  test("401: no session and no auth proof, also for a request that is not there", async () => {
    for (const id of [await scene.created(), randomUUID(), "none"])
      for (const body of [decline(), {}, decline({ reason: 7 })])
        expectProblem(await service.post(answerTo(id), body), 401, "unauthenticated");
  });

  test("403: proof or session for a different key, also for a request that is not there", async () => {
    for (const id of [await scene.created(), randomUUID()]) {
      const body = decline({ responder_fingerprint: scene.target.fingerprint });
      expectProblem(await service.post(answerTo(id), body, scene.bearer), 403, "forbidden");
      expectProblem(await service.post(answerTo(id), { ...body, auth: await proofOf(service, scene.asker) }), 403);
    }
  });

  test("404: no such request", async () => {
    for (const id of [randomUUID(), "none", "%F0%9F%AA%A8", "a".repeat(3000), "..%2f"])
      expectProblem(await service.post(answerTo(id), decline(), scene.bearer), 404, "not-found");
  });

  test("409: answered twice by one key; of two simultaneous answers by it one is taken", async () => {
    const id = await scene.created();
    const replies = await Promise.all(
      [scene.bearer, scene.bearer, scene.targetBearer].map((headers) => service.post(answerTo(id), decline(), headers)),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 200, 409]);
    for (const headers of [scene.bearer, scene.targetBearer])
      expectProblem(await service.post(answerTo(id), decline(), headers), 409, "already-exists");
    const members = ["attestation_id", "by_target", "decision", "leaf_index", "log_entry_id", "reason", "responded_at"];
    const { responses } = (await service.get(`${REQUESTS}/${id}`)).body;
    for (const response of responses)
      expect(Object.keys(response).sort()).toEqual([...members, "responder_fingerprint"].sort());
    const listed = (await service.get(`${REQUESTS}?target=${scene.target.fingerprint}&per_page=200`)).body.requests;
    expect(listed.find(({ request_id }: { request_id: string }) => request_id === id).responses).toEqual(responses);
  });

  test("422: an acceptance with an attestation by somebody else", async () => {
    const id = await scene.created();
    const { attestation } = (await service.post("/attestations", submission(newSigner()))).body;
    const body = { decision: "accept", attestation_id: attestation.id };
    expectProblem(await service.post(answerTo(id), body, scene.bearer), 422, "invalid-input");
    expectProblem(await service.post(answerTo(id), body, scene.targetBearer), 422, "invalid-input");
  });

  test("410: request deadline passed", async () => {
    const id = await scene.created();
    scene.world.now += 14 * DAY + 1;
    await scene.renew();
    expectProblem(await service.post(answerTo(id), decline(), scene.bearer), 410, "gone");
  });

  test("422: no decision, or an acceptance without an attestation that exists", async () => {
    const id = await scene.created();
    const bodies = [
      {},
      { decision: "maybe" },
      { decision: "accept" },
      { decision: "accept", attestation_id: "" },
      { decision: "accept", attestation_id: randomUUID() },
      decline({ attestation_id: randomUUID() }),
    ];
    for (const body of bodies)
      expectProblem(await service.post(answerTo(id), body, scene.bearer), 422, "invalid-input");
    expect((await service.get(`${REQUESTS}/${id}`)).body.status).toBe("open");
  });
});

describe("POST /log/request-policies", () => {
  test("publishes, in force at once or at its moment", async () => {
    await scene.renew();
    const before = await service.entryCount();
    const body = policy({ target_fingerprint: scene.target.fingerprint, auth: await proofOf(service, scene.target) });
    const reply = await service.post(POLICIES, body);
    const place = { log_entry_id: before + 1, leaf_index: before };
    const { status, ...active } = reply.body;
    expect(active).toMatchObject({ ...policy(), target_fingerprint: scene.target.fingerprint, ...place });
    expect(status).toBe("active");
    expect((await service.get(`/log/${before + 1}`)).body).toMatchObject({
      event_type: "request_policy",
      payload: { ...policy(), target_fingerprint: scene.target.fingerprint, effective_from: active.effective_from },
    });
    expect((await service.get(`/log/${before + 1}`)).body.payload).not.toHaveProperty("auth");
    const effective_from = new Date(scene.world.now / 1000 + 1000).toISOString();
    const later = await service.post(POLICIES, policy({ effective_from }), scene.targetBearer);
    expect(later.body.status).toBe("scheduled");
    const { status: _, ...scheduled } = later.body;
    expect((await service.get(`${POLICIES}/${scene.target.fingerprint}`)).body).toEqual({
      target_fingerprint: scene.target.fingerprint,
      active,
      scheduled,
    });
    const declined = await service.post(REQUESTS, scene.request(), scene.bearer);
    expect(declined.body).toMatchObject({
      status: "declined",
      policy_entry_id: active.log_entry_id,
      response: { responder_fingerprint: scene.world.operatorFingerprint, decision: "decline" },
    });
  });

  test("401: no session and no auth proof", async () => {
    for (const body of [policy(), {}]) expectProblem(await service.post(POLICIES, body), 401, "unauthenticated");
  });

  test("403: proof or session for a different key", async () => {
    const body = policy({ target_fingerprint: scene.target.fingerprint });
    expectProblem(await service.post(POLICIES, body, scene.bearer), 403, "forbidden");
    expectProblem(await service.post(POLICIES, { ...body, predicates: 7 }, scene.bearer), 403, "forbidden");
    expectProblem(
      await service.post(POLICIES, { ...body, auth: await proofOf(service, scene.asker) }),
      403,
      "forbidden",
    );
  });

  test("409: effective_from not later than the active policy's", async () => {
    await scene.renew();
    const first = await service.post(POLICIES, policy(), scene.targetBearer);
    const { effective_from } = first.body;
    for (const text of [effective_from, "2020-01-01T00:00:00Z"])
      expectProblem(await service.post(POLICIES, policy({ effective_from: text }), scene.targetBearer), 409);
    scene.world.now += 1;
    expect((await service.post(POLICIES, policy(), scene.targetBearer)).body.status).toBe("active");
  });

  test("422: invalid predicates, invalid default action", async () => {
    const faulty: [Record<string, unknown>, string][] = [
      [{ predicates: undefined }, "/predicates"],
      [{ predicates: [] }, "/predicates"],
      [{ predicates: { all: [{ field: "claims.a", op: "like", value: 1 }] } }, "/predicates/all/0/op"],
      [{ default_action_on_failure: undefined }, "/default_action_on_failure"],
      [{ default_action_on_failure: "refuse" }, "/default_action_on_failure"],
      [{ default_action_on_failure: "" }, "/default_action_on_failure"],
      [{ effective_from: "tomorrow" }, "/effective_from"],
    ];
    for (const [more, path] of faulty) {
      const reply = await service.post(POLICIES, policy(more), scene.targetBearer);
      expectProblem(reply, 422, "invalid-input");
      expect(reply.body.errors.map((error: { path: string }) => error.path)).toEqual([path]);
    }
  });

  test("429: target's hourly publication quota exhausted", async () => {
    await scene.renew();
    for (let i = 0; i < 20; i++) {
      scene.world.now += 1;
      expect((await service.post(POLICIES, policy(), scene.targetBearer)).status).toBe(200);
    }
    scene.world.now += 1;
    const reply = await service.post(POLICIES, policy(), scene.targetBearer);
    expectProblem(reply, 429, "rate-limited");
    expect(Number(reply.headers.get("retry-after"))).toBe(3600);
    expect((await service.post(POLICIES, policy(), scene.bearer)).status).toBe(200);
  });

  test("the view is 404 for a key that nobody registered", async () => {
    expectProblem(await service.get(`${POLICIES}/${newSigner().fingerprint}`), 404, "not-found");
    expectProblem(await service.get(`${POLICIES}/nobody`), 404, "not-found");
    expect((await service.get(`${POLICIES}/${scene.asker.fingerprint.slice(7)}`)).status).toBe(200);
  });
});

test("the state follows from the entries", () => {
  expect(scene.world.registry.log.stateDifferences()).toEqual([]);
});
