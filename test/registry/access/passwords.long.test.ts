import { execFileSync } from "node:child_process";
import { argon2Verify } from "hash-wasm";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { PasswordHasher } from "#cairnlog/engine/crypto/passwords/password.js";
import type { LogWriter } from "#cairnlog/engine/log/writer.js";
import { Tries } from "#cairnlog/engine/registry/access/tries.js";
import { runIn } from "../../log/inline.js";
import {
  at,
  closeWorlds,
  failure,
  manifestOf,
  newFolder,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  submission,
  type TestSigner,
  type World,
} from "../world.js";

const MAX_NAMES = 100_000;

afterAll(closeWorlds);

let world: World;
let folder: string;
beforeAll(async () => {
  folder = newFolder();
  world = await openWorld(folder);
});

const SECRET = "correct horse battery staple";
const MINUTE = 60 * SECOND;

async function registered(): Promise<TestSigner> {
  const signer = nodeSigner();
  await world.registry.keys.register(registration(signer));
  return signer;
}

/** A key with the password `SECRET`. */
async function guarded(): Promise<TestSigner> {
  const signer = await registered();
  await world.registry.passwords.set(signer.fingerprint, { password: SECRET });
  return signer;
}
const check = ({ fingerprint }: TestSigner, password: unknown) => world.registry.passwords.check(fingerprint, password);
const refusal = async (signer: TestSigner, password: unknown) => (await failure(() => check(signer, password))).code;
const hashOf = ({ fingerprint }: TestSigner) => world.registry.log.row("passwords", fingerprint)!.hash;

describe("a password", () => {
  it("is asked for only where one is set", async () => {
    const signer = await registered();
    expect(world.registry.passwords.isSet(signer.fingerprint)).toBe(false);
    await check(signer, undefined);
    await check(signer, "anything at all");
    await world.registry.passwords.set(signer.fingerprint, { password: SECRET });
    expect(world.registry.passwords.isSet(signer.fingerprint)).toBe(true);
    expect(await refusal(signer, undefined)).toBe("forbidden");
    expect(await refusal(signer, null)).toBe("forbidden");
    await check(signer, SECRET);
  });

  it("is kept as an argon2id hash of the promised cost, each with its own salt", async () => {
    const [a, b] = [await guarded(), await guarded()];
    expect(hashOf(a)).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(hashOf(a)).not.toBe(hashOf(b));
    expect(await argon2Verify({ password: SECRET, hash: hashOf(a) })).toBe(true);
    expect(await argon2Verify({ password: `${SECRET} `, hash: hashOf(a) })).toBe(false);
  });

  it("is nowhere on disk", async () => {
    const secret = "zyzzyva-quixotic-marker";
    const signer = await registered();
    await world.registry.passwords.set(signer.fingerprint, { password: secret });
    await failure(() => check(signer, `${secret}-wrong`));
    expect(() => execFileSync("grep", ["-rqaF", secret, folder])).toThrow();
    expect(execFileSync("grep", ["-rlaF", signer.fingerprint, folder]).toString()).not.toBe("");
  });

  it.each([
    ["case", SECRET.toUpperCase()],
    ["a trailing space", `${SECRET} `],
    ["a character fewer", SECRET.slice(0, -1)],
    ["nothing in it", ""],
    ["another type", { length: 28 }],
    ["a number", 12345678],
    ["half of a surrogate pair", `${SECRET}\ud83e`],
    ["a megabyte", "x".repeat(1 << 20)],
  ])("differs by %s", async (_, wrong) => {
    const signer = await guarded();
    expect(await refusal(signer, wrong)).toBe("forbidden");
    await check(signer, SECRET);
  });

  it.each([
    ["composed and decomposed", "Ångström-é", "A\u030angstro\u0308m-e\u0301"],
    ["full width and plain", "ｐａｓｓｗｏｒｄ１", "password1"],
    ["a ligature and its letters", "oﬃces-are-shut", "offices-are-shut"],
  ])("is the same however it is typed: %s", async (_, one, other) => {
    const signer = await registered();
    await world.registry.passwords.set(signer.fingerprint, { password: one });
    for (const typed of [other, one]) await expect(check(signer, typed)).resolves.toBeUndefined();
  });

  it.each([
    ["8 characters", "12345678"],
    ["8 characters of four bytes", "🪨".repeat(8)],
    ["1024 characters of four bytes", "🪨".repeat(1024)],
    ["1024 characters once composed", "e\u0301".repeat(1024)],
    ["line feeds and NUL", "a\n\0\tb\x7f\u202e."],
  ])("may have %s", async (_, password) => {
    const signer = await registered();
    await world.registry.passwords.set(signer.fingerprint, { password });
    await expect(check(signer, password)).resolves.toBeUndefined();
  });

  it.each([
    ["7 characters", "1234567"],
    ["7 characters of four bytes", "🪨".repeat(7)],
    ["7 characters once composed", "e\u0301".repeat(7)],
    ["1025 characters", "x".repeat(1025)],
    ["1025 characters once compatible", `${"x".repeat(1023)}ﬁ`],
    ["a megabyte", "\ufdfa".repeat(1 << 20)],
    ["half of a surrogate pair", "12345678\ud83e"],
    ["another type", 1234567890],
    ["nothing", undefined],
  ])("must not have %s", async (_, password) => {
    const signer = await registered();
    const error = await failure(() => world.registry.passwords.set(signer.fingerprint, { password } as never));
    expect(error).toMatchObject({ code: "invalid-input", paths: ["/password"] });
    expect(world.registry.passwords.isSet(signer.fingerprint)).toBe(false);
  });

  it("is changed only with the old password", async () => {
    const signer = await guarded();
    const change = (current_password?: string | null) =>
      world.registry.passwords.set(signer.fingerprint, { password: "a new password", current_password });
    for (const wrong of [undefined, null, "", "a new password"])
      expect((await failure(() => change(wrong))).code).toBe("forbidden");
    await check(signer, SECRET);
    await change(SECRET);
    expect(await refusal(signer, SECRET)).toBe("forbidden");
    await check(signer, "a new password");
  });

  it("has one first setting when several come at one moment", async () => {
    const signer = await registered();
    const results = await Promise.allSettled(
      Array.from({ length: 4 }, (_, i) =>
        world.registry.passwords.set(signer.fingerprint, { password: `password ${i}` }),
      ),
    );
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "rejected"]);
    for (const result of results.slice(1)) expect(result).toMatchObject({ reason: { code: "forbidden" } });
    await check(signer, "password 0");
  });

  it.each([
    ["its new password", "hash"],
    ["the one before", "verify"],
  ] as const)(
    "that another process has set while %s is hashed is not replaced by who does not know it",
    async (_, step) => {
      const signer = await guarded();
      const { fingerprint } = signer;
      const prototype = PasswordHasher.prototype;
      const hashing = prototype[step];
      const spy = vi.spyOn(prototype, step).mockImplementationOnce(async function (
        this: PasswordHasher,
        ...given: unknown[]
      ) {
        const row = { hash: "of another password", version: "another" };
        await runIn(world.registry.log as LogWriter, (transaction) => transaction.put("passwords", fingerprint, row));
        return (hashing as (...given: unknown[]) => Promise<never>).apply(this, given);
      });
      const change = { password: "a new password", current_password: SECRET };
      expect((await failure(() => world.registry.passwords.set(fingerprint, change))).code).toBe("forbidden");
      expect(hashOf(signer)).toBe("of another password");
      spy.mockRestore();
    },
  );

  it("is not set for a key that has ended", async () => {
    const signer = await registered();
    await world.registry.keyLifecycle.revoke(signer.fingerprint);
    const error = await failure(() => world.registry.passwords.set(signer.fingerprint, { password: SECRET }));
    expect(error.code).toBe("key-not-active");
    expect(world.registry.passwords.isSet(signer.fingerprint)).toBe(false);
  });

  it("survives a restart and leaves the log as it was", async () => {
    const signer = await guarded();
    const { size } = world.registry.log;
    await world.reopen();
    await check(signer, SECRET);
    expect(world.registry.log.size).toBe(size);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("may be set for the operator key", async () => {
    await world.registry.passwords.set(world.operator.fingerprint, { password: SECRET });
    expect(await refusal(world.operator, "wrong password")).toBe("forbidden");
    await check(world.operator, SECRET);
  });
});

describe("wrong passwords", () => {
  it("are five in a quarter of an hour; then the right one is refused, too", async () => {
    const [signer, other] = [await guarded(), await guarded()];
    for (let i = 0; i < 5; i++) {
      expect(await refusal(signer, `wrong password ${i}`)).toBe("forbidden");
      world.now += MINUTE;
    }
    expect(await refusal(signer, SECRET)).toBe("rate-limited");
    await expect(check(signer, SECRET)).rejects.toMatchObject({ retryAfter: 600 });
    await check(other, SECRET);
    world.now += 10 * MINUTE - 1;
    expect(await refusal(signer, SECRET)).toBe("rate-limited");
    world.now += 1;
    expect(await refusal(signer, "wrong password")).toBe("forbidden");
    expect(await refusal(signer, SECRET)).toBe("rate-limited");
    world.now += MINUTE;
    await check(signer, SECRET);
  });

  it("are five also when a hundred come at one moment", async () => {
    const signer = await guarded();
    const codes = await Promise.all(Array.from({ length: 100 }, (_, i) => refusal(signer, `wrong password ${i}`)));
    expect(codes.filter((code) => code === "forbidden")).toHaveLength(5);
    expect(codes.filter((code) => code === "rate-limited")).toHaveLength(95);
  });

  it("count when they are too short to be passwords, and missing ones do not", async () => {
    const signer = await guarded();
    for (let i = 0; i < 10; i++) expect(await refusal(signer, undefined)).toBe("forbidden");
    for (let i = 0; i < 5; i++) expect(await refusal(signer, "x")).toBe("forbidden");
    expect(await refusal(signer, SECRET)).toBe("rate-limited");
  });

  it("count when they come as the current one of a change", async () => {
    const signer = await guarded();
    const change = (current_password: string) =>
      world.registry.passwords.set(signer.fingerprint, { password: "a new password", current_password });
    for (let i = 0; i < 5; i++) expect((await failure(() => change("wrong password"))).code).toBe("forbidden");
    expect((await failure(() => change(SECRET))).code).toBe("rate-limited");
  });

  it("are not used up by right ones, one after the other or together", async () => {
    const signer = await guarded();
    for (let i = 0; i < 4; i++) expect(await refusal(signer, "wrong password")).toBe("forbidden");
    await Promise.all(Array.from({ length: 12 }, () => check(signer, SECRET)));
    expect(await refusal(signer, "wrong password")).toBe("forbidden");
    expect(await refusal(signer, SECRET)).toBe("rate-limited");
  });

  it("refuse nobody whose right one waits for its turn behind them", async () => {
    const signer = await guarded();
    const passwords = ["wrong password", SECRET, undefined, SECRET, "x", SECRET];
    const outcomes = await Promise.allSettled(passwords.map((password) => check(signer, password)));
    const expected = passwords.map((password) => (password === SECRET ? "fulfilled" : "rejected"));
    expect(outcomes.map(({ status }) => status)).toEqual(expected);
  });

  it("are none that could not be compared", async () => {
    const signer = await guarded();
    const broken = vi.spyOn(PasswordHasher.prototype, "verify").mockRejectedValue(new Error("a worker died"));
    try {
      for (let i = 0; i < 6; i++) await expect(check(signer, SECRET)).rejects.toThrow("a worker died");
    } finally {
      broken.mockRestore();
    }
    await check(signer, SECRET);
  });

  it("are forgotten when the clock was ahead while they were made", () => {
    let now = 31_536_000 * SECOND;
    const tries = new Tries({ limit: 1, windowSeconds: 900, clock: () => now });
    tries.take("somebody");
    expect(() => tries.take("somebody")).toThrow(CairnlogError);
    now = 0;
    tries.take("somebody");
    expect(() => tries.take("somebody")).toThrow(CairnlogError);
  });

  it("are remembered for a bounded number of names", () => {
    const tries = new Tries({ limit: 1, windowSeconds: 900, clock: () => 0 });
    for (let i = 0; i < 1.5 * MAX_NAMES; i++) tries.take(`name ${i}`);
    expect(tries.size).toBe(MAX_NAMES);
    expect(() => tries.take(`name ${1.5 * MAX_NAMES - 1}`)).toThrow(CairnlogError);
    tries.take("name 0");
  });

  it("are remembered for names that were tried in the last window, and for no others", () => {
    let now = 0;
    const tries = new Tries({ limit: 2, windowSeconds: 900, clock: () => now });
    for (let i = 0; i < 1000; i++) tries.take(`name ${i}`);
    now = 600 * SECOND;
    const giveBack = tries.take("a right one");
    tries.take("name 1");
    now = 900 * SECOND;
    tries.take("another");
    expect(tries.size).toBe(3);
    giveBack();
    expect(tries.size).toBe(2);
    tries.take("name 1");
    expect(() => tries.take("name 1")).toThrow(CairnlogError);
  });
});

describe("an attestation by a key with a password", () => {
  const submit = (signer: TestSigner, title: string, more: Record<string, unknown> = {}) =>
    world.registry.attestations.submit(submission(signer, manifestOf(title), more) as never);

  it("is recorded with it, and without it or with a wrong one leaves no trace", async () => {
    const signer = await guarded();
    const { size } = world.registry.log;
    for (const more of [{}, { password: null }, { password: "wrong password" }])
      expect((await failure(() => submit(signer, "A", more))).code).toBe("forbidden");
    expect(world.registry.log.size).toBe(size);
    const receipt = await submit(signer, "A", { password: SECRET });
    expect(receipt).toMatchObject({ duplicate: false, log_entry_id: size + 1 });
    expect(JSON.stringify(world.registry.log.entry(size + 1))).not.toContain(SECRET);
  });

  it("needs it for a repetition, too", async () => {
    const signer = await registered();
    await submit(signer, "B");
    await world.registry.passwords.set(signer.fingerprint, { password: SECRET });
    expect((await failure(() => submit(signer, "B"))).code).toBe("forbidden");
    expect(await submit(signer, "B", { password: SECRET })).toMatchObject({ duplicate: true });
  });

  it("spends no try when its signature does not verify", async () => {
    const signer = await guarded();
    const signature = nodeSigner().sign("something else");
    for (let i = 0; i < 6; i++)
      expect((await failure(() => submit(signer, "C", { signature, password: "wrong" }))).code).toBe(
        "invalid-signature",
      );
    await check(signer, SECRET);
  });

  it("is refused where the password is that of another key in the same list", async () => {
    const [signer, other] = [await guarded(), await registered()];
    await world.registry.passwords.set(other.fingerprint, { password: `${SECRET}, too` });
    const items = [signer, other].map((one) => submission(one, manifestOf("D"), { password: SECRET }));
    const results = await world.registry.attestations.submitAll(items, (item) => ({
      submission: item as never,
      possession: null,
    }));
    expect(results).toMatchObject([{ status: "fulfilled" }, { status: "rejected", reason: { code: "forbidden" } }]);
  });

  it("by a new key accepts a password and does not need one", async () => {
    expect(await submit(nodeSigner(), "E", { password: "whatever" })).toMatchObject({ duplicate: false });
    expect(at(world.now)).toBe(world.registry.log.head()!.timestamp);
  });
});
