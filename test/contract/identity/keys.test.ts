/** The key registry over HTTP. */
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { type Algorithm, newSigner, registration, sha256, type TestSigner } from "../../server/signers.js";

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});

describe("POST /keys/register", () => {
  test.each<Algorithm>(["ed25519", "ecdsa-p256", "rsa-2048"])(
    "registers a key of the algorithm %s",
    async (algorithm) => {
      const signer = newSigner(algorithm);
      const before = await service.entryCount();
      const reply = await service.post("/keys/register", registration(signer, "Zoë"));
      expect(reply.status).toBe(200);
      expect(reply.body).toEqual({
        fingerprint: signer.fingerprint,
        pseudonym: "Zoë",
        algorithm,
        log_entry_id: before + 1,
        leaf_index: before,
        entry_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
      const entry = (await service.get(`/log/${before + 1}`)).body;
      expect(entry.entry_hash).toBe(reply.body.entry_hash);
      expect(entry.event_type).toBe("key_registration");
      expect(entry.payload).toMatchObject({
        fingerprint: signer.fingerprint,
        public_key: signer.publicKey,
        pseudonym: "Zoë",
        key_algorithm: algorithm,
        expiration_date: null,
      });
    },
  );

  test("an expiration date is kept", async () => {
    const signer = newSigner();
    const body = registration(signer, "Expiring", { expiration_date: "2099-12-31T12:00:00+01:00" });
    expect((await service.post("/keys/register", body)).status).toBe(200);
    const status = (await service.get(`/keys/${signer.fingerprint}/status`)).body;
    expect(status).toMatchObject({ fingerprint: signer.fingerprint, status: "active", successor_fingerprint: null });
    expect(Date.parse(status.expires_at)).toBe(Date.parse("2099-12-31T11:00:00Z"));
  });

  test("the same key again is 409 and leaves no trace", async () => {
    const body = registration(newSigner());
    expect((await service.post("/keys/register", body)).status).toBe(200);
    const before = await service.entryCount();
    expectProblem(await service.post("/keys/register", body), 409, "already-exists");
    expect(await service.entryCount()).toBe(before);
  });
});

/** A registration with the holder's signature. */
function held(signer: TestSigner, pseudonym: string) {
  const { payload } = registration(signer, pseudonym);
  const statement = `{"action":"service.key.register.v1","expiration_date":null,"fingerprint":"${signer.fingerprint}","pseudonym":"${pseudonym}"}`;
  return { payload: { ...payload, possession_signature: signer.sign(statement) } };
}

describe("POST /keys/register with a signature of possession", () => {
  test.each(["ed25519", "ecdsa-p256", "rsa-2048"] as Algorithm[])(
    "takes over what a stranger registered (%s)",
    async (algorithm) => {
      const signer = newSigner(algorithm);
      expect((await service.post("/keys/register", registration(signer, "Stranger"))).status).toBe(200);
      const reply = await service.post("/keys/register", held(signer, "Holder"));
      expect(reply.status, reply.text).toBe(200);
      expect(reply.body).toMatchObject({ fingerprint: signer.fingerprint, pseudonym: "Holder" });
      expect((await service.get(`/keys/${signer.fingerprint}`)).body).toMatchObject({
        pseudonym: "Holder",
        log_entry_id: reply.body.log_entry_id,
        proven: true,
      });
      expectProblem(await service.post("/keys/register", held(signer, "Again")), 409, "already-exists");
    },
  );

  test("is 422 when it does not verify", async () => {
    const signer = newSigner();
    const { payload } = held(signer, "Holder");
    expectProblem(
      await service.post("/keys/register", { payload: { ...payload, pseudonym: "Other" } }),
      422,
      "invalid-signature",
    );
    const other = { payload: { ...payload, possession_signature: "no base64" } };
    expectProblem(await service.post("/keys/register", other), 422, "invalid-input");
    expect((await service.get(`/keys/${signer.fingerprint}`)).status).toBe(404);
  });
});

describe("GET /keys/{fingerprint}", () => {
  test("gives the key with its PEM and its entry", async () => {
    const signer = newSigner();
    const { body } = await service.post("/keys/register", registration(signer, "Detail"));
    const reply = await service.get(`/keys/${signer.fingerprint}`);
    expect(reply.body).toEqual({
      fingerprint: signer.fingerprint,
      public_key: signer.publicKey,
      pseudonym: "Detail",
      algorithm: "ed25519",
      status: "active",
      registered_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
      expires_at: null,
      log_entry_id: body.log_entry_id,
      successor_fingerprint: null,
      successor_confirmed: null,
      predecessor_fingerprint: null,
      predecessor_confirmed: null,
      proven: false,
      named: false,
    });
  });

  test("the operator key is a key", async () => {
    const { body } = await service.get(`/keys/${service.server.operatorFingerprint}`);
    expect(body).toMatchObject({ fingerprint: service.server.operatorFingerprint, status: "active" });
  });

  const unknown = [`sha256:${sha256("nobody")}`, "sha256:", "nonsense", "%00", "a".repeat(5000), "sha256%3Aff"];
  test.each(unknown)("%s is 404", async (fingerprint) => {
    expectProblem(await service.get(`/keys/${fingerprint}`), 404, "not-found");
    expectProblem(await service.get(`/keys/${fingerprint}/status`), 404, "not-found");
  });

  test("a part of the path that is not validly encoded is 404", async () => {
    expectProblem(await service.get("/keys/%ff"), 404);
    expectProblem(await service.get("/keys/%"), 404);
  });
});

describe("lists", () => {
  test("GET /keys shows summaries in order of registration, by pages", async () => {
    const fresh = await startTestService();
    const signers = [newSigner(), newSigner(), newSigner()];
    for (const [i, signer] of signers.entries()) await fresh.post("/keys/register", registration(signer, `Key ${i}`));
    const { body } = await fresh.get("/keys?page=1&per_page=2");
    expect(body).toMatchObject({ page: 1, per_page: 2, total: 3 });
    expect(body.keys.map((key: { pseudonym: string }) => key.pseudonym)).toEqual(["Key 0", "Key 1"]);
    expect(Object.keys(body.keys[0]).sort()).toEqual([
      "algorithm",
      "expires_at",
      "fingerprint",
      "named",
      "pseudonym",
      "registered_at",
      "status",
    ]);
    expect((await fresh.get("/keys?page=2&per_page=2")).body.keys).toHaveLength(1);
    expect((await fresh.get("/keys?page=9")).body).toMatchObject({ keys: [], page: 9, per_page: 50, total: 3 });
  });

  test("GET /keys/search finds a part of a pseudonym in any case", async () => {
    await service.post("/keys/register", registration(newSigner(), "Grace Hopper"));
    for (const text of ["hop", "GRACE", "ce%20Ho", "ce+ho"]) {
      const { body } = await service.get(`/keys/search?pseudonym=${text}`);
      expect(body.keys.map((key: { pseudonym: string }) => key.pseudonym)).toEqual(["Grace Hopper"]);
      expect(body).toMatchObject({ page: 1, per_page: 50, total: 1 });
    }
    expect((await service.get("/keys/search?pseudonym=nobodyatall")).body).toMatchObject({ keys: [], total: 0 });
  });

  test.each(["", "?pseudonym=", "?pseudonym=%00", "?pseudonym=a&pseudonym=b"])(
    "GET /keys/search%s is 422",
    async (query) => {
      expectProblem(await service.get(`/keys/search${query}`), 422, "invalid-input");
    },
  );
});
