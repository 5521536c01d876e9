/** Graph, trust configurations, trust status and layer 3 over HTTP. */
import { beforeAll, describe, expect, test } from "vitest";
import { readSettings } from "#cairnlog/server/index.js";
import { keyNamed, putEndorsements, putKeys } from "../../registry/graph/graphrows.js";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf, proofOf, registeredSigner } from "../../server/proofs.js";
import { newManifest, newSigner, submission, type TestSigner } from "../../server/signers.js";

const CATEGORY = "x-service:institutional_endorsement";
const NOBODY = `sha256:${"0".repeat(64)}`;

let service: TestService;
/** anchor → near → far; the service trusts the anchor. */
const anchor = newSigner();
let near: TestSigner;
let far: TestSigner;
beforeAll(async () => {
  service = await startTestService({
    SERVICE_ENDORSEMENT_ACTIVATION_DELAY_S: "0",
    SERVICE_TRUST_ANCHORS: anchor.fingerprint,
    SERVICE_ENDORSEMENT_BASE_CAPACITY: "7",
  });
  const { publicKey: public_key, algorithm: key_algorithm } = anchor;
  const payload = { public_key, pseudonym: "Anchor", key_algorithm };
  expect((await service.post("/keys/register", { payload })).status).toBe(200);
  near = await registeredSigner(service);
  far = await registeredSigner(service);
  await endorse(anchor, near);
  await endorse(near, far);
});

async function endorse(from: TestSigner, to: TestSigner): Promise<void> {
  const offer = await service.post("/endorsements/offer", {
    endorser_fingerprint: from.fingerprint,
    endorsed_fingerprint: to.fingerprint,
    category: CATEGORY,
    institutional_metadata: { name: "University" },
    auth: await proofOf(service, from),
  });
  expect(offer.status, offer.text).toBe(200);
  const accepted = await service.post("/endorsements/accept", {
    offer_entry_id: offer.body.id,
    endorsed_fingerprint: to.fingerprint,
    auth: await proofOf(service, to),
  });
  expect(accepted.status, accepted.text).toBe(200);
}

describe("GET /graph/{fingerprint}", () => {
  test("gives every node and edge, however many there are", async () => {
    const { server } = service;
    const key = (name: string | number) => ({ fingerprint: keyNamed(name), pseudonym: `holder "${name}"` });
    const counts = [511, 512, 513, 1025];
    await putKeys(server, [
      ...counts.map((count) => key(`of ${count}`)),
      ...Array.from({ length: 1025 }, (_, i) => key(i)),
    ]);
    let id = 100_000;
    for (const count of counts) {
      const from = keyNamed(`of ${count}`);
      await putEndorsements(
        server,
        Array.from({ length: count }, (_, i) => ({ id: ++id, from, to: keyNamed(i) })),
      );
      const { status, body } = await service.get(`/graph/${from}?max_depth=1`);
      expect(status).toBe(200);
      expect([body.nodes.length, body.edges.length]).toEqual([count + 1, count]);
      const known = await server.registry.graphs.around(from, { max_depth: 1 });
      expect(body).toEqual(JSON.parse(JSON.stringify({ ...known, cached: false })));
    }
  });

  test("gives the graph around a key, from the cache the second time", async () => {
    const filters = `type=${CATEGORY}&status=active&institution=UNIVERSITY&since=2000-01-01&until=2999-12-31`;
    const path = `/graph/${far.fingerprint}?max_depth=2&${filters}`;
    const first = await service.get(path);
    expect(first.status, first.text).toBe(200);
    expect(first.body).toMatchObject({ root: far.fingerprint, truncated: false, depth_reached: 2, cached: false });
    expect(first.body.nodes).toEqual([
      { fingerprint: far.fingerprint, pseudonym: "Alice", status: "active", named: false, depth: 0 },
      { fingerprint: near.fingerprint, pseudonym: "Alice", status: "active", named: false, depth: 1 },
      { fingerprint: anchor.fingerprint, pseudonym: "Anchor", status: "active", named: false, depth: 2 },
    ]);
    expect(first.body.edges).toMatchObject([
      { from: near.fingerprint, to: far.fingerprint, category: CATEGORY, status: "active", until: null },
      { from: anchor.fingerprint, to: near.fingerprint },
    ]);
    expect((await service.get(path)).body).toEqual({ ...first.body, cached: true });
  });

  test("filters", async () => {
    const edges = async (query: string) => (await service.get(`/graph/${near.fingerprint}?${query}`)).body.edges.length;
    expect(await edges("")).toBe(2);
    expect(await edges("max_depth=0")).toBe(0);
    expect(await edges("type=x-service:human_attestation")).toBe(0);
    expect(await edges("status=offered")).toBe(0);
    expect(await edges("institution=College")).toBe(0);
    expect(await edges("since=2999-01-01")).toBe(0);
    expect(await edges("until=2000-01-01")).toBe(0);
  });

  test.each([
    ["max_depth=9", "/max_depth"],
    ["max_depth=-1", "/max_depth"],
    ["max_depth=x", "/max_depth"],
    ["type=x", "/type"],
    ["status=x", "/status"],
    ["since=yesterday", "/since"],
    ["until=2024-13-01", "/until"],
    ["institution=", "/institution"],
  ])("refuses %s", async (query, path) => {
    const reply = await service.get(`/graph/${near.fingerprint}?${query}`);
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors[0].path).toBe(path);
  });

  test("404 for an unknown key", async () => {
    expectProblem(await service.get(`/graph/${NOBODY}`), 404, "not-found");
  });
});

describe("GET /endorsements/{fingerprint}/status", () => {
  const none = { offered: 0, pending_activation: 0, active: 0, expired: 0, withdrawn: 0, acceptance_revoked: 0 };

  test("tells counts and trust", async () => {
    const { status, body } = await service.get(`/endorsements/${near.fingerprint}/status`);
    expect(status).toBe(200);
    expect(body).toEqual({
      fingerprint: near.fingerprint,
      key_status: "active",
      key_named: false,
      received: { ...none, active: 1 },
      issued: { ...none, active: 1 },
      capacity: 31,
      capacity_used: 1,
      over_capacity: false,
      trust_level: expect.closeTo(0.55, 12),
      paths: [{ keys: [anchor.fingerprint, near.fingerprint], factors: [0.5] }],
      may_endorse: true,
      alerts: 0,
    });
    expect((await service.get(`/endorsements/${anchor.fingerprint}/status`)).body).toMatchObject({
      trust_level: 1,
      capacity: 52,
    });
    expect((await service.get(`/endorsements/${service.server.operatorFingerprint}/status`)).body.trust_level).toBe(1);
  });

  test("404 for an unknown key", async () => {
    expectProblem(await service.get(`/endorsements/${NOBODY}/status`), 404, "not-found");
  });
});

describe("trust configurations", () => {
  const config = (signer: Pick<TestSigner, "fingerprint">, more: object = {}) => ({
    fingerprint: signer.fingerprint,
    direct_signer_anchors: [{ fingerprint: near.fingerprint, weight: 0.8 }],
    minimum_threshold: 0.6,
    ...more,
  });

  test("are stored by proof or session, listed, read and revoked", async () => {
    const signer = await registeredSigner(service);
    const created = await service.post("/trust-configs", config(signer, { auth: await proofOf(service, signer) }));
    expect(created.status, created.text).toBe(200);
    expect(created.body).toMatchObject({ ...config(signer), status: "active", max_depth: 4, decay_per_hop: 0.5 });
    expect((await service.get(`/trust-configs/${signer.fingerprint}`)).body).toEqual(created.body);

    const bearer = await bearerOf(service, signer);
    const second = await service.post("/trust-configs", config(signer, { max_depth: 2 }), bearer);
    expect(second.body.id).toBe(created.body.id + 1);
    const list = await service.get("/trust-configs?page=1&per_page=200");
    expect(list.body).toMatchObject({ page: 1, per_page: 200, total: second.body.id });
    expect(list.body.trust_configs.slice(-2)).toEqual([{ ...created.body, status: "superseded" }, second.body]);

    const { fingerprint } = signer;
    const revoked = await service.post("/trust-configs/revoke", { fingerprint }, bearer);
    expect(revoked.body).toEqual({ ...second.body, status: "revoked" });
    expectProblem(await service.post("/trust-configs/revoke", { fingerprint }, bearer), 409, "precondition-failed");
  });

  test("of another key, or without proof, are refused before anything is looked at", async () => {
    const signer = await registeredSigner(service);
    const bearer = await bearerOf(service, signer);
    for (const [path, body] of [
      ["/trust-configs", config(near)],
      ["/trust-configs/revoke", { fingerprint: near.fingerprint }],
    ] as const) {
      expectProblem(await service.post(path, { ...body, minimum_threshold: 7 }), 401, "unauthenticated");
      expectProblem(await service.post(path, body, bearer), 403, "forbidden");
      expectProblem(await service.post(path, { ...body, fingerprint: NOBODY }, bearer), 404, "not-found");
    }
    expectProblem(await service.get(`/trust-configs/${signer.fingerprint}`), 404, "not-found");
  });

  test.each<[object, string]>([
    [{ minimum_threshold: undefined }, "/minimum_threshold"],
    [{ minimum_threshold: 1.5 }, "/minimum_threshold"],
    [{ max_depth: 9 }, "/max_depth"],
    [{ decay_per_hop: -1 }, "/decay_per_hop"],
    [{ endorser_anchors: [{ fingerprint: "x", weight: 1 }] }, "/endorser_anchors/0/fingerprint"],
    [{ endorser_anchors: [{ fingerprint: NOBODY }] }, "/endorser_anchors/0/weight"],
    [{ direct_signer_anchors: [{ fingerprint: NOBODY, weight: 2 }] }, "/direct_signer_anchors/0/weight"],
    [{ category_weights: { [CATEGORY]: 2 } }, `/category_weights/${CATEGORY}`],
  ])("cannot say %j", async (more, path) => {
    const signer = await registeredSigner(service);
    const reply = await service.post("/trust-configs", config(signer, more), await bearerOf(service, signer));
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors.map((error: { path: string }) => error.path)).toContain(path);
  });
});

describe("layer 3 of POST /verify", () => {
  test("by an inline configuration and by a verifier's own", async () => {
    const manifest = newManifest();
    const { attestation } = (await service.post("/attestations", submission(far, manifest))).body;
    const request = {
      manifest: { ...manifest, attestations: [attestation] },
      source_hash: manifest.document.content_hash,
    };
    const trust_config = {
      endorser_anchors: [{ fingerprint: anchor.fingerprint, weight: 1 }],
      minimum_threshold: 0.25,
    };
    const inline = await service.post("/verify", { ...request, trust_config });
    expect(inline.body).toMatchObject({ layer3: { status: "valid" }, overall_status: "valid" });
    expect(inline.body.attestations[0].layer3).toMatchObject({ status: "valid", score: 0.25, threshold: 0.25 });
    expect(inline.body.attestations[0].layer3.paths[0].hops).toHaveLength(2);

    const stored = { ...trust_config, fingerprint: near.fingerprint, minimum_threshold: 0.26 };
    await service.post("/trust-configs", { ...stored, auth: await proofOf(service, near) });
    const named = await service.post("/verify", { ...request, verifier_fingerprint: near.fingerprint });
    expect(named.body).toMatchObject({ layer3: { status: "warning" }, overall_status: "warning" });

    expect((await service.post("/verify", request)).body).not.toHaveProperty("layer3");
    expectProblem(await service.post("/verify", { ...request, verifier_fingerprint: NOBODY }), 404, "not-found");
    const wrong = await service.post("/verify", { ...request, trust_config: { ...trust_config, max_depth: 0 } });
    expectProblem(wrong, 422, "invalid-input");
    expect(wrong.body.errors[0].path).toBe("/trust_config/max_depth");
  });
});

test.each([
  ["SERVICE_TRUST_ANCHORS", `${NOBODY}, x`],
  ["SERVICE_ENDORSEMENT_MIN_TRUST", "1.1"],
  ["SERVICE_ENDORSEMENT_MIN_TRUST", "1e-1"],
  ["SERVICE_ENDORSEMENT_BASE_CAPACITY", "-1"],
  ["SERVICE_GRAPH_TIMEOUT_S", "0"],
  ["SERVICE_GRAPH_CACHE_TTL_S", "x"],
])("the setting %s cannot be %s", (name, value) => {
  expect(() => readSettings({ [name]: value })).toThrow(new RegExp(`^${name} must be`));
});

test("trust anchors may have any form of fingerprints", () => {
  const settings = readSettings({ SERVICE_TRUST_ANCHORS: ` ${"AB".repeat(32)}, ${NOBODY} ` });
  expect(settings.trustAnchors).toEqual([`sha256:${"ab".repeat(32)}`, NOBODY]);
  expect(readSettings({})).toMatchObject({ trustAnchors: [], endorsementMinTrust: 0.1, endorsementBaseCapacity: 5 });
});
