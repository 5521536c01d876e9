/** Accounts and credentials over HTTP. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newRoot, removeChains } from "../../crypto/chains.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { canonical, newSigner, registration, type TestSigner } from "../../server/signers.js";
import { MAIN } from "../../service.js";

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const RECOVERY_KEY = /^[0-9A-HJKMNP-TV-Z]{5}(-[0-9A-HJKMNP-TV-Z]{5}){7}$/;
const EMAIL = "ada.private@secret.example";

let service: TestService;
/** Every answer of the tests, except those with a recovery key. */
const answers: string[] = [];
/** Secrets that only their holder may ever see. */
const secrets: string[] = [EMAIL];
beforeAll(async () => {
  service = await startTestService();
});
afterAll(removeChains);

async function newKey(at = service): Promise<TestSigner> {
  const signer = newSigner();
  await at.post("/keys/register", registration(signer));
  return signer;
}

const accountOf = (signer: TestSigner, more: Record<string, unknown> = {}) => ({
  display_name: `Holder ${randomUUID()}`,
  email: EMAIL,
  credential_type: "hardware",
  key_fingerprint: signer.fingerprint,
  device_label: "a token",
  ...more,
});

const recoveryOf = (signer: TestSigner, pseudonym: string, recovery_key: string) => ({
  pseudonym,
  recovery_key,
  credential_type: "software",
  key_fingerprint: signer.fingerprint,
  device_label: "a phone",
});

async function send(path: string, body: unknown, at = service) {
  const reply = await at.post(path, body);
  if (reply.body.recovery_key) secrets.push(reply.body.recovery_key);
  else answers.push(reply.text);
  expect(reply.text).not.toContain(EMAIL);
  return reply;
}

async function enrolment(issuing: TestSigner, key: TestSigner, at = service) {
  const { body } = await at.post("/auth/challenge", { fingerprint: key.fingerprint });
  const signed = {
    challenge_id: body.challenge_id as string,
    issuing_fingerprint: issuing.fingerprint,
    key_fingerprint: key.fingerprint,
  };
  return {
    ...signed,
    device_label: "a second token",
    credential_type: "hardware",
    challenge_signature: key.sign(body.nonce),
    chain_signature: issuing.sign(canonical({ action: "service.credential.enroll.v1", ...signed })),
  };
}

describe("POST /users", () => {
  test("opens an account with its first credential: 201, and no entry", async () => {
    const signer = await newKey();
    const before = await service.entryCount();
    const reply = await send("/users", accountOf(signer, { display_name: "Ada" }));
    expect(reply.status).toBe(201);
    expect(reply.body).toEqual({
      user: { id: expect.any(String), display_name: "Ada", created_at: expect.stringMatching(TIMESTAMP) },
      credential: {
        id: expect.any(String),
        key_fingerprint: signer.fingerprint,
        credential_type: "hardware",
        device_label: "a token",
        hardware_backed: true,
        status: "active",
        created_at: reply.body.user.created_at,
        revoked_at: null,
      },
      recovery_key: expect.stringMatching(RECOVERY_KEY),
    });
    expect(await service.entryCount()).toBe(before);
  });

  test("refuses unknown keys (404), and names and keys that are in use (409)", async () => {
    const [first, second] = [await newKey(), await newKey()];
    const display_name = `Zoë ${randomUUID()}`;
    expect((await send("/users", accountOf(first, { display_name }))).status).toBe(201);
    expectProblem(await send("/users", accountOf(newSigner())), 404, "not-found");
    const taken = accountOf(second, { display_name: display_name.toUpperCase().normalize("NFD") });
    expectProblem(await send("/users", taken), 409, "already-exists");
    expectProblem(await send("/users", accountOf(first)), 409, "already-exists");
  });

  test.each([
    ["display_name", "é".repeat(101)],
    ["display_name", ""],
    ["display_name", "a\u0007b"],
    ["email", "nobody"],
    ["email", `${"é".repeat(33)}@example.org`],
    ["credential_type", "cloud"],
    ["device_label", "語".repeat(101)],
    ["device_label", 5],
    ["hardware_attestation", {}],
  ])("refuses %s %j: 422", async (member, value) => {
    const reply = await send("/users", accountOf(newSigner(), { [member]: value }));
    expectProblem(reply, 422, "invalid-input");
    expect(reply.body.errors.map(({ path }: { path: string }) => path)).toEqual([`/${member}`]);
  });

  test("names every missing member: 422", async () => {
    const reply = await send("/users", {});
    const members = ["display_name", "email", "credential_type", "key_fingerprint", "device_label"];
    expect(reply.status).toBe(422);
    expect(reply.body.errors.map(({ path }: { path: string }) => path).sort()).toEqual(
      members.map((member) => `/${member}`).sort(),
    );
  });

  test("accepts names and labels of a hundred characters, with any number of bytes", async () => {
    const display_name = `${"🗝".repeat(63)} ${randomUUID()}`;
    const signer = await newKey();
    const reply = await send("/users", accountOf(signer, { display_name, device_label: "語".repeat(100) }));
    expect(reply.status).toBe(201);
    expect(reply.body.user.display_name).toBe(display_name);
  });
});

describe("POST /users/recover", () => {
  test("replaces credential and recovery key: 200", async () => {
    const opened = (await send("/users", accountOf(await newKey()))).body;
    const signer = await newKey();
    const spelling = opened.recovery_key.toLowerCase().replaceAll("-", "").replaceAll("0", "o").replaceAll("1", "l");
    const reply = await send("/users/recover", recoveryOf(signer, opened.user.display_name, spelling));
    expect(reply.status).toBe(200);
    expect(reply.body).toMatchObject({ user: opened.user, revoked_credentials: 1 });
    expect(reply.body.credential).toMatchObject({ key_fingerprint: signer.fingerprint, hardware_backed: false });
    expect(reply.body.recovery_key).toMatch(RECOVERY_KEY);
    expect(reply.body.recovery_key).not.toBe(opened.recovery_key);
    const again = recoveryOf(await newKey(), opened.user.display_name, opened.recovery_key);
    expectProblem(await send("/users/recover", again), 401, "unauthenticated");
  });

  test("answers an unknown pseudonym and a wrong key alike (401), and the sixth try 429", async () => {
    // Tries count by address, so this needs a service of its own.
    const other = await startTestService();
    const signer = await newKey(other);
    const { user } = (await send("/users", accountOf(signer), other)).body;
    const wrong = "00000-00000-00000-00000-00000-00000-00000-00000";
    const replies = [];
    for (const name of [user.display_name, "Nobody", user.display_name, "Nobody", "nobody"])
      replies.push(await send("/users/recover", recoveryOf(signer, name, wrong), other));
    for (const reply of replies) expectProblem(reply, 401, "unauthenticated");
    expect(new Set(replies.map(({ text, body }) => text.replace(body.request_id, ""))).size).toBe(1);
    const refused = await send("/users/recover", recoveryOf(signer, "Somebody else", wrong), other);
    expectProblem(refused, 429, "rate-limited");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(800);
  });
});

test.each(["0", "1"])("tries to recover count by the client's address, with %s front ends", async (frontEnds) => {
  const other = await startTestService({ SERVICE_TRUSTED_PROXIES: "127.0.0.1", SERVICE_FRONT_ENDS: frontEnds });
  const signer = await newKey(other);
  const wrong = "00000-00000-00000-00000-00000-00000-00000-00000";
  const from = (address: string) =>
    other.post("/users/recover", recoveryOf(signer, `Nobody ${randomUUID()}`, wrong), { "x-forwarded-for": address });
  for (let i = 0; i < 5; i++) expectProblem(await from("192.0.2.1"), 401, "unauthenticated");
  expectProblem(await from("192.0.2.1"), 429, "rate-limited");
  expectProblem(await from("192.0.2.2"), 401, "unauthenticated");
});

describe("POST /credentials/enroll", () => {
  test("binds a further key: 200, and no entry", async () => {
    const [issuing, key] = [await newKey(), await newKey()];
    await send("/users", accountOf(issuing));
    const before = await service.entryCount();
    const reply = await send("/credentials/enroll", await enrolment(issuing, key));
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      credential: {
        id: expect.any(String),
        key_fingerprint: key.fingerprint,
        credential_type: "hardware",
        device_label: "a second token",
        hardware_backed: true,
        status: "active",
        created_at: expect.stringMatching(TIMESTAMP),
        revoked_at: null,
      },
    });
    expect(await service.entryCount()).toBe(before);
    expectProblem(await send("/credentials/enroll", await enrolment(issuing, key)), 409, "already-exists");
  });

  test("refuses bad proofs (401), software (403) and unknown keys and challenges (404)", async () => {
    const [issuing, key] = [await newKey(), await newKey()];
    await send("/users", accountOf(issuing));
    const body = await enrolment(issuing, key);
    const refused = (more: Record<string, unknown>) => send("/credentials/enroll", { ...body, ...more });
    expectProblem(await refused({ chain_signature: key.sign("anything") }), 401, "unauthenticated");
    expectProblem(await refused({ challenge_signature: issuing.sign("anything") }), 401, "unauthenticated");
    expectProblem(await refused({ issuing_fingerprint: newSigner().fingerprint }), 404, "not-found");
    expectProblem(await refused({ chain_signature: undefined }), 422, "invalid-input");
    expectProblem(await refused({ credential_type: "software" }), 403, "forbidden");
    // The challenge was proven in that request, so it is used up.
    expectProblem(await refused({}), 409, "challenge-used");
    const unbound = await newKey();
    expectProblem(await send("/credentials/enroll", await enrolment(unbound, key)), 404, "not-found");
  });
});

describe("routes that were removed", () => {
  test.each(["GET", "POST", "PATCH", "DELETE"])("%s /users/{user_id}/credentials is 404", async (method) => {
    const { user } = (await send("/users", accountOf(await newKey()))).body;
    for (const id of [user.id, "x"]) {
      const path = `/api/v1/users/${id}/credentials`;
      const init = method === "POST" || method === "PATCH" ? { body: "{}" } : {};
      expectProblem(await service.send(method, path, init), 404, "not-found");
    }
  });

  test("GET /credentials/user/{user_id}/fingerprints is 404", async () => {
    const { user } = (await send("/users", accountOf(await newKey()))).body;
    expectProblem(await service.get(`/credentials/user/${user.id}/fingerprints`), 404, "not-found");
  });

  test("the routes that are there answer POST only: 405", async () => {
    for (const path of ["/users", "/users/recover", "/credentials/enroll"])
      expect((await service.get(path)).headers.get("allow")).toBe("POST, OPTIONS");
  });
});

describe("SERVICE_HARDWARE_ROOTS", () => {
  const root = newRoot("Root");
  const maker = root.authority("Maker");
  const attestation = (signer: TestSigner) => maker.certify(signer.publicKey) + maker.certificate;
  let attested: TestService;
  beforeAll(async () => {
    const path = join(temporaryFolder(), "roots.pem");
    writeFileSync(path, root.certificate);
    attested = await startTestService({ SERVICE_HARDWARE_ROOTS: path });
  });

  test("makes attestations decide", async () => {
    const [first, second, third] = [await newKey(attested), await newKey(attested), await newKey(attested)];
    const declared = await send("/users", accountOf(first), attested);
    expect(declared.body.credential).toMatchObject({ credential_type: "hardware", hardware_backed: false });
    const wrong = accountOf(second, { hardware_attestation: attestation(first) });
    expectProblem(await send("/users", wrong, attested), 403, "forbidden");
    const garbage = await send("/users", accountOf(second, { hardware_attestation: "garbage" }), attested);
    expectProblem(garbage, 422, "invalid-input");
    expect(garbage.body.errors[0].path).toBe("/hardware_attestation");
    const right = accountOf(second, { hardware_attestation: attestation(second) });
    expect((await send("/users", right, attested)).body.credential.hardware_backed).toBe(true);

    const without = await enrolment(second, third, attested);
    expectProblem(await send("/credentials/enroll", without, attested), 403, "forbidden");
    const both = { ...(await enrolment(second, third, attested)), hardware_attestation: attestation(third) };
    expect((await send("/credentials/enroll", both, attested)).body.credential.hardware_backed).toBe(true);
  });

  test("unset, is reported by /readyz", async () => {
    expect((await attested.send("GET", "/readyz")).body).toEqual({
      status: "ok",
      transport: "uws",
      vkey: expect.any(String),
      writers: expect.any(Object),
    });
    const { body } = await service.send("GET", "/readyz");
    const warnings = [expect.stringContaining("SERVICE_HARDWARE_ROOTS")];
    expect(body).toMatchObject({ status: "ok", transport: "uws", vkey: expect.any(String), warnings });
  });

  test("that cannot be used stops the start with a sentence", async () => {
    const missing = join(temporaryFolder(), "none.pem");
    await expect(startTestService({ SERVICE_HARDWARE_ROOTS: missing })).rejects.toThrow(missing);
    writeFileSync(missing, "no certificates");
    await expect(startTestService({ SERVICE_HARDWARE_ROOTS: missing })).rejects.toThrow("CERTIFICATE");
  });
});

describe("secrets", () => {
  test("is in no other answer, and not in the public log", async () => {
    const { body, text } = await service.get("/log?per_page=200");
    expect(body.total).toBeLessThanOrEqual(200);
    answers.push(text, (await service.get("/keys?per_page=200")).text, (await service.send("GET", "/metrics")).text);
    expect(secrets.length).toBeGreaterThan(10);
    for (const secret of secrets) for (const answer of answers) expect(answer).not.toContain(secret);
  });

  test("is not in the service's own log, at its most talkative", async () => {
    const child = spawn(process.execPath, [MAIN, "serve", "--json"], {
      env: { ...process.env, PORT: "0", SERVICE_DATA_DIR: temporaryFolder(), LOG_LEVEL: "trace" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let logged = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      logged += text;
    });
    const closed = once(child, "close");
    const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
    const { url } = JSON.parse(line) as { url: string };
    const post = async (path: string, body: unknown) =>
      (await fetch(`${url}/api/v1${path}`, { method: "POST", body: JSON.stringify(body) })).json();
    const signers = [newSigner(), newSigner()] as const;
    for (const signer of signers) await post("/keys/register", registration(signer));
    const account = accountOf(signers[0]);
    const { user, recovery_key } = await post("/users", account);
    for (const body of [account, accountOf(signers[0]), { ...account, email: `${EMAIL} ` }, { email: EMAIL }])
      expect(await post("/users", body)).toHaveProperty("code");
    const misplaced = recoveryOf(signers[1], recovery_key, EMAIL);
    expect(await post("/users/recover", misplaced)).toHaveProperty("code");
    const recovered = await post("/users/recover", recoveryOf(signers[1], user.display_name, recovery_key));
    expect(recovered.revoked_credentials).toBe(1);
    child.kill("SIGTERM");
    await closed;
    expect(logged).toContain("/api/v1/users/recover");
    expect(logged).toContain("SERVICE_HARDWARE_ROOTS is not set");
    for (const secret of [EMAIL, recovery_key, recovered.recovery_key, account.display_name])
      expect(logged).not.toContain(secret);
  });
});
