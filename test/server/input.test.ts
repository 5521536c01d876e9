/** From the text of a request to checked values: what is read, and the message about each fault. */
import Type, { type TObject, type TSchema } from "typebox";
import { describe, expect, test } from "vitest";
import { checker, parseBody, textReader } from "#cairnlog/server/http/input.js";

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
  ])("%s", (_, schema, value, path, message) => {
    const error = refusal(() => checker(schema)(value));
    expect([error.code, error.message]).toEqual(["invalid-input", `${path}: ${message}`]);
    expect(error.details).toEqual([{ path, message }]);
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
