/** Canonical JSON against the RFC's own examples and, value by value, against the package `canonicalize`. */
import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, plainCopy } from "#cairnlog/engine/verify/json/canonical.js";
import { heldMemory } from "../../held-memory.js";
import { jsonValues, texts } from "../../texts.js";

const refused = expect.objectContaining({ code: "not-i-json" });

// The first test of the file: later the cache of names is full, and would keep no further names anyway.
test("names that clients choose do not stay in memory", () => {
  // An object that V8 treats as a hash table. Others would make V8 itself remember the names.
  const table: Record<string, number> = Object.create(null);
  const spell = (name: string) => {
    table[name] = 0;
    canonicalJson(table);
    delete table[name];
  };
  const before = heldMemory();
  for (let i = 0; i < 400; i++) spell(`${i}${"n".repeat(20_000)}`);
  for (let i = 0; i < 30_000; i++) spell(`${"n".repeat(50)}${i}`);
  expect(heldMemory() - before).toBeLessThan(3 * 2 ** 20);
});

describe("RFC 8785", () => {
  test("§3.2.2, the sample object", () => {
    const sample = {
      numbers: JSON.parse("[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]"),
      string: "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"/",
      literals: [null, true, false],
    };
    expect(canonicalJson(sample)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
  });

  test("§3.2.3, sorting by UTF-16 code units", () => {
    const names = ["\u20ac", "\r", "\ufb33", "1", "\ud83d\ude00", "\u0080", "\u00f6"];
    const sorted = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\ud83d\ude00", "\ufb33"];
    const text = canonicalJson(Object.fromEntries(names.map((name) => [name, 0])));
    expect(text).toBe(`{${sorted.map((name) => `${JSON.stringify(name)}:0`).join(",")}}`);
  });

  // Appendix B of RFC 8785, as bits.
  test.each([
    ["0000000000000000", "0"],
    ["8000000000000000", "0"],
    ["0000000000000001", "5e-324"],
    ["8000000000000001", "-5e-324"],
    ["7fefffffffffffff", "1.7976931348623157e+308"],
    ["ffefffffffffffff", "-1.7976931348623157e+308"],
    ["4340000000000000", "9007199254740992"],
    ["c340000000000000", "-9007199254740992"],
    ["4430000000000000", "295147905179352830000"],
    ["44b52d02c7e14af5", "9.999999999999997e+22"],
    ["44b52d02c7e14af6", "1e+23"],
    ["44b52d02c7e14af7", "1.0000000000000001e+23"],
    ["444b1ae4d6e2ef4e", "999999999999999700000"],
    ["444b1ae4d6e2ef4f", "999999999999999900000"],
    ["444b1ae4d6e2ef50", "1e+21"],
    ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
    ["3eb0c6f7a0b5ed8d", "0.000001"],
    ["41b3de4355555553", "333333333.3333332"],
    ["41b3de4355555557", "333333333.33333343"],
    ["becbf647612f3696", "-0.0000033333333333333333"],
    ["43143ff3c1cb0959", "1424953923781206.2"],
  ])("the number %s is %s", (bits, text) => {
    expect(canonicalJson(Buffer.from(bits, "hex").readDoubleBE())).toBe(text);
  });
});

describe("the reference's spelling", () => {
  test("of any value", () => {
    const name = fc.constantFrom("__proto__", "toString", "");
    const value = fc.oneof(jsonValues({ maxDepth: 5 }), fc.constant(-0), fc.dictionary(name, jsonValues()));
    fc.assert(
      fc.property(value, (any) => {
        expect(canonicalJson(any)).toBe(canonicalize(any));
      }),
      { numRuns: 1000 },
    );
  });

  test("of any text, as a value and as a name", () => {
    fc.assert(
      fc.property(texts(), (text) => {
        expect(canonicalJson({ [text]: text })).toBe(canonicalize({ [text]: text }));
      }),
      { numRuns: 3000 },
    );
  });

  const units = Array.from({ length: 0x300 }, (_, code) => String.fromCharCode(code));
  test.each([
    ["alone", (unit: string) => unit],
    ["in plain text", (unit: string) => `C:${unit}dir`],
    ["beside a letter that is not ASCII", (unit: string) => `é${unit}`],
  ])("of every character up to U+02FF, %s", (_, around) => {
    for (const text of units.map(around)) {
      expect(canonicalJson(text)).toBe(canonicalize(text));
      expect(canonicalJson({ [text]: 0 })).toBe(canonicalize({ [text]: 0 }));
    }
  });
});

test.each([
  ["C:\\dir", String.raw`"C:\\dir"`],
  ['say "a"', String.raw`"say \"a\""`],
  ["a/b", '"a/b"'],
  ["\b\f\n\r\t", String.raw`"\b\f\n\r\t"`],
  ["\u0000\u001b\u001f\u007f", '"\\u0000\\u001b\\u001f\u007f"'],
])("the text %j is %s", (text, spelling) => {
  expect(canonicalJson(text)).toBe(spelling);
  expect(canonicalJson({ [text]: 1 })).toBe(`{${spelling}:1}`);
});

test("lone surrogates are refused where the reference refuses them", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0xd7f0, max: 0xe00f }), { maxLength: 6 }), (units) => {
      const text = String.fromCharCode(...units);
      let reference: string | undefined;
      try {
        reference = canonicalize({ [text]: [text] });
      } catch {
        reference = undefined;
      }
      if (reference === undefined) expect(() => canonicalJson({ [text]: [text] })).toThrow(refused);
      else expect(canonicalJson({ [text]: [text] })).toBe(reference);
    }),
    { numRuns: 2000 },
  );
});

describe("what JSON cannot carry", () => {
  const cycle: unknown[] = [];
  cycle.push(cycle);
  let deep: unknown = 0;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  test.each([
    ["NaN", Number.NaN],
    ["Infinity", [Number.POSITIVE_INFINITY]],
    ["undefined", undefined],
    ["undefined in an array", [undefined]],
    ["a function", { a: () => 0 }],
    ["a symbol", Symbol("x")],
    ["a bigint", 1n],
    ["a cycle", cycle],
    ["great depth", deep],
  ])("%s is refused", (_, value) => {
    expect(() => canonicalJson(value)).toThrow(refused);
  });

  const nested = (levels: number, around: (value: unknown) => unknown): unknown =>
    levels ? around(nested(levels - 1, around)) : 0;
  test.each<[string, (value: unknown) => unknown]>([
    ["arrays", (value) => [value]],
    ["objects", (value) => ({ a: value })],
    ["values that give others", (value) => ({ toJSON: () => value })],
  ])("more than 512 levels of %s are refused, and no fewer", (_, around) => {
    const most = nested(512, around);
    expect(canonicalJson(most)).toBe(canonicalize(most));
    expect(() => canonicalJson(nested(513, around))).toThrow(refused);
  });

  test("a value that gives itself is refused", () => {
    const endless = { toJSON: (): unknown => endless };
    expect(() => canonicalJson(endless)).toThrow(refused);
  });

  test("toJSON that is no function is a member like any other", () => {
    expect(canonicalJson({ toJSON: 5 })).toBe('{"toJSON":5}');
    expect(canonicalJson([{ b: 1, toJSON: null }])).toBe('[{"b":1,"toJSON":null}]');
  });

  test.each([
    ["a number that is not finite", Number.NaN],
    ["too many levels", cycle],
    ["half of a surrogate pair", "\ud800"],
    ["a value of type function", () => 0],
    ["a value of type undefined", undefined],
  ])("the refusal says that it holds %s", (why, value) => {
    expect(() => canonicalJson(value)).toThrow(`The value has no canonical JSON form: it holds ${why}.`);
  });

  test("members that are undefined are left out, and toJSON is heeded", () => {
    expect(canonicalJson({ b: undefined, a: 1 })).toBe('{"a":1}');
    expect(canonicalJson({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
  });
});

describe("a copy", () => {
  const objectsIn = (value: unknown): object[] =>
    typeof value === "object" && value !== null ? [value, ...Object.values(value).flatMap(objectsIn)] : [];

  test("has the spelling of the value, and shares no object with it", () => {
    const name = fc.constantFrom("__proto__", "toString", "", "a");
    const value = fc.oneof(
      jsonValues({ maxDepth: 5 }),
      fc.dictionary(name, jsonValues()),
      fc.date({ noInvalidDate: true }),
    );
    fc.assert(
      fc.property(value, (any) => {
        const copy = plainCopy(any);
        expect(canonicalJson(copy)).toBe(canonicalJson(any));
        const known = new Set(objectsIn(any));
        expect(objectsIn(copy).filter((object) => known.has(object))).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });

  test("of what holds itself twice is refused at once, as its spelling is", () => {
    const twice: unknown[] = [];
    twice.push(twice, twice);
    for (const read of [plainCopy, canonicalJson]) expect(() => read(twice)).toThrow("it holds too many levels");
  });

  test.each([[[undefined]], [{ a: Number.NaN }], [{ a: () => 0 }], [{ a: "\ud800" }]])(
    "of what has no spelling has none: %j",
    (value) => {
      expect(() => canonicalJson(plainCopy(value))).toThrow("has no canonical JSON form");
    },
  );
});
