/** The service's own log, at its most verbose level, never contains a secret of a client. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { startControlled } from "../controlled.js";
import { bearerOf, proofOf, registeredSigner } from "../proofs.js";
import { newManifest, newSigner, registration, submission } from "../signers.js";

test("no line contains passwords, tokens, keys, secrets, headers or queries, whatever goes wrong", async () => {
  const controlled = await startControlled();
  const { service } = controlled;
  const secrets: string[] = [];
  const secret = () => {
    const text = `s3cret${randomBytes(12).toString("hex")}`;
    secrets.push(text);
    return text;
  };
  const signer = await registeredSigner(service);
  secrets.push(signer.privateKey.split("\n")[1]!);
  const headers = await bearerOf(service, signer);
  secrets.push(headers.authorization);

  const attempt = async () => {
    const password = secret();
    await service.post("/auth/password", { ...(await proofOf(service, signer)), password: secret() });
    await service.post("/auth/login", { ...(await proofOf(service, signer)), password });
    await service.post("/attestations", { ...submission(signer, newManifest()), password });
    await service.post("/keys/register", {
      public_key: signer.privateKey,
      pseudonym: secret(),
      key_algorithm: "ed25519",
    });
    const account = { display_name: secret(), email: `${secret()}@example.org`, credential_type: "hardware" };
    await service.post("/users", { ...account, key_fingerprint: signer.fingerprint, device_label: secret() });
    const recovery = { pseudonym: secret(), recovery_key: secret(), credential_type: "software", device_label: "d" };
    await service.post("/users/recover", { ...recovery, key_fingerprint: signer.fingerprint });
    const hook = { url: `https://example.org/${secret()}?t=${secret()}`, secret: secret(), events: [] };
    await service.post("/webhooks", hook, headers);
    const reveal = { plaintext: { a: secret() }, commitment_key: randomBytes(32).toString("hex") };
    secrets.push(reveal.commitment_key);
    await service.post("/claims/1/reveal", reveal, headers);
    await service.get(`/claims?lookup_key=${secret()}`);
    await service.get(`/log?${secret()}=1&event_type=${secret()}`);
    await service.get(`/${secret()}`);
    await service.get("/inbox", { authorization: `Bearer ${secret()}` });
    await service.get("/inbox", {
      authorization: `Basic ${secret()}`,
      cookie: secret(),
      "x-request-id": secret().concat('\t"'),
    });
    await service.post("/keys/register", `{"password": "${secret()}"`);
    await service.post("/keys/register", `{"${secret()}": 1, "public_key": {"${secret()}": 2}}`);
  };
  await attempt();
  controlled.operatorAnswers = false;
  await attempt();
  await service.post("/keys/register", registration(newSigner(), secret()));
  controlled.operatorAnswers = true;

  const log = controlled.log();
  expect(log).toContain("request failed");
  expect(log).toContain('"answered"');
  for (const text of secrets) expect(log).not.toContain(text);
  for (const line of log.trim().split("\n")) expect(() => JSON.parse(line)).not.toThrow();
});

test("a client's request id is used only if it is harmless", async () => {
  const { service, log } = await startControlled();
  const id = (value: string) => service.get("/health", { "x-request-id": value });
  expect((await id("trace-7_a.B")).headers.get("x-request-id")).toBe("trace-7_a.B");
  for (const value of ["a b", 'a"b', "a,b", "x".repeat(129), "{{7*7}}", "é"]) {
    const answer = (await id(value)).headers.get("x-request-id");
    expect(answer).toMatch(/^[0-9a-f-]{36}$/);
    expect(log()).not.toContain(value);
  }
  const split = "GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\rX-Evil: 1\r\n\r\n";
  expect(await service.raw(split)).not.toMatch(/\r\nx-request-id: a|^x-evil/im);
});
