import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ALGORITHMS,
  at,
  closeWorlds,
  DAY,
  failure,
  manifestOf,
  nodeSigner,
  opensslSigner,
  openWorld,
  registration,
  SECOND,
  submission,
  type TestSigner,
  type World,
} from "../world.js";

type Succession = Parameters<World["registry"]["keyLifecycle"]["succeed"]>[0];

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

async function registered(pseudonym = "someone", expiration?: string): Promise<TestSigner> {
  const signer = nodeSigner();
  await world.registry.keys.register(registration(signer, pseudonym, expiration));
  return signer;
}
const succession = (old: TestSigner, next: TestSigner, more: Record<string, unknown> = {}) => ({
  old_fingerprint: old.fingerprint,
  new_public_key: next.pem,
  new_algorithm: next.algorithm,
  ...more,
});
const succeed = (input: unknown, recovery = false) =>
  world.registry.keyLifecycle.succeed(input as Succession, { recovery });
const revoke = ({ fingerprint }: { fingerprint: string }) => world.registry.keyLifecycle.revoke(fingerprint);
const statusOf = ({ fingerprint }: TestSigner) => world.registry.keys.find(fingerprint).status;

/** Asserts that `action` is refused with `code` and leaves the log as it was. */
async function expectRefused(action: () => Promise<unknown>, code: string, paths: string[] = []): Promise<void> {
  const { size } = world.registry.log;
  expect(await failure(action)).toMatchObject({ code, paths });
  expect(world.registry.log.size).toBe(size);
}

describe("succession", () => {
  it.each(ALGORITHMS.flatMap((algorithm) => [nodeSigner(algorithm), opensslSigner(algorithm)]))(
    "by a new key ($algorithm)",
    async (next) => {
      const old = await registered("Ada");
      const { log, keys } = world.registry;
      const receipt = await succeed(succession(old, next));
      expect(receipt).toEqual({
        old_fingerprint: old.fingerprint,
        new_fingerprint: next.fingerprint,
        log_entry_id: log.size,
        leaf_index: log.size - 1,
        entry_hash: log.head()!.entry_hash,
      });
      expect(log.head()).toMatchObject({ event_type: "key_succession", timestamp: at(world.now) });
      expect(log.head()!.payload).toEqual({
        event_type: "key_succession",
        old_fingerprint: old.fingerprint,
        fingerprint: next.fingerprint,
        public_key: next.pem,
        pseudonym: "Ada",
        key_algorithm: next.algorithm,
        expiration_date: null,
        new_key_signature: null,
      });
      expect(keys.find(old.fingerprint)).toMatchObject({
        status: "succeeded",
        successor_fingerprint: next.fingerprint,
        ended_at: at(world.now),
      });
      expect(keys.find(next.fingerprint)).toMatchObject({
        status: "active",
        pseudonym: "Ada",
        predecessor_fingerprint: old.fingerprint,
        expires_at: null,
        log_entry_id: log.size,
      });
    },
  );

  it("accepts a new pseudonym and expiration, and does not inherit the expiration", async () => {
    const old = await registered("Ada", at(world.now + DAY));
    const [next, last] = [nodeSigner(), nodeSigner()];
    const expiration_date = at(world.now + 2 * DAY);
    await succeed(succession(old, next, { pseudonym: "Ada\u0308", expiration_date }));
    expect(world.registry.keys.find(next.fingerprint)).toMatchObject({ pseudonym: "Adä", expires_at: expiration_date });
    await succeed(succession(next, last, { pseudonym: null, expiration_date: null, new_key_signature: null }));
    expect(world.registry.keys.find(last.fingerprint)).toMatchObject({ pseudonym: "Adä", expires_at: null });
  });

  it.each([
    ["of one byte", "x".repeat(200)],
    ["of four bytes", "🪨".repeat(200)],
    ["that were sent as 800", "\u03b1\u0313\u0300\u0345".repeat(200)],
    ["that were sent as 100", "\u0958".repeat(100)],
    ["that were sent as 66, of two code units each", `${"\u{1d160}".repeat(66)}xx`],
  ])("hands on a pseudonym of 200 characters whole: characters %s", async (_, sent) => {
    const pseudonym = sent.normalize("NFC");
    expect([...pseudonym]).toHaveLength(200);
    const [old, next, last] = [await registered(sent), nodeSigner(), nodeSigner()];
    const { keys, log } = world.registry;
    await succeed(succession(old, next));
    expect(keys.find(next.fingerprint).pseudonym).toBe(pseudonym);
    expect(log.head()!.payload!.pseudonym).toBe(pseudonym);
    await succeed(succession(next, last, { pseudonym: sent }));
    expect(keys.find(last.fingerprint).pseudonym).toBe(pseudonym);
    const found = await keys.search(sent, { per_page: 200 });
    expect(found.keys.map(({ fingerprint }) => fingerprint)).toEqual(
      expect.arrayContaining([old.fingerprint, next.fingerprint, last.fingerprint]),
    );
  });

  it.each([
    ["one by one", "x".repeat(201)],
    ["when 101 are normalised", "\u0958".repeat(101)],
    ["when 67 are normalised", "\u{1d160}".repeat(67)],
    ["when they have been composed", "e\u0301".repeat(201)],
  ])("refuses a pseudonym that has more than 200 characters, counted %s", async (_, pseudonym) => {
    const old = await registered();
    await expectRefused(() => succeed(succession(old, nodeSigner(), { pseudonym })), "invalid-input", ["/pseudonym"]);
    expect(statusOf(old)).toBe("active");
  });

  it("accepts an expiration one microsecond ahead, and none that is now", async () => {
    const [old, next] = [await registered(), nodeSigner()];
    const until = (micros: number) => succession(old, next, { expiration_date: at(micros) });
    await expectRefused(() => succeed(until(world.now)), "invalid-input", ["/expiration_date"]);
    await succeed(until(world.now + 1));
    expect(statusOf(next)).toBe("active");
    world.now += 1;
    expect(statusOf(next)).toBe("expired");
  });

  it("makes a chain whose keys sign no more but the last", async () => {
    const [first, second, third] = [await registered(), nodeSigner(), nodeSigner()];
    await succeed(succession(first, second));
    await succeed(succession(second, third));
    const submit = (signer: TestSigner) =>
      world.registry.attestations.submit(submission(signer, manifestOf()) as never);
    for (const ended of [first, second]) expect((await failure(() => submit(ended))).code).toBe("key-not-active");
    await submit(third);
  });

  it.each(["ed25519", "ecdsa-p256"] as const)("may show that the new key is held (%s)", async (algorithm) => {
    const [old, next] = [await registered(), opensslSigner(algorithm)];
    const message = `service.key.succession.v1:${old.fingerprint}:${next.fingerprint}`;
    await succeed(succession(old, next, { new_key_signature: next.sign(message) }));
    expect(statusOf(next)).toBe("active");
  });

  it.each([
    ["by the old key", "invalid-signature", [], (old: TestSigner, _: TestSigner, text: string) => old.sign(text)],
    ["over something else", "invalid-signature", [], (_: TestSigner, next: TestSigner) => next.sign("something else")],
    ["that is empty", "invalid-signature", [], () => ""],
    ["that is no base64", "invalid-input", ["/new_key_signature"], () => "%%%"],
    ["that is no text", "invalid-input", ["/new_key_signature"], () => 7],
  ] as const)("is refused with a signature of the new key %s", async (_, code, paths, signature) => {
    const [old, next] = [await registered(), nodeSigner()];
    const text = `service.key.succession.v1:${old.fingerprint}:${next.fingerprint}`;
    const input = succession(old, next, { new_key_signature: signature(old, next, text) });
    await expectRefused(() => succeed(input), code, [...paths]);
    expect(statusOf(old)).toBe("active");
  });

  it("is refused when the new key is registered, is the old one, or is the operator's", async () => {
    const [old, known] = [await registered(), await registered()];
    for (const next of [known, old, world.operator])
      await expectRefused(() => succeed(succession(old, next)), "already-exists");
    expect(statusOf(old)).toBe("active");
  });

  it("is refused for a key that was succeeded or revoked, by recovery too", async () => {
    const [succeeded, revoked] = [await registered(), await registered()];
    await succeed(succession(succeeded, nodeSigner()));
    await revoke(revoked);
    for (const old of [succeeded, revoked])
      for (const recovery of [false, true])
        await expectRefused(() => succeed(succession(old, nodeSigner()), recovery), "wrong-key-status");
  });

  it("of an expired key needs recovery", async () => {
    const old = await registered("Ada", at(world.now + SECOND));
    world.now += SECOND;
    const next = nodeSigner();
    await expectRefused(() => succeed(succession(old, next)), "key-not-active");
    await succeed(succession(old, next), true);
    expect(statusOf(old)).toBe("succeeded");
    expect(statusOf(next)).toBe("active");
  });

  it.each([
    ["no fingerprint", { old_fingerprint: "sha256:x" }, "invalid-input", ["/old_fingerprint"]],
    ["an unknown key", { old_fingerprint: nodeSigner().fingerprint }, "not-found", []],
    ["rubbish for a key", { new_public_key: "rubbish" }, "invalid-key", []],
    ["no key", { new_public_key: undefined }, "invalid-key", []],
    [
      "a private key",
      { new_public_key: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n" },
      "private-key",
      [],
    ],
    ["another algorithm", { new_algorithm: "rsa-2048" }, "invalid-key", []],
    ["no algorithm", { new_algorithm: "x" }, "invalid-input", ["/new_algorithm"]],
    ["an empty pseudonym", { pseudonym: "" }, "invalid-input", ["/pseudonym"]],
    ["a date that is none", { expiration_date: "soon" }, "invalid-input", ["/expiration_date"]],
    ["a date that has passed", { expiration_date: "1999-01-01T00:00:00Z" }, "invalid-input", ["/expiration_date"]],
  ])("is refused with %s", async (_, more, code, paths) => {
    const old = await registered();
    await expectRefused(() => succeed(succession(old, nodeSigner(), more)), code, paths);
    expect(statusOf(old)).toBe("active");
  });

  it.each([null, 7, "text", []])("refuses %j as a whole", async (input) => {
    await expectRefused(() => succeed(input), "invalid-input", [""]);
  });

  it("has one winner when many come at one moment", async () => {
    const old = await registered();
    const { size } = world.registry.log;
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => succeed(succession(old, nodeSigner()))));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results.slice(1)) expect(result).toMatchObject({ reason: { code: "wrong-key-status" } });
    expect(world.registry.log.size).toBe(size + 1);
  });

  it("gives a new key to one of two old ones", async () => {
    const [a, b, next] = [await registered(), await registered(), nodeSigner()];
    const results = await Promise.allSettled([succeed(succession(a, next)), succeed(succession(b, next))]);
    expect(results).toMatchObject([{ status: "fulfilled" }, { reason: { code: "already-exists" } }]);
    expect([statusOf(a), statusOf(b)]).toEqual(["succeeded", "active"]);
  });
});

describe("revocation", () => {
  it("ends a key for ever", async () => {
    const signer = await registered();
    const { log } = world.registry;
    const receipt = await revoke(signer);
    expect(receipt).toEqual({
      fingerprint: signer.fingerprint,
      status: "revoked",
      log_entry_id: log.size,
      leaf_index: log.size - 1,
      entry_hash: log.head()!.entry_hash,
    });
    expect(log.head()).toMatchObject({ event_type: "key_revocation", payload: { fingerprint: signer.fingerprint } });
    expect(log.head()!.payload).toEqual({ event_type: "key_revocation", fingerprint: signer.fingerprint });
    expect(world.registry.keys.find(signer.fingerprint)).toMatchObject({
      status: "revoked",
      ended_at: at(world.now),
      successor_fingerprint: null,
    });
    await expectRefused(() => revoke(signer), "wrong-key-status");
    expect((await failure(() => world.registry.keys.register(registration(signer)))).code).toBe("already-exists");
  });

  it("is refused for an unknown, a succeeded and an expired key, and for an invalid fingerprint", async () => {
    await expectRefused(() => revoke(nodeSigner()), "not-found");
    const succeeded = await registered();
    await succeed(succession(succeeded, nodeSigner()));
    await expectRefused(() => revoke(succeeded), "wrong-key-status");
    const expired = await registered("x", at(world.now + SECOND));
    world.now += SECOND;
    await expectRefused(() => revoke(expired), "wrong-key-status");
    for (const fingerprint of ["x", "", 7, null, {}])
      await expectRefused(() => revoke({ fingerprint: fingerprint as string }), "invalid-input", ["/fingerprint"]);
  });

  it("makes one entry when many come at one moment", async () => {
    const signer = await registered();
    const { size } = world.registry.log;
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => revoke(signer)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results.slice(1)) expect(result).toMatchObject({ reason: { code: "wrong-key-status" } });
    expect(world.registry.log.size).toBe(size + 1);
  });

  it("and succession at one moment: the first one wins", async () => {
    const signer = await registered();
    const results = await Promise.allSettled([revoke(signer), succeed(succession(signer, nodeSigner()))]);
    expect(results).toMatchObject([{ status: "fulfilled" }, { reason: { code: "wrong-key-status" } }]);
    expect(statusOf(signer)).toBe("revoked");
  });
});

describe("the operator key", () => {
  it("is neither succeeded nor revoked, registered or not", async () => {
    const attempts = () =>
      Promise.all([
        expectRefused(() => revoke(world.operator), "forbidden"),
        expectRefused(() => succeed(succession(world.operator, nodeSigner())), "forbidden"),
      ]);
    await attempts();
    await world.registry.keys.register(registration(world.operator, "the operator"));
    await attempts();
    expect(statusOf(world.operator)).toBe("active");
  });

  it("cannot be given an expiration by registering it", async () => {
    const other = await openWorld();
    const register = () => other.registry.keys.register(registration(other.operator, "x", at(other.now + SECOND)));
    expect((await failure(register)).code).toBe("forbidden");
    expect(other.registry.log.size).toBe(0);
  });
});

describe("state", () => {
  it("follows from the entries, before and after a restart", async () => {
    expect(world.registry.log.stateDifferences()).toEqual([]);
    const keys = world.registry.keys.list({ per_page: 200 });
    await world.reopen();
    expect(world.registry.keys.list({ per_page: 200 })).toEqual(keys);
    expect(world.registry.log.stateDifferences()).toEqual([]);
    expect(await world.registry.log.verify()).toMatchObject({ valid: true, errors: [] });
  });
});
