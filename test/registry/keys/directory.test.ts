import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeWorlds, failure, nodeSigner, openWorld, registration, type World } from "../world.js";

const MAX_CANDIDATES = 10_000;

afterAll(closeWorlds);

describe("directory", () => {
  const signers = Array.from({ length: 7 }, () => nodeSigner());
  let world: World;
  beforeAll(async () => {
    world = await openWorld();
    for (const [i, signer] of signers.entries())
      await world.registry.keys.register(registration(signer, `Key No ${i}`));
  });
  const fingerprints = (paging = {}) => world.registry.keys.list(paging).keys.map(({ fingerprint }) => fingerprint);

  it("lists in order of registration, page by page", () => {
    const all = signers.map(({ fingerprint }) => fingerprint);
    expect(fingerprints()).toEqual(all);
    expect(world.registry.keys.list()).toMatchObject({ page: 1, per_page: 50, total: 7 });
    expect(fingerprints({ page: 2, per_page: 3 })).toEqual(all.slice(3, 6));
    expect(fingerprints({ page: 3, per_page: 3 })).toEqual(all.slice(6));
    expect(fingerprints({ page: 4, per_page: 3 })).toEqual([]);
    expect(world.registry.keys.list({ page: Number.MAX_SAFE_INTEGER, per_page: 200 })).toMatchObject({
      keys: [],
      total: 7,
    });
  });

  it("lists the same after a restart", async () => {
    const before = world.registry.keys.list();
    await world.reopen();
    expect(world.registry.keys.list()).toEqual(before);
    expect((await world.registry.keys.search("no 3")).keys[0]!.fingerprint).toBe(signers[3]!.fingerprint);
  });

  it.each([
    { page: 0 },
    { page: -1 },
    { page: 1.5 },
    { page: Number.NaN },
    { per_page: 0 },
    { per_page: 201 },
    { per_page: 1e300 },
  ])("refuses the paging %j", async (paging) => {
    expect((await failure(() => world.registry.keys.list(paging))).code).toBe("invalid-input");
    expect((await failure(() => world.registry.keys.search("a", paging))).code).toBe("invalid-input");
  });

  it.each(["", "a\0", "\n", "x".repeat(201), "\ud800", 7, null])("refuses to search for %j", async (text) => {
    const error = await failure(() => world.registry.keys.search(text as string));
    expect(error).toMatchObject({ code: "invalid-input", paths: ["/pseudonym"] });
  });

  it("reads the oldest keys of a name that very many have", async () => {
    const own = await openWorld();
    const { keys, log } = own.registry;
    const [first, last, other] = [nodeSigner(), nodeSigner(), nodeSigner()];
    await keys.register(registration(first, "Ada Lovelace"));
    const { fingerprint } = other;
    const payload = { fingerprint, public_key: other.pem, pseudonym: "Ada Lovelace", key_algorithm: "ed25519" };
    while (log.size + 999 <= MAX_CANDIDATES)
      await own.append(...Array.from({ length: 999 }, () => ({ event_type: "key_registration", payload })));
    expect(await keys.search("lovelace")).not.toHaveProperty("truncated");
    while (log.size <= MAX_CANDIDATES) await keys.register(registration(nodeSigner(), "Ada Lovelace"));
    await keys.register(registration(last, "Ada Lovelace, the last"));
    const found = await keys.search("lovelace");
    expect(found.truncated).toBe(true);
    expect(found.keys[0]).toMatchObject({ fingerprint: first.fingerprint });
    // More of the name has a rarer part.
    expect(await keys.search("lovelace, the last")).toMatchObject({
      keys: [{ fingerprint: last.fingerprint }],
      total: 1,
    });
  });

  it("pages through a search for a long text", async () => {
    const { keys } = world.registry;
    expect(await keys.search("KEY NO ", { page: 2, per_page: 3 })).toEqual({
      ...keys.list({ page: 2, per_page: 3 }),
      total: 7,
    });
    expect(await keys.search("key no 1 ")).toMatchObject({ keys: [], total: 0 });
  });

  it("looks at more candidates than one slice, while the log grows", async () => {
    const { log, keys } = (await openWorld()).registry;
    const events = Array.from({ length: 600 }, () => nodeSigner()).map(({ pem, fingerprint }, i) => ({
      event_type: "key_registration",
      payload: {
        fingerprint,
        public_key: pem,
        pseudonym: i % 2 ? "abcbcd" : "abcd",
        key_algorithm: "ed25519",
        expiration_date: null,
      },
    }));
    await log.append(events.slice(0, 500));
    const searching = keys.search("abcd", { page: 2, per_page: 200 });
    await log.append(events.slice(500));
    const found = await searching;
    expect(found.keys.map(({ pseudonym }) => pseudonym)).toEqual(Array(found.keys.length).fill("abcd"));
    expect([250, 300]).toContain(found.total);
    expect(found.keys).toHaveLength(found.total - 200);
    expect((await keys.search("ABCD")).total).toBe(300);
    expect((await keys.search("abcb")).total).toBe(300);
    expect((await keys.search("bcdx")).total).toBe(0);
  });

  it("finds a key once, though a second event claims to create it", async () => {
    const { log, keys } = (await openWorld()).registry;
    const { pem, fingerprint } = nodeSigner();
    const payload = { fingerprint, public_key: pem, key_algorithm: "ed25519", expiration_date: null };
    for (const pseudonym of ["the first", "the second"])
      await log.append({ event_type: "key_registration", payload: { ...payload, pseudonym } });
    expect(await keys.search("the first")).toMatchObject({ keys: [{ pseudonym: "the first" }], total: 1 });
    expect(await keys.search("second")).toMatchObject({ keys: [], total: 0 });
    // It counts all the same where the list is the answer, and leaves a gap.
    expect(keys.list()).toMatchObject({ keys: [{ fingerprint }], total: 2 });
  });

  it("finds the same keys as a plain filter", async () => {
    const { log, keys } = (await openWorld()).registry;
    const alphabet = ["a", "B", "b", "ß", "é", "e", "\u0301", "İ", "i", "Σ", "ς", "🪨", "𐐀", "𐐨", " ", "ﬃ", "漢"];
    const text = fc.array(fc.constantFrom(...alphabet), { minLength: 1, maxLength: 9 }).map((parts) => parts.join(""));
    const pseudonyms: string[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 4 }), text, async (more, needle) => {
        for (const pseudonym of more) {
          await keys.register(registration(nodeSigner(), pseudonym));
          pseudonyms.push(pseudonym);
        }
        const fold = (value: string) => value.normalize("NFC").toLowerCase();
        const part = fold(pseudonyms[pseudonyms.length >> 1]!)
          .slice(0, needle.length)
          .replace(/\p{Surrogate}/gu, "b");
        for (const wanted of [needle, part]) {
          const expected = pseudonyms.filter((pseudonym) => fold(pseudonym).includes(fold(wanted)));
          const found = await keys.search(wanted, { per_page: 200 });
          expect(found.total).toBe(expected.length);
          expect(found.keys.map(({ pseudonym }) => pseudonym)).toEqual(
            expected.slice(0, 200).map((pseudonym) => pseudonym.normalize("NFC")),
          );
        }
      }),
      { numRuns: 60 },
    );
    expect(log.stateDifferences()).toEqual([]);
  });
});
