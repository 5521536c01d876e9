import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ALGORITHMS,
  at,
  closeWorlds,
  DAY,
  failure,
  nodeSigner,
  opensslSigner,
  openWorld,
  type Registration,
  registration,
  type World,
} from "../world.js";

afterAll(closeWorlds);

describe("registration", () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
  });
  const register = (input: unknown) => world.registry.keys.register(input as Registration);

  it.each(ALGORITHMS.flatMap((algorithm) => [nodeSigner(algorithm), opensslSigner(algorithm)]))(
    "of a key ($algorithm)",
    async (signer) => {
      const receipt = await register(registration(signer, "Ada"));
      const { log } = world.registry;
      const entry = log.entry(log.size)!;
      expect(receipt).toEqual({
        fingerprint: signer.fingerprint,
        pseudonym: "Ada",
        algorithm: signer.algorithm,
        log_entry_id: log.size,
        leaf_index: log.size - 1,
        entry_hash: entry.entry_hash,
      });
      expect(entry.event_type).toBe("key_registration");
      expect(entry.payload).toEqual({
        event_type: "key_registration",
        fingerprint: signer.fingerprint,
        public_key: signer.pem,
        pseudonym: "Ada",
        key_algorithm: signer.algorithm,
        expiration_date: null,
        possession_signature: null,
      });
      expect(world.registry.keys.find(signer.fingerprint)).toEqual({
        fingerprint: signer.fingerprint,
        public_key: signer.pem,
        pseudonym: "Ada",
        algorithm: signer.algorithm,
        status: "active",
        registered_at: at(world.now),
        expires_at: null,
        log_entry_id: log.size,
        successor_fingerprint: null,
        predecessor_fingerprint: null,
        predecessor_confirmed: null,
        ended_at: null,
        proven: false,
        named: false,
      });
    },
  );

  it("is refused the second time, in any form of the key", async () => {
    const signer = nodeSigner();
    await register(registration(signer));
    const { size } = world.registry.log;
    expect((await failure(() => register(registration(signer, "other")))).code).toBe("already-exists");
    const respelt = { ...registration(signer), public_key: `\n${signer.pem.replaceAll("\n", "\r\n")}` };
    expect((await failure(() => register(respelt))).code).toBe("already-exists");
    expect(world.registry.log.size).toBe(size);
  });

  it("has one winner when many register the same key at once", async () => {
    const signer = nodeSigner();
    const { size } = world.registry.log;
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => register(registration(signer, `n${i}`))),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(results[0]!.status).toBe("fulfilled");
    for (const result of results.slice(1)) expect(result).toMatchObject({ reason: { code: "already-exists" } });
    expect(world.registry.log.size).toBe(size + 1);
  });

  it("refuses an algorithm that is not the key's, and one that is none", async () => {
    const signer = nodeSigner("ecdsa-p256");
    const wrong = await failure(() => register({ ...registration(signer), key_algorithm: "ed25519" }));
    expect(wrong.code).toBe("invalid-key");
    for (const key_algorithm of ["rsa-4096", "", null, undefined, 7, ["ecdsa-p256"]]) {
      const error = await failure(() => register({ ...registration(signer), key_algorithm }));
      expect(error).toMatchObject({ code: "invalid-input", paths: ["/key_algorithm"] });
    }
  });

  it.each([
    ["no text", 7, "invalid-key"],
    ["absent", undefined, "invalid-key"],
    ["rubbish", "rubbish", "invalid-key"],
    ["a private key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "private-key"],
  ])("refuses a public key that is %s", async (_, public_key, code) => {
    expect((await failure(() => register({ public_key, pseudonym: "x", key_algorithm: "ed25519" }))).code).toBe(code);
  });

  it.each([null, undefined, "text", 7, true, []])("refuses %j as a whole", async (input) => {
    expect((await failure(() => register(input))).code).toBe("invalid-input");
  });

  it.each([
    ["one character", "x", "x"],
    ["200 characters of one byte", "x".repeat(200), "x".repeat(200)],
    ["200 characters of four bytes", "🪨".repeat(200), "🪨".repeat(200)],
    ["200 characters once composed", "e\u0301".repeat(200), "é".repeat(200)],
    ["composed", "A\u030angstro\u0308m", "Ångström"],
    ["spaces as they are", "  a  b ", "  a  b "],
  ])("takes a pseudonym of %s", async (_, pseudonym, stored) => {
    const signer = nodeSigner();
    expect((await register(registration(signer, pseudonym))).pseudonym).toBe(stored);
    expect(world.registry.keys.find(signer.fingerprint).pseudonym).toBe(stored);
  });

  it.each([
    ["nothing", ""],
    ["201 characters of one byte", "x".repeat(201)],
    ["201 characters of four bytes", "🪨".repeat(201)],
    ["201 characters after composition", "e\u0301".repeat(201)],
    ["a megabyte", "e\u0301".repeat(500_000)],
    ["a line feed", "a\nb"],
    ["a NUL", "a\0b"],
    ["DEL", "a\x7f"],
    ["a C1 control", "a\x85b"],
    ["half a surrogate pair", "a\ud83e"],
    ["the other half", "\udea8a"],
    ["a number", 7],
    ["null", null],
    ["an object", { length: 5 }],
  ])("refuses a pseudonym of %s", async (_, pseudonym) => {
    const error = await failure(() => register({ ...registration(nodeSigner()), pseudonym }));
    expect(error).toMatchObject({ code: "invalid-input", paths: ["/pseudonym"] });
  });

  it("normalises the offset of an expiration date", async () => {
    const signer = nodeSigner();
    await register(registration(signer, "x", "2030-05-01T02:30:00.5+02:00"));
    expect(world.registry.keys.find(signer.fingerprint).expires_at).toBe("2030-05-01T00:30:00.500000Z");
    expect(world.registry.log.head()!.payload!.expiration_date).toBe("2030-05-01T00:30:00.500000Z");
  });

  it.each(["2030-01-01", "2030-01-01T00:00:00", "2030-02-30T00:00:00Z", "soon", "", 7, false, {}])(
    "refuses the expiration date %j",
    async (expiration_date) => {
      const error = await failure(() => register({ ...registration(nodeSigner()), expiration_date }));
      expect(error).toMatchObject({ code: "invalid-input", paths: ["/expiration_date"] });
    },
  );

  it("accepts an expiration one microsecond ahead, and none that is now or past in any offset", async () => {
    const now = await openWorld();
    const attempt = (date: string) => now.registry.keys.register(registration(nodeSigner(), "x", date));
    for (const date of [at(now.now), at(now.now - 1), "2025-01-01T01:59:59+02:00", "1970-01-01T00:00:00Z"])
      expect(await failure(() => attempt(date))).toMatchObject({ code: "invalid-input", paths: ["/expiration_date"] });
    expect(now.registry.log.size).toBe(0);
    await attempt(at(now.now + 1));
    expect(now.registry.log.size).toBe(1);
  });

  it("names every fault at once", async () => {
    const input = { public_key: nodeSigner().pem, pseudonym: "", key_algorithm: "x", expiration_date: "x" };
    expect((await failure(() => register(input))).paths).toEqual(["/pseudonym", "/expiration_date", "/key_algorithm"]);
  });

  it("leaves state as the entries make it", () => {
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });
});

describe("views", () => {
  it("derive `expired` from the clock, to the microsecond, and write nothing", async () => {
    const world = await openWorld();
    const { keys, log } = world.registry;
    const signer = nodeSigner();
    const expires = at(world.now + DAY);
    await keys.register(registration(signer, "x", expires));
    const status = (status: string) => ({
      fingerprint: signer.fingerprint,
      status,
      expires_at: expires,
      named: false,
      successor_fingerprint: null,
      successor_confirmed: null,
    });
    world.now += DAY - 1;
    expect(keys.status(signer.fingerprint)).toEqual(status("active"));
    world.now += 1;
    expect(keys.status(signer.fingerprint)).toEqual(status("expired"));
    expect(keys.list().keys[0]!.status).toBe("expired");
    expect(log.size).toBe(1);
    expect(log.stateDifferences()).toEqual([]);
  });

  it("show a key under every form of its fingerprint", async () => {
    const { keys } = (await openWorld()).registry;
    const signer = nodeSigner("ecdsa-p256");
    await keys.register(registration(signer, "x"));
    const hex = signer.fingerprint.slice(7);
    for (const spelling of [signer.fingerprint, hex, hex.toUpperCase(), `sha256:${hex.toUpperCase()}`])
      expect(keys.find(spelling).fingerprint).toBe(signer.fingerprint);
    const [summary] = keys.list().keys;
    expect(Object.keys(summary!)).toEqual([
      "fingerprint",
      "pseudonym",
      "algorithm",
      "status",
      "registered_at",
      "expires_at",
      "named",
    ]);
    expect(keys.detail(hex)).toEqual({
      ...summary,
      public_key: signer.pem,
      log_entry_id: 1,
      successor_fingerprint: null,
      successor_confirmed: null,
      predecessor_fingerprint: null,
      predecessor_confirmed: null,
      proven: false,
    });
  });

  it.each([
    "",
    "sha256:",
    "x",
    "0".repeat(63),
    "0".repeat(64),
    `sha256:${"0".repeat(64)}`,
    `sha512:${"0".repeat(64)}`,
    "0".repeat(5000),
  ])("know no key %s", async (fingerprint) => {
    const { keys } = (await shared).registry;
    for (const view of ["find", "detail", "status"] as const)
      expect((await failure(() => keys[view](fingerprint))).code).toBe("not-found");
  });
  const shared = openWorld();

  it("show the operator key from the start, and its row once it is registered", async () => {
    const world = await openWorld();
    const { keys } = world.registry;
    const created = at(world.now);
    const { fingerprint, pem } = world.operator;
    const detail = {
      fingerprint,
      pseudonym: "operator",
      algorithm: "ed25519",
      status: "active",
      registered_at: created,
      expires_at: null,
      public_key: pem,
      log_entry_id: null,
      successor_fingerprint: null,
      successor_confirmed: null,
      predecessor_fingerprint: null,
      predecessor_confirmed: null,
      proven: false,
      named: false,
    };
    world.now += DAY;
    expect(keys.detail(fingerprint)).toEqual(detail);
    expect(keys.status(fingerprint).status).toBe("active");
    expect(keys.list().total).toBe(0);
    await world.reopen();
    expect(world.registry.keys.detail(fingerprint)).toEqual(detail);
    await world.registry.keys.register(registration(world.operator, "the house"));
    expect(world.registry.keys.detail(fingerprint)).toEqual({
      ...detail,
      pseudonym: "the house",
      registered_at: at(world.now),
      log_entry_id: 1,
    });
  });
});
