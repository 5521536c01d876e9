/** The contract's table of field caps, for requests, answers and policies: taken at the cap, refused one beyond. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { expectProblem, type Reply, startTestService, type TestService } from "../../../server/harness.js";
import { bearerOf, registeredSigner } from "../../../server/proofs.js";
import type { TestSigner } from "../../../server/signers.js";

/** One, two, three and four bytes of UTF-8; the last is two UTF-16 units. A character is a code point in each. */
const CHARACTERS = ["x", "ß", "日", "🪨"];
const KIB = 1024;

let service: TestService;
let signer: TestSigner;
let bearer: { authorization: string };
beforeAll(async () => {
  service = await startTestService();
  signer = await registeredSigner(service);
  bearer = await bearerOf(service, signer);
});

const ask = (more: Record<string, unknown> | string) =>
  service.post(
    "/log/attestation-requests",
    typeof more === "string"
      ? more
      : { target_fingerprint: signer.fingerprint, attestation_type: "authorship", nonce: randomUUID(), ...more },
    bearer,
  );
let policies = 0;
const publish = (more: Record<string, unknown>) =>
  service.post(
    "/log/request-policies",
    {
      predicates: { all: [] },
      default_action_on_failure: "hold",
      // Each replaces the scheduled one before it.
      effective_from: new Date(Date.parse("2999-01-01T00:00:00Z") + policies++).toISOString(),
      ...more,
    },
    bearer,
  );

function expectCapped(reply: Reply, path: string): void {
  expectProblem(reply, 422, "invalid-input");
  expect(reply.body.errors.map((error: { path: string }) => error.path)).toEqual([path]);
}

describe.each(CHARACTERS)("in characters like %s", (character) => {
  test("requester_fingerprint, target_fingerprint: 256 characters", async () => {
    const [most, more] = [character.repeat(256), character.repeat(257)];
    // Within the cap it is another key's, or no key's.
    expectProblem(await ask({ requester_fingerprint: most }), 403, "forbidden");
    expectCapped(await ask({ requester_fingerprint: more }), "/requester_fingerprint");
    expectProblem(await ask({ target_fingerprint: most }), 404, "not-found");
    expectCapped(await ask({ target_fingerprint: more }), "/target_fingerprint");
    expectProblem(await publish({ target_fingerprint: most }), 403, "forbidden");
    expectCapped(await publish({ target_fingerprint: more }), "/target_fingerprint");
  });

  test("attestation_type (request): 512 characters", async () => {
    const attestation_type = character.repeat(512);
    expect((await ask({ attestation_type })).body.attestation_type).toBe(attestation_type);
    expectCapped(await ask({ attestation_type: attestation_type + character }), "/attestation_type");
    expectCapped(await ask({ attestation_type: "" }), "/attestation_type");
  });

  test("nonce: 128 characters", async () => {
    const nonce = character.repeat(128);
    expect((await ask({ nonce })).body.nonce).toBe(nonce);
    expectCapped(await ask({ nonce: nonce + character }), "/nonce");
    expectCapped(await ask({ nonce: "" }), "/nonce");
  });

  test("intent_statement (request): 4096 characters", async () => {
    const intent_statement = character.repeat(4096);
    expect((await ask({ intent_statement })).body.intent_statement).toBe(intent_statement);
    expectCapped(await ask({ intent_statement: intent_statement + character }), "/intent_statement");
  });

  test("respond reason: 4096 characters", async () => {
    const { request_id } = (await ask({})).body;
    const respond = (reason: string) =>
      service.post(`/log/attestation-requests/${request_id}/respond`, { decision: "decline", reason }, bearer);
    const reason = character.repeat(4096);
    expectCapped(await respond(reason + character), "/reason");
    expect((await respond(reason)).body.reason).toBe(reason);
  });

  test("default_action_on_failure: 64 characters", async () => {
    // No action is that long, so both are refused; the sentence says why.
    const within = await publish({ default_action_on_failure: character.repeat(64) });
    expectCapped(within, "/default_action_on_failure");
    expect(within.body.errors[0].message).toMatch(/allow, decline, hold/);
    const beyond = await publish({ default_action_on_failure: character.repeat(65) });
    expectCapped(beyond, "/default_action_on_failure");
    expect(beyond.body.errors[0].message).toMatch(/64 characters/);
  });

  /** An object that holds one text and is exactly so many bytes of canonical JSON. */
  const sized = (bytes: number, frame: (text: string) => object) => {
    const room = bytes - Buffer.byteLength(JSON.stringify(frame("")));
    const text = character.repeat(Math.floor(room / Buffer.byteLength(character)));
    return frame(text + "x".repeat(room - Buffer.byteLength(text)));
  };

  test("claims: 64 KiB serialized JSON, in bytes of the canonical form", async () => {
    const claims = (bytes: number) => sized(bytes, (text) => ({ a: [1, { b: text }] }));
    expect((await ask({ claims: claims(64 * KIB) })).body.claims).toEqual(claims(64 * KIB));
    expectCapped(await ask({ claims: claims(64 * KIB + 1) }), "/claims");
  });

  test("predicates: 64 KiB serialized, in bytes of the canonical form", async () => {
    const predicates = (bytes: number) => sized(bytes, (value) => ({ field: "claims.a", op: "ne", value }));
    expect((await publish({ predicates: predicates(64 * KIB) })).body.predicates).toEqual(predicates(64 * KIB));
    expectCapped(await publish({ predicates: predicates(64 * KIB + 1) }), "/predicates");
  });
});

test("claims: by size, not key count; how they are spelt on the way does not count", async () => {
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`k${i}`, 1]));
  expect((await ask({ claims: many })).status).toBe(200);
  const text = "🪨".repeat((64 * KIB - 8) / 4);
  const body = { target_fingerprint: signer.fingerprint, attestation_type: "authorship", nonce: randomUUID() };
  const escaped = text.replace(/[\ud800-\udfff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
  const spelt = `${JSON.stringify(body).slice(0, -1)},   "claims" : { "a" :  "${escaped}" } }`;
  expect(Buffer.byteLength(spelt)).toBeGreaterThan(128 * KIB);
  const reply = await ask(spelt);
  expect(reply.status, reply.text.slice(0, 200)).toBe(200);
  expect(reply.body.claims).toEqual({ a: text });
});
