/** Recovery keys, and the recovery of an account. */
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createPool, type Pool } from "#cairnlog/engine/crypto/pool/pool.js";
import { canonicalRecoveryKey, generateRecoveryKey } from "#cairnlog/engine/registry/accounts/recoverykey.js";
import { texts } from "../../texts.js";
import { at, closeWorlds, failure, nodeSigner, openWorld, SECOND, type World } from "../world.js";
import { Holders, newName, RECOVERY_KEY, UUID } from "./holders.js";

const MINUTE = 60 * SECOND;
const pool = createPool(1);

let world: World;
/** Names of the functions that the pool ran. */
const tasks: string[] = [];
let isBroken = false;
const recording: Pool = {
  workers: pool.workers,
  run(url, name, input, transfer) {
    if (isBroken) return Promise.reject(new Error("a worker died"));
    tasks.push(name);
    return pool.run(url, name, input, transfer);
  },
  close: () => pool.close(),
};

beforeAll(async () => {
  world = await openWorld(undefined, undefined, { pool: recording });
});
afterAll(async () => {
  await closeWorlds();
  await pool.close();
});

const holders = new Holders(() => world);

describe("recovery keys", () => {
  it("are 200 random bits in Crockford's base32", () => {
    const keys = Array.from({ length: 200 }, generateRecoveryKey);
    for (const key of keys) expect(key).toMatch(RECOVERY_KEY);
    expect(new Set(keys).size).toBe(keys.length);
    // Every character occurs in some of the 8000 places. The odds that one of 32 is missing are below 1e-100.
    expect(new Set(keys.join("").replaceAll("-", "")).size).toBe(32);
  });

  it("are read as people write them", () => {
    const key = "01ABC-DEFGH-JKMNP-QRSTV-WXYZ0-11111-00000-Z9Z9Z";
    const canonical = key.replaceAll("-", "");
    for (const spelling of [
      key,
      canonical,
      key.toLowerCase(),
      `-${canonical}--`,
      "oiabc-defgh-jkmnp-qrstv-wxyzO-lLiI1-ooOO0-z9z9z",
    ])
      expect(canonicalRecoveryKey(spelling)).toBe(canonical);
    const others = ["", "-", canonical.slice(1), `${canonical}0`, canonical.replace("A", "U"), ` ${key}`, `${key}\n`];
    for (const other of [...others, canonical.replace("1", "ı"), canonical.replace("0", "０"), "0".repeat(1e6)])
      expect(canonicalRecoveryKey(other)).toBeUndefined();
  });

  it("are parsed from any text", () => {
    fc.assert(
      fc.property(texts({ maxLength: 300 }), (text) => {
        expect(canonicalRecoveryKey(text) ?? "0".repeat(40)).toMatch(/^[0-9A-Z]{40}$/);
      }),
    );
  });
});

describe("getting an account back", () => {
  // Tries of other tests do not count.
  beforeEach(() => {
    world.now += 16 * MINUTE;
  });

  it("revokes its credentials, binds the new key, and replaces the recovery key", async () => {
    const opened = await holders.create();
    const { display_name } = opened.user;
    world.now += MINUTE;
    const request = await holders.recovery(
      display_name.toUpperCase(),
      opened.recovery_key.toLowerCase().replaceAll("-", ""),
    );
    const { size } = world.registry.log;
    const recovered = await world.registry.accounts.recover(request, "192.0.2.1");
    expect(recovered).toEqual({
      user: opened.user,
      credential: {
        ...opened.credential,
        id: expect.stringMatching(UUID),
        key_fingerprint: request.key_fingerprint,
        device_label: "a phone",
        created_at: at(world.now),
      },
      recovery_key: expect.stringMatching(RECOVERY_KEY),
      revoked_credentials: 1,
    });
    expect(world.registry.log.size).toBe(size);
    expect(recovered.credential.id).not.toBe(opened.credential.id);
    expect(world.registry.log.row("credentials", [opened.user.id, opened.credential.id])).toMatchObject({
      status: "revoked",
      revoked_at: at(world.now),
    });

    expect((await failure(() => holders.recover(display_name, opened.recovery_key))).code).toBe("unauthenticated");
    expect((await holders.recover(display_name, recovered.recovery_key)).revoked_credentials).toBe(1);
  });

  it("may take a key that the account has or had, but no other account's", async () => {
    const { user, credential, recovery_key } = await holders.create();
    const own = { key_fingerprint: credential.key_fingerprint };
    const again = await holders.recover(user.display_name, recovery_key, own);
    expect(again).toMatchObject({ credential: { ...own, status: "active" }, revoked_credentials: 1 });
    const other = { key_fingerprint: (await holders.create()).credential.key_fingerprint };
    const refused = await failure(() => holders.recover(user.display_name, again.recovery_key, other));
    expect(refused.code).toBe("already-exists");
    // The refused request has changed nothing.
    expect((await holders.recover(user.display_name, again.recovery_key)).revoked_credentials).toBe(1);
  });

  it("is refused for a new key that is unknown or has ended, and then changes nothing", async () => {
    const { user, credential, recovery_key } = await holders.create();
    const unknown = { key_fingerprint: nodeSigner().fingerprint };
    expect((await failure(() => holders.recover(user.display_name, recovery_key, unknown))).code).toBe("not-found");
    const ended = { key_fingerprint: await holders.newKey() };
    await holders.end(ended.key_fingerprint);
    expect((await failure(() => holders.recover(user.display_name, recovery_key, ended))).code).toBe(
      "wrong-key-status",
    );
    expect(world.registry.log.row("credentials", [user.id, credential.id])?.status).toBe("active");
    await holders.recover(user.display_name, recovery_key);
  });

  it("treats an unknown name and a wrong key alike, in the answer and in the work", async () => {
    const { user } = await holders.create();
    const key_fingerprint = await holders.newKey();
    // The first try has to prepare the decoy, which is not measured here.
    await failure(() => holders.recover("Nobody at all", generateRecoveryKey(), { key_fingerprint }));
    const look = async (name: string, key: string) => {
      tasks.length = 0;
      return { ...(await failure(() => holders.recover(name, key, { key_fingerprint }))), tasks: [...tasks] };
    };
    const wrong = await look(user.display_name, generateRecoveryKey());
    expect(wrong).toMatchObject({ code: "unauthenticated", tasks: ["verifyPassword"] });
    expect(await look("Nobody at all", generateRecoveryKey())).toEqual(wrong);
    expect(await look("Nobody at all", "malformed")).toEqual(await look(user.display_name, "malformed"));
  });

  it("looks at nothing else before the recovery key is right", async () => {
    const { user } = await holders.create();
    const more = { key_fingerprint: nodeSigner().fingerprint };
    expect((await failure(() => holders.recover(user.display_name, generateRecoveryKey(), more))).code).toBe(
      "unauthenticated",
    );
  });

  it("of two at one moment one succeeds", async () => {
    const { user, recovery_key } = await holders.create();
    const requests = await Promise.all([1, 2].map(() => holders.recovery(user.display_name, recovery_key)));
    const results = await Promise.allSettled(
      requests.map((request) => world.registry.accounts.recover(request, "192.0.2.1")),
    );
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const rejected = results.find((result) => result.status === "rejected");
    expect(rejected?.reason.code).toBe("unauthenticated");
  });

  it("has a form that is checked first and costs no try", async () => {
    const accounts = world.registry.accounts;
    const everything = ["/pseudonym", "/recovery_key", "/credential_type", "/key_fingerprint", "/device_label"];
    for (let i = 0; i < 6; i++)
      expect((await failure(() => accounts.recover({} as never, "192.0.2.1"))).paths).toEqual(everything);
    expect((await failure(() => holders.recover("x".repeat(101), "k"))).paths).toEqual(["/pseudonym"]);
  });

  it("may fail five times in 15 minutes for a name, known or not, from wherever", async () => {
    const { user, recovery_key } = await holders.create();
    const key_fingerprint = await holders.newKey();
    for (const name of [user.display_name, "Nobody we know"]) {
      const tryOnce = async (i: number, key = generateRecoveryKey()) =>
        (
          await failure(() =>
            holders.recover(i % 2 ? name : name.toUpperCase(), key, { key_fingerprint }, `198.51.100.${i}`),
          )
        ).code;
      for (let i = 0; i < 5; i++) expect(await tryOnce(i)).toBe("unauthenticated");
      expect(await tryOnce(5)).toBe("rate-limited");
      expect(await tryOnce(6, recovery_key)).toBe("rate-limited");
    }
    world.now += 15 * MINUTE;
    await holders.recover(user.display_name, recovery_key, { key_fingerprint });
  });

  it("may fail five times in 15 minutes from an address, malformed keys included", async () => {
    const key_fingerprint = await holders.newKey();
    const from = async (address: string, key: string) =>
      (await failure(() => holders.recover(newName(), key, { key_fingerprint }, address))).code;
    for (const key of ["malformed", "", generateRecoveryKey(), "0".repeat(40), "U".repeat(40)])
      expect(await from("203.0.113.9", key)).toBe("unauthenticated");
    expect(await from("203.0.113.9", generateRecoveryKey())).toBe("rate-limited");
    expect(await from("203.0.113.10", generateRecoveryKey())).toBe("unauthenticated");
  });

  it("does not count for the address while the name may not be tried at all, nor for the name while the address may not", async () => {
    const key_fingerprint = await holders.newKey();
    const [locked, free] = [newName(), newName()];
    const tried = async (name: string, address: string) =>
      (await failure(() => holders.recover(name, "malformed", { key_fingerprint }, address))).code;
    for (let i = 0; i < 5; i++) expect(await tried(locked, `203.0.113.${20 + i}`)).toBe("unauthenticated");
    for (let i = 0; i < 6; i++) expect(await tried(locked, "203.0.113.30")).toBe("rate-limited");
    for (let i = 0; i < 5; i++) expect(await tried(newName(), "203.0.113.30")).toBe("unauthenticated");
    for (let i = 0; i < 6; i++) expect(await tried(free, "203.0.113.30")).toBe("rate-limited");
    expect(await tried(free, "203.0.113.31")).toBe("unauthenticated");
  });

  it("that could not be checked does not count, and the next one can be checked", async () => {
    const fresh = await openWorld(undefined, undefined, { pool: recording });
    const others = new Holders(() => fresh);
    const { user, recovery_key } = await others.create();
    isBroken = true;
    try {
      for (let i = 0; i < 6; i++)
        await expect(others.recover(user.display_name, recovery_key)).rejects.toThrow("a worker died");
    } finally {
      isBroken = false;
    }
    await others.recover(user.display_name, recovery_key);
  });

  it("with the right key does not count", async () => {
    let { user, recovery_key } = await holders.create();
    for (let i = 0; i < 6; i++) ({ recovery_key } = await holders.recover(user.display_name, recovery_key));
    const unknown = { key_fingerprint: nodeSigner().fingerprint };
    for (let i = 0; i < 6; i++)
      expect((await failure(() => holders.recover(user.display_name, recovery_key, unknown))).code).toBe("not-found");
  });
});
