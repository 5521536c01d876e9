/** The language of request policies: every operator with every type of value, refusals, and costs. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readPredicates, satisfies } from "#cairnlog/engine/registry/events/predicatelanguage.js";
import { Faults } from "#cairnlog/engine/registry/shared/input.js";
import { jsonValues } from "../../texts.js";

const MAX_NESTING = 8;
const MAX_LEAVES = 256;
const MAX_PREDICATE_BYTES = 64 * 1024;

const KEY = `sha256:${"ab".repeat(32)}`;
const subject: Parameters<typeof satisfies>[1] = {
  attestation_type: "peer_review",
  requester_fingerprint: KEY,
  requester_trust: 0.5,
  requester_status: "active",
  claims: {
    text: "beta",
    number: 5,
    zero: 0,
    yes: true,
    no: false,
    nothing: null,
    list: ["beta"],
    object: { deep: { text: "beta", number: 5 } },
    empty: "",
    emoji: "🪨 rock",
  },
};

function faultsOf(value: unknown): string[] {
  const faults = new Faults();
  expect(readPredicates(value, "/predicates", faults)).toBeUndefined();
  try {
    faults.check();
  } catch (error) {
    return (error as { details: { path: string }[] }).details.map(({ path }) => path);
  }
  return [];
}

function read(value: unknown) {
  const faults = new Faults();
  const predicates = readPredicates(value, "/predicates", faults);
  faults.check();
  return predicates!;
}

const holds = (value: unknown, of: Parameters<typeof satisfies>[1] = subject) => satisfies(read(value), of).holds;
const leaf = (field: string, op: string, value: unknown) => ({ field, op, value });

describe("operators", () => {
  const cases: [field: string, op: string, value: unknown, holds: boolean][] = [
    ["attestation_type", "eq", "peer_review", true],
    ["attestation_type", "eq", "Peer_review", false],
    ["requester_status", "eq", "active", true],
    ["requester_fingerprint", "eq", KEY, true],
    ["requester_fingerprint", "eq", "AB".repeat(32), true],
    ["requester_fingerprint", "in", ["cd".repeat(32), "ab".repeat(32)], true],
    ["requester_fingerprint", "not_in", [`sha256:${"AB".repeat(32)}`], false],
    ["requester_fingerprint", "prefix", "sha256:ab", true],
    ["requester_trust", "ge", 0.5, true],
    ["requester_trust", "gt", 0.5, false],
    ["requester_trust", "lt", 0.51, true],
    ["requester_trust", "le", 0.5, true],
    ["requester_trust", "le", 0.49, false],
    ["requester_trust", "eq", 0.5, true],
    ["claims.text", "eq", "beta", true],
    ["claims.text", "ne", "beta", false],
    ["claims.text", "ne", "alpha", true],
    ["claims.text", "in", ["alpha", "beta"], true],
    ["claims.text", "in", ["alpha"], false],
    ["claims.text", "not_in", ["alpha"], true],
    ["claims.text", "not_in", ["beta"], false],
    ["claims.text", "lt", "gamma", true],
    ["claims.text", "lt", "beta", false],
    ["claims.text", "le", "beta", true],
    ["claims.text", "gt", "alpha", true],
    ["claims.text", "gt", "beta", false],
    ["claims.text", "ge", "beta", true],
    ["claims.text", "prefix", "be", true],
    ["claims.text", "prefix", "", true],
    ["claims.text", "prefix", "eta", false],
    ["claims.text", "prefix", "beta and more", false],
    ["claims.emoji", "prefix", "🪨", true],
    ["claims.empty", "eq", "", true],
    ["claims.number", "eq", 5, true],
    ["claims.number", "lt", 5, false],
    ["claims.number", "ge", 5, true],
    ["claims.number", "in", [4, 5], true],
    ["claims.zero", "eq", -0, true],
    ["claims.yes", "eq", true, true],
    ["claims.no", "ne", true, true],
    ["claims.no", "in", [false], true],
    ["claims.object.deep.text", "eq", "beta", true],
    ["claims.object.deep.number", "gt", 4, true],
    ["claims.text", "exists", true, true],
    ["claims.text", "exists", false, false],
    ["claims.nothing", "exists", true, true],
    ["claims.object.deep", "exists", true, true],
    ["claims.absent", "exists", true, false],
    ["claims.absent", "exists", false, true],
    ["attestation_type", "exists", true, true],
  ];
  test.each(cases)("%s %s %j: %s", (field, op, value, expected) => {
    expect(holds(leaf(field, op, value))).toBe(expected);
  });
});

describe("a comparison with an absent field or a wrong type does not hold", () => {
  const operands: [string, unknown][] = [
    ["eq", "beta"],
    ["ne", "beta"],
    ["in", ["beta"]],
    ["not_in", ["beta"]],
    ["lt", "zzz"],
    ["le", "zzz"],
    ["gt", ""],
    ["ge", ""],
    ["prefix", ""],
  ];
  const fields = [
    ["absent", "claims.absent"],
    ["absent below", "claims.object.deep.absent"],
    ["below a text", "claims.text.length"],
    ["below an array", "claims.list.0"],
    ["below null", "claims.nothing.more"],
    ["inherited", "claims.constructor.name"],
    ["inherited accessor", "claims.__proto__"],
    ["a number", "claims.number"],
    ["a boolean", "claims.yes"],
    ["null", "claims.nothing"],
    ["an array", "claims.list"],
    ["an object", "claims.object"],
  ];
  test.each(fields)("%s", (_, field) => {
    for (const [op, value] of operands) expect(holds(leaf(field!, op, value)), op).toBe(false);
    for (const [op, value] of operands) expect(holds({ not: [leaf(field!, op, value)] }), op).toBe(true);
  });

  test("a text is neither a number nor a truth value", () => {
    for (const op of ["eq", "ne", "lt", "le", "gt", "ge"]) expect(holds(leaf("claims.text", op, 5)), op).toBe(false);
    for (const op of ["eq", "ne"]) expect(holds(leaf("claims.text", op, true)), op).toBe(false);
    for (const op of ["in", "not_in"]) expect(holds(leaf("claims.text", op, [5])), op).toBe(false);
  });
});

describe("groups", () => {
  const [yes, no] = [leaf("claims.yes", "eq", true), leaf("claims.yes", "eq", false)];
  test.each([
    ["all of none", { all: [] }, true],
    ["any of none", { any: [] }, false],
    ["not of none", { not: [] }, true],
    ["all", { all: [yes, yes] }, true],
    ["all but one", { all: [yes, no] }, false],
    ["any", { any: [no, yes] }, true],
    ["any of wrong ones", { any: [no, no] }, false],
    ["not of a wrong one", { not: [no] }, true],
    ["not of several, one of them right", { not: [no, yes] }, false],
    ["not without brackets", { not: yes }, false],
    ["a condition alone", yes, true],
    ["groups in groups", { all: [{ any: [no, { not: [no] }] }, { not: { all: [yes, no] } }] }, true],
  ])("%s", (_, value, expected) => {
    expect(holds(value)).toBe(expected);
  });
});

describe("policies that are not in the language are refused", () => {
  const good = leaf("claims.a", "eq", 1);
  const cases: [string, unknown, string][] = [
    ["nothing", undefined, ""],
    ["null", null, ""],
    ["an array", [], ""],
    ["a text", "all", ""],
    ["an empty object", {}, ""],
    ["an unknown group", { none: [] }, ""],
    ["two groups in one", { all: [], any: [] }, ""],
    ["a group and a condition in one", { all: [], ...good }, ""],
    ["an inherited name", { constructor: [] }, ""],
    ["a group that is no array", { all: good }, "/all"],
    ["a group that is null", { not: null }, "/not"],
    ["a part that is no object", { any: [good, 7] }, "/any/1"],
    ["a condition without value", { field: "claims.a", op: "eq" }, ""],
    ["a condition with more", { ...good, also: 1 }, ""],
    ["an unknown field", leaf("requester", "eq", "x"), "/field"],
    ["a field that is no text", { ...good, field: 7 }, "/field"],
    ["claims alone", leaf("claims", "exists", true), "/field"],
    ["an empty path", leaf("claims.", "exists", true), "/field"],
    ["an empty part of a path", leaf("claims.a..b", "exists", true), "/field"],
    ["an unknown operator", leaf("claims.a", "matches", ".*"), "/op"],
    ["an inherited operator", leaf("claims.a", "constructor", 1), "/op"],
    ["exists of a text", leaf("claims.a", "exists", "yes"), "/value"],
    ["null as value", leaf("claims.a", "eq", null), "/value"],
    ["an object as value", leaf("claims.a", "eq", {}), "/value"],
    ["an array for eq", leaf("claims.a", "eq", [1]), "/value"],
    ["no array for in", leaf("claims.a", "in", 1), "/value"],
    ["an empty array for in", leaf("claims.a", "in", []), "/value"],
    ["an array of several types", leaf("claims.a", "not_in", [1, "1"]), "/value"],
    ["an array of arrays", leaf("claims.a", "in", [[1]]), "/value"],
    ["order of truth values", leaf("claims.a", "lt", true), "/value"],
    ["a prefix that is a number", leaf("claims.a", "prefix", 1), "/value"],
    ["a number for a field of text", leaf("attestation_type", "eq", 1), "/value"],
    ["a text for a field of numbers", leaf("requester_trust", "ge", "0.5"), "/value"],
    ["a prefix of a number", leaf("requester_trust", "prefix", "0"), "/value"],
  ];
  test.each(cases)("%s", (_, value, path) => {
    expect(faultsOf(value)).toEqual([`/predicates${path}`]);
  });

  test("any JSON is either accepted or refused with a fault, and accepted policies evaluate requests", () => {
    const name = fc.constantFrom("all", "any", "not", "field", "op", "value");
    const word = fc.constantFrom("claims.a", "requester_trust", "eq", "in", "exists", true, 1, "x", null);
    const { node } = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: "small" },
        fc.record({ field: word, op: word, value: word }),
        fc.dictionary(name, fc.array(tie("node"), { maxLength: 3 }), { maxKeys: 2 }),
        jsonValues(),
      ),
    }));
    fc.assert(
      fc.property(node, (value) => {
        const faults = new Faults();
        const predicates = readPredicates(value, "", faults);
        if (predicates) expect(typeof satisfies(predicates, subject).holds).toBe("boolean");
        else expect(() => faults.check()).toThrow();
      }),
      { numRuns: 2000 },
    );
  });
});

describe("limits", () => {
  const good = leaf("claims.yes", "eq", true);
  const nested = (levels: number): unknown => (levels ? { all: [nested(levels - 1)] } : good);
  test(`${MAX_NESTING} groups in each other are read, ${MAX_NESTING + 1} are not`, () => {
    expect(holds(nested(MAX_NESTING))).toBe(true);
    expect(faultsOf(nested(MAX_NESTING + 1))).toEqual([`/predicates${"/all/0".repeat(MAX_NESTING)}/all`]);
    const nots = (levels: number): unknown => (levels ? { not: nots(levels - 1) } : good);
    expect(holds(nots(MAX_NESTING))).toBe(true);
    expect(faultsOf(nots(MAX_NESTING + 1))).toHaveLength(1);
  });

  test(`${MAX_LEAVES} conditions are read, ${MAX_LEAVES + 1} are not, wherever they stand`, () => {
    const many = (count: number) => Array.from({ length: count }, () => good);
    expect(holds({ all: many(MAX_LEAVES) })).toBe(true);
    expect(faultsOf({ all: many(MAX_LEAVES + 1) })).toHaveLength(1);
    expect(faultsOf({ all: [{ any: many(MAX_LEAVES) }, { not: many(1) }] })).toHaveLength(1);
  });

  test("64 KiB are counted in bytes of the canonical JSON", () => {
    const padded = (bytes: number, text: string) => {
      const frame = JSON.stringify(leaf("claims.text", "ne", "")).length;
      const filler = text.repeat(Math.floor((bytes - frame) / Buffer.byteLength(text)));
      return leaf("claims.text", "ne", filler.padEnd(filler.length + bytes - frame - Buffer.byteLength(filler), "x"));
    };
    for (const text of ["x", "ß", "日", "🪨"]) {
      expect(holds(padded(MAX_PREDICATE_BYTES, text))).toBe(true);
      expect(faultsOf(padded(MAX_PREDICATE_BYTES + 1, text))).toEqual(["/predicates"]);
    }
  });
});

describe("cost", () => {
  /** Parts of the policy that a judgement can visit: groups, conditions, parts of paths. */
  const size = (value: unknown): number => {
    const { all, any, not, field } = value as Record<string, unknown>;
    if (typeof field === "string") return 1 + field.split(".").length;
    return 1 + [all ?? any ?? not].flat().reduce<number>((sum, part) => sum + size(part), 0);
  };
  const long = "a".repeat(30_000);
  const wide = Array.from({ length: MAX_LEAVES }, (_, i) => leaf(`claims.m${i}`, "eq", 1));
  const deepPath = `claims.${"a.".repeat(15_000)}a`;
  const deepClaims = JSON.parse(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`);
  const pyramid = (levels: number): unknown =>
    levels ? { any: [pyramid(levels - 1), pyramid(levels - 1)] } : leaf("claims.absent", "exists", true);
  test.each([
    ["wide", { any: wide }],
    ["wide and negated", { not: [{ all: wide }, { any: wide.slice(0, 0) }] }],
    ["deep", pyramid(MAX_NESTING)],
    ["a long path", leaf(deepPath, "exists", true)],
    ["long texts", { any: [leaf("claims.long", "lt", long), leaf("claims.long", "prefix", `${long}b`)] }],
    [
      "a long list",
      leaf(
        "claims.long",
        "in",
        Array.from({ length: 6_000 }, (_, i) => `a${i}`),
      ),
    ],
    ["empty groups", { any: Array.from({ length: 3_000 }, () => ({ all: [{ any: [] }] })) }],
  ])("%s: no part of the policy is visited twice", (_, value) => {
    const predicates = read(value);
    const claims = { ...deepClaims, long, ...Object.fromEntries(wide.map((_, i) => [`m${i}`, 0])) };
    for (const of of [subject, { ...subject, claims }])
      expect(satisfies(predicates, of).steps).toBeLessThanOrEqual(size(value));
  });

  test("the size of the claims adds nothing", () => {
    const predicates = read({ any: wide });
    const few = satisfies(predicates, { ...subject, claims: {} }).steps;
    const claims = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`other${i}`, long]));
    expect(satisfies(predicates, { ...subject, claims }).steps).toBe(few);
  });
});
