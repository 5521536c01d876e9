import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { ChallengeUses } from "#cairnlog/engine/registry/access/challenges.js";
import type { ChallengePurpose } from "#cairnlog/engine/verify/events/possession.js";
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

const MAX_FAILED = 10_000;

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

const EVERY: readonly ChallengePurpose[] = ["login", "general", "recovery"];
const ORIGIN = "https://log.example";
const WRONG = Buffer.alloc(64, 1).toString("base64");

async function registered(expiration?: string): Promise<TestSigner> {
  const signer = nodeSigner();
  await world.registry.keys.register(registration(signer, "someone", expiration));
  return signer;
}
const issue = (signer: TestSigner, more: { recovery?: boolean; purpose?: "login" | "general" } = {}) =>
  world.registry.challenges.issue({ fingerprint: signer.fingerprint, origin: ORIGIN, ...more });
const consume = (
  { challenge_id }: { readonly challenge_id: string },
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
    const challenge = await issue(signer, more);
    expect(challenge.challenge_id).toMatch(/^[\w-]{142}$/);
    expect(challenge).toMatchObject({ origin: ORIGIN, act: null });
    const [, secret] = challenge.nonce.split(`service.auth.v1:${purpose}:${signer.fingerprint}:`);
    expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(Buffer.from(secret!, "base64url")).toHaveLength(32);
    expect(challenge.expires_at).toBe(at(world.now + 300 * SECOND));
  });

  it("is another one every time", async () => {
    const signer = await registered();
    const [a, b] = [await issue(signer), await issue(signer)];
    expect(a.challenge_id).not.toBe(b.challenge_id);
    expect(a.nonce).not.toBe(b.nonce);
  });

  it("names the key as the registry writes it, however it was asked for", async () => {
    const { fingerprint } = await registered();
    const bare = fingerprint.slice("sha256:".length).toUpperCase();
    expect((await world.registry.challenges.issue({ fingerprint: bare, origin: ORIGIN })).nonce).toContain(
      `:${fingerprint}:`,
    );
  });

  it.each(ALGORITHMS.flatMap((algorithm) => [nodeSigner(algorithm), opensslSigner(algorithm)]))(
    "is answered by a signature over its nonce ($algorithm)",
    async (signer) => {
      await world.registry.keys.register(registration(signer));
      const challenge = await issue(signer);
      expect(await consume(challenge, signer.sign(challenge.nonce))).toEqual({
        fingerprint: signer.fingerprint,
        recovery: false,
      });
    },
  );

  it("is made for the operator key, too", async () => {
    const challenge = await issue(world.operator);
    expect(await consume(challenge, world.operator.sign(challenge.nonce))).toMatchObject({
      fingerprint: world.operator.fingerprint,
    });
  });

  it("is not made for an unknown key", async () => {
    expect((await failure(() => issue(nodeSigner()))).code).toBe("not-found");
    expect((await failure(() => world.registry.challenges.issue({ fingerprint: "x", origin: ORIGIN }))).code).toBe(
      "not-found",
    );
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
    const challenge = await issue(signer, { recovery: true, purpose: "login" });
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
    const challenge = await issue(signer);
    const signature = signer.sign(challenge.nonce);
    await consume(challenge, signature);
    expect(await refusal(challenge, signature)).toBe("challenge-used");
    expect(await refusal(challenge, WRONG)).toBe("challenge-used");
    world.now += DAY;
    expect(await refusal(challenge, signature)).toBe("gone");
  });

  it.each(["ed25519", "rsa-2048"] as const)("of a hundred at one moment serves once (%s)", async (algorithm) => {
    const signer = nodeSigner(algorithm);
    await world.registry.keys.register(registration(signer));
    const challenge = await issue(signer);
    const signature = signer.sign(challenge.nonce);
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => consume(challenge, signature)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason.code] : []));
    expect(reasons).toEqual(Array.from({ length: 99 }, () => "challenge-used"));
  });

  it("is refused once the challenge has expired, to the microsecond", async () => {
    const signer = await registered();
    const [early, late] = [await issue(signer), await issue(signer)];
    world.now += 300 * SECOND - 1;
    await consume(early, signer.sign(early.nonce));
    world.now += 1;
    expect(await refusal(late, signer.sign(late.nonce))).toBe("gone");
  });

  it("is refused when no such challenge was issued, whatever its id", async () => {
    const signer = await registered();
    const [challenge, other] = [await issue(signer), await openWorld()];
    await other.registry.keys.register(registration(signer));
    const foreign = await other.registry.challenges.issue({ fingerprint: signer.fingerprint, origin: ORIGIN });
    const bytes = Buffer.from(challenge.challenge_id, "base64url");
    const changed = Array.from(bytes, (byte, at) => {
      const copy = Buffer.from(bytes);
      copy[at] = byte ^ 1;
      return copy.toString("base64url");
    });
    const ids = [
      ...changed,
      foreign.challenge_id,
      "6b1c9a2e-0000-4000-8000-000000000000",
      "",
      "%",
      challenge.challenge_id.slice(0, -4),
      `${challenge.challenge_id}AAAA`,
      "A".repeat(1 << 20),
    ];
    for (const challenge_id of ids)
      expect(await refusal({ ...challenge, challenge_id }, signer.sign(challenge.nonce))).toBe("not-found");
    await consume(challenge, signer.sign(challenge.nonce));
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
    const challenge = await issue(signer);
    expect(await refusal(challenge, signature(challenge.nonce))).toBe("forbidden");
    await consume(challenge, signer.sign(challenge.nonce));
  });

  it("over another nonce of the same key is refused", async () => {
    const signer = await registered();
    const [first, second] = [await issue(signer), await issue(signer)];
    expect(await refusal(first, signer.sign(second.nonce))).toBe("forbidden");
  });

  it("is refused for ever after five failed signatures", async () => {
    const signer = await registered();
    const challenge = await issue(signer);
    for (let i = 0; i < 4; i++) expect(await refusal(challenge, WRONG)).toBe("forbidden");
    const other = await issue(signer);
    expect(await refusal(challenge, WRONG)).toBe("forbidden");
    expect(await refusal(challenge, signer.sign(challenge.nonce))).toBe("not-found");
    await consume(other, signer.sign(other.nonce));
  });

  it("counts as failed one by one when many come at one moment", async () => {
    const signer = await registered();
    const challenge = await issue(signer);
    const codes = await Promise.all(Array.from({ length: 20 }, () => refusal(challenge, WRONG)));
    expect(codes.filter((code) => code === "forbidden")).toHaveLength(5);
    expect(codes.filter((code) => code === "not-found")).toHaveLength(15);
  });

  it("to another key's challenge is refused where a key is expected, and uses nothing up", async () => {
    const [signer, other] = [await registered(), await registered()];
    const challenge = await issue(signer);
    const signature = signer.sign(challenge.nonce);
    expect(await refusal(challenge, signature, { fingerprint: other.fingerprint })).toBe("forbidden");
    await consume(challenge, signature, { fingerprint: signer.fingerprint });
  });

  it("to a challenge of another purpose is refused, and uses nothing up", async () => {
    const signer = await registered();
    const challenge = await issue(signer, { purpose: "login" });
    const signature = signer.sign(challenge.nonce);
    for (const purposes of [["general"], ["recovery"], []] as const)
      expect(await refusal(challenge, signature, { purposes })).toBe("forbidden");
    await consume(challenge, signature, { purposes: ["login"] });
  });

  it.each(["revoked", "expired"] as const)("of a key that was %s since is refused", async (end) => {
    const signer = await registered(at(world.now + 10 * SECOND));
    const [challenge, open] = [await issue(signer), await issue(signer)];
    if (end === "revoked") await world.registry.keyLifecycle.revoke(signer.fingerprint);
    else world.now += 10 * SECOND;
    expect(await refusal(challenge, signer.sign(challenge.nonce))).toBe("key-not-active");
    expect(await refusal(challenge, signer.sign(challenge.nonce))).toBe("challenge-used");
    const proof = await consume(open, signer.sign(open.nonce), { allowEnded: true });
    expect(proof).toEqual({ fingerprint: signer.fingerprint, recovery: false });
  });

  it("to a challenge from before a restart is taken, and one that was used before it is not", async () => {
    const other = await openWorld();
    const signer = nodeSigner();
    await other.registry.keys.register(registration(signer));
    const { fingerprint } = signer;
    const answer = async () => {
      const { challenge_id, nonce } = await other.registry.challenges.issue({ fingerprint, origin: ORIGIN });
      return { challengeId: challenge_id, signature: signer.sign(nonce), purposes: EVERY };
    };
    const [used, open] = [await answer(), await answer()];
    await other.registry.challenges.consume(used);
    await other.reopen();
    expect((await failure(() => other.registry.challenges.consume(used))).code).toBe("challenge-used");
    expect(await other.registry.challenges.consume(open)).toEqual({ fingerprint, recovery: false });
  });
});

describe("what is remembered of challenges", () => {
  it("is nothing of those that were only issued: strangers' requests displace nobody's", async () => {
    const [signer, other] = [await registered(), await registered()];
    const [own, ofOther] = [await issue(signer), await issue(other)];
    for (let i = 0; i < 200; i++) await issue(signer);
    expect(await consume(own, signer.sign(own.nonce))).toMatchObject({ fingerprint: signer.fingerprint });
    expect(await consume(ofOther, other.sign(ofOther.nonce))).toMatchObject({ fingerprint: other.fingerprint });
  });

  it("is bounded for those that failed: beyond that a failure is not counted, and none displaces another", async () => {
    const uses = new ChallengeUses({ ...world.registry, clock: () => world.now, ttlSeconds: 300 });
    const fail = async (id: string) =>
      (await failure(() => uses.settle({ id, expires: world.now + SECOND, isValid: false }))).code;
    for (let i = 0; i < 5; i++) expect(await fail("first")).toBe("forbidden");
    for (let i = 1; i < MAX_FAILED; i++) await fail(`${i}`);
    for (let i = 0; i < 10; i++) expect(await fail("one more")).toBe("forbidden");
    expect(uses.failed).toBe(MAX_FAILED);
    expect(await fail("first")).toBe("not-found");
    world.now += 300 * SECOND;
    await fail("later");
    expect(uses.failed).toBe(1);
  });

  it("is a row for each that was used, which a later use removes an hour after its end", async () => {
    const other = await openWorld();
    const signer = nodeSigner();
    await other.registry.keys.register(registration(signer));
    const use = async () => {
      const { fingerprint } = signer;
      const { challenge_id, nonce } = await other.registry.challenges.issue({ fingerprint, origin: ORIGIN });
      const answer = { challengeId: challenge_id, signature: signer.sign(nonce), purposes: EVERY };
      await other.registry.challenges.consume(answer);
    };
    const rows = () => other.registry.log.rows("usedChallenges", 0, [Number.MAX_SAFE_INTEGER]).length;
    for (let i = 0; i < 20; i++) await use();
    expect(rows()).toBe(20);
    other.now += 3900 * SECOND - 100_000_000;
    await use();
    expect(rows()).toBe(21);
    other.now += 100_000_001;
    for (let i = 0; i < 8; i++) await use();
    expect(rows()).toBe(9);
  });

  it("goes in the end, though the write that was to remove it failed", async () => {
    const other = await openWorld();
    const { log } = other.registry;
    let isRefused = false;
    const refuse = () => Promise.reject(new CairnlogError("storage-failed", "refused"));
    const refusing = new Proxy(log, {
      get: (target, name) => {
        if (name === "execute" && isRefused) return refuse;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const uses = new ChallengeUses({ log: refusing, writer: refusing, clock: () => other.now, ttlSeconds: 300 });
    const rows = () => log.rows("usedChallenges", 0, [Number.MAX_SAFE_INTEGER]).length;
    let number = 0;
    const use = () => uses.settle({ id: `${number++}`.padStart(64, "0"), expires: other.now + SECOND, isValid: true });
    for (let i = 0; i < 6; i++) await use();
    other.now += DAY;
    isRefused = true;
    for (let i = 0; i < 3; i++) expect((await failure(use)).code).toBe("storage-failed");
    isRefused = false;
    for (let i = 0; i < 4; i++) await use();
    expect(rows()).toBe(4);
  });
});
