/**
 * The schemas of the wire format as the OpenAPI document shows them. They are JSON Schema already; some things are said
 * in the words that generators of clients understand.
 */
import { DOCUMENTED } from "../../wire/common.js";

type Schema = Readonly<Record<string, unknown>>;

/**
 * `schema` with references in place of its titled schemas, which are moved to `schemas`. What a schema says under the
 * keyword `DOCUMENTED` is shown in its place.
 */
export function documented(schema: unknown, schemas: Map<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => documented(item, schemas));
  if (typeof schema !== "object" || schema === null) return schema;
  if (Object.hasOwn(schema, DOCUMENTED)) return documented((schema as Schema)[DOCUMENTED], schemas);
  const { title } = schema as Schema;
  const copy = () =>
    plain(Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, documented(part, schemas)])));
  if (typeof title !== "string") return copy();
  if (!schemas.has(title)) schemas.set(title, copy());
  return { $ref: `#/components/schemas/${title}` };
}

/** The pattern of TypeBox for the names in a map: any name. */
const ANY_NAME = "^.*$";

/**
 * The same schema in plainer words. Few generators know `patternProperties`, many want a type beside `enum`, and some
 * take empty `properties` for an object that has none.
 */
function plain(schema: Schema): Schema {
  const { patternProperties, properties, ...rest } = schema;
  const values = (patternProperties as Schema | undefined)?.[ANY_NAME];
  const named = typeof properties === "object" && Object.keys(properties as object).length > 0;
  return {
    ...typeOfEnum(rest),
    ...rest,
    ...(named ? { properties } : {}),
    ...(values === undefined ? {} : { additionalProperties: values }),
  };
}

function typeOfEnum({ enum: values, type }: Schema): Schema {
  if (!Array.isArray(values) || type !== undefined) return {};
  return { type: values.every((value) => typeof value === "string") ? "string" : "integer" };
}
