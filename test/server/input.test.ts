/** Reading and checking the input of a request: the values that are read, and the message for each fault. */
import Type, { type TObject, type TSchema } from "typebox";
import { describe, expect, test } from "vitest";
import { parseBody } from "#cairnlog/server/http/body/body.js";
import { checker, textReader } from "#cairnlog/server/http/input.js";

/** What docs/spec §12.1 says of a body. */
const MAX_VALUES = 20_000;

interface Fault {
  readonly code: string;
  readonly message: string;
  readonly details?: readonly { readonly path: string; readonly message: string }[];
}

function refusal(action: () => unknown): Fault {
  try {
    action();
  } catch (error) {
    return error as Fault;
  }
  throw new Error("it was taken");
}

describe("a body", () => {
  const parse = (text: string | Uint8Array) => parseBody(Buffer.from(text as string));

  test("is an object in JSON", () => {
    expect(parse('{"a":[1,{"b":"ü"}]}')).toEqual({ a: [1, { b: "ü" }] });
    expect(parse(" {} ")).toEqual({});
  });

  test.each<[string, string | Uint8Array, string, RegExp]>([
    ["nothing", "", "malformed-json", /empty/],
    ["bytes that are no UTF-8", Uint8Array.of(0x7b, 0xff, 0x7d), "malformed-json", /UTF-8/],
    ["half an object", '{"a":', "malformed-json", /./],
    ["a member twice", '{"a":1,"a":2}', "not-i-json", /./],
    ["an array", "[]", "not-an-object", /object/],
    ["a text", '"a"', "not-an-object", /object/],
    ["a number", "1", "not-an-object", /object/],
    ["null", "null", "not-an-object", /object/],
  ])("is not %s", (_, text, code, message) => {
    const error = refusal(() => parse(text));
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
  });
});

describe("a body is bounded", () => {
  const parse = (text: string) => parseBody(Buffer.from(text));
  const items = (count: number) => `{"a":[${Array(count).fill(0).join()}]}`;

  test("in members and items, wherever they are", () => {
    // The array itself also counts.
    expect(parse(items(MAX_VALUES - 1))).toEqual({ a: Array(MAX_VALUES - 1).fill(0) });
    const names = Array.from({ length: MAX_VALUES + 1 }, (_, i) => `"${i}":0`);
    const nested = `{"a":[${Array(MAX_VALUES / 2)
      .fill("[[]]")
      .join()}]}`;
    for (const text of [items(MAX_VALUES), `{${names.join()}}`, nested]) {
      const { code, details } = refusal(() => parse(text));
      expect([code, details]).toEqual([
        "invalid-input",
        [{ path: "", message: `A body can hold at most ${MAX_VALUES} members and items.` }],
      ]);
    }
  });

  test("a comma in a text is none between members", () => {
    expect(parse(`{"a":"${",".repeat(MAX_VALUES + 1)}"}`).a).toHaveLength(MAX_VALUES + 1);
  });

  test("and brackets in its texts count for nothing", () => {
    const text = `[{,${'\\"'.repeat(9)}`.repeat(20_000);
    expect(parse(JSON.stringify({ a: text, [text]: 1 }))).toEqual({ a: text, [text]: 1 });
  });

  test("in depth, before anything is made of it", () => {
    expect(refusal(() => parse(`{"a":${"[".repeat(2_000)}${"]".repeat(2_000)}}`))).toMatchObject({
      code: "not-i-json",
      details: [{ path: "", message: "Arrays and objects are nested too deep." }],
    });
    expect(refusal(() => parse(`{"a":${"[".repeat(2_000)}${"]".repeat(2_000)},"b":[]}`)).message).toBe(
      "Arrays and objects are nested too deep.",
    );
    // Brackets side by side are not deep.
    expect(parse(`{"a":[${Array(5_000).fill("[]").join()}]}`).a).toHaveLength(5_000);
    expect(refusal(() => parse('{"a":[]]}')).code).toBe("malformed-json");
    expect(refusal(() => parse("[".repeat(2_000))).code).toBe("malformed-json");
    expect(refusal(() => parse('{"a":"')).code).toBe("malformed-json");
  });
});

describe("a check ends", () => {
  test("at the first item of a list that does not fit, and at the eighth fault", () => {
    let looked = 0;
    const counted = new Proxy(Array(1_000).fill(7), {
      get(target, name) {
        if (typeof name === "string" && /^\d+$/.test(name)) looked++;
        return Reflect.get(target, name);
      },
    });
    const list = Type.Object({ tags: Type.Array(Type.String()), title: Type.String() });
    expect(refusal(() => checker(list)({ tags: counted })).details).toEqual([
      { path: "/title", message: "It is missing." },
      { path: "/tags/0", message: "It must be a string." },
    ]);
    expect(looked).toBeLessThan(8);
    const map = Type.Record(Type.String(), Type.Integer());
    expect(refusal(() => checker(map)({ a: 1, b: "x", c: "y" })).details).toEqual([
      { path: "/b", message: "It must be an integer." },
    ]);
    const names = Array.from({ length: 20 }, (_, i) => `m${i}`);
    const wide = Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));
    expect(refusal(() => checker(wide)({})).details).toHaveLength(8);
  });

  test("at once where there is too much of anything", () => {
    const schema = Type.Object({
      items: Type.Array(Type.String(), { maxItems: 2 }),
      members: Type.Record(Type.String(), Type.String(), { maxProperties: 2 }),
    });
    expect(refusal(() => checker(schema)({ items: [1, 2, 3], members: { a: 1, b: 2, c: 3 } })).details).toEqual([
      { path: "/items", message: "It can have at most 2 items." },
      { path: "/members", message: "It can have at most 2 members." },
    ]);
    checker(schema)({ items: ["a", "b"], members: { a: "", b: "" } });
    // As many as there may be, one of them wrong.
    expect(refusal(() => checker(schema)({ items: ["a", 1], members: { a: "", b: 1 } })).details).toEqual([
      { path: "/items/1", message: "It must be a string." },
      { path: "/members/b", message: "It must be a string." },
    ]);
  });
});

describe("names and texts", () => {
  const read = (pairs: string, schema: TObject = QUERY) => textReader(schema)(new URLSearchParams(pairs));
  const QUERY = Type.Object({
    page: Type.Integer({ minimum: 1, maximum: 9_007_199_254_740_991, default: 1 }),
    name: Type.Optional(Type.String()),
    size: Type.Optional(Type.Integer()),
  });

  test("become values, with defaults for absent ones", () => {
    expect(read("")).toEqual({ page: 1 });
    expect(read("page=20&name=7&size=0")).toEqual({ page: 20, name: "7", size: 0 });
    // Each reading starts with the defaults again.
    expect(read("name=")).toEqual({ page: 1, name: "" });
    expect(read("page=9007199254740991").page).toBe(Number.MAX_SAFE_INTEGER);
  });

  test("that nobody knows are passed over, however often they come", () => {
    expect(read("other=1&other=2&__proto__=3&page=2")).toEqual({ page: 2 });
  });

  test("come once", () => {
    for (const pairs of ["page=1&page=1", "name=a&size=1&name=b"]) {
      const path = `/${pairs.split("=")[0]}`;
      const { code, message, details } = refusal(() => read(pairs));
      expect([code, details]).toEqual(["invalid-input", [{ path, message: "It must be given once." }]]);
      expect(message).toBe(`${path}: It must be given once.`);
    }
  });

  test.each(["", " 1", "1 ", "+1", "-1", "01", "1.0", "1e3", "0x1", "١", "9007199254740992", "12345678901234567"])(
    "the number %j is none",
    (text) => {
      const message = "It must be a whole number below 2^53, in plain decimal digits.";
      const { code, details } = refusal(() => read(`size=${encodeURIComponent(text)}`));
      expect([code, details]).toEqual(["invalid-input", [{ path: "/size", message }]]);
    },
  );

  test("keep to their schema", () => {
    expect(refusal(() => read("page=0")).details).toEqual([{ path: "/page", message: "It must be at least 1." }]);
    const required = Type.Object({ name: Type.String() });
    expect(refusal(() => read("", required)).details).toEqual([{ path: "/name", message: "It is missing." }]);
  });
});

describe("a wrong value is reported", () => {
  const STRING = Type.String();
  const DATE = Type.String({ format: "date-time" });
  test.each<[string, TSchema, unknown, string, string]>([
    ["type", STRING, 7, "", "It must be a string."],
    ["type with a vowel", Type.Object({}), [], "", "It must be an object."],
    ["type of an item", Type.Array(Type.Integer()), [1, "x"], "/1", "It must be an integer."],
    ["enum", Type.Enum(["a", 2]), "b", "", "It must be one of a, 2."],
    ["minimum", Type.Integer({ minimum: 3 }), 2, "", "It must be at least 3."],
    ["maximum", Type.Integer({ maximum: 3 }), 4, "", "It must be at most 3."],
    ["minLength", Type.String({ minLength: 3 }), "ab", "", "It must have at least 3 character(s)."],
    ["maxLength", Type.String({ maxLength: 3 }), "abcd", "", "It must have at most 3 characters."],
    ["format", DATE, "soon", "", "It must be an ISO 8601 date and time with an offset."],
    ["another format", Type.String({ format: "email" }), "soon", "", 'It must match format "email".'],
    ["pattern", Type.String({ pattern: "^a" }), "b", "", 'It must match pattern "^a".'],
    ["member", Type.Object({ "a/b~c": STRING }), { "a/b~c": 1 }, "/a~1b~0c", "It must be a string."],
    ["missing member", Type.Object({ "a/b~c": STRING }), {}, "/a~1b~0c", "It is missing."],
    ["alternatives", Type.Union([STRING, Type.Null()]), 7, "", "It must be a string."],
    ["object in place of a text", STRING, {}, "", "It must be a string."],
    ["array in place of a text", STRING, [], "", "It must be a string."],
    ["object in place of an array", Type.Array(STRING), {}, "", "It must be an array."],
    ["array in place of a map", Type.Record(STRING, STRING), [], "", "It must be an object."],
  ])("%s", (_, schema, value, path, message) => {
    const error = refusal(() => checker(schema)(value));
    expect([error.code, error.message]).toEqual(["invalid-input", `${path}: ${message}`]);
    expect(error.details).toEqual([{ path, message }]);
  });

  test("but not a value that fits another alternative than the first", () => {
    const schema = Type.Object({ a: Type.Union([STRING, Type.Null()]), b: STRING });
    expect(refusal(() => checker(schema)({ a: null, b: 7 })).details).toEqual([
      { path: "/b", message: "It must be a string." },
    ]);
  });

  test("by the first of its alternatives, with all faults that it has there", () => {
    const schema = Type.Union([Type.Object({ a: STRING, b: STRING }), Type.Object({ c: STRING })]);
    expect(refusal(() => checker(schema)({ a: 1 })).details).toEqual([
      { path: "/b", message: "It is missing." },
      { path: "/a", message: "It must be a string." },
    ]);
  });

  test("member by member, each once, and valid members are accepted", () => {
    const schema = Type.Object({ a: Type.Integer(), b: STRING, c: Type.Object({ d: STRING, e: STRING }) });
    const check = checker(schema);
    check({ a: 1, b: "x", c: { d: "", e: "", more: 1 }, more: 2 });
    const { details, message } = refusal(() => check({ a: "1", c: { d: 2 } }));
    const found = Object.fromEntries(details!.map((detail) => [detail.path, detail.message]));
    expect(found).toEqual({
      "/a": "It must be an integer.",
      "/b": "It is missing.",
      "/c/d": "It must be a string.",
      "/c/e": "It is missing.",
    });
    expect(details).toHaveLength(4);
    expect(message).toBe(`${details![0]!.path}: ${details![0]!.message}`);
  });
});
