/** Challenges, login, passwords and the gate over HTTP. */
import { execFileSync } from "node:child_process";
import { beforeAll, describe, expect, test } from "vitest";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { expectProblem, startTestService, type TestService } from "../../server/harness.js";
import { bearerOf, byOpenssl, challengeOf, proofOf, registeredSigner } from "../../server/proofs.js";
import {
  type Algorithm,
  newManifest,
  newSigner,
  registration,
  submission,
  type TestSigner,
} from "../../server/signers.js";

const SECRET = "zyzzyva-quixotic-marker";
const WRONG = Buffer.alloc(64, 1).toString("base64");
const SECOND = 1_000_000;

let world: Controlled;
let service: TestService;
beforeAll(async () => {
  world = await startControlled();
  service = world.service;
});

const at = (micros: number) => new Date(micros / 1000).toISOString();
const login = (body: unknown) => service.post("/auth/login", body);

/** A key with the password `SECRET`. */
async function guardedSigner(): Promise<TestSigner> {
  const signer = await registeredSigner(service);
  const reply = await service.post("/auth/password", { ...(await proofOf(service, signer)), password: SECRET });
  expect(reply.status, reply.text).toBe(200);
  return signer;
}

describe("POST /auth/challenge", () => {
  test.each([
    [{}, "general"],
    [{ purpose: "general" }, "general"],
    [{ purpose: "login", recovery: false }, "login"],
  ])("with %j gives a nonce for the purpose %s", async (options, purpose) => {
    const signer = await registeredSigner(service);
    const challenge = await challengeOf(service, signer, options);
    expect(Object.keys(challenge).sort()).toEqual(["act", "challenge_id", "expires_at", "nonce", "origin"]);
    expect(challenge.challenge_id).toMatch(/^[\w-]{1,184}$/);
    expect(challenge.nonce).toMatch(new RegExp(`^service\\.auth\\.v1:${purpose}:${signer.fingerprint}:[\\w-]{43}$`));
    expect(Date.parse(challenge.expires_at)).toBe(world.now / 1000 + 300_000);
  });

  test("404 for a key that nobody registered", async () => {
    expectProblem(await service.post("/auth/challenge", { fingerprint: newSigner().fingerprint }), 404, "not-found");
  });

  test("403 for a revoked key", async () => {
    const signer = await registeredSigner(service);
    const revocation = { payload: { fingerprint: signer.fingerprint }, auth: await proofOf(service, signer) };
    expect((await service.post("/keys/revoke", revocation)).status).toBe(200);
    for (const recovery of [false, true])
      expectProblem(await service.post("/auth/challenge", { ...pick(signer), recovery }), 403, "key-not-active");
  });

  test("403 for an expired key without recovery, 409 for recovery of one that is not expired", async () => {
    const signer = await registeredSigner(service, { expiration_date: at(world.now + SECOND) });
    const ask = (recovery: boolean) => service.post("/auth/challenge", { ...pick(signer), recovery });
    expectProblem(await ask(true), 409, "wrong-key-status");
    world.now += SECOND;
    expectProblem(await ask(false), 403, "key-not-active");
    expect((await ask(true)).body.nonce).toMatch(/^service\.auth\.v1:recovery:sha256:/);
  });

  test.each([{}, { fingerprint: 7 }, { fingerprint: "x", purpose: "recovery" }, { fingerprint: "x", recovery: "yes" }])(
    "422 for %j",
    async (body) => {
      expectProblem(await service.post("/auth/challenge", body), 422, "invalid-input");
    },
  );
});

describe("POST /auth/login", () => {
  test.each(
    (["ed25519", "ecdsa-p256", "rsa-2048"] as Algorithm[]).flatMap((algorithm) => [
      ["node:crypto", newSigner(algorithm)] as const,
      ["openssl", byOpenssl(newSigner(algorithm))] as const,
    ]),
  )("exchanges a nonce signed by %s for a session ($algorithm)", async (_, signer) => {
    expect((await service.post("/keys/register", registration(signer, "Zoë"))).status).toBe(200);
    const reply = await login(await proofOf(service, signer, { purpose: "login" }));
    expect(reply.status, reply.text).toBe(200);
    expect(reply.body).toEqual({
      token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      fingerprint: signer.fingerprint,
      pseudonym: "Zoë",
      expires_at: expect.any(String),
    });
    expect(Date.parse(reply.body.expires_at)).toBe(Math.floor(world.now / SECOND) * 1000 + 3_600_000);
    const session = await service.post("/test/session", {}, { authorization: `Bearer ${reply.body.token}` });
    expect(session.body).toEqual({ fingerprint: signer.fingerprint, recovery: false });
  });

  test("a general challenge serves, too, and so does the operator's key", async () => {
    const operator = { fingerprint: world.operatorFingerprint, sign: operatorSign };
    expect((await login(await proofOf(service, operator, { purpose: "general" }))).body).toMatchObject({
      fingerprint: world.operatorFingerprint,
      pseudonym: "operator",
    });
  });

  test("404 challenge not found", async () => {
    const unknown = { challenge_id: "6b1c9a2e-0000-4000-8000-000000000000", challenge_signature: WRONG };
    expectProblem(await login(unknown), 404, "not-found");
  });

  test("410 challenge expired", async () => {
    const proof = await proofOf(service, await registeredSigner(service));
    world.now += 300 * SECOND;
    expectProblem(await login(proof), 410, "gone");
  });

  test("409 challenge already used", async () => {
    const proof = await proofOf(service, await registeredSigner(service));
    expect((await login(proof)).status).toBe(200);
    expectProblem(await login(proof), 409, "challenge-used");
  });

  test("403 invalid signature, which uses nothing up; after five, 404", async () => {
    const signer = await registeredSigner(service);
    const proof = await proofOf(service, signer);
    for (const challenge_signature of [WRONG, "", "%%%", newSigner().sign("x")])
      expectProblem(await login({ ...proof, challenge_signature }), 403, "forbidden");
    expect((await login(proof)).status).toBe(200);
    const { challenge_id } = await challengeOf(service, signer);
    for (let i = 0; i < 5; i++)
      expectProblem(await login({ challenge_id, challenge_signature: WRONG }), 403, "forbidden");
    expectProblem(await login({ challenge_id, challenge_signature: WRONG }), 404, "not-found");
  });

  test("403 invalid password, or none; it uses the challenge up", async () => {
    const signer = await guardedSigner();
    for (const more of [{ password: "wrong password" }, {}, { password: null }]) {
      const proof = await proofOf(service, signer, { purpose: "login" });
      expectProblem(await login({ ...proof, ...more }), 403, "forbidden");
      expectProblem(await login({ ...proof, password: SECRET }), 409, "challenge-used");
    }
    expect((await login({ ...(await proofOf(service, signer)), password: SECRET })).status).toBe(200);
  });

  test("403 for a key that was revoked after the challenge", async () => {
    const signer = await registeredSigner(service);
    const proof = await proofOf(service, signer);
    await world.registry.keyLifecycle.revoke(signer.fingerprint);
    expectProblem(await login(proof), 403, "key-not-active");
  });

  test("429 after five wrong passwords, with the time to wait", async () => {
    const signer = await guardedSigner();
    const attempt = async (password: string) => login({ ...(await proofOf(service, signer)), password });
    for (let i = 0; i < 5; i++) expectProblem(await attempt(`wrong password ${i}`), 403, "forbidden");
    const refused = await attempt(SECRET);
    expectProblem(refused, 429, "rate-limited");
    expect(refused.headers.get("retry-after")).toBe("900");
    world.now += 900 * SECOND;
    expect((await attempt(SECRET)).status).toBe(200);
  });

  test("503 while the operator key cannot sign", async () => {
    const signer = await registeredSigner(service);
    const proof = await proofOf(service, signer);
    world.operatorAnswers = false;
    try {
      expectProblem(await login(proof), 503, "signer-unavailable");
    } finally {
      world.operatorAnswers = true;
    }
  });

  test("of a hundred uses at one moment, one wins", async () => {
    const proof = await proofOf(service, await registeredSigner(service));
    const replies = await Promise.all(Array.from({ length: 100 }, () => login(proof)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const reply of replies.filter(({ status }) => status !== 200)) expectProblem(reply, 409, "challenge-used");
  });

  test.each([{}, { challenge_id: "x" }, { challenge_signature: "x" }, { challenge_id: 7, challenge_signature: "x" }])(
    "422 for %j",
    async (body) => {
      expectProblem(await login(body), 422, "invalid-input");
    },
  );
});

describe("POST /auth/password", () => {
  const set = (body: unknown) => service.post("/auth/password", body);

  test("sets a password, and changes it for a client that knows it", async () => {
    const signer = await registeredSigner(service);
    const body = async (more: Record<string, unknown>) => ({ ...(await proofOf(service, signer)), ...more });
    const reply = await set(await body({ password: SECRET }));
    expect(reply.body).toEqual({ fingerprint: signer.fingerprint, password_set: true });
    const next = { password: "another password" };
    expectProblem(await set(await body(next)), 403, "forbidden");
    expectProblem(await set(await body({ ...next, current_password: "wrong password" })), 403, "forbidden");
    expect((await set(await body({ ...next, current_password: SECRET }))).status).toBe(200);
    await bearerOf(service, signer, next);
  });

  test.each(["1234567", "x".repeat(1025), 12345678, null, undefined])("422 for the password %j", async (password) => {
    const signer = await registeredSigner(service);
    const reply = await set({ ...(await proofOf(service, signer)), password });
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors).toMatchObject([{ path: "/password" }]);
    expect(world.registry.passwords.isSet(signer.fingerprint)).toBe(false);
  });

  test("422 without an answered challenge, before the password is looked at", async () => {
    const reply = await set({ password: 7 });
    expectProblem(reply, 422, "invalid-input");
    const paths = reply.body.errors.map(({ path }: { path: string }) => path);
    expect(paths.sort()).toEqual(["/challenge_id", "/challenge_signature"]);
  });

  test("403 for a login challenge: a signature obtained by a sign-in page sets no password", async () => {
    const signer = await registeredSigner(service);
    const proof = await proofOf(service, signer, { purpose: "login" });
    expectProblem(await set({ ...proof, password: SECRET }), 403, "forbidden");
  });

  test("404, 409, 410 and 403 for the challenge, before the rest is looked at", async () => {
    const signer = await registeredSigner(service);
    expectProblem(await set({ challenge_id: "x", challenge_signature: "x" }), 404, "not-found");
    const proof = await proofOf(service, signer);
    expectProblem(await set({ ...proof, challenge_signature: WRONG }), 403, "forbidden");
    expectProblem(await set({ ...proof, password: 7 }), 422, "invalid-input");
    expectProblem(await set({ ...proof, password: 7 }), 409, "challenge-used");
    const late = await proofOf(service, signer);
    world.now += 300 * SECOND;
    expectProblem(await set({ ...late, password: 7 }), 410, "gone");
  });

  test("429 after five wrong current passwords", async () => {
    const signer = await guardedSigner();
    const change = async (current_password: string) =>
      set({ ...(await proofOf(service, signer)), password: "another password", current_password });
    for (let i = 0; i < 5; i++) expectProblem(await change("wrong password"), 403, "forbidden");
    expectProblem(await change(SECRET), 429, "rate-limited");
  });

  test("keeps passwords as argon2id hashes only: none on disk, none in the log", async () => {
    const signer = await guardedSigner();
    await bearerOf(service, signer, { password: SECRET });
    await login({ ...(await proofOf(service, signer)), password: `${SECRET}-wrong` });
    await service.post("/attestations", submission(signer, newManifest(), { password: SECRET }));
    expect(() => execFileSync("grep", ["-rqaF", SECRET, service.server.dataDir])).toThrow();
    expect(execFileSync("grep", ["-rlaF", "$argon2id$v=19$m=19456,t=2,p=1$", service.server.dataDir]).length).not.toBe(
      0,
    );
    expect(world.log()).toContain("/api/v1/auth/login");
    expect(world.log()).not.toContain(SECRET);
    expect(world.log()).not.toMatch(/Bearer|challenge_signature|eyJ/);
  });
});

describe("POST /attestations by a key with a password", () => {
  test("403 password required or invalid, and nothing is recorded", async () => {
    const signer = await guardedSigner();
    const before = await service.entryCount();
    for (const more of [{}, { password: null }, { password: "wrong password" }, { password: "" }])
      expectProblem(await service.post("/attestations", submission(signer, newManifest(), more)), 403, "forbidden");
    expect(await service.entryCount()).toBe(before);
    const reply = await service.post("/attestations", submission(signer, newManifest(), { password: SECRET }));
    expect(reply.status, reply.text).toBe(200);
    expect(reply.text).not.toContain(SECRET);
  });

  test("wrong passwords beside a signature alone, which the log shows everybody, end no tries of the holder's", async () => {
    const signer = await registeredSigner(service);
    const shown = submission(signer);
    expect((await service.post("/attestations", shown)).status).toBe(200);
    const set = await service.post("/auth/password", { ...(await proofOf(service, signer)), password: SECRET });
    expect(set.status, set.text).toBe(200);
    const repeat = (password: string) => service.post("/attestations", { ...shown, password });
    for (let i = 0; i < 5; i++) expectProblem(await repeat("wrong password"), 403, "forbidden");
    expectProblem(await repeat(SECRET), 429, "rate-limited");
    const bearer = await bearerOf(service, signer, { password: SECRET });
    for (const [proof, headers] of [
      [{}, bearer],
      [{ auth: await proofOf(service, signer) }, {}],
    ] as const) {
      const own = submission(signer, newManifest(), { password: SECRET, ...proof });
      expect((await service.post("/attestations", own, headers)).status).toBe(200);
    }
    const next = { password: "another password", current_password: SECRET };
    const change = await service.post("/auth/password", { ...(await proofOf(service, signer)), ...next });
    expect(change.status, change.text).toBe(200);
  });

  test("422 signature verification failed goes before the password and spends no try", async () => {
    const signer = await guardedSigner();
    const forged = { ...submission(signer), signature: newSigner().sign("x"), password: "wrong password" };
    for (let i = 0; i < 6; i++) expectProblem(await service.post("/attestations", forged), 422, "invalid-signature");
    const reply = await service.post("/attestations", submission(signer, newManifest(), { password: SECRET }));
    expect(reply.status).toBe(200);
  });
});

describe("a write", () => {
  const write = (body: unknown, headers = {}) => service.post("/test/proof", body, headers);

  test("accepts an auth proof or a session; the proof takes precedence", async () => {
    const [signer, other] = [await registeredSigner(service), await registeredSigner(service)];
    const required = "x";
    const passed = { fingerprint: signer.fingerprint, recovery: false };
    const bearer = await bearerOf(service, signer);
    expect((await write({ required }, bearer)).body).toEqual(passed);
    expect((await write({ required, auth: null }, bearer)).body).toEqual(passed);
    expect((await write({ required, auth: await proofOf(service, signer) })).body).toEqual(passed);
    const both = await write({ required, auth: await proofOf(service, signer) }, await bearerOf(service, other));
    expect(both.body).toEqual(passed);
  });

  test("401 no session and no auth proof, before the body is checked", async () => {
    for (const body of [{}, { required: 7 }, { auth: null }]) {
      const reply = await write(body);
      expectProblem(reply, 401, "unauthenticated");
      expect(reply.headers.get("www-authenticate")).toBe("Bearer");
    }
  });

  test("404, 410, 409 and 403 for its proof as for a login, before the body is checked", async () => {
    const signer = await registeredSigner(service);
    expectProblem(await write({ auth: { challenge_id: "x", challenge_signature: "x" } }), 404, "not-found");
    const auth = await proofOf(service, signer);
    expectProblem(await write({ auth: { ...auth, challenge_signature: WRONG } }), 403, "forbidden");
    expectProblem(await write({ auth }), 422, "invalid-input");
    expectProblem(await write({ auth }), 409, "challenge-used");
    const late = await proofOf(service, signer);
    world.now += 300 * SECOND;
    expectProblem(await write({ auth: late }), 410, "gone");
  });

  test("403 for a login challenge", async () => {
    const auth = await proofOf(service, await registeredSigner(service), { purpose: "login" });
    expectProblem(await write({ required: "x", auth }), 403, "forbidden");
  });

  test("403 for a proof whose key has ended since, before the body is checked", async () => {
    const signer = await registeredSigner(service);
    const auth = await proofOf(service, signer);
    const revocation = { payload: { fingerprint: signer.fingerprint }, auth: await proofOf(service, signer) };
    expect((await service.post("/keys/revoke", revocation)).status).toBe(200);
    expectProblem(await write({ auth }), 403, "key-not-active");
  });

  test("403 for a proof by recovery, and for one that says it is and is not", async () => {
    const signer = await registeredSigner(service, { expiration_date: at(world.now + SECOND) });
    const general = await proofOf(service, signer);
    expectProblem(await write({ required: "x", auth: { ...general, recovery: true } }), 403, "forbidden");
    world.now += SECOND;
    const auth = await proofOf(service, signer, { recovery: true });
    for (const more of [{}, { recovery: false }, { recovery: true }])
      expectProblem(await write({ required: "x", auth: { ...auth, ...more } }), 403, "forbidden");
  });

  test.each([7, "x", [], {}, { challenge_id: "x" }, { challenge_id: 7, challenge_signature: "x" }])(
    "422 for the auth proof %j",
    async (auth) => {
      const reply = await write({ auth });
      expectProblem(reply, 422, "invalid-input");
      for (const { path } of reply.body.errors) expect(path).toMatch(/^\/auth/);
    },
  );
});

test("SERVICE_CHALLENGE_TTL_S, SERVICE_SESSION_TTL_S and SERVICE_RATE_LIMIT_PIN are obeyed", async () => {
  const other = await startTestService({
    SERVICE_CHALLENGE_TTL_S: "86400",
    SERVICE_SESSION_TTL_S: "7200",
    SERVICE_RATE_LIMIT_PIN: "1",
  });
  const signer = await registeredSigner(other);
  const { expires_at } = await challengeOf(other, signer);
  const hours = (time: string) => Math.round((Date.parse(time) - Date.now()) / 3_600_000);
  expect(hours(expires_at)).toBe(24);
  expect(hours((await other.post("/auth/login", await proofOf(other, signer))).body.expires_at)).toBe(2);
  await other.post("/auth/password", { ...(await proofOf(other, signer)), password: SECRET });
  const attempt = async (password: string) =>
    other.post("/auth/login", { ...(await proofOf(other, signer)), password });
  expectProblem(await attempt("wrong password"), 403, "forbidden");
  expectProblem(await attempt(SECRET), 429, "rate-limited");
});

const pick = ({ fingerprint }: TestSigner) => ({ fingerprint });
const operatorSign = (message: string | Uint8Array) => world.operatorSign(Buffer.from(message)).toString("base64");
