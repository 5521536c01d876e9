/** Succession and revocation over HTTP. */
import { beforeAll, describe, expect, test } from "vitest";
import { withhold } from "#cairnlog/engine/log/operator/entries.js";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { expectProblem, type Reply, type TestService } from "../../server/harness.js";
import { bearerOf, byOpenssl, proofOf, registeredSigner } from "../../server/proofs.js";
import {
  type Algorithm,
  newManifest,
  newSigner,
  registration,
  submission,
  type TestSigner,
} from "../../server/signers.js";

const SECOND = 1_000_000;
const WRONG = Buffer.alloc(64, 1).toString("base64");

let world: Controlled;
let service: TestService;
beforeAll(async () => {
  world = await startControlled();
  service = world.service;
});

const payloadOf = (old: Pick<TestSigner, "fingerprint">, next: TestSigner, more: Record<string, unknown> = {}) => ({
  old_fingerprint: old.fingerprint,
  new_public_key: next.publicKey,
  new_algorithm: next.algorithm,
  ...more,
});
const succeed = (payload: unknown, auth?: unknown, headers: Record<string, string> = {}) =>
  service.post("/keys/succeed", { payload, auth }, headers);
const revoke = ({ fingerprint }: { fingerprint: unknown }, auth?: unknown, headers: Record<string, string> = {}) =>
  service.post("/keys/revoke", { payload: { fingerprint }, auth }, headers);
const statusOf = async ({ fingerprint }: TestSigner) => (await service.get(`/keys/${fingerprint}/status`)).body;
const signer = (more: Record<string, unknown> = {}) => registeredSigner(service, more);

/** A key that has expired. */
async function expiredSigner(): Promise<TestSigner> {
  const expired = await signer({ expiration_date: new Date((world.now + SECOND) / 1000).toISOString() });
  world.now += SECOND;
  return expired;
}

/** Asserts that a request is refused and leaves the log as it was. */
async function expectRefused(request: () => Promise<Reply>, status: number, code: string): Promise<void> {
  const before = await service.entryCount();
  expectProblem(await request(), status, code);
  expect(await service.entryCount()).toBe(before);
}

describe("POST /keys/succeed", () => {
  test.each(
    (["ed25519", "ecdsa-p256", "rsa-2048"] as Algorithm[]).flatMap((algorithm) => [
      ["node:crypto", (key: TestSigner) => key, algorithm] as const,
      ["openssl", byOpenssl, algorithm] as const,
    ]),
  )("by an auth proof signed with %s (%3$s)", async (_, by, algorithm) => {
    const [old, next] = [by(newSigner(algorithm)), by(newSigner(algorithm))];
    await service.post("/keys/register", registration(old, "Ada"));
    const before = await service.entryCount();
    const new_key_signature = next.sign(`service.key.succession.v1:${old.fingerprint}:${next.fingerprint}`);
    const reply = await succeed(payloadOf(old, next, { new_key_signature }), await proofOf(service, old));
    expect(reply.status, reply.text).toBe(200);
    const entry = (await service.get(`/log/${before + 1}`)).body;
    expect(reply.body).toEqual({
      old_fingerprint: old.fingerprint,
      new_fingerprint: next.fingerprint,
      log_entry_id: before + 1,
      leaf_index: before,
      entry_hash: entry.entry_hash,
    });
    expect(entry).toMatchObject({ event_type: "key_succession" });
    expect(entry.payload).toEqual({
      event_type: "key_succession",
      old_fingerprint: old.fingerprint,
      fingerprint: next.fingerprint,
      public_key: next.publicKey,
      pseudonym: "Ada",
      key_algorithm: algorithm,
      expiration_date: null,
      new_key_signature,
    });
    expect(await statusOf(old)).toMatchObject({ status: "succeeded", successor_fingerprint: next.fingerprint });
    expect((await service.get(`/keys/${next.fingerprint}`)).body).toMatchObject({
      status: "active",
      predecessor_fingerprint: old.fingerprint,
      successor_fingerprint: null,
      proven: true,
    });
  });

  test("by a session of the old key, which ends with it", async () => {
    const [old, next] = [await signer(), newSigner()];
    const bearer = await bearerOf(service, old);
    const payload = payloadOf(old, next, { pseudonym: "Next", expiration_date: "2099-01-01T00:00:00+01:00" });
    expect((await succeed(payload, undefined, bearer)).status).toBe(200);
    const { body } = await service.get(`/keys/${next.fingerprint}`);
    expect(body).toMatchObject({ pseudonym: "Next", expires_at: "2098-12-31T23:00:00.000000Z" });
    await expectRefused(() => succeed(payloadOf(old, newSigner()), undefined, bearer), 401, "unauthenticated");
    expectProblem(await service.post("/attestations", submission(old)), 403, "key-not-active");
    expect((await service.post("/attestations", submission(next, newManifest()))).status).toBe(200);
  });

  test("does not hand on what stands in place of a withheld name", async () => {
    const [old, next, last] = [newSigner(), newSigner(), newSigner()];
    const { body } = await service.post("/keys/register", registration(old, "Ada"));
    const { log, writer } = service.server.registry;
    await withhold({ log, writer }, body.log_entry_id, { reason: "Asked.", basis: null, member: "pseudonym" });
    expect((await service.get(`/keys/${old.fingerprint}`)).body.pseudonym).toBe("withheld");
    expect((await succeed(payloadOf(old, next), await proofOf(service, old))).status).toBe(200);
    const own = next.fingerprint.slice("sha256:".length, "sha256:".length + 12);
    expect((await service.get(`/keys/${next.fingerprint}`)).body.pseudonym).toBe(own);
    expect((await succeed(payloadOf(next, last), await proofOf(service, next))).status).toBe(200);
    expect((await service.get(`/keys/${last.fingerprint}`)).body.pseudonym).toBe(own);
  });

  test("of an expired key by a recovery challenge", async () => {
    const [old, next] = [await expiredSigner(), newSigner()];
    const auth = { ...(await proofOf(service, old, { recovery: true })), recovery: true };
    expect((await succeed(payloadOf(old, next), auth)).status).toBe(200);
    expect(await statusOf(old)).toMatchObject({ status: "succeeded", successor_fingerprint: next.fingerprint });
  });

  test("of an expired key by a recovery session", async () => {
    const old = await expiredSigner();
    const bearer = await bearerOf(service, old, { recovery: true });
    expect((await succeed(payloadOf(old, newSigner()), undefined, bearer)).status).toBe(200);
    await expectRefused(() => succeed(payloadOf(old, newSigner()), undefined, bearer), 401, "unauthenticated");
  });

  test("403 by an auth proof without the password of the old key, before the body is checked", async () => {
    const [old, next] = [await signer(), newSigner()];
    const password = "zyzzyva-quixotic-marker";
    expect((await service.post("/auth/password", { ...(await proofOf(service, old)), password })).status).toBe(200);
    const attempt = async (more: Record<string, unknown>, payload: unknown = payloadOf(old, next)) =>
      service.post("/keys/succeed", { payload, auth: await proofOf(service, old), ...more });
    for (const more of [{}, { password: null }, { password: "another password" }, { password: 7 }])
      await expectRefused(() => attempt(more), 403, "forbidden");
    await expectRefused(() => attempt({}, null), 403, "forbidden");
    expect(await statusOf(old)).toMatchObject({ status: "active" });
    expect((await attempt({ password })).status).toBe(200);
  });

  test("by a session of a key with a password, which has shown it at login", async () => {
    const old = await signer();
    const password = "zyzzyva-quixotic-marker";
    await service.post("/auth/password", { ...(await proofOf(service, old)), password });
    const bearer = await bearerOf(service, old, { password });
    expect((await succeed(payloadOf(old, newSigner()), undefined, bearer)).status).toBe(200);
  });

  test("403 by a recovery proof without the password, 429 after five wrong ones", async () => {
    const expiring = await signer({ expiration_date: new Date((world.now + SECOND) / 1000).toISOString() });
    const password = "zyzzyva-quixotic-marker";
    await service.post("/auth/password", { ...(await proofOf(service, expiring)), password });
    world.now += SECOND;
    const attempt = async (more: Record<string, unknown>) => {
      const auth = { ...(await proofOf(service, expiring, { recovery: true })), recovery: true };
      return service.post("/keys/succeed", { payload: payloadOf(expiring, newSigner()), auth, ...more });
    };
    await expectRefused(() => attempt({}), 403, "forbidden");
    for (let i = 0; i < 5; i++) await expectRefused(() => attempt({ password: `wrong ${i}` }), 403, "forbidden");
    await expectRefused(() => attempt({ password }), 429, "rate-limited");
  });

  test("401 without session and auth proof, before the body is checked", async () => {
    const old = await signer();
    await expectRefused(() => succeed(payloadOf(old, newSigner())), 401, "unauthenticated");
    await expectRefused(() => succeed({}), 401, "unauthenticated");
    await expectRefused(() => service.post("/keys/succeed"), 401, "unauthenticated");
  });

  test("404, 410, 409 and 403 for the auth proof, before the body is checked", async () => {
    const old = await signer();
    await expectRefused(() => succeed({}, { challenge_id: "x", challenge_signature: "x" }), 404, "not-found");
    const auth = await proofOf(service, old);
    await expectRefused(() => succeed({}, { ...auth, challenge_signature: WRONG }), 403, "forbidden");
    await expectRefused(() => succeed({}, auth), 422, "invalid-input");
    await expectRefused(() => succeed({}, auth), 409, "challenge-used");
    const login = await proofOf(service, old, { purpose: "login" });
    await expectRefused(() => succeed({}, login), 403, "forbidden");
    const late = await proofOf(service, old);
    world.now += 300 * SECOND;
    await expectRefused(() => succeed({}, late), 410, "gone");
  });

  test("403 for a proof or a session of another key", async () => {
    const [old, other] = [await signer(), await signer()];
    const payload = payloadOf(old, newSigner());
    const auth = await proofOf(service, other);
    await expectRefused(() => succeed(payload, auth), 403, "forbidden");
    const bearer = await bearerOf(service, other);
    await expectRefused(() => succeed(payload, undefined, bearer), 403, "forbidden");
  });

  test("403 for an expired key without recovery", async () => {
    const old = await signer({ expiration_date: new Date((world.now + SECOND) / 1000).toISOString() });
    const auth = await proofOf(service, old);
    world.now += SECOND;
    await expectRefused(() => succeed(payloadOf(old, newSigner()), auth), 403, "key-not-active");
    const recovery = await proofOf(service, old, { recovery: true });
    await expectRefused(() => succeed(payloadOf(old, newSigner()), recovery), 403, "forbidden");
  });

  test("403 for the operator key", async () => {
    const operator = {
      fingerprint: world.operatorFingerprint,
      sign: (message: string | Uint8Array) => world.operatorSign(Buffer.from(message)).toString("base64"),
    };
    const bearer = await bearerOf(service, operator);
    await expectRefused(() => succeed(payloadOf(operator, newSigner()), undefined, bearer), 403, "forbidden");
    await expectRefused(() => revoke(operator, undefined, bearer), 403, "forbidden");
  });

  test("404 for an old key that nobody registered", async () => {
    const bearer = await bearerOf(service, await signer());
    await expectRefused(() => succeed(payloadOf(newSigner(), newSigner()), undefined, bearer), 404, "not-found");
    await expectRefused(() => revoke(newSigner(), undefined, bearer), 404, "not-found");
  });

  test("409 for a new key that is registered, or is the old one", async () => {
    const [old, known] = [await signer(), await signer()];
    for (const next of [known, old]) {
      const auth = await proofOf(service, old);
      await expectRefused(() => succeed(payloadOf(old, next), auth), 409, "already-exists");
    }
  });

  test("409 for an old key that was revoked or succeeded after the challenge", async () => {
    const old = await signer();
    const [first, second] = [await proofOf(service, old), await proofOf(service, old)];
    expect((await succeed(payloadOf(old, newSigner()), first)).status).toBe(200);
    await expectRefused(() => succeed(payloadOf(old, newSigner()), second), 409, "wrong-key-status");
  });

  test.each<[string, Record<string, unknown>, string, string | undefined]>([
    ["no new key", { new_public_key: undefined }, "invalid-input", "/payload/new_public_key"],
    ["rubbish for a new key", { new_public_key: "rubbish" }, "invalid-key", undefined],
    ["a private key", { new_public_key: newSigner().privateKey }, "private-key", undefined],
    ["an algorithm that is none", { new_algorithm: "dsa" }, "invalid-input", "/payload/new_algorithm"],
    ["another algorithm than the key's", { new_algorithm: "rsa-2048" }, "invalid-key", undefined],
    ["an empty pseudonym", { pseudonym: "" }, "invalid-input", "/payload/pseudonym"],
    [
      "an expiration that has passed",
      { expiration_date: "2000-01-01T00:00:00Z" },
      "invalid-input",
      "/payload/expiration_date",
    ],
    ["a signature that is not the new key's", { new_key_signature: WRONG }, "invalid-signature", undefined],
    ["a signature that is no base64", { new_key_signature: "%" }, "invalid-input", "/payload/new_key_signature"],
  ])("422 with %s", async (_, more, code, path) => {
    const old = await signer();
    const auth = await proofOf(service, old);
    const before = await service.entryCount();
    const reply = await succeed(payloadOf(old, newSigner(), more), auth);
    expectProblem(reply, 422, code);
    expect(reply.body.errors?.[0]?.path).toBe(path);
    expect(await service.entryCount()).toBe(before);
    expect(await statusOf(old)).toMatchObject({ status: "active" });
  });

  test("of many at one moment one succeeds", async () => {
    const old = await signer();
    const auths = await Promise.all(Array.from({ length: 8 }, () => proofOf(service, old)));
    const before = await service.entryCount();
    const replies = await Promise.all(auths.map((auth) => succeed(payloadOf(old, newSigner()), auth)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const reply of replies.filter(({ status }) => status !== 200)) expectProblem(reply, 409, "wrong-key-status");
    expect(await service.entryCount()).toBe(before + 1);
  });
});

describe("POST /keys/revoke", () => {
  test("by an auth proof", async () => {
    const key = await signer();
    const before = await service.entryCount();
    const reply = await revoke(key, await proofOf(service, key));
    expect(reply.status, reply.text).toBe(200);
    const entry = (await service.get(`/log/${before + 1}`)).body;
    expect(reply.body).toEqual({
      fingerprint: key.fingerprint,
      status: "revoked",
      log_entry_id: before + 1,
      leaf_index: before,
      entry_hash: entry.entry_hash,
    });
    expect(entry).toMatchObject({ event_type: "key_revocation", payload: { fingerprint: key.fingerprint } });
    expect(await statusOf(key)).toMatchObject({ status: "revoked", successor_fingerprint: null });
    expectProblem(await service.post("/attestations", submission(key)), 403, "key-not-active");
  });

  test("by a session, in any form of the fingerprint", async () => {
    const key = await signer();
    const bare = key.fingerprint.slice("sha256:".length).toUpperCase();
    const reply = await revoke({ fingerprint: bare }, undefined, await bearerOf(service, key));
    expect(reply.body).toMatchObject({ fingerprint: key.fingerprint, status: "revoked" });
  });

  test("401 without session and auth proof", async () => {
    const key = await signer();
    await expectRefused(() => revoke(key), 401, "unauthenticated");
    await expectRefused(() => service.post("/keys/revoke"), 401, "unauthenticated");
  });

  test("403 for a proof or a session of another key", async () => {
    const [key, other] = [await signer(), await signer()];
    const auth = await proofOf(service, other);
    await expectRefused(() => revoke(key, auth), 403, "forbidden");
    const bearer = await bearerOf(service, other);
    await expectRefused(() => revoke(key, undefined, bearer), 403, "forbidden");
    expect(await statusOf(key)).toMatchObject({ status: "active" });
  });

  test("403 for a recovery proof and for a recovery token", async () => {
    const key = await expiredSigner();
    const bearer = await bearerOf(service, key, { recovery: true });
    await expectRefused(() => revoke(key, undefined, bearer), 403, "forbidden");
    for (const more of [{}, { recovery: true }]) {
      const auth = await proofOf(service, key, { recovery: true });
      await expectRefused(() => revoke(key, { ...auth, ...more }), 403, "forbidden");
    }
  });

  test("409 for a key that is not active any more", async () => {
    const key = await signer({ expiration_date: new Date((world.now + SECOND) / 1000).toISOString() });
    const revoked = await signer();
    const [late, first, second] = [
      await proofOf(service, key),
      await proofOf(service, revoked),
      await proofOf(service, revoked),
    ];
    world.now += SECOND;
    await expectRefused(() => revoke(key, late), 409, "wrong-key-status");
    expect((await revoke(revoked, first)).status).toBe(200);
    await expectRefused(() => revoke(revoked, second), 409, "wrong-key-status");
  });

  test("422 for no fingerprint", async () => {
    const key = await signer();
    for (const fingerprint of [undefined, 7, null]) {
      const auth = await proofOf(service, key);
      await expectRefused(() => revoke({ fingerprint }, auth), 422, "invalid-input");
    }
  });

  test("of many at one moment one makes an entry", async () => {
    const key = await signer();
    const auths = await Promise.all(Array.from({ length: 8 }, () => proofOf(service, key)));
    const before = await service.entryCount();
    const replies = await Promise.all(auths.map((auth) => revoke(key, auth)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const reply of replies.filter(({ status }) => status !== 200)) expectProblem(reply, 409, "wrong-key-status");
    expect(await service.entryCount()).toBe(before + 1);
  });

  test("503 while the operator key cannot sign, and nothing is revoked", async () => {
    const key = await signer();
    const auth = await proofOf(service, key);
    world.operatorAnswers = false;
    try {
      expectProblem(await revoke(key, auth), 503, "signer-unavailable");
    } finally {
      world.operatorAnswers = true;
    }
    expect(await statusOf(key)).toMatchObject({ status: "active" });
  });
});

test("the log verifies, with every succession and revocation in it", async () => {
  expect((await service.post("/log/verify")).body).toMatchObject({ valid: true, errors: [] });
  expect(world.registry.log.stateDifferences()).toEqual([]);
});
