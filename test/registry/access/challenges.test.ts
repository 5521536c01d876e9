import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { operatorKey } from "#cairnlog/engine/crypto/keys/operator-key.js";
import { generatePrivateKey } from "#cairnlog/engine/crypto/keys/private-key.js";
import type { ServerKey } from "#cairnlog/engine/crypto/keys/spki.js";
import {
  type Challenge,
  Challenges,
  MAX_CHALLENGES,
  MAX_CHALLENGES_PER_KEY,
} from "#cairnlog/engine/registry/access/challenges.js";
import type { KeyRecord } from "#cairnlog/engine/registry/keys/keys.js";
import type { ChallengePurpose } from "#cairnlog/engine/verify/contract.js";
import { heldMemory } from "../../held-memory.js";
import {
  ALGORITHMS,
  at,
  closeWorlds,
  DAY,
  failure,
  nodeSigner,
  opensslSigner,
  openWorld,
  registration,
  SECOND,
  type TestSigner,
  type World,
} from "../world.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

const EVERY: readonly ChallengePurpose[] = ["login", "general", "recovery"];
const WRONG = Buffer.alloc(64, 1).toString("base64");

async function registered(expiration?: string): Promise<TestSigner> {
  const signer = nodeSigner();
  await world.registry.keys.register(registration(signer, "someone", expiration));
  return signer;
}
const issue = (signer: TestSigner, more: { recovery?: boolean; purpose?: "login" | "general" } = {}) =>
  world.registry.challenges.issue({ fingerprint: signer.fingerprint, ...more });
const consume = (
  { challenge_id }: Challenge,
  signature: string,
  more: { fingerprint?: string; purposes?: readonly ChallengePurpose[]; allowEnded?: boolean } = {},
) => world.registry.challenges.consume({ challengeId: challenge_id, signature, purposes: EVERY, ...more });
const refusal = async (...args: Parameters<typeof consume>) => (await failure(() => consume(...args))).code;

describe("a challenge", () => {
  it.each([
    ["general by default", {}, "general"],
    ["general", { purpose: "general" }, "general"],
    ["login", { purpose: "login" }, "login"],
  ] as const)("has a nonce that names its purpose and its key (%s)", async (_, more, purpose) => {
    const signer = await registered();
    const challenge = issue(signer, more);
    expect(challenge.challenge_id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const [, secret] = challenge.nonce.split(`service.auth.v1:${purpose}:${signer.fingerprint}:`);
    expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(Buffer.from(secret!, "base64url")).toHaveLength(32);
    expect(challenge.expires_at).toBe(at(world.now + 300 * SECOND));
  });

  it("is another one every time", async () => {
    const signer = await registered();
    const [a, b] = [issue(signer), issue(signer)];
    expect(a.challenge_id).not.toBe(b.challenge_id);
    expect(a.nonce).not.toBe(b.nonce);
  });

  it("names the key as the registry writes it, however it was asked for", async () => {
    const { fingerprint } = await registered();
    const bare = fingerprint.slice("sha256:".length).toUpperCase();
    expect(world.registry.challenges.issue({ fingerprint: bare }).nonce).toContain(`:${fingerprint}:`);
  });

  it.each(ALGORITHMS.flatMap((algorithm) => [nodeSigner(algorithm), opensslSigner(algorithm)]))(
    "is answered by a signature over its nonce ($algorithm)",
    async (signer) => {
      await world.registry.keys.register(registration(signer));
      const challenge = issue(signer);
      expect(await consume(challenge, signer.sign(challenge.nonce))).toEqual({
        fingerprint: signer.fingerprint,
        recovery: false,
      });
    },
  );

  it("is made for the operator key, too", async () => {
    const challenge = issue(world.operator);
    expect(await consume(challenge, world.operator.sign(challenge.nonce))).toMatchObject({
      fingerprint: world.operator.fingerprint,
    });
  });

  it("is not made for an unknown key", async () => {
    expect((await failure(() => issue(nodeSigner()))).code).toBe("not-found");
    expect((await failure(() => world.registry.challenges.issue({ fingerprint: "x" }))).code).toBe("not-found");
  });

  it("is not made for a key that was revoked or succeeded, with recovery or without", async () => {
    const [revoked, succeeded, next] = [await registered(), await registered(), nodeSigner()];
    await world.registry.keyLifecycle.revoke(revoked.fingerprint);
    const payload = { old_fingerprint: succeeded.fingerprint, new_public_key: next.pem, new_algorithm: "ed25519" };
    await world.registry.keyLifecycle.succeed(payload as never, { recovery: false });
    for (const signer of [revoked, succeeded])
      for (const recovery of [false, true])
        expect((await failure(() => issue(signer, { recovery }))).code).toBe("key-not-active");
  });

  it("is made for an expired key by recovery alone, and by recovery for no other", async () => {
    const signer = await registered(at(world.now + SECOND));
    expect((await failure(() => issue(signer, { recovery: true }))).code).toBe("wrong-key-status");
    world.now += SECOND;
    expect((await failure(() => issue(signer))).code).toBe("key-not-active");
    const challenge = issue(signer, { recovery: true, purpose: "login" });
    expect(challenge.nonce).toContain(`service.auth.v1:recovery:${signer.fingerprint}:`);
    expect(await consume(challenge, signer.sign(challenge.nonce))).toEqual({
      fingerprint: signer.fingerprint,
      recovery: true,
    });
  });
});

describe("an answer", () => {
  it("serves once", async () => {
    const signer = await registered();
    const challenge = issue(signer);
    const signature = signer.sign(challenge.nonce);
    await consume(challenge, signature);
    expect(await refusal(challenge, signature)).toBe("challenge-used");
    expect(await refusal(challenge, WRONG)).toBe("challenge-used");
    world.now += DAY;
    expect(await refusal(challenge, signature)).toBe("challenge-used");
  });

  it.each(["ed25519", "rsa-2048"] as const)("of a hundred at one moment serves once (%s)", async (algorithm) => {
    const signer = nodeSigner(algorithm);
    await world.registry.keys.register(registration(signer));
    const challenge = issue(signer);
    const signature = signer.sign(challenge.nonce);
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => consume(challenge, signature)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason.code] : []));
    expect(reasons).toEqual(Array.from({ length: 99 }, () => "challenge-used"));
  });

  it("is refused once the challenge has expired, to the microsecond", async () => {
    const signer = await registered();
    const [early, late] = [issue(signer), issue(signer)];
    world.now += 300 * SECOND - 1;
    await consume(early, signer.sign(early.nonce));
    world.now += 1;
    expect(await refusal(late, signer.sign(late.nonce))).toBe("gone");
  });

  it("is refused when the challenge is unknown, after as much work as for a known one", async () => {
    const { registry } = world;
    const messages: number[] = [];
    const challenges = new Challenges({
      keys: registry.keys,
      verifier: {
        verify: async (_, message) => {
          messages.push(message.length);
          return true;
        },
      },
      operator: operatorKey(generatePrivateKey("ed25519")),
      clock: () => world.now,
      ttlSeconds: 300,
    });
    for (const signature of [WRONG, "not base64"]) {
      const answer = { challengeId: "6b1c9a2e-0000-4000-8000-000000000000", signature, purposes: EVERY };
      expect((await failure(() => challenges.consume(answer))).code).toBe("not-found");
    }
    expect(messages).toHaveLength(2);
  });

  it.each([
    ["another key's signature", (nonce: string) => nodeSigner().sign(nonce)],
    ["a signature of zeros", () => Buffer.alloc(64).toString("base64")],
    ["no base64", () => "%%%"],
    ["nothing", () => ""],
    ["a megabyte", () => "A".repeat(1 << 20)],
    ["no text", () => 7 as unknown as string],
  ])("with %s is refused and does not use the challenge up", async (_, signature) => {
    const signer = await registered();
    const challenge = issue(signer);
    expect(await refusal(challenge, signature(challenge.nonce))).toBe("forbidden");
    await consume(challenge, signer.sign(challenge.nonce));
  });

  it("over another nonce of the same key is refused", async () => {
    const signer = await registered();
    const [first, second] = [issue(signer), issue(signer)];
    expect(await refusal(first, signer.sign(second.nonce))).toBe("forbidden");
  });

  it("is refused for ever after five failed signatures", async () => {
    const signer = await registered();
    const challenge = issue(signer);
    for (let i = 0; i < 4; i++) expect(await refusal(challenge, WRONG)).toBe("forbidden");
    const other = issue(signer);
    expect(await refusal(challenge, WRONG)).toBe("forbidden");
    expect(await refusal(challenge, signer.sign(challenge.nonce))).toBe("not-found");
    await consume(other, signer.sign(other.nonce));
  });

  it("counts as failed one by one when many come at one moment", async () => {
    const signer = await registered();
    const challenge = issue(signer);
    const codes = await Promise.all(Array.from({ length: 20 }, () => refusal(challenge, WRONG)));
    expect(codes.filter((code) => code === "forbidden")).toHaveLength(5);
    expect(codes.filter((code) => code === "not-found")).toHaveLength(15);
  });

  it("to another key's challenge is refused where a key is expected, and uses nothing up", async () => {
    const [signer, other] = [await registered(), await registered()];
    const challenge = issue(signer);
    const signature = signer.sign(challenge.nonce);
    expect(await refusal(challenge, signature, { fingerprint: other.fingerprint })).toBe("forbidden");
    await consume(challenge, signature, { fingerprint: signer.fingerprint });
  });

  it("to a challenge of another purpose is refused, and uses nothing up", async () => {
    const signer = await registered();
    const challenge = issue(signer, { purpose: "login" });
    const signature = signer.sign(challenge.nonce);
    for (const purposes of [["general"], ["recovery"], []] as const)
      expect(await refusal(challenge, signature, { purposes })).toBe("forbidden");
    await consume(challenge, signature, { purposes: ["login"] });
  });

  it.each(["revoked", "expired"] as const)("of a key that was %s since is refused", async (end) => {
    const signer = await registered(at(world.now + 10 * SECOND));
    const [challenge, open] = [issue(signer), issue(signer)];
    if (end === "revoked") await world.registry.keyLifecycle.revoke(signer.fingerprint);
    else world.now += 10 * SECOND;
    expect(await refusal(challenge, signer.sign(challenge.nonce))).toBe("key-not-active");
    expect(await refusal(challenge, signer.sign(challenge.nonce))).toBe("challenge-used");
    const proof = await consume(open, signer.sign(open.nonce), { allowEnded: true });
    expect(proof).toEqual({ fingerprint: signer.fingerprint, recovery: false });
  });

  it("is refused after a restart, which forgets challenges", async () => {
    const other = await openWorld();
    const signer = nodeSigner();
    await other.registry.keys.register(registration(signer));
    const { challenge_id, nonce } = other.registry.challenges.issue(signer);
    await other.reopen();
    const answer = { challengeId: challenge_id, signature: signer.sign(nonce), purposes: EVERY };
    expect((await failure(() => other.registry.challenges.consume(answer))).code).toBe("not-found");
  });
});

/** Challenges of keys with the given rows, without signatures. */
const bare = (publicKey: ServerKey, row: (fingerprint: string) => string = (fingerprint) => fingerprint) =>
  new Challenges({
    keys: {
      find: (named) => ({ fingerprint: row(named), status: "active", public_key: publicKey.pem }) as KeyRecord,
    },
    verifier: { verify: async () => true },
    operator: { public: publicKey },
    clock: () => world.now,
    ttlSeconds: 300,
  });
const publicKey = operatorKey(generatePrivateKey("ed25519")).public;

describe("the number of challenges", () => {
  it("is bounded for each key: the oldest gives way, others' stay", async () => {
    const [signer, other] = [await registered(), await registered()];
    const [kept, oldest, second] = [issue(other), issue(signer), issue(signer)];
    const { size } = world.registry.challenges;
    for (let i = 2; i <= MAX_CHALLENGES_PER_KEY; i++) issue(signer);
    expect(world.registry.challenges.size).toBe(size + MAX_CHALLENGES_PER_KEY - 2);
    expect(await refusal(oldest, signer.sign(oldest.nonce))).toBe("not-found");
    await consume(second, signer.sign(second.nonce));
    await consume(kept, other.sign(kept.nonce));
  });

  it.each([
    ["each of another key", 150_000],
    ["thirty for each key", 5_000],
  ])("is bounded in all: 150,000 requests, %s", async (_, keys) => {
    const challenges = bare(publicKey);
    let last = challenges.issue({ fingerprint: "first" });
    const first = last;
    for (let i = 0; i < 150_000; i++) last = challenges.issue({ fingerprint: `key ${i % keys}` });
    expect(challenges.size).toBe(MAX_CHALLENGES);
    const take = ({ challenge_id }: Challenge) =>
      challenges.consume({ challengeId: challenge_id, signature: WRONG, purposes: EVERY });
    expect((await failure(() => take(first))).code).toBe("not-found");
    expect((await take(last)).fingerprint).toBe(`key ${149_999 % keys}`);
  });

  it("covers the last ten minutes: five in which they are valid, and five in which they are reported as expired", async () => {
    const challenges = bare(publicKey);
    const take = ({ challenge_id }: Challenge) =>
      challenges.consume({ challengeId: challenge_id, signature: WRONG, purposes: EVERY });
    const code = async (challenge: Challenge) => (await failure(() => take(challenge))).code;
    const first = challenges.issue({ fingerprint: "first" });
    world.now += 599 * SECOND;
    const second = challenges.issue({ fingerprint: "second" });
    expect(await code(first)).toBe("gone");
    world.now += 1 * SECOND;
    challenges.issue({ fingerprint: "third" });
    expect(challenges.size).toBe(2);
    expect(await code(first)).toBe("not-found");
    expect((await take(second)).fingerprint).toBe("second");
    expect(await code(second)).toBe("challenge-used");
    for (let i = 0; i < 2_000; i++) challenges.issue({ fingerprint: `key ${i}` });
    world.now += 600 * SECOND;
    challenges.issue({ fingerprint: "last" });
    expect(challenges.size).toBe(1);
  });

  it("is all that memory depends on: none keeps the row of its key", () => {
    const challenges = bare(publicKey, (named) => `${named}${"x".repeat(20_000)}`.slice(0, named.length));
    const issueMany = () => {
      for (let i = 0; i < 500; i++) challenges.issue({ fingerprint: `sha256:${`${i}`.padStart(64, "0")}` });
    };
    issueMany();
    const before = heldMemory();
    issueMany();
    expect((heldMemory() - before) / 500).toBeLessThan(5_000);
  });
});
