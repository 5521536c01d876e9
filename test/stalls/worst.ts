/**
 * The worst requests of an operation, made from its schemas: every member and every parameter in turn as large,
 * numerous, deep and odd as a request can contain it.
 */

import type { Inputs, Operation } from "../fuzz/inputs.js";
import type { Input } from "../fuzz/wire.js";
import type { World } from "../fuzz/world.js";
import { Random } from "../reliability/random.js";
import type { Document } from "../server/promised.js";
import { resolved } from "../server/promised.js";

/** The largest bodies, by operation. */
const bodyBytes = ({ name }: Operation): number => (name === "POST /api/v1/attestations/batch" ? 3 * 2 ** 20 : 2 ** 20);
/** The maximum number of values in one body, and one more. */
const VALUES = 20_000;
const LEVELS = 60;
/** Bytes for the other parts of a body. */
const REST = 8_192;

export interface Worst {
  readonly what: string;
  readonly input: Input;
}

/** Repeats a text until a body is full. */
type Fill = (unit: string) => string;
const filling =
  (bytes: number): Fill =>
  (unit) =>
    unit.repeat(Math.floor((bytes - REST) / Buffer.byteLength(unit)));
const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const members = (count: number) => Object.fromEntries(many(count, (i) => [`m${i}`, i]));
const nest = (levels: number, inside: unknown): unknown => (levels ? [nest(levels - 1, inside)] : inside);

/** JSON texts of maximum size that may be hard for some reader. */
const TEXTS: Readonly<Record<string, (fill: Fill) => string>> = {
  "a long text": (fill) => JSON.stringify(fill("x")),
  "a long text of two bytes a letter": (fill) => JSON.stringify(fill("é")),
  "a long text of escapes": (fill) => `"${fill("\\u00e9")}"`,
  "a long text of quotes": (fill) => JSON.stringify(fill('"').slice(0, fill("x").length / 2)),
  "long base64": (fill) => JSON.stringify(fill("QUJD")),
  "long digits": (fill) => `"${fill("a")}"`,
  "a long text of spaces": (fill) => JSON.stringify(fill(" ")),
  "many certificates": (fill) => JSON.stringify(fill("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")),
  "many members": () => JSON.stringify(members(VALUES - 60)),
  "many members, one twice": () => `${JSON.stringify(members(VALUES - 60)).slice(0, -1)},"m1":1}`,
  "many numbered members": () => JSON.stringify(Object.fromEntries(many(VALUES - 60, (i) => [`${i * 7919}`, i]))),
  "many numbers": () => JSON.stringify(many(VALUES - 60, (i) => i)),
  "many odd numbers": () => `[${many(VALUES - 60, () => "0.12345678901234568e-1").join()}]`,
  "many empty objects": () => JSON.stringify(many(VALUES / 2 - 60, () => ({}))),
  "many nests": () => JSON.stringify(many(VALUES / LEVELS - 60, () => nest(LEVELS - 5, 1))),
  "too many numbers": (fill) => `[${fill("1,")}1]`,
  "too many objects": (fill) => `[${fill("{},")}{}]`,
  "too deep a nest": () => `${"[".repeat(500_000)}${"]".repeat(500_000)}`,
  "half a nest": (fill) => fill("["),
  "many texts": () => JSON.stringify(many(VALUES - 60, (i) => `text ${i} ${"y".repeat(30)}`)),
};

const MARK = "\u0000here\u0000";

/** The texts to try for each kind of member; all of them if the kind is not known. */
const KINDS: Readonly<Record<string, RegExp>> = {
  string: /^(a long|long|many cert|many numbers|too many numbers)/,
  array: /^(many (numbers|odd|empty|texts|nests)|too many)/,
  object: /^(many members|many numbered|many nests|many numbers|too many)/,
  integer: /^(a long text$|many numbers)/,
  number: /^(a long text$|many numbers)/,
};

/** The worst content for a place in a body: a name, and the JSON text that replaces `there`. */
function* worstValues(kind: string, there: unknown, bytes: number): Generator<readonly [string, string]> {
  for (const [what, text] of Object.entries(TEXTS))
    if (KINDS[kind]?.test(what) ?? true) yield [what, text(filling(bytes))];
  if (!Array.isArray(there) || !there.length) return;
  const fitting = Math.floor((bytes - REST) / (Buffer.byteLength(JSON.stringify(there[0])) + 8));
  for (const count of [100, 256, 1_000, VALUES])
    if (count < fitting || count === VALUES)
      yield [`${count} times its item`, JSON.stringify(many(Math.min(count, fitting), (i) => varied(there[0], i)))];
}

/** `valid` with the JSON text `worst` at a place. */
function bodyWith(valid: unknown, place: readonly string[], worst: string, bytes: number): Buffer {
  const [before, after] = JSON.stringify(withValue(valid, place, MARK)).split(JSON.stringify(MARK));
  return Buffer.from(`${before}${worst}${after}`).subarray(0, bytes);
}

/** A copy with other values in members that must be unique. */
function varied(item: unknown, i: number): unknown {
  if (typeof item !== "object" || item === null) return item;
  const own = Object.entries(item).map(([name, value]) => {
    if (name === "id") return [name, `${value}-${i}`];
    if (name === "content_hash" && !("manifest" in item)) return [name, `sha256:${i.toString(16).padStart(64, "0")}`];
    return [name, value];
  });
  return Object.fromEntries(own);
}

/** JSON Pointers of all members in a schema, with their types; `0` for the items of an array. */
function* placesOf(given: Document, document: Document, path: string, depth = 0): Generator<readonly [string, string]> {
  const schema = resolved(document, given);
  if (depth > 5) return;
  if (path && !schema.anyOf && schema.type !== "null") yield [path, schema.type ?? "any"];
  for (const part of schema.anyOf ?? []) yield* placesOf(part, document, path, depth + 1);
  for (const [name, part] of Object.entries<Document>(schema.properties ?? {}))
    yield* placesOf(part, document, `${path}/${name}`, depth + 1);
  if (schema.items) yield* placesOf(schema.items, document, `${path}/0`, depth + 1);
}

function valueAt(value: unknown, [first, ...rest]: readonly string[]): unknown {
  if (first === undefined) return value;
  return typeof value === "object" && value !== null ? valueAt((value as never)[first], rest) : undefined;
}

/** `value` with another value at a place. Missing objects on the way are made. */
function withValue(value: unknown, [first, ...rest]: readonly string[], put: unknown): unknown {
  if (first === undefined) return put;
  if (first === "0") {
    const [item, ...others] = Array.isArray(value) ? value : [];
    return [withValue(item, rest, put), ...others];
  }
  const before = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  return { ...before, [first]: withValue(before[first], rest, put) };
}

/** Texts for parameters, by their schema. */
function parameterValues(name: string, schema: Document): string[] {
  const whole = schema.anyOf?.[0] ?? schema;
  if (whole.enum) return whole.enum.map(String);
  if (whole.type === "integer")
    return [...new Set([whole.minimum ?? 0, whole.maximum ?? 2 ** 40, 10_000, 2 ** 31].map(String))];
  const texts = ["a", "ab", "abc", "s", "sha256:", "sha256:abcd", "x".repeat(2_000), `${",".repeat(31)}a`];
  if (name === "event_type" || name === "tags")
    texts.push("bench", "even", "bench,even", "https://example.org/bench/v1");
  return texts;
}

/** All combinations would be too many, so each parameter gets its worst text while the others get their largest. */
function* queries(operation: Operation, document: Document, path: string): Generator<readonly [string, string]> {
  const [target, given = ""] = path.split("?");
  const parameters = (operation.document.parameters ?? [])
    .map((one: Document) => resolved(document, one))
    .filter((one: Document) => one.in === "query") as Document[];
  const largest = new URLSearchParams(given);
  for (const { name, schema } of parameters)
    if (schema.type === "integer" && schema.maximum && name !== "page") largest.set(name, String(schema.maximum));
  yield ["all at their largest", `${target}?${largest}`];
  for (const { name, schema } of parameters)
    for (const value of parameterValues(name, schema)) {
      const query = new URLSearchParams(largest);
      query.set(name, value);
      yield [`${name}=${value.slice(0, 20)}`, `${target}?${query}`];
      for (const { name: other, schema: its } of parameters) {
        if (other === name || !["format", "scope", "tags", "event_type"].includes(other)) continue;
        const both = new URLSearchParams(query);
        both.set(other, parameterValues(other, its).at(-1)!);
        yield [`${name}=${value.slice(0, 20)}&${other}`, `${target}?${both}`];
      }
    }
}

const bodyOf = ({ body }: Input): unknown => (body?.length ? JSON.parse(body.toString()) : {});

/** The worst requests of one operation. */
export async function* worstOf(world: World, inputs: Inputs, operation: Operation): AsyncGenerator<Worst> {
  const valid = await inputs.plain(operation, new Random(1));
  yield { what: "a plain one", input: valid };
  const schema = operation.document.requestBody?.content["application/json"].schema;
  if (schema) {
    const whole = resolved(world.document, schema);
    const bytes = bodyBytes(operation);
    // A proof can be used only once.
    const isProven = whole.properties?.auth !== undefined || whole.properties?.challenge_id !== undefined;
    for (const [place, kind] of [["/unknown", "any"], ...placesOf(whole, world.document, "")] as const) {
      const path = place.split("/").slice(1);
      for (const [what, worst] of worstValues(kind, valueAt(bodyOf(valid), path), bytes)) {
        const fresh = isProven ? await inputs.plain(operation, new Random(1)) : valid;
        yield { what: `${place}: ${what}`, input: { ...fresh, body: bodyWith(bodyOf(fresh), path, worst, bytes) } };
      }
    }
  }
  if (operation.document.parameters)
    for (const [what, path] of queries(operation, world.document, valid.path))
      yield { what, input: { ...valid, path } };
}
