/** Claims in the registry: who may post, how they are found, and that revealing them stores nothing. */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import type { Entry } from "#cairnlog/engine/verify/tree/entry.js";
import { jsonValues } from "../../texts.js";
import { hmacOf, jcs, newRecipient, seal } from "../../verify/claims/ecies.js";
import {
  at,
  closeWorlds,
  DAY,
  failure,
  nodeSigner,
  openWorld,
  registration,
  SECOND,
  sha256,
  type World,
} from "../world.js";

const MAX_NAMES = 100_000;

afterAll(closeWorlds);

let world: World;
/** A key with a hardware-backed credential. */
let poster: string;
beforeAll(async () => {
  world = await openWorld();
  poster = await holder(world, "hardware");
});

async function holder(where: World, credential_type: "hardware" | "software", expires?: string): Promise<string> {
  const signer = nodeSigner();
  await where.registry.keys.register(registration(signer, "holder", expires));
  await where.registry.accounts.create({
    display_name: `Holder ${randomUUID()}`,
    email: "holder@example.org",
    credential_type,
    key_fingerprint: signer.fingerprint,
    device_label: "a token",
  });
  return signer.fingerprint;
}

const recipient = newRecipient();
const HOUR = 3_600 * SECOND;
const newLookupKey = () => sha256(randomUUID());
const plaintext = { salary: 52000, name: "Zoë 🪨" };
const sealed = (lookupKey = newLookupKey(), value: unknown = plaintext) => seal(value, recipient.point, { lookupKey });
/** A claim's entry from before keyed commitments. */
const preUpgrade = (lookup_key = newLookupKey()) => ({
  event_type: "encrypted_claim",
  payload: { ciphertext: "AAAA", commitment: sha256(jcs(plaintext)), lookup_key },
});

async function posted(where = world, by = poster) {
  const { payload, commitmentKey } = sealed();
  return { ...(await where.registry.claims.post(payload, by)), payload, commitmentKey };
}

describe("posting", () => {
  it("appends the payload unchanged, without any data about the poster", async () => {
    const { payload } = sealed();
    const size = world.registry.log.size;
    const receipt = await world.registry.claims.post({ ...payload, posted_by: "me", tags: ["a"] }, poster);
    expect(receipt).toEqual({
      entry_id: size + 1,
      commitment: payload.commitment,
      lookup_key: payload.lookup_key,
      leaf_index: size,
      log_entry_id: size + 1,
    });
    const entry = world.registry.log.entry(size + 1)!;
    expect(entry.event_type).toBe("encrypted_claim");
    expect(entry.payload).toEqual({ ...payload, event_type: "encrypted_claim" });
    expect(JSON.stringify(entry)).not.toContain(poster.slice("sha256:".length));
  });

  it("is refused beyond so many bytes of a key in 24 hours, and nothing is written then", async () => {
    const size = (payload: object) => Buffer.byteLength(jcs(payload));
    const claims = Array.from({ length: 4 }, () => sealed().payload);
    const room = size(claims[0]!) + size(claims[1]!);
    const own = await openWorld(undefined, undefined, { claimBytesPerKey: room });
    const [one, two] = [await holder(own, "hardware"), await holder(own, "hardware")];
    const post = (payload: unknown, by: string) => own.registry.claims.post(payload, by);
    const start = own.now;
    await post(claims[0], one);
    own.now += HOUR;
    await post(claims[1], one);
    const before = own.registry.log.size;
    await expect(post(claims[2], one)).rejects.toMatchObject({ code: "rate-limited", retryAfter: 23 * 3600 });
    expect(own.registry.log.size).toBe(before);
    await post(claims[2], two);
    await own.reopen();
    own.now = start + DAY - 1;
    expect((await failure(() => post(claims[3], one))).code).toBe("rate-limited");
    own.now = start + DAY;
    await post(claims[3], one);
  });

  it("takes 16 MiB of a key unless another limit is set", async () => {
    const own = await openWorld();
    const by = await holder(own, "hardware");
    const { payload } = seal({ text: "x".repeat(190_000) }, recipient.point, { lookupKey: newLookupKey() });
    const fitting = Math.floor((16 * 2 ** 20) / Buffer.byteLength(jcs(payload)));
    for (let i = 0; i < fitting; i++) await own.registry.claims.post(payload, by);
    expect((await failure(() => own.registry.claims.post(payload, by))).code).toBe("rate-limited");
  });

  it("is for keys that are active and hardware-backed", async () => {
    const size = () => world.registry.log.size;
    const software = await holder(world, "software");
    const bare = nodeSigner();
    await world.registry.keys.register(registration(bare));
    const before = size();
    const { payload } = sealed();
    for (const key of [software, bare.fingerprint, nodeSigner().fingerprint, "", "sha256:x"])
      expect((await failure(() => world.registry.claims.post(payload, key))).code).toBe("forbidden");
    expect(size()).toBe(before);

    const short = await holder(world, "hardware", at(world.now + DAY));
    await world.registry.claims.post(payload, short);
    world.now += DAY;
    expect((await failure(() => world.registry.claims.post(payload, short))).code).toBe("key-not-active");
    const revoked = await holder(world, "hardware");
    await world.registry.keyLifecycle.revoke(revoked);
    expect((await failure(() => world.registry.claims.post(payload, revoked))).code).toBe("key-not-active");
  });

  it("is refused for every fault of the payload, and leaves nothing", async () => {
    const before = world.registry.log.size;
    const { payload } = sealed();
    const post = (value: unknown) => failure(() => world.registry.claims.post(value, poster));
    expect(await post({ ...payload, nonce: "AAAA", commitment: "x" })).toMatchObject({
      code: "invalid-input",
      paths: ["/nonce", "/commitment"],
    });
    expect((await post({ ...payload, commitment_alg: "sha256" })).code).toBe("unsupported-commitment");
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...Object.keys(payload)), jsonValues(), async (member, value) => {
        await post(value);
        await post({ ...payload, [member]: value });
      }),
      { numRuns: 100 },
    );
    expect(world.registry.log.size).toBe(before);
  });
});

describe("looking up", () => {
  async function list(lookupKey: string, paging = {}, where = world) {
    const { entries, ...rest } = await where.registry.claims.list(lookupKey, paging);
    return { entries: entries.map((json) => JSON.parse(json.toString()) as Entry), ...rest };
  }

  it("finds the claims of a lookup key, oldest first, in pages", async () => {
    const lookupKey = newLookupKey();
    const ids: number[] = [];
    for (let i = 0; i < 5; i++) {
      ids.push((await world.registry.claims.post(sealed(lookupKey).payload, poster)).entry_id);
      await posted();
    }
    await world.append(preUpgrade(lookupKey));
    ids.push(world.registry.log.size);
    const idsOf = async (key: string, paging = {}) => (await list(key, paging)).entries.map(({ id }) => id);
    expect(await idsOf(lookupKey)).toEqual(ids);
    expect(await idsOf(lookupKey.toUpperCase())).toEqual(ids);
    expect(await idsOf(lookupKey, { page: 2, per_page: 4 })).toEqual(ids.slice(4));
    expect(await list(lookupKey, { page: 3, per_page: 3 })).toEqual({
      entries: [],
      page: 3,
      per_page: 3,
      total: 6,
    });
    for (const unknown of [newLookupKey(), lookupKey.slice(1), "", "é"]) expect(await idsOf(unknown)).toEqual([]);
    for (const paging of [{ page: 0 }, { per_page: 0 }, { per_page: 201 }, { page: 1.5 }])
      expect((await failure(() => list(lookupKey, paging))).code).toBe("invalid-input");
  });

  it("is bounded in bytes: a page that is too large is refused, and smaller ones hold all there is", async () => {
    const lookup_key = newLookupKey();
    const large = { ciphertext: "A".repeat(349_528), commitment: "0".repeat(64), lookup_key };
    for (let i = 0; i < 30; i++) await world.append({ event_type: "encrypted_claim", payload: large });
    const refused = await failure(() => list(lookup_key, { per_page: 50 }));
    expect(refused).toMatchObject({ code: "invalid-input", paths: ["/per_page"] });
    const fitting = Number(/at most (\d+) to a page/.exec(refused.message)?.[1]);
    expect(fitting).toBeGreaterThanOrEqual(20);
    const pages = await Promise.all([1, 2].map((page) => list(lookup_key, { page, per_page: fitting })));
    expect(pages.flatMap(({ entries }) => entries)).toHaveLength(30);
    // Below the limit, any number of items per page is allowed.
    expect((await list(lookup_key, { page: 2, per_page: 20 })).entries).toHaveLength(10);
  });

  it("shows the digests of the entry and of the one before it, in an order that appends between do not disturb", async () => {
    const lookupKey = newLookupKey();
    for (let i = 0; i < 20; i++) await world.registry.claims.post(sealed(lookupKey).payload, poster);
    const listing = list(lookupKey);
    const meanwhile = posted();
    const { entries } = await listing;
    await meanwhile;
    expect(entries).toHaveLength(20);
    for (const entry of entries) {
      const { previous_hash, ...stored } = world.registry.log.entry(entry.id)!;
      const { id, timestamp, event_type, payload, entry_hashes } = stored;
      const previous_hashes = [{ algorithm: "sha2-256", digest_hex: previous_hash }];
      expect(entry).toEqual({ id, timestamp, event_type, payload, previous_hashes, entry_hashes });
    }
  });

  it("the first entry of a log has no previous hashes", async () => {
    const fresh = await openWorld();
    const old = preUpgrade();
    await fresh.append(old);
    const { entries } = await list(old.payload.lookup_key, {}, fresh);
    expect(entries).toMatchObject([{ id: 1, previous_hashes: [], payload: old.payload }]);
  });

  it("survives a restart, and follows from the entries, for any claims in imported history", async () => {
    const lookupKey = newLookupKey();
    const { entry_id } = await world.registry.claims.post(sealed(lookupKey).payload, poster);
    const odd = [{}, { lookup_key: 7 }, { lookup_key: "" }, { lookup_key: "🪨".repeat(300), commitment: {} }];
    await world.append(...odd.map((payload) => ({ event_type: "encrypted_claim", payload })));
    await world.append({ event_type: "something_else", payload: { lookup_key: lookupKey } });
    await world.reopen();
    expect((await list(lookupKey)).entries.map(({ id }) => id)).toEqual([entry_id]);
    expect(world.registry.log.stateDifferences()).toEqual([]);
  });

  it("a payload is given for claims alone", async () => {
    const { entry_id, payload } = await posted();
    expect(world.registry.claims.payload(entry_id)).toEqual(payload);
    for (const id of [0, 1, -1, 1.5, Number.NaN, world.registry.log.size + 1])
      expect((await failure(() => world.registry.claims.payload(id))).code).toBe("not-found");
  });
});

describe("revealing", () => {
  const reveal = (
    id: number,
    commitment_key?: string | null,
    value: object = plaintext,
    caller: string = randomUUID(),
  ) => {
    const given = commitment_key === undefined ? {} : { commitment_key };
    return world.registry.claims.reveal(id, { plaintext: value, ...given }, caller);
  };

  it("says whether the claim commits to the plaintext", async () => {
    const { entry_id, commitmentKey } = await posted();
    expect(reveal(entry_id, commitmentKey)).toEqual({ valid: true });
    expect(reveal(entry_id, commitmentKey.toUpperCase())).toEqual({ valid: true });
    expect(reveal(entry_id, commitmentKey, { ...plaintext, salary: 1 })).toEqual({ valid: false });
    expect(reveal(entry_id, "0".repeat(64))).toEqual({ valid: false });
    expect(reveal((await posted()).entry_id, commitmentKey)).toEqual({ valid: false });
  });

  it("refuses claims that cannot be evaluated", async () => {
    const { entry_id, commitmentKey } = await posted();
    const code = async (...parameters: Parameters<typeof reveal>) => (await failure(() => reveal(...parameters))).code;
    expect(await code(entry_id)).toBe("commitment-key-missing");
    expect(await code(entry_id, null)).toBe("commitment-key-missing");
    expect(await code(entry_id, "")).toBe("invalid-input");
    expect(await code(entry_id, `${commitmentKey}00`)).toBe("invalid-input");
    expect(await code(entry_id, commitmentKey, [])).toBe("invalid-input");
    expect(await code(entry_id, commitmentKey, { a: "\ud800" })).toBe("not-i-json");
    expect(await code(1, commitmentKey)).toBe("not-found");
  });

  it("does not reveal pre-upgrade entries, or false claims in imported history", async () => {
    const others = [
      { commitment: sha256("x"), commitment_alg: "sha256" },
      { commitment: sha256("x"), commitment_alg: "md5" },
      { commitment: "X", commitment_alg: "hmac-sha256-ecdh-v1" },
      {},
    ];
    await world.append(preUpgrade(), ...others.map((payload) => ({ event_type: "encrypted_claim", payload })));
    for (let back = 0; back < 5; back++) {
      const id = world.registry.log.size - back;
      expect((await failure(() => reveal(id, "0".repeat(64)))).code).toBe("precondition-failed");
      expect((await failure(() => reveal(id))).code).toBe("precondition-failed");
    }
  });

  it("any JSON in any place ends in a verdict or a CairnlogError", async () => {
    const { entry_id, commitmentKey } = await posted();
    await fc.assert(
      fc.asyncProperty(jsonValues(), fc.oneof(fc.constant(commitmentKey), jsonValues()), async (value, key) => {
        try {
          const right =
            hmacOf(Buffer.from(commitmentKey, "hex"), plaintext) === hmacOf(Buffer.from(commitmentKey, "hex"), value);
          expect(reveal(entry_id, key as string, value as object)).toEqual({ valid: right && key === commitmentKey });
        } catch (error) {
          expect(error).toBeInstanceOf(CairnlogError);
        }
      }),
      { numRuns: 200 },
    );
  });

  it("30 times an hour for each claim and caller", async () => {
    const { entry_id, commitmentKey } = await posted();
    const other = await posted();
    const tries = (id: number, key: string, caller: string, times: number) =>
      Promise.allSettled(
        Array.from({ length: times }, async () =>
          world.registry.claims.reveal(id, { plaintext, commitment_key: key }, caller),
        ),
      );
    const outcomes = await tries(entry_id, commitmentKey, "a", 50);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(30);
    for (const outcome of outcomes.slice(30))
      expect(outcome).toMatchObject({ reason: { code: "rate-limited", retryAfter: 3600 } });
    expect(
      (await tries(other.entry_id, other.commitmentKey, "a", 30)).every(({ status }) => status === "fulfilled"),
    ).toBe(true);
    expect((await tries(entry_id, commitmentKey, "b", 30)).every(({ status }) => status === "fulfilled")).toBe(true);
    // Wrong plaintexts count like right ones, and beyond the limit neither gets a result.
    expect((await tries(entry_id, "0".repeat(64), "a", 1))[0]).toMatchObject({ reason: { code: "rate-limited" } });
    world.now += HOUR - 1;
    expect((await tries(entry_id, commitmentKey, "a", 1))[0]!.status).toBe("rejected");
    world.now += 1;
    expect((await tries(entry_id, commitmentKey, "a", 31)).filter(({ status }) => status === "fulfilled")).toHaveLength(
      30,
    );
  });

  it("callers cannot fill memory", async () => {
    const { entry_id, commitmentKey } = await posted();
    const callers = MAX_NAMES + 10;
    for (let i = 0; i < callers; i++) reveal(entry_id, commitmentKey, {}, `caller ${i}`);
    // The first caller was forgotten, so it may begin again.
    for (let i = 0; i < 30; i++) reveal(entry_id, commitmentKey, {}, "caller 0");
    expect((await failure(() => reveal(entry_id, commitmentKey, {}, "caller 0"))).code).toBe("rate-limited");
  });

  it("as often as one likes where no limit is set", async () => {
    const unlimited = await openWorld(undefined, undefined, { claimReveals: null });
    const { entry_id, commitmentKey } = await posted(unlimited, await holder(unlimited, "hardware"));
    for (let i = 0; i < 100; i++)
      expect(unlimited.registry.claims.reveal(entry_id, { plaintext, commitment_key: commitmentKey }, "a").valid).toBe(
        true,
      );
  });
});
