import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OfferBody } from "#cairnlog/engine/registry/endorsements/input.js";
import { closeWorlds, failure, nodeSigner, openWorld, type World } from "../world.js";
import { Case, INSTITUTIONAL, newCase, newKey, offerOf } from "./endorsementcase.js";

afterAll(closeWorlds);

let world: World;
beforeAll(async () => {
  world = await openWorld();
});

describe("an offer", () => {
  const refusals: [string, Record<string, unknown>, string[]][] = [
    ["an unknown category", { category: "x-service:friend" }, ["/category"]],
    ["no category", { category: undefined }, ["/category"]],
    ...[
      "2024-12-31",
      "2025-01-01T00:00:00Z",
      "2025-02-30",
      "2030-1-1",
      "tomorrow",
      "",
      4070908800,
      "2030-01-01T00:00:00",
    ].map((valid_until): [string, Record<string, unknown>, string[]] => [
      `valid until ${valid_until}`,
      { valid_until },
      ["/valid_until"],
    ]),
    ["metadata that is no object", { institutional_metadata: [] }, ["/institutional_metadata"]],
    ["an unknown identifier", { external_identifiers: [{ type: "x", value: "1" }] }, ["/external_identifiers/0/type"]],
    [
      "several faults",
      { category: 1, valid_until: 1, institutional_metadata: 1, external_identifiers: [{ type: "orcid", value: "1" }] },
      ["/category", "/valid_until", "/institutional_metadata", "/external_identifiers/0/value"],
    ],
  ];
  it.each(refusals)("with %s is refused", async (_, more, paths) => {
    const own = await openWorld();
    const one = await newCase(own);
    const { code, paths: blamed } = await failure(() => one.offer(more as Partial<OfferBody>));
    expect([code, blamed]).toEqual(["invalid-input", paths]);
    expect(own.registry.log.size).toBe(2);
  });

  it("to oneself is refused, in any form of the key", async () => {
    const key = await newKey(world);
    const { endorsements } = world.registry;
    for (const spelt of [key, key.toUpperCase().replace("SHA256", "sha256"), key.slice("sha256:".length)])
      expect((await failure(() => endorsements.offer(offerOf(key, spelt)))).paths).toEqual(["/endorsed_fingerprint"]);
  });

  it("needs two keys that exist", async () => {
    const key = await newKey(world);
    const nobody = nodeSigner().fingerprint;
    const { endorsements } = world.registry;
    for (const other of [nobody, "", "x", 7 as unknown as string]) {
      expect((await failure(() => endorsements.offer(offerOf(key, other)))).code).toBe("not-found");
      expect((await failure(() => endorsements.offer(offerOf(other, key)))).code).toBe("not-found");
    }
  });

  it("may come from the operator key, which is not registered, and go to it", async () => {
    const key = await newKey(world);
    const operator = world.operator.fingerprint;
    for (const one of [new Case(world, operator, key), new Case(world, key, operator)]) {
      await one.offer();
      expect((await one.accept()).endorsement.status).toBe("pending_activation");
    }
  });

  it("in the other category, or the other way, is another", async () => {
    const one = await newCase(world);
    await one.offer();
    await one.offer({ category: INSTITUTIONAL });
    await new Case(world, one.endorsed, one.endorser).offer();
    expect((await failure(() => one.offer())).code).toBe("already-exists");
  });

  it("is good through the whole of a date", async () => {
    const own = await openWorld();
    const one = await newCase(own);
    await one.offer({ valid_until: "2025-01-01" });
    own.now = Date.parse("2025-01-01T23:59:59.999Z") * 1000 + 999;
    expect((await one.accept()).endorsement.status).toBe("pending_activation");
    own.now += 1;
    expect((await one.record()).status).toBe("expired");
  });
});

describe("ids that are not offers", () => {
  it("are unknown or malformed", async () => {
    const one = await newCase(world);
    for (const [id, code] of [
      [1, "not-found"],
      [9e9, "not-found"],
      [0, "invalid-input"],
      [-1, "invalid-input"],
      [1.5, "invalid-input"],
      ["1", "invalid-input"],
      [2 ** 53, "invalid-input"],
    ] as const) {
      one.id = id as number;
      for (const command of ["accept", "withdraw", "revoke"] as const) {
        // An acceptance needs a live offer. An entry that is no offer gives the same error as a missing entry.
        const expected = command === "accept" && code === "not-found" ? "precondition-failed" : code;
        expect((await failure(() => one[command]())).code, `${command} ${id}`).toBe(expected);
      }
    }
  });

  it("a withdrawal names the key that the offer was made to", async () => {
    const one = await newCase(world);
    await one.offer();
    const wrong = new Case(world, one.endorser, await newKey(world));
    wrong.id = one.id;
    expect((await failure(() => wrong.withdraw())).paths).toEqual(["/endorsed_fingerprint"]);
  });
});

describe("caps", () => {
  // Two UTF-16 units and four bytes each.
  const FACE = "😀";

  it("count characters of notes, reasons and evidence", async () => {
    const one = await newCase(world);
    await one.offer();
    for (const note of ["", FACE.repeat(1001), `${FACE}\ud83d`, 7, null]) {
      const { code, paths } = await failure(() => one.withdraw(one.endorser, note as never));
      expect([code, paths]).toEqual(["invalid-input", ["/note"]]);
    }
    await one.accept();
    const alert = (more: Record<string, unknown>) =>
      world.registry.endorsements.alert({
        endorser_fingerprint: one.endorser,
        compromised_fingerprint: one.endorsed,
        reason: FACE.repeat(1000),
        ...more,
      });
    expect((await failure(() => alert({ reason: FACE.repeat(1001) }))).paths).toEqual(["/reason"]);
    expect((await failure(() => alert({ reason: "" }))).paths).toEqual(["/reason"]);
    expect((await failure(() => alert({ evidence: FACE.repeat(5001) }))).paths).toEqual(["/evidence"]);
    expect((await alert({ evidence: FACE.repeat(5000) })).alert.evidence).toBe(FACE.repeat(5000));
    expect((await alert({})).alert).toMatchObject({ evidence: null, reason: FACE.repeat(1000) });
    expect((await alert({ reason: FACE })).alert.reason).toBe(FACE);
    expect((await one.withdraw(one.endorser, FACE.repeat(1000))).endorsement.end_note).toBe(FACE.repeat(1000));
  });

  it("count bytes of metadata, as canonical JSON", async () => {
    const LIMIT = 16 * 1024;
    const empty = '{"name":""}'.length;
    const fitting = FACE.repeat((LIMIT - empty) / 4 - 1);
    const filler = "x".repeat(LIMIT - empty - 4 * (fitting.length / 2));
    const one = await newCase(world);
    const over = { name: `${fitting + filler}x` };
    expect((await failure(() => one.offer({ institutional_metadata: over }))).paths).toEqual([
      "/institutional_metadata",
    ]);
    const exact = { name: fitting + filler };
    expect(Buffer.byteLength(JSON.stringify(exact))).toBe(LIMIT);
    expect((await one.offer({ institutional_metadata: exact })).endorsement.institutional_metadata).toEqual(exact);
  });

  it("count bytes of identifiers", async () => {
    const one = await newCase(world);
    const url = (length: number) => ({ type: "url", value: "https://example.org/".padEnd(length, "x") });
    const list = [...Array.from({ length: 8 }, () => url(2000))];
    const size = Buffer.byteLength(JSON.stringify(list));
    const rest = 16 * 1024 - size - Buffer.byteLength(',{"type":"url","value":""}');
    expect((await failure(() => one.offer({ external_identifiers: [...list, url(rest + 1)] }))).paths).toEqual([
      "/external_identifiers",
    ]);
    const { endorsement } = await one.offer({ external_identifiers: [...list, url(rest)] });
    expect(endorsement.external_identifiers).toHaveLength(9);
  });

  it("keep metadata shallow enough for every reader", async () => {
    const nested = (levels: number): object => (levels === 1 ? {} : { a: nested(levels - 1) });
    const one = await newCase(world);
    expect((await failure(() => one.offer({ institutional_metadata: nested(17) }))).paths).toEqual([
      "/institutional_metadata",
    ]);
    await one.offer({ institutional_metadata: nested(16) });
  });

  it("values that JSON cannot represent are refused", async () => {
    const one = await newCase(world);
    const { code } = await failure(() => one.offer({ institutional_metadata: { name: "\ud800" } }));
    expect(code).toBe("not-i-json");
  });
});
