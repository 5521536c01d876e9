/**
 * A plain body is read in one look. It must give what the general way gives, and the canonical bytes must be those that
 * canonical JSON makes of the wanted object: whoever could part the two would have one manifest verified and another recorded.
 */
import canonicalize from "canonicalize";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseBody, readBody } from "#cairnlog/server/http/body/body.js";
import { PlainReader } from "#cairnlog/server/http/body/plain.js";
import type { Wanted } from "#cairnlog/server/http/transport/wanted.js";

const ONE: Wanted = { member: "manifest" };
const MANY: Wanted = { member: "manifest", list: "submissions" };

function outcome<T>(read: () => T): { readonly value: T } | { readonly error: string } {
  try {
    return { value: read() };
  } catch (error) {
    const { code, message } = error as { readonly code: string; readonly message: string };
    return { error: `${code}: ${message}` };
  }
}

/** Texts of the wanted objects, by number. @throws as `readBody` does */
function wantedIn(text: string, wanted: Wanted): Record<number, string> {
  const { canonical } = readBody(Buffer.from(text), new PlainReader(wanted));
  return Object.fromEntries(Object.entries(canonical).map(([i, bytes]) => [i, String(bytes)]));
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The wanted objects of a value, by number. */
function wantedOf(body: Record<string, unknown>, { member, list }: Wanted): Record<number, unknown> {
  const holders = list === undefined ? [body] : Array.isArray(body[list]) ? (body[list] as unknown[]) : [];
  return Object.fromEntries(
    holders.flatMap((holder, i) => (isObject(holder) && isObject(holder[member]) ? [[i, holder[member]]] : [])),
  );
}

/** Checks a text in both ways. */
function compare(text: string | Uint8Array): void {
  const bytes = Buffer.from(text as string);
  const general = outcome(() => parseBody(bytes));
  for (const wanted of [ONE, MANY]) {
    const read = outcome(() => readBody(bytes, new PlainReader(wanted)));
    expect("value" in read ? { value: read.value.value } : read).toEqual(general);
    if (!("value" in read)) continue;
    const all = wantedOf(read.value.value, wanted);
    for (const [i, found] of Object.entries(read.value.canonical)) {
      if (found) expect([i, found.toString()]).toEqual([i, canonicalize(all[Number(i)])]);
    }
  }
}

/** JSON text of a value: with its members in any order, and with or without what canonical JSON does not have. */
function spelled(value: unknown, random: () => number): string {
  const pad = () => (random() < 0.05 ? " \n\t "[Math.floor(random() * 4)] : "");
  if (Array.isArray(value)) return `[${pad()}${value.map((item) => spelled(item, random)).join(`${pad()},`)}${pad()}]`;
  if (isObject(value)) {
    const names = Object.keys(value);
    if (random() < 0.7) names.sort();
    if (names.length && random() < 0.05) names.push(names[Math.floor(random() * names.length)]!);
    return `{${names.map((name) => `${pad()}${JSON.stringify(name)}${pad()}:${spelled(value[name], random)}`).join()}${pad()}}`;
  }
  if (typeof value === "number" && random() < 0.05)
    return ["1.0", "-0", "1e3", "12345678901234567", "01"][Math.floor(random() * 5)]!;
  return JSON.stringify(value);
}

const name = fc.oneof(
  fc.constantFrom("manifest", "submissions", "a", "b", "ab", "__proto__", "document"),
  fc.string({ maxLength: 3 }),
);
const { value: tree } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(
      fc.string({ maxLength: 5 }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    ),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(name, tie("value"), { maxKeys: 4 }),
  ),
}));
const submission = fc.record({ manifest: tree, more: tree }, { requiredKeys: [] });
const body = fc.oneof(
  tree,
  submission,
  fc.record({
    submissions: fc.oneof(fc.array(fc.oneof(submission, tree), { maxLength: 4 }), submission),
    other: fc.array(submission, { maxLength: 2 }),
  }),
);

describe("in both ways", () => {
  test("any value is read alike, however it is spelled", () => {
    fc.assert(
      fc.property(body, fc.infiniteStream(fc.double({ min: 0, max: 0.999 })), (value, numbers) => {
        compare(spelled(value, () => numbers.next().value as number));
      }),
      { numRuns: 3_000 },
    );
  });

  test("a text that is damaged anywhere is read alike", () => {
    const text = '{"a":[-1,0,true],"manifest":{"b":{"c":[]},"d":"e"},"submissions":[{"manifest":{"f":1}},{}]}';
    for (let at = 0; at < text.length; at++) {
      for (const put of ["", '"', "{", "]", ":", ",", " ", "\\", "-", "5", "é", "\u0000", "n"]) {
        compare(text.slice(0, at) + put + text.slice(at));
        compare(text.slice(0, at) + put + text.slice(at + 1));
      }
    }
  });

  test.each([
    ["nothing", ""],
    ["levels up to the limit", `${'{"manifest":'.repeat(64)}1${"}".repeat(64)}`],
    ["one level more", `${'{"manifest":'.repeat(65)}1${"}".repeat(65)}`],
    ["many more", "[".repeat(5_000)],
    ["as many values as there may be", `{"a":[${Array(19_999).fill(0).join()}]}`],
    ["one value more", `{"a":[${Array(20_000).fill(0).join()}]}`],
    ["bytes that are no UTF-8", Uint8Array.of(0x7b, 0xff, 0x7d)],
    ["a text that does not end", '{"manifest":{"a":"'],
    ["a member twice", '{"manifest":{"a":1},"manifest":{"a":2}}'],
    ["a member twice, once escaped", '{"manifest":{"a":1},"m\\u0061nifest":{"a":2}}'],
    ["a list twice", '{"submissions":[{"manifest":{}}],"submissions":[]}'],
    ["a prototype", '{"manifest":{"__proto__":{}}}'],
  ])("%s", (_, text) => compare(text));
});

describe("canonical bytes", () => {
  test.each([
    ['{"manifest":{}}', "{}"],
    ['{"a":"x\\ny","manifest":{"a":1},"z":"\\"{"}', '{"a":1}'],
    ['{ "manifest":{"a":1,"b":[0,-5,true,null,"~ !"]} }', '{"a":1,"b":[0,-5,true,null,"~ !"]}'],
    [
      '{"z":{"b":1,"a":2},"manifest":{"a":{},"aa":{"b":{"c":999999999999999}}}}',
      '{"a":{},"aa":{"b":{"c":999999999999999}}}',
    ],
  ])("%s has them", (text, expected) => {
    expect(wantedIn(text, ONE)).toEqual({ 0: expected });
    expect(wantedIn(`{"submissions":[7,{},${text}]}`, MANY)).toEqual({ 2: expected });
  });

  test.each([
    '{"manifest":{"b":1,"a":2}}',
    '{"manifest":{"ab":1,"a":2}}',
    '{"manifest":{"x":{"b":1,"a":2}}}',
    '{"manifest":{ }}',
    '{"manifest":{"a" :1}}',
    '{"manifest":{"a":-0}}',
    '{"manifest":{"a":1.0}}',
    '{"manifest":{"a":1e0}}',
    '{"manifest":{"a":1234567890123456}}',
    '{"manifest":{"a":"\\u0061"}}',
    '{"manifest":{"a":"x\\n"}}',
    '{"manifest":{"a\\n":1}}',
    '{"manifest":{"a":"é"}}',
    '{"manifest":[]}',
    '{"manifest":[{}]}',
    '{"manifest":"{}"}',
    '{"more":{"manifest":{}}}',
    '{"Manifest":{}}',
    '{"manifests":{}}',
    '[{"manifest":{}}]',
  ])("%s has none", (text) => {
    const isBody = text.startsWith("{");
    if (isBody) expect(wantedIn(text, ONE)).toEqual({});
    expect(wantedIn(`{"submissions":[${text}]}`, MANY)).toEqual({});
  });

  test("are those of the body's own list alone", () => {
    const one = '{"manifest":{"a":1}}';
    for (const text of [
      one,
      `{"submissions":${one}}`,
      `{"submissions":{"x":${one}}}`,
      `{"others":[${one}]}`,
      `{"submissions":[[${one}]]}`,
      `{"x":{"submissions":[${one}]}}`,
    ])
      expect(wantedIn(text, MANY)).toEqual({});
    expect(wantedIn(`{"submissions":[${one}],"z":[{"manifest":{"b":2}}]}`, MANY)).toEqual({ 0: '{"a":1}' });
  });
});
