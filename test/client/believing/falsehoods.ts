/** All ways in which one member of an answer can be false: changed, omitted, added, duplicated. */
import { newSigner } from "../../server/signers.js";

// biome-ignore lint/suspicious/noExplicitAny: lies are told about answers of every shape
type Json = any;

/** The parts of JSON Schema that describe other possible values. */
export interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly Json[];
  readonly const?: Json;
  readonly type?: string;
  readonly format?: string;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

/** A false answer, and the name of the change. */
export interface Falsehood {
  /** The member's path, with `[]` for any element of an array, and the kind of change unless it is another value. */
  readonly label: string;
  readonly text: string;
}

const OTHER_KEY = newSigner().publicKey;
const ISO = /^\d{4}-\d\d-\d\dT/;

/** @param schemas of the OpenAPI document, by name */
export class Falsehoods {
  readonly #schemas: Readonly<Record<string, Schema>>;

  constructor(schemas: Readonly<Record<string, Schema>>) {
    this.#schemas = schemas;
  }

  /** False answers to a request for text. */
  static *ofText(text: string): Iterable<Falsehood> {
    for (const other of otherTexts(text)) yield { label: "(text)", text: other };
    yield { label: "(text)", text: text.slice(0, -1) };
  }

  /** False answers to a request for JSON. */
  *of(answer: Json, schema: Schema): Iterable<Falsehood> {
    for (const [label, told] of this.#within(answer, schema, "")) yield { label, text: JSON.stringify(told) };
    if (Array.isArray(answer)) return;
    for (const name of Object.keys(answer)) {
      const again = `,${JSON.stringify(name)}:${JSON.stringify(answer[name])}}`;
      yield { label: `${name} twice`, text: JSON.stringify(answer).slice(0, -1) + again };
    }
  }

  *#within(value: Json, schema: Schema, path: string): Iterable<[label: string, told: Json]> {
    const own = this.#resolved(schema, value);
    if (Array.isArray(value)) yield* this.#ofArray(value, own, path);
    else if (typeof value === "object" && value !== null) yield* this.#ofObject(value, own, path);
    else for (const other of this.#others(value, schema)) yield [path, other];
  }

  *#ofArray(list: Json[], schema: Schema, path: string): Iterable<[string, Json]> {
    const items = schema.items ?? {};
    const at = `${path}[]`;
    if (!list.length) return yield [`${at} added`, [this.#sample(items)]];
    yield [`${at} left out`, list.slice(1)];
    yield [`${at} left out`, list.slice(0, -1)];
    yield [`${at} twice`, [list[0], ...list]];
    yield [`${at} twice`, [...list, list.at(-1)]];
    if (list.length > 1) yield [`${at} out of order`, list.toReversed()];
    // Elements are alike, so only the first and the last are changed.
    for (const index of new Set([0, list.length - 1]))
      for (const [label, told] of this.#within(list[index], items, at)) yield [label, list.with(index, told)];
  }

  *#ofObject(object: Json, schema: Schema, path: string): Iterable<[string, Json]> {
    yield [`${path} with another member`, { ...object, added_by_a_liar: "x" }];
    const anyMember = typeof schema.additionalProperties === "object" ? schema.additionalProperties : {};
    for (const name of Object.keys(object)) {
      const at = path ? `${path}.${name}` : name;
      const { [name]: value, ...rest } = object;
      yield [`${at} left out`, rest];
      const ofMember = schema.properties?.[name] ?? anyMember;
      const isNullable = this.#flat(ofMember).some(({ type }) => type === "null");
      if (value !== null && isNullable) yield [at, { ...object, [name]: null }];
      for (const [label, told] of this.#within(value, ofMember, at)) yield [label, { ...object, [name]: told }];
    }
  }

  /** Other values that the schema allows, if there are any. */
  #others(value: Json, schema: Schema): Json[] {
    const branches = this.#flat(schema);
    const named = branches.flatMap((branch) => branch.enum ?? (branch.const === undefined ? [] : [branch.const]));
    if (named.length) return named.filter((other) => other !== value);
    if (typeof value === "boolean") return [!value];
    if (typeof value === "number")
      return Number.isInteger(value) ? [value + 1, value - 1, 0].filter((other) => other !== value) : [value / 2];
    if (typeof value === "string")
      return [...otherTexts(value), ...(value.includes("BEGIN PUBLIC KEY") ? [OTHER_KEY] : [])];
    return branches.filter(({ type }) => type !== undefined && type !== "null").map((branch) => this.#sample(branch));
  }

  /** Some value of a schema. */
  #sample(schema: Schema): Json {
    const [branch = {}] = this.#flat(schema);
    const { type, format, pattern, properties = {}, required = [] } = branch;
    if (branch.const !== undefined) return branch.const;
    if (branch.enum) return branch.enum[0];
    if (type === "string") {
      if (format === "date-time") return "2030-01-01T00:00:00.000000Z";
      return pattern ? "0".repeat(64) : "x";
    }
    if (type === "integer" || type === "number") return 1;
    if (type === "boolean") return true;
    if (type === "array") return [];
    return Object.fromEntries(required.map((name) => [name, this.#sample(properties[name]!)]));
  }

  /** The branch of a schema that a value fits. */
  #resolved(schema: Schema, value: Json): Schema {
    const wanted = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
    return this.#flat(schema).find(({ type }) => type === wanted) ?? {};
  }

  #flat(schema: Schema): Schema[] {
    if (schema.$ref) return this.#flat(this.#schemas[schema.$ref.split("/").at(-1)!]!);
    return schema.anyOf ? schema.anyOf.flatMap((branch) => this.#flat(branch)) : [schema];
  }
}

/**
 * Other texts of the same form, with one letter or digit changed. A moment gets another last digit. A long text gets
 * one change behind the middle and one near the end, but not at the end: in base64 the last character may be only padding.
 * Behind the middle a proof of OpenTimestamps has its random bytes. In the middle it may have what no proof has otherwise.
 */
function otherTexts(text: string): string[] {
  const places = [...text.matchAll(/[0-9A-Za-z]/g)].map(({ index }) => index);
  if (!places.length) return [`${text}x`];
  if (ISO.test(text)) return [changedAt(text, text.search(/\d(?:Z|[+-]\d\d:\d\d)?$/))];
  const parts = text.length > 20 ? [0.55, 0.9] : [0.99];
  return parts.map((part) => changedAt(text, places[Math.floor(places.length * part)]!));
}

const changedAt = (text: string, index: number): string =>
  text.slice(0, index) + next(text[index]!) + text.slice(index + 1);

const RINGS = ["0123456789", "abcdef", "ghijklmnopqrstuvwxyz", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ"];

function next(character: string): string {
  const ring = RINGS.find((letters) => letters.includes(character))!;
  return ring[(ring.indexOf(character) + 1) % ring.length]!;
}
