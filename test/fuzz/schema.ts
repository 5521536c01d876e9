/**
 * Values that fit a JSON Schema, as fast-check arbitraries. Members with some names get existing ids of the service.
 */
import fc from "fast-check";
import type { Document } from "../server/promised.js";
import { jsonValues, texts } from "../texts.js";

/** Plausible values for members of a name; undefined if any value will do. */
export type Hints = (name: string) => readonly unknown[] | undefined;

const MAX_DEPTH = 6;

export class SchemaValues {
  readonly #document: Document;
  readonly #hints: Hints;
  readonly #made = new Map<Document, fc.Arbitrary<unknown>>();

  constructor(document: Document, hints: Hints) {
    this.#document = document;
    this.#hints = hints;
  }

  /** One value that fits `schema`; always the same for the same seed. */
  sample(schema: Document, seed: number): unknown {
    return fc.sample(this.#root(schema), { numRuns: 1, seed })[0];
  }

  /** Made once: making one takes longer than a sample of it. */
  #root(schema: Document): fc.Arbitrary<unknown> {
    const made = this.#made.get(schema) ?? this.#arbitrary(schema, "", 0);
    this.#made.set(schema, made);
    return made;
  }

  #arbitrary(schema: Document, name: string, depth: number): fc.Arbitrary<unknown> {
    const hinted = this.#hints(name);
    const free = this.#free(schema, name, depth);
    return hinted?.length
      ? fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...hinted) }, { weight: 1, arbitrary: free })
      : free;
  }

  #free(schema: Document, name: string, depth: number): fc.Arbitrary<unknown> {
    if (schema.$ref) {
      const title = schema.$ref.split("/").at(-1);
      return this.#arbitrary(this.#document.components.schemas[title], name, depth + 1);
    }
    if ("const" in schema) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    if (schema.anyOf) return fc.oneof(...schema.anyOf.map((part: Document) => this.#arbitrary(part, name, depth)));
    if (depth > MAX_DEPTH) return fc.constant(null);
    const { minimum = 0, maximum = 2 ** 40, minLength = 0, maxLength = 40 } = schema;
    switch (schema.type) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "integer":
        return fc.oneof(
          fc.integer({ min: minimum, max: Math.min(maximum, minimum + 30) }),
          fc.maxSafeInteger().map((n) => Math.min(maximum, Math.max(minimum, n))),
        );
      case "number":
        return fc.double({ min: minimum, max: Math.min(maximum, 1e9), noNaN: true });
      case "string":
        if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern));
        if (schema.format === "date-time") return fc.date({ noInvalidDate: true }).map((date) => date.toJSON());
        return texts({ minLength, maxLength });
      case "array":
        return fc.array(this.#arbitrary(schema.items ?? {}, name, depth + 1), { maxLength: 4 });
      case "object":
        return this.#object(schema, depth);
      default:
        return jsonValues();
    }
  }

  #object({ properties = {}, required = [], additionalProperties }: Document, depth: number): fc.Arbitrary<unknown> {
    const model = Object.fromEntries(
      Object.entries(properties).map(([name, part]) => [name, this.#arbitrary(part, name, depth + 1)]),
    );
    const known = fc.record(model, { requiredKeys: required });
    const isMap = typeof additionalProperties === "object";
    if (!isMap && Object.keys(model).length) return known;
    const more = isMap ? this.#arbitrary(additionalProperties, "", depth + 1) : jsonValues();
    return fc
      .tuple(known, fc.dictionary(texts({ maxLength: 12 }), more, { maxKeys: 4 }))
      .map(([a, b]) => ({ ...b, ...a }));
  }
}
