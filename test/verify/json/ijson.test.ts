import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CairnlogError } from "#cairnlog/engine/base/error.js";
import { canonicalJson, parseIJson } from "#cairnlog/engine/verify/json/canonical.js";
import { jsonValues, texts } from "../../texts.js";

/** The code and the JSON Pointer of the error for a text; `undefined` if it is accepted. */
function refusal(text: string): { code: string; path: string | undefined } | undefined {
  try {
    parseIJson(text);
    return undefined;
  } catch (error) {
    if (!(error instanceof CairnlogError)) throw error;
    return { code: error.code, path: error.details?.[0]?.path };
  }
}
const notIJson = (path: string) => ({ code: "not-i-json", path });
const nested = (levels: number, inner = "") => `${"[".repeat(levels)}${inner}${"]".repeat(levels)}`;

describe("parseIJson", () => {
  it("reads what JSON.parse reads", () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          texts({ maxLength: 12 }).filter((name) => name !== "__proto__"),
          jsonValues({ maxDepth: 6 }),
        ),
        fc.nat(3),
        (object, indent) => {
          const text = JSON.stringify(object, null, indent);
          if (text.includes("__proto__")) return;
          expect(parseIJson(text)).toEqual(JSON.parse(text));
          const escaped = text.replace(
            /[^\x20-\x7e\n]/g,
            (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
          );
          expect(parseIJson(escaped)).toEqual(JSON.parse(text));
        },
      ),
      { numRuns: 500, seed: 7 },
    );
  });

  it("finds a member that is put in twice, wherever it is", () => {
    const object = fc.dictionary(texts({ maxLength: 5 }), jsonValues({ maxDepth: 2 }), {
      minKeys: 1,
      maxKeys: 12,
    });
    fc.assert(
      fc.property(object, fc.nat(), fc.nat(4), (members, which, depth) => {
        const names = Object.keys(members).filter((name) => name !== "__proto__");
        const name = names[which % names.length];
        if (name === undefined || JSON.stringify(members).includes("__proto__")) return;
        const twice = JSON.stringify(members).replace(/}$/, `,${JSON.stringify(name)}:0}`);
        expect(refusal(`${'{"":['.repeat(depth)}${twice}${"]}".repeat(depth)}`)?.code).toBe("not-i-json");
      }),
      { numRuns: 300, seed: 7 },
    );
  });

  it.each([
    ['{"a":1,"a":1}', "/a"],
    ['{"a":1,"\\u0061":1}', "/a"],
    ['{"x":[0,{"b":{"c":1,"d":2,"c":3}}]}', "/x/1/b/c"],
    ['{"a":{"k":1},"a":{"k":1}}', "/a"],
    ['{"a":{"k":1,"l":2},"a":0}', "/a"],
    ['{"":1,"":2}', "/"],
    ['{"a/b~":1,"a\\/b~":2}', "/a~1b~0"],
    ['[{"\\"":1,"\\u0022":2}]', '/0/"'],
    [`{${Array.from({ length: 40 }, (_, i) => `"k${i}":${i}`)},"k7":0}`, "/k7"],
  ])("names the duplicate in %s", (text, path) => expect(refusal(text)).toEqual(notIJson(path)));

  it("lets one name recur in different objects, and as a value", () => {
    expect(refusal('{"a":{"a":"a","b":["a","a"]},"b":[{"a":1},{"a":1}]}')).toBeUndefined();
  });

  it.each([
    ['{"s":"\\ud83d"}', "/s"],
    ['["ok","\\ude00"]', "/1"],
    ['["\\ud83d\\ud83d\\ude00"]', "/0"],
    ['["\\ud83d\\n"]', "/0"],
    ['["\\ud83dx\\ude00"]', "/0"],
    ['["\\uD83D", "\\uDE00"]', "/0"],
    ['["\ud83d"]', "/0"],
    ['["fine \ud83d\ude00","\ude00"]', "/1"],
    ['{"a":{"\\udc00":1}}', "/a/\ufffd"],
    ['{"\udc00":1}', "/\ufffd"],
  ])("refuses the lone surrogate in %j", (text, path) => expect(refusal(text)).toEqual(notIJson(path)));

  it("takes surrogate pairs, escaped and raw, and escapes that only look like them", () => {
    for (const text of [
      '["\\ud83d\\ude00"]',
      '["\\uD83D\\uDE00\\"\\\\"]',
      '["😀"]',
      '["\\\\ud83d"]',
      '{"\\\\":"\\\\\\\\","😀":1}',
    ]) {
      expect(parseIJson(text)).toEqual(JSON.parse(text));
    }
  });

  it.each([
    "1.0",
    "1e2",
    "-0",
    "0.10",
    "0",
    "1E+2",
    "-1.50e-3",
    "9007199254740992",
    "123456789012345680000",
    "1e21",
    "5e-324",
    "0e999999",
    "0.000",
    "-0.0e-5",
    "1.7976931348623157e308",
    "10000000000000000000000000e-25",
    "0.1000000000000000000000",
  ])("takes the number %s", (literal) => expect(parseIJson(`[${literal}]`)).toEqual([Number(literal)]));

  it.each([
    "9007199254740993",
    "-9007199254740993",
    "0.10000000000000000001",
    "1e400",
    "-1e400",
    "1E400",
    "1e-400",
    "1E-400",
    "-1E-400",
    "4.9e-324",
    "123456789012345678000",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "2.00000000000000000001",
    "18446744073709551615",
  ])("refuses the number %s", (literal) => expect(refusal(`{"n":[${literal}]}`)).toEqual(notIJson("/n/0")));

  it("takes every number that JavaScript writes, and only exact decimals", () => {
    fc.assert(
      fc.property(
        fc.double({ noDefaultInfinity: true, noNaN: true }),
        fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }),
        (double, big) => {
          expect(parseIJson(`[${JSON.stringify(double)}]`)).toEqual(JSON.parse(`[${JSON.stringify(double)}]`));
          const [mantissa = "", power = "0"] = String(Number(big)).split("e+");
          const [whole = "", fraction = ""] = mantissa.split(".");
          const shortest = BigInt(whole + fraction) * 10n ** BigInt(Number(power) - fraction.length);
          expect(refusal(String(big))).toEqual(shortest === big ? undefined : notIJson(""));
        },
      ),
      { numRuns: 500, seed: 7 },
    );
  });

  it("refuses nesting beyond 64 levels without recursion", () => {
    expect(refusal(nested(64))).toBeUndefined();
    expect(refusal(nested(65))?.code).toBe("not-i-json");
    expect(() => parseIJson(nested(65))).toThrow(/deeper than 64/);
    expect(() => parseIJson(nested(300_000))).toThrow(/deeper than 64/);
    expect(refusal(`{"a":${nested(63, '"["')}}`)).toBeUndefined();
    expect(refusal(`{"a":${nested(64)}}`)?.path).toMatch(/^\/a\/0\/0/);
  });

  it("refuses members named __proto__ in any spelling, and nothing like them", () => {
    expect(refusal('{"a":{"__proto__":{"x":1}}}')).toEqual(notIJson("/a/__proto__"));
    expect(refusal('{"\\u005f_proto__":1}')).toEqual(notIJson("/__proto__"));
    const likes = [
      '{"__proto":1}',
      '["__proto__"]',
      '{"a":"__proto__"}',
      '{"_proto__\\u005f_":1,"constructor":{"prototype":1}}',
    ];
    for (const text of likes) expect(parseIJson(text)).toEqual(JSON.parse(text));
  });

  it("says malformed JSON apart from JSON that is not I-JSON", () => {
    for (const text of ["", "{", "[1,]", "{'a':1}", "01", "[1.]", "NaN", "\ufeff{}", '"\n"', "[1] 2", '{"a":1,"a"}']) {
      expect(refusal(text)).toEqual({ code: "invalid-input", path: undefined });
      expect(() => parseIJson(text)).toThrow(expect.objectContaining({ cause: expect.any(SyntaxError) }));
      expect(() => parseIJson(text)).toThrow(/^Malformed JSON: /);
    }
  });

  it("takes scalars and surrounding white space", () => {
    for (const text of [' "a" ', "\t1\r\n", "null", "true", " [ 1 , 2 ] ", '\n{ "a" :\t[ ] }\n']) {
      expect(parseIJson(text)).toEqual(JSON.parse(text));
    }
  });

  it("never fails in another way, whatever the text", () => {
    const marks = [
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"',
      "\\",
      '"a"',
      "\\u",
      "d83d",
      "\\ud83d",
      "1",
      "-",
      "e",
      ".",
      "null",
      " ",
      '"__proto__"',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...marks), { maxLength: 12 }), (tokens) => {
        const refused = refusal(tokens.join(""));
        expect(refused === undefined || ["invalid-input", "not-i-json"].includes(refused.code)).toBe(true);
      }),
      { numRuns: 3000, seed: 7 },
    );
  });

  it("shortens long names in a path", () => {
    const name = "n".repeat(5000);
    expect(refusal(`{"${name}":[1e400]}`)?.path).toBe(`/${"n".repeat(64)}/0`);
  });
});

describe("canonicalJson", () => {
  it("is RFC 8785", () => {
    // RFC 8785 §3.2.2–§3.2.4.
    const text = String.raw`{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`;
    const canonical = String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`;
    expect(canonicalJson(JSON.parse(text))).toBe(canonical);
    const keys = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\ud83d\ude00": 5, "\u0080": 6, "\u00f6": 7 };
    expect(canonicalJson(keys)).toBe('{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}');
  });

  it("refuses what JSON cannot carry", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    for (const value of [
      undefined,
      () => 1,
      Symbol("s"),
      Number.NaN,
      Number.POSITIVE_INFINITY,
      1n,
      "\ud83d",
      { "\ud83d": 1 },
      cycle,
    ]) {
      expect(() => canonicalJson(value)).toThrow(expect.objectContaining({ code: "not-i-json" }));
    }
  });
});
