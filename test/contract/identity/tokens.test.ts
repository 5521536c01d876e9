/** Session tokens: their content, their validity, and every forgery, each of which is refused. */
import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
  verify,
} from "node:crypto";
import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { expectProblem, type Reply, type TestService } from "../../server/harness.js";
import { bearerOf, proofOf, registeredSigner } from "../../server/proofs.js";
import type { Algorithm, TestSigner } from "../../server/signers.js";

const SECOND = 1_000_000;
const HOUR = 3600 * SECOND;

type Json = Record<string, unknown>;

let world: Controlled;
let service: TestService;
beforeAll(async () => {
  world = await startControlled();
  service = world.service;
});

const encode = (part: unknown) =>
  Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url");
const decode = (part: string): Json => JSON.parse(Buffer.from(part, "base64url").toString());
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const use = (token: string, path = "/test/session"): Promise<Reply> => service.post(path, {}, bearer(token));
const renew = (token: string) => use(token, "/auth/renew");
const tokenOf = async (signer: Pick<TestSigner, "fingerprint" | "sign">, recovery = false): Promise<string> =>
  (await bearerOf(service, signer, { recovery })).authorization.slice("Bearer ".length);
const operator = () => ({
  fingerprint: world.operatorFingerprint,
  sign: (message: string | Uint8Array) => world.operatorSign(Buffer.from(message)).toString("base64"),
});

/** The claims that the service would put into a session of `signer`, changed by `more`. */
function claimsOf({ fingerprint }: Pick<TestSigner, "fingerprint">, more: Json = {}): Json {
  const now = Math.floor(world.now / SECOND);
  const times = { iat: now, exp: now + 3600, auth_time: now };
  const names = { iss: world.operatorFingerprint, sub: fingerprint, jti: randomUUID(), pseudonym: "Alice" };
  return { ...names, ...times, recovery: false, ...more };
}

/** A token with any header and claims, signed by the operator key by default. */
function forge(header: Json, claims: Json, signer = (input: Buffer) => world.operatorSign(input)): string {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${signer(Buffer.from(input)).toString("base64url")}`;
}
const EDDSA = { alg: "EdDSA", typ: "JWT" };

/** The operator's public key in the forms that an attacker may try as an HMAC secret. */
async function publicKey(): Promise<{ pem: string; key: KeyObject }> {
  const { public_key: pem } = (await service.get("/log/operator-key")).body;
  return { pem, key: createPublicKey(pem) };
}

describe("a token", () => {
  test.each<[Algorithm, string]>([
    ["ed25519", "EdDSA"],
    ["ecdsa-p256", "ES256"],
    ["rsa-2048", "RS256"],
  ])("of an operator with a key %s is a JWT that anybody can verify (%s)", async (algorithm, alg) => {
    const { service, operatorFingerprint, now } = await startControlled(algorithm);
    const signer = await registeredSigner(service);
    const { token } = (await service.post("/auth/login", await proofOf(service, signer))).body;
    const [header, payload, signature] = token.split(".");
    expect(decode(header)).toEqual({ alg, typ: "JWT" });
    const iat = Math.floor(now / SECOND);
    expect(decode(payload)).toEqual({
      iss: operatorFingerprint,
      sub: signer.fingerprint,
      iat,
      exp: iat + 3600,
      auth_time: iat,
      jti: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      pseudonym: "Alice",
      recovery: false,
    });
    const { public_key } = (await service.get("/log/operator-key")).body;
    const input = Buffer.from(`${header}.${payload}`);
    const digest = algorithm === "ed25519" ? null : "sha256";
    const key = { key: createPublicKey(public_key), dsaEncoding: "ieee-p1363" } as const;
    expect(verify(digest, input, key, Buffer.from(signature, "base64url"))).toBe(true);
    const session = await service.post("/test/session", {}, bearer(token));
    expect(session.body).toEqual({ fingerprint: signer.fingerprint, recovery: false });
  });

  test("made by the same rules with the operator key is accepted: the forgeries below fail for their fault alone", async () => {
    const signer = await registeredSigner(service);
    expect((await use(forge(EDDSA, claimsOf(signer)))).body).toMatchObject({ fingerprint: signer.fingerprint });
  });

  test("may be sent with the scheme in any case", async () => {
    const token = await tokenOf(await registeredSigner(service));
    for (const scheme of ["bearer", "BEARER"])
      expect((await service.post("/test/session", {}, { authorization: `${scheme} ${token}` })).status).toBe(200);
  });
});

describe("refused with 401 is", () => {
  const expectRefused = async (token: string) => {
    const reply = await use(token);
    expectProblem(reply, 401, "unauthenticated");
    expect(reply.headers.get("www-authenticate")).toBe("Bearer");
    expectProblem(await renew(token), 401, "unauthenticated");
  };

  test.each(["", "Bearer", "Bearer ", "Basic YTpi", "Bearer a.b", "Bearer a.b.c.d", "Bearer ..", "Bearer {}.{}.x"])(
    "the header %j",
    async (authorization) => {
      expectProblem(await service.post("/test/session", {}, { authorization }), 401, "unauthenticated");
    },
  );

  test("a request without a token", async () => {
    expectProblem(await service.post("/test/session"), 401, "unauthenticated");
    expectProblem(await service.post("/auth/renew"), 401, "unauthenticated");
  });

  test.each(["none", "None", "NONE"])("the algorithm %s", async (alg) => {
    const claims = claimsOf(await registeredSigner(service));
    await expectRefused(forge({ alg, typ: "JWT" }, claims));
    await expectRefused(forge({ alg, typ: "JWT" }, claims, () => Buffer.from("x")));
    const [header, payload] = forge({ alg, typ: "JWT" }, claims).split(".");
    expectProblem(await use(`${header}.${payload}.`), 401, "unauthenticated");
  });

  test.each(["HS256", "HS384", "HS512"])("%s with the public key as the secret", async (alg) => {
    const { pem, key } = await publicKey();
    const spki = key.export({ type: "spki", format: "der" });
    const claims = claimsOf(await registeredSigner(service));
    for (const secret of [pem, pem.trim(), spki, spki.subarray(-32)])
      await expectRefused(
        forge({ alg, typ: "JWT" }, claims, (input) =>
          createHmac(`sha${alg.slice(2)}`, secret)
            .update(input)
            .digest(),
        ),
      );
  });

  test("another name for the algorithm, though the operator key signed it", async () => {
    await expectRefused(forge({ alg: "Ed25519", typ: "JWT" }, claimsOf(await registeredSigner(service))));
  });

  test("another operator's signature, also one whose key the header brings along", async () => {
    const { publicKey: other, privateKey } = generateKeyPairSync("ed25519");
    const claims = claimsOf(await registeredSigner(service));
    const byOther = (input: Buffer) => sign(null, input, privateKey);
    await expectRefused(forge(EDDSA, claims, byOther));
    await expectRefused(forge({ ...EDDSA, jwk: other.export({ format: "jwk" }) }, claims, byOther));
    await expectRefused(forge({ ...EDDSA, kid: world.operatorFingerprint }, claims, byOther));
  });

  test("a session of another service", async () => {
    const other = await startControlled();
    const signer = await registeredSigner(service);
    await other.registry.keys.register({
      public_key: signer.publicKey,
      pseudonym: "Alice",
      key_algorithm: signer.algorithm,
    });
    const { authorization } = await bearerOf(other.service, signer);
    await expectRefused(authorization.slice("Bearer ".length));
  });

  test("another algorithm by another key, for any header", async () => {
    const claims = claimsOf(await registeredSigner(service));
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const byOther = (input: Buffer) => sign("sha256", input, { key: privateKey, dsaEncoding: "ieee-p1363" });
    for (const alg of ["ES256", "EdDSA"]) await expectRefused(forge({ alg, typ: "JWT" }, claims, byOther));
  });

  test.each<[string, (claims: Json) => Json]>([
    ["subject", (claims) => ({ ...claims, sub: world.operatorFingerprint })],
    ["expiry", (claims) => ({ ...claims, exp: (claims.exp as number) + 1 })],
    ["recovery", (claims) => ({ ...claims, recovery: true })],
    ["pseudonym", (claims) => ({ ...claims, pseudonym: "Bob" })],
  ])("an altered claim: %s", async (_, alter) => {
    const [header, payload, signature] = (await tokenOf(await registeredSigner(service))).split(".");
    await expectRefused(`${header}.${encode(alter(decode(payload!)))}.${signature}`);
  });

  test("an altered signature", async () => {
    const [header, payload, signature] = (await tokenOf(await registeredSigner(service))).split(".");
    const bytes = Buffer.from(signature!, "base64url");
    bytes[10]! ^= 1;
    await expectRefused(`${header}.${payload}.${bytes.toString("base64url")}`);
    await expectRefused(`${header}.${payload}.${encode("x")}`);
  });

  test.each<[string, Json]>([
    ["another issuer", { iss: "somebody else" }],
    ["no issuer", { iss: undefined }],
    ["no subject", { sub: undefined }],
    ["a subject that is no key", { sub: "x" }],
    ["no expiry", { exp: undefined }],
    ["an expiry that is text", { exp: "9999999999" }],
    ["no id", { jti: undefined }],
    ["no time of sign-in", { auth_time: undefined }],
    ["no word on recovery", { recovery: undefined }],
    ["recovery that is text", { recovery: "false" }],
  ])("a token that the operator key signed with %s", async (_, more) => {
    await expectRefused(forge(EDDSA, claimsOf(await registeredSigner(service), more)));
  });

  test.each<[string, unknown]>([
    ["another type", { alg: "EdDSA", typ: "at+jwt" }],
    ["no type", { alg: "EdDSA" }],
    ["an extension that must be understood", { ...EDDSA, crit: ["x"], x: 1 }],
  ])("a token that the operator key signed with %s", async (_, header) => {
    await expectRefused(forge(header as Json, claimsOf(await registeredSigner(service))));
  });

  test("an expired token, to the second, though it was used a moment before", async () => {
    const signer = await registeredSigner(service);
    const token = await tokenOf(signer);
    const { exp } = decode(token.split(".")[1]!);
    world.now = (exp as number) * SECOND - 1;
    expect((await use(token)).status).toBe(200);
    world.now += 1;
    await expectRefused(token);
    const now = Math.floor(world.now / SECOND);
    await expectRefused(forge(EDDSA, claimsOf(signer, { exp: now })));
  });

  test("a session of a key that was revoked since, though it was used a moment before", async () => {
    const signer = await registeredSigner(service);
    const token = await tokenOf(signer);
    expect((await use(token)).status).toBe(200);
    const revocation = await service.post(
      "/keys/revoke",
      { payload: { fingerprint: signer.fingerprint } },
      bearer(token),
    );
    expect(revocation.status, revocation.text).toBe(200);
    await expectRefused(token);
    const again = await service.post("/keys/revoke", { payload: { fingerprint: signer.fingerprint } }, bearer(token));
    expectProblem(again, 401, "unauthenticated");
  });

  test("a session from before a password was set, or changed, though it was used a moment before", async () => {
    const signer = await registeredSigner(service);
    const first = await tokenOf(signer);
    expect((await use(first)).status).toBe(200);
    const set = async (password: string, current_password?: string) => {
      const body = { ...(await proofOf(service, signer)), password, current_password };
      expect((await service.post("/auth/password", body)).status).toBe(200);
    };
    await set("the first password");
    await expectRefused(first);
    const tokenBy = async (password: string) =>
      (await bearerOf(service, signer, { password })).authorization.slice("Bearer ".length);
    const second = await tokenBy("the first password");
    const renewed = (await renew(second)).body.token;
    for (const token of [second, renewed]) expect((await use(token)).status).toBe(200);
    await set("the second password", "the first password");
    // The clock stands still, so the time of a session cannot show the password at its beginning.
    for (const token of [first, second, renewed]) await expectRefused(token);
    expect((await use(await tokenBy("the second password"))).status).toBe(200);
  });

  test("a session whose sign-in was under way without a password when one was set", async () => {
    const signer = await registeredSigner(service);
    const { passwords } = service.server.registry;
    const check = passwords.check.bind(passwords);
    const checking = vi.spyOn(passwords, "check").mockImplementationOnce(async (...given) => {
      await check(...given);
      const body = { ...(await proofOf(service, signer)), password: "set meanwhile" };
      expect((await service.post("/auth/password", body)).status).toBe(200);
    });
    onTestFinished(() => checking.mockRestore());
    await expectRefused(await tokenOf(signer));
  });

  test("a session that claims another password than the key has", async () => {
    const signer = await registeredSigner(service);
    await expectRefused(forge(EDDSA, claimsOf(signer, { password_version: "made up" })));
  });

  test("a session of a key that has expired since", async () => {
    const expiration_date = new Date((world.now + 60 * SECOND) / 1000).toISOString();
    const token = await tokenOf(await registeredSigner(service, { expiration_date }));
    expect((await use(token)).status).toBe(200);
    world.now += 60 * SECOND;
    await expectRefused(token);
  });
});

describe("a recovery token", () => {
  /** An expired key and its recovery token. */
  async function recovering(): Promise<{ signer: TestSigner; token: string }> {
    const expiration_date = new Date((world.now + SECOND) / 1000).toISOString();
    const signer = await registeredSigner(service, { expiration_date });
    world.now += SECOND;
    return { signer, token: await tokenOf(signer, true) };
  }

  test("says so, and is refused on ordinary routes with 403", async () => {
    const { signer, token } = await recovering();
    expect(decode(token.split(".")[1]!)).toMatchObject({ sub: signer.fingerprint, recovery: true });
    expectProblem(await use(token), 403, "forbidden");
    expectProblem(await use(token, "/test/proof"), 403, "forbidden");
    expectProblem(await use(token, "/test/operator"), 403, "forbidden");
  });

  test("cannot be renewed", async () => {
    expectProblem(await renew((await recovering()).token), 403, "forbidden");
  });

  test("of a key that is active is refused: it never came from a recovery challenge", async () => {
    const signer = await registeredSigner(service);
    expectProblem(await use(forge(EDDSA, claimsOf(signer, { recovery: true }))), 401, "unauthenticated");
  });
});

describe("POST /auth/renew", () => {
  test("gives a fresh token; the old one stays good until it expires", async () => {
    const signer = await registeredSigner(service);
    const token = await tokenOf(signer);
    world.now += HOUR / 2;
    const reply = await renew(token);
    expect(reply.body).toEqual({
      token: expect.any(String),
      fingerprint: signer.fingerprint,
      pseudonym: "Alice",
      expires_at: expect.any(String),
    });
    const [before, after] = [token, reply.body.token].map((text: string) => decode(text.split(".")[1]!));
    expect(after).toEqual({ ...before, iat: expect.any(Number), exp: expect.any(Number), jti: expect.any(String) });
    expect(after!.jti).not.toBe(before!.jti);
    expect(after!.exp).toBe((before!.exp as number) + 1800);
    expect(Date.parse(reply.body.expires_at)).toBe((after!.exp as number) * 1000);
    for (const good of [token, reply.body.token]) expect((await use(good)).status).toBe(200);
  });

  test("ends 24 hours after sign-in", async () => {
    let token = await tokenOf(await registeredSigner(service));
    const { auth_time } = decode(token.split(".")[1]!) as { auth_time: number };
    for (let half = 1; half < 48; half++) {
      world.now = auth_time * SECOND + half * (HOUR / 2);
      const reply = await renew(token);
      expect(reply.status, reply.text).toBe(200);
      token = reply.body.token;
    }
    expect(decode(token.split(".")[1]!)).toMatchObject({ auth_time, exp: auth_time + 86_400 });
    world.now = (auth_time + 86_400) * SECOND - 1;
    expect((await renew(token)).status).toBe(200);
    world.now += 1;
    expectProblem(await renew(token), 401, "unauthenticated");
  });

  test("503 while the operator key cannot sign", async () => {
    const token = await tokenOf(await registeredSigner(service));
    world.operatorAnswers = false;
    try {
      expectProblem(await renew(token), 503, "signer-unavailable");
      expect((await use(token)).status).toBe(200);
    } finally {
      world.operatorAnswers = true;
    }
  });
});

describe("an operator-only route", () => {
  const path = "/test/operator";

  test("serves the operator", async () => {
    const token = await tokenOf(operator());
    expect((await use(token, path)).body).toEqual({ fingerprint: world.operatorFingerprint, recovery: false });
  });

  test("401 operator JWT missing, malformed or unverifiable", async () => {
    expectProblem(await service.post(path), 401, "unauthenticated");
    expectProblem(await use("a.b.c", path), 401, "unauthenticated");
    const { privateKey } = generateKeyPairSync("ed25519");
    const forged = forge(EDDSA, claimsOf(operator()), (input) => sign(null, input, privateKey));
    expectProblem(await use(forged, path), 401, "unauthenticated");
    const unsigned = forge({ alg: "none", typ: "JWT" }, claimsOf(operator()), () => Buffer.from("x"));
    expectProblem(await use(unsigned, path), 401, "unauthenticated");
  });

  test("403 token valid but sub is not the operator fingerprint", async () => {
    expectProblem(await use(await tokenOf(await registeredSigner(service)), path), 403, "forbidden");
  });

  test("503 operator key provider unavailable", async () => {
    const token = await tokenOf(operator());
    expect((await use(token, path)).status).toBe(200);
    world.operatorAnswers = false;
    try {
      expectProblem(await use(token, path), 503, "signer-unavailable");
    } finally {
      world.operatorAnswers = true;
    }
  });
});
