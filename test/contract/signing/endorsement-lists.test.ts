/** Endorsements over HTTP: the content of offers, lists, alerts, identifier types, limits and settings. */
import { beforeAll, describe, expect, test } from "vitest";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { act, type Body, done, INSTITUTIONAL, newPair, received } from "../../server/endorsements.js";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { proofOf, registeredSigner } from "../../server/proofs.js";
import { newSigner, registration } from "../../server/signers.js";

const DAY = 86_400_000_000;

let world: Controlled;
let service: TestService;
beforeAll(async () => {
  world = await startControlled();
  service = world.service;
});

describe("offers", () => {
  test("say all that there is to say, and lists repeat it", async () => {
    const pair = await newPair(service);
    const content = {
      category: INSTITUTIONAL,
      valid_until: "2099-12-31",
      institutional_metadata: { name: "Universität Göttingen", department: ["Physics", { floor: 3 }] },
      external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0097" }],
    };
    const { body } = await done("offer", pair, content);
    const keys = {
      endorser_key_fingerprint: pair.endorser.fingerprint,
      endorsed_key_fingerprint: pair.endorsed.fingerprint,
    };
    expect(body.payload).toEqual({ event_type: "endorsement_offer", ...keys, ...content });
    const accepted = await done("accept", pair);
    expect(accepted.body.log_entry.payload).toEqual({
      event_type: "endorsement_acceptance",
      ...keys,
      ...content,
      offer_entry_id: pair.id,
      note: null,
    });
    const list = await received(pair);
    expect(list).toEqual({
      endorsements: [
        {
          offer_entry_id: pair.id,
          endorser_fingerprint: pair.endorser.fingerprint,
          endorsed_fingerprint: pair.endorsed.fingerprint,
          ...content,
          status: "pending_activation",
          offered_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]{15}Z$/),
          accepted_at: expect.any(String),
          activates_at: expect.any(String),
          ended_at: null,
          end_note: null,
          discount: 1,
        },
      ],
      page: 1,
      per_page: 50,
      total: 1,
    });
    const [{ accepted_at, activates_at }] = list.endorsements;
    expect(Date.parse(activates_at) - Date.parse(accepted_at)).toBe(86_400_000);
    expect((await service.get(`/endorsements/${pair.endorser.fingerprint}/issued`)).body).toEqual(list);
    const byKey = await service.get(`/log/by-fingerprint/${pair.endorsed.fingerprint}`);
    expect(byKey.body.entries.map((entry: { id: number }) => entry.id)).toContain(pair.id);
  });

  test.each<[Body, string]>([
    [{ category: "friend" }, "/category"],
    [{ category: undefined }, "/category"],
    [{ valid_until: "2001-01-01" }, "/valid_until"],
    [{ valid_until: 7 }, "/valid_until"],
    [{ institutional_metadata: "University" }, "/institutional_metadata"],
    [{ institutional_metadata: { name: "é".repeat(8192) } }, "/institutional_metadata"],
    [{ external_identifiers: {} }, "/external_identifiers"],
    [{ external_identifiers: [{ type: "orcid", value: "0000-0002-1825-0098" }] }, "/external_identifiers/0/value"],
    [{ external_identifiers: [{ type: "orcid" }] }, "/external_identifiers/0/value"],
  ])("422 for %j", async (more, path) => {
    const pair = await newPair(service);
    const reply = await act("offer", pair, more);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors.map((error: { path: string }) => error.path)).toContain(path);
  });

  test("422 to oneself, 409 for a second one, 403 by a key with too little trust", async () => {
    const pair = await newPair(service);
    expectProblem(await act("offer", { ...pair, endorsed: pair.endorser }), 422, "invalid-input");
    await done("offer", pair);
    expectProblem(await act("offer", pair), 409, "already-exists");
    await done("accept", pair);
    world.now += DAY;
    await done("revocation-alert", pair);
    const onward = { service, endorser: pair.endorsed, endorsed: await registeredSigner(service), id: 0 };
    expectProblem(await act("offer", onward), 403, "forbidden");
  });

  test("403 to a key that has been revoked", async () => {
    const pair = await newPair(service);
    const payload = { fingerprint: pair.endorsed.fingerprint };
    await service.post("/keys/revoke", { payload, auth: await proofOf(service, pair.endorsed) });
    expectProblem(await act("offer", pair), 403, "key-not-active");
  });
});

test.each(["withdraw", "revoke-acceptance"] as const)("%s accepts a note of 1 to 1000 characters", async (command) => {
  const pair = await newPair(service);
  await done("offer", pair);
  await done("accept", pair);
  for (const note of ["", "😀".repeat(1001), 7, null, undefined])
    expectProblem(await act(command, pair, { note }), 422, "invalid-input");
  const { body } = await done(command, pair, { note: "😀".repeat(1000) });
  expect(body.endorsement.end_note).toBe("😀".repeat(1000));
});

describe("alerts", () => {
  test("can be filed by keys that are related to the key, and are listed", async () => {
    const pair = await newPair(service);
    expectProblem(await act("revocation-alert", pair), 403, "forbidden");
    await done("offer", pair);
    expectProblem(await act("revocation-alert", pair), 403, "forbidden");
    await done("accept", pair);
    for (const more of [{ reason: "😀".repeat(1001) }, { reason: "" }, { evidence: "😀".repeat(5001) }])
      expectProblem(await act("revocation-alert", pair, more), 422, "invalid-input");
    const { body } = await done("revocation-alert", pair, { evidence: "😀".repeat(5000) });
    expect(body.log_entry.event_type).toBe("endorser_revocation_alert");
    const back = { service, endorser: pair.endorsed, endorsed: pair.endorser, id: pair.id };
    await done("revocation-alert", back);
    const reply = await service.get(`/endorsements/revocation-alerts/${pair.endorsed.fingerprint}`);
    expect(reply.body).toEqual({ alerts: [body.alert], page: 1, per_page: 50, total: 1 });
    const next = await service.get(`/endorsements/revocation-alerts/${pair.endorsed.fingerprint}?page=2&per_page=1`);
    expect(next.body).toEqual({ alerts: [], page: 2, per_page: 1, total: 1 });
  });
});

describe("lists", () => {
  test("filter by status and category", async () => {
    const pair = await newPair(service);
    await done("offer", pair);
    await done("offer", pair, { category: INSTITUTIONAL });
    await done("accept", pair);
    const list = async (query: string) =>
      (await service.get(`/endorsements/${pair.endorsed.fingerprint}?${query}`)).body.endorsements.length;
    expect(await list("")).toBe(2);
    expect(await list("status=offered")).toBe(1);
    expect(await list(`category=${encodeURIComponent(INSTITUTIONAL)}`)).toBe(1);
    expect(await list(`status=offered&category=${encodeURIComponent(INSTITUTIONAL)}`)).toBe(0);
    expect(await list("page=2&per_page=1")).toBe(1);
    for (const query of ["status=live", "status=", "category=x", "page=0", "per_page=201"])
      expectProblem(await service.get(`/endorsements/${pair.endorsed.fingerprint}?${query}`), 422, "invalid-input");
  });

  test("404 for keys that nobody registered", async () => {
    const nobody = newSigner().fingerprint;
    for (const path of [nobody, `${nobody}/issued`, `revocation-alerts/${nobody}`, "x"])
      expectProblem(await service.get(`/endorsements/${path}`), 404, "not-found");
  });
});

test("identifier types have patterns that their examples fit", async () => {
  const { body } = await service.get("/identifier-types");
  const types: { type: string; pattern: string; example: string }[] = body.identifier_types;
  expect(types.map(({ type }) => type)).toEqual([
    ...["orcid", "doi", "ror", "isni", "wikidata", "github", "email-domain", "url"],
  ]);
  for (const { pattern, example } of types) expect(example).toMatch(new RegExp(pattern));
});

test("two acceptances at one moment: one wins", async () => {
  const pair = await newPair(service);
  await done("offer", pair);
  const replies = await Promise.all([act("accept", pair), act("accept", pair)]);
  expect(replies.map(({ status }) => status).sort()).toEqual([200, 409]);
});

test("an address may offer 20 times a day, refused offers included", async () => {
  const limited = await startTestService({ SERVICE_RATE_LIMITS: "on", SERVICE_RATE_LIMIT_GENERAL: "1000" });
  for (let i = 0; i < 20; i++) {
    const reply = await limited.post("/endorsements/offer", {});
    expectProblem(reply, 401);
    expect(reply.headers.get("ratelimit-policy")).toBe('"endorsement-offer";q=20;w=86400');
  }
  expectProblem(await limited.post("/endorsements/offer", {}), 429, "rate-limited");
  expectProblem(await limited.post("/endorsements/accept", {}), 401);
});

test("settings set the activation delay", async () => {
  const eager = await startTestService({ SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0" });
  const [endorser, endorsed] = [newSigner(), newSigner()];
  for (const signer of [endorser, endorsed]) await eager.post("/keys/register", registration(signer));
  const pair = { service: eager, endorser, endorsed, id: 0 };
  await done("offer", pair);
  expect((await done("accept", pair)).body.endorsement.status).toBe("active");
});
