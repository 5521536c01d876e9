/** Challenges of a running service: under which name, at which front end, before and after a restart. */
import { beforeAll, describe, expect, test } from "vitest";
import { isChallengeNonce } from "#cairnlog/engine/verify/events/possession.js";
import { expectProblem, startTestService, type TestService, temporaryFolder } from "../../server/harness.js";
import { challengeOf, proofOf, registeredSigner } from "../../server/proofs.js";

const WRONG = Buffer.alloc(64, 1).toString("base64");

/** Asks for a challenge under a name that the client chooses. */
async function challengeUnder(service: TestService, host: string, fingerprint: string) {
  const body = JSON.stringify({ fingerprint, purpose: "login" });
  const answer = await service.raw(
    `POST /api/v1/auth/challenge HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  return JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4));
}

describe("a challenge is bound to the service", () => {
  test("by the name under which it was asked, where that is its own, and else by its first", async () => {
    const settings = {
      SERVICE_PUBLIC_URL: "https://log.example,http://log.internal:8080",
      SERVICE_ALLOWED_HOSTS: "tunnel.example",
    };
    const service = await startTestService(settings);
    const { port } = service.server.address;
    const { fingerprint } = await registeredSigner(service);
    const names = [
      ["log.example", "https://log.example"],
      ["LOG.example:443", "https://log.example"],
      ["log.internal:8080", "http://log.internal:8080"],
      [`127.0.0.1:${port}`, `http://127.0.0.1:${port}`],
      [`localhost:${port}`, `http://localhost:${port}`],
      ["tunnel.example", "https://log.example"],
    ] as const;
    for (const [host, origin] of names) {
      const challenge = await challengeUnder(service, host, fingerprint);
      expect(challenge).toMatchObject({ origin, act: null });
      const terms = { origin, purpose: "login", fingerprint, act: null } as const;
      expect(isChallengeNonce(challenge.nonce, terms), host).toBe(true);
      expect(isChallengeNonce(challenge.nonce, { ...terms, origin: "http://evil.example" })).toBe(false);
    }
  });
});

describe.each(["0", "3"])("with %s front ends", (frontEnds) => {
  const settings = { SERVICE_FRONT_ENDS: frontEnds };
  const SERVICE_DATA_DIR = temporaryFolder();
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ ...settings, SERVICE_DATA_DIR });
  });

  test("no number of requests for somebody's key displaces his challenge", async () => {
    const [signer, other] = [await registeredSigner(service), await registeredSigner(service)];
    const [own, ofOther] = [await proofOf(service, signer), await proofOf(service, other)];
    for (let i = 0; i < 40; i++) await challengeOf(service, signer);
    expect((await service.post("/auth/login", own)).status).toBe(200);
    expect((await service.post("/auth/login", ofOther)).status).toBe(200);
  });

  test("one of many answers at one moment is taken, at whichever front end they arrive", async () => {
    const signer = await registeredSigner(service);
    const proof = await proofOf(service, signer);
    const replies = await Promise.all(Array.from({ length: 24 }, () => service.post("/auth/login", proof)));
    const statuses = replies.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 23 }, () => 409)]);
    const failing = { ...(await proofOf(service, signer)), challenge_signature: WRONG };
    const failures = await Promise.all(Array.from({ length: 24 }, () => service.post("/auth/login", failing)));
    expect(failures.filter(({ status }) => status === 403)).toHaveLength(5);
    expect(failures.filter(({ status }) => status === 404)).toHaveLength(19);
  });

  test("a restart forgets neither what was issued nor what was used", async () => {
    const signer = await registeredSigner(service);
    const [used, open] = [await proofOf(service, signer), await proofOf(service, signer)];
    expect((await service.post("/auth/login", used)).status).toBe(200);
    await service.close();
    const again = await startTestService({ ...settings, SERVICE_DATA_DIR });
    expectProblem(await again.post("/auth/login", used), 409, "challenge-used");
    expect((await again.post("/auth/login", open)).status).toBe(200);
    // How many front ends another service has says nothing about this one's challenges.
    const stranger = await startTestService({ SERVICE_FRONT_ENDS: "0" });
    const foreign = await proofOf(again, signer);
    await stranger.post("/keys/register", {
      payload: { public_key: signer.publicKey, pseudonym: "x", key_algorithm: "ed25519" },
    });
    expectProblem(await stranger.post("/auth/login", foreign), 404, "not-found");
  });
});
