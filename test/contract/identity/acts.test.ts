/** What authorises which write: sessions for how long, proofs for which request. One table of all routes that take either. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { requestAct } from "#cairnlog/engine/verify/events/possession.js";
import { type Controlled, startControlled } from "../../server/controlled.js";
import { expectProblem, type TestService } from "../../server/harness.js";
import { bearerOf, challengeOf, proofOf, registeredSigner } from "../../server/proofs.js";
import { newManifest, newSigner, submission, type TestSigner } from "../../server/signers.js";
import { sealed } from "../signing/claimants.js";

let world: Controlled;
let service: TestService;
beforeAll(async () => {
  world = await startControlled();
  service = world.service;
});

const SECOND = 1_000_000;

type Body = Record<string, unknown>;
/** How a write may be authorised. `fresh`: a session only for five minutes. `top`: a signed challenge at the top. */
type Means = "proof" | "session" | "either" | "fresh" | "optional" | "top" | "operator";

interface Write {
  readonly path: string;
  readonly means: Means;
  /** A body that is right in form, without authorisation. */
  body(signer: TestSigner): Body;
  /** The path as it is sent. */
  readonly sent?: string;
}

const NOTE = { endorsed_fingerprint: "x", original_offer_entry_id: 1, note: "left" };
const WRITES: readonly Write[] = [
  {
    path: "/keys/succeed",
    means: "fresh",
    body: ({ fingerprint }) => ({
      payload: { old_fingerprint: fingerprint, new_public_key: newSigner().publicKey, new_algorithm: "ed25519" },
    }),
  },
  { path: "/keys/revoke", means: "fresh", body: ({ fingerprint }) => ({ payload: { fingerprint } }) },
  { path: "/auth/password", means: "top", body: () => ({ password: "a password of mine" }) },
  {
    path: "/endorsements/offer",
    means: "proof",
    body: ({ fingerprint }) => ({
      endorser_fingerprint: fingerprint,
      endorsed_fingerprint: fingerprint,
      category: "x-service:human_attestation",
    }),
  },
  {
    path: "/endorsements/accept",
    means: "proof",
    body: ({ fingerprint }) => ({ offer_entry_id: 1, endorsed_fingerprint: fingerprint }),
  },
  {
    path: "/endorsements/withdraw",
    means: "proof",
    body: ({ fingerprint }) => ({ ...NOTE, endorser_fingerprint: fingerprint }),
  },
  {
    path: "/endorsements/revoke-acceptance",
    means: "proof",
    body: ({ fingerprint }) => ({ ...NOTE, endorsed_fingerprint: fingerprint }),
  },
  {
    path: "/endorsements/revocation-alert",
    means: "proof",
    body: ({ fingerprint }) => ({ endorser_fingerprint: fingerprint, compromised_fingerprint: "x", reason: "stolen" }),
  },
  {
    path: "/trust-configs",
    means: "either",
    body: ({ fingerprint }) => ({ fingerprint, minimum_threshold: 0.5 }),
  },
  { path: "/trust-configs/revoke", means: "either", body: ({ fingerprint }) => ({ fingerprint }) },
  {
    path: "/log/attestation-requests",
    means: "either",
    body: ({ fingerprint }) => ({
      requester_fingerprint: fingerprint,
      target_fingerprint: fingerprint,
      attestation_type: "authorship",
      nonce: randomUUID(),
    }),
  },
  {
    path: "/log/attestation-requests/{request_id}/respond",
    sent: `/log/attestation-requests/${randomUUID()}/respond`,
    means: "either",
    body: ({ fingerprint }) => ({ responder_fingerprint: fingerprint, decision: "decline" }),
  },
  {
    path: "/log/request-policies",
    means: "either",
    body: ({ fingerprint }) => ({
      target_fingerprint: fingerprint,
      predicates: { all: [] },
      default_action_on_failure: "allow",
    }),
  },
  { path: "/attestations", means: "optional", body: (signer) => submission(signer, newManifest()) },
  {
    path: "/documents/sign",
    means: "optional",
    body: ({ publicKey }) => ({ title: "A title", content_hash: "0".repeat(64), public_key_pem: publicKey }),
  },
  { path: "/claims", means: "session", body: () => ({ payload: sealed() }) },
  { path: "/claims/{entry_id}/reveal", sent: "/claims/1/reveal", means: "session", body: () => ({ plaintext: {} }) },
  { path: "/webhooks", means: "session", body: () => ({ url: "https://receiver.example/hook" }) },
  { path: "/inbox/{id}/read", sent: "/inbox/1/read", means: "session", body: () => ({}) },
  { path: "/auth/renew", means: "session", body: () => ({}) },
  { path: "/log/anchor", means: "operator", body: () => ({}) },
  { path: "/log/sth/sign", means: "operator", body: () => ({}) },
  { path: "/log/{entry_id}/withhold", sent: "/log/1/withhold", means: "operator", body: () => ({}) },
  { path: "/log/freeze", means: "operator", body: () => ({}) },
];

/**
 * Parts of a batch carry proofs of their own; signing in, enrolment and the session of who registers the key of somebody else
 * have tests of their own.
 */
const ELSEWHERE = ["/attestations/batch", "/auth/login", "/credentials/enroll", "/keys/register"];

const operator = () =>
  ({
    fingerprint: world.operatorFingerprint,
    sign: (message: Uint8Array | string) => world.operatorSign(Buffer.from(message)).toString("base64"),
  }) as TestSigner;

const sentPath = ({ path, sent }: Write) => sent ?? path;
const placed = ({ means }: Write, body: Body, proof: Body): Body =>
  means === "top" ? { ...body, ...proof } : { ...body, auth: proof };

/** A proof for exactly one request. */
async function namedProof(signer: TestSigner, path: string, body: Body) {
  const act = requestAct("POST", `/api/v1${path}`, body);
  const challenge = await challengeOf(service, signer, { act });
  expect(challenge).toMatchObject({ act });
  return { challenge_id: challenge.challenge_id, challenge_signature: signer.sign(challenge.nonce) };
}

/** Whether authorisation was what the request failed by, if it failed. */
const isRefused = ({ status, body }: { status: number; body: { code?: string; detail?: string } }) =>
  status === 401 ||
  /^(?:proof-required|challenge-used|gone)$/.test(body?.code ?? "") ||
  /another request/.test(body?.detail ?? "");

test("the table has every route that takes a session or a proof", async () => {
  const { paths } = await service.openApi();
  const proving = Object.entries(paths)
    .filter(([, methods]) => {
      const post = (methods as Record<string, { security?: readonly object[]; description?: string }>).post;
      return post && ((post.security?.length ?? 0) > 0 || /challenge|session|proof/i.test(post.description ?? ""));
    })
    .map(([path]) => path.replace("/api/v1", ""))
    .filter((path) => !/^\/auth\/challenge$/.test(path));
  const known = [...WRITES.map(({ path }) => path), ...ELSEWHERE];
  expect(proving.sort()).toEqual(known.sort());
});

const proofs = WRITES.filter(({ means }) => ["proof", "either", "fresh", "optional", "top"].includes(means));

describe.each(proofs)("$path ($means)", (write) => {
  test("takes a proof that names this request", async () => {
    const signer = await registeredSigner(service);
    const body = write.body(signer);
    const proof = await namedProof(signer, sentPath(write), body);
    const reply = await service.post(sentPath(write), placed(write, body, proof));
    expect(isRefused(reply), reply.text).toBe(false);
    const again = await service.post(sentPath(write), placed(write, body, proof));
    expectProblem(again, 409, "challenge-used");
  });

  test("takes a proof that names no request", async () => {
    const signer = await registeredSigner(service);
    const reply = await service.post(
      sentPath(write),
      placed(write, write.body(signer), await proofOf(service, signer)),
    );
    expect(isRefused(reply), reply.text).toBe(false);
  });

  test("refuses a proof that names another body, path or method, and does not use it up", async () => {
    const signer = await registeredSigner(service);
    const [body, path] = [write.body(signer), sentPath(write)];
    const others = [
      await namedProof(signer, path, { ...body, more: 1 }),
      await namedProof(signer, path, {}),
      await namedProof(signer, `${path}/`, body),
    ];
    const named = await challengeOf(service, signer, { act: requestAct("DELETE", `/api/v1${path}`, body) });
    others.push({ challenge_id: named.challenge_id, challenge_signature: signer.sign(named.nonce) });
    const isEmpty = Object.keys(body).length === 0;
    for (const proof of isEmpty ? others.slice(2) : others) {
      for (let i = 0; i < 2; i++) expectProblem(await service.post(path, placed(write, body, proof)), 403, "forbidden");
    }
    const own = await namedProof(signer, path, body);
    expectProblem(await service.post(path, placed(write, { ...body, more: 1 }, own)), 403, "forbidden");
    expect(isRefused(await service.post(path, placed(write, body, own)))).toBe(false);
  });
});

describe.each(WRITES)("a session at $path ($means)", (write) => {
  test("is taken as the table says, for as long as it says", async () => {
    const signer = write.means === "operator" ? operator() : await registeredSigner(service);
    const bearer = await bearerOf(service, signer);
    const send = (headers: Record<string, string>) => service.post(sentPath(write), write.body(signer), headers);
    const isTaken = !["proof", "top"].includes(write.means);
    world.now += 301 * SECOND;
    const old = await send(bearer);
    if (write.means === "fresh") expectProblem(old, 403, "proof-required");
    else if (write.means === "top") expect(old.status, old.text).toBe(422);
    else expect(old.status === 401, old.text).toBe(!isTaken);
    if (!isTaken) return;
    const fresh = await send(await bearerOf(service, signer));
    expect(isRefused(fresh), fresh.text).toBe(false);
  });
});

describe.each(["/keys/succeed", "/keys/revoke"])("the session that may end a key (%s)", (path) => {
  const { body } = WRITES.find((write) => write.path === path)!;

  test("is at most 300 seconds old, counted from its sign-in: to renew it does not help", async () => {
    const signer = await registeredSigner(service);
    const bearer = await bearerOf(service, signer);
    world.now += 290 * SECOND;
    const renewed = await service.post("/auth/renew", {}, bearer);
    world.now += 11 * SECOND;
    for (const authorization of [bearer.authorization, `Bearer ${renewed.body.token}`])
      expectProblem(await service.post(path, body(signer), { authorization }), 403, "proof-required");
    expect((await service.get(`/keys/${signer.fingerprint}/status`)).body.status).toBe("active");
  });

  test("serves until then", async () => {
    const signer = await registeredSigner(service);
    const bearer = await bearerOf(service, signer);
    world.now += 300 * SECOND;
    expect((await service.post(path, body(signer), bearer)).status).toBe(200);
  });

  test("has taken the password of a key that has one", async () => {
    const signer = await registeredSigner(service);
    const before = await bearerOf(service, signer);
    const password = "a password of mine";
    const set = await service.post("/auth/password", { ...(await proofOf(service, signer)), password });
    expect(set.status).toBe(200);
    expectProblem(await service.post(path, body(signer), before), 401);
    expectProblem(await service.post("/auth/login", await proofOf(service, signer)), 403, "forbidden");
    const bearer = await bearerOf(service, signer, { password });
    expect((await service.post(path, body(signer), bearer)).status).toBe(200);
  });
});

describe("an act", () => {
  test("is none of a sign-in, in either way", async () => {
    const { fingerprint, sign } = await registeredSigner(service);
    const act = "0".repeat(64);
    expectProblem(await service.post("/auth/challenge", { fingerprint, purpose: "login", act }), 422, "invalid-input");
    const { challenge_id, nonce } = await challengeOf(service, { fingerprint }, { act });
    const login = { challenge_id, challenge_signature: sign(nonce) };
    expectProblem(await service.post("/auth/login", login), 403, "forbidden");
  });

  test.each(["", "0".repeat(63), "0".repeat(65), "G".repeat(64), "A".repeat(64), 7])(
    "is refused as %j",
    async (act) => {
      const { fingerprint } = await registeredSigner(service);
      expectProblem(await service.post("/auth/challenge", { fingerprint, act }), 422, "invalid-input");
    },
  );

  test("of a submission in a batch is that of the submission alone", async () => {
    const signer = await registeredSigner(service);
    const [one, two] = [submission(signer, newManifest()), submission(signer, newManifest())];
    const auth = await namedProof(signer, "/attestations", one);
    const submissions = [
      { ...two, auth },
      { ...one, auth },
    ];
    const { body } = await service.post("/attestations/batch", { submissions });
    expect(body.results.map(({ status }: { status: number }) => status)).toEqual([403, 201]);
  });
});
