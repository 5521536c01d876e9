/**
 * Checks values against the schemas of the contract, for clients: the part of JSON Schema that these schemas use, without a
 * library, which would be most of a client's code. The service checks requests with compiled validators instead. A test
 * compares both.
 */
import type { Static, TSchema } from "typebox";

/** The keywords that are understood. Everything else in a schema (titles, descriptions, examples) checks nothing. */
interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly maxProperties?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

/** RFC 3339, section 5.6. Whether there is such a day, the schema does not say. */
const DATE_TIME =
  /^\d{4}-(?:0\d|1[0-2])-(?:[0-2]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Whether a value fits a schema. */
export function fitsSchema<S extends TSchema>(schema: S, value: unknown): value is Static<S> {
  return fits(schema as Schema, value);
}

function fits(schema: Schema, value: unknown): boolean {
  const { anyOf, const: only, enum: values } = schema;
  if (anyOf && !anyOf.some((branch) => fits(branch, value))) return false;
  if (only !== undefined && value !== only) return false;
  if (values && !values.includes(value)) return false;
  return fitsType(schema, value);
}

function fitsType(schema: Schema, value: unknown): boolean {
  switch (schema.type) {
    case undefined:
      return true;
    case "null":
      return value === null;
    case "boolean":
      return typeof value === "boolean";
    case "integer":
      return Number.isInteger(value) && fitsNumber(schema, value as number);
    case "number":
      return Number.isFinite(value) && fitsNumber(schema, value as number);
    case "string":
      return typeof value === "string" && fitsText(schema, value);
    case "array":
      return Array.isArray(value) && fitsArray(schema, value);
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value) && fitsObject(schema, value);
    default:
      throw new TypeError(`A schema has the type ${schema.type}, which is not understood.`);
  }
}

const fitsNumber = ({ minimum = -Infinity, maximum = Infinity }: Schema, value: number): boolean =>
  value >= minimum && value <= maximum;

function fitsText({ minLength = 0, maxLength = Infinity, pattern, format }: Schema, value: string): boolean {
  // No text has more characters than UTF-16 units.
  const length = value.length < minLength || value.length > maxLength ? [...value].length : value.length;
  if (length < minLength || length > maxLength) return false;
  if (format === "date-time" && !DATE_TIME.test(value)) return false;
  return pattern === undefined || new RegExp(pattern, "u").test(value);
}

const fitsArray = ({ items = {}, minItems = 0, maxItems = Infinity }: Schema, value: readonly unknown[]): boolean =>
  value.length >= minItems && value.length <= maxItems && value.every((item) => fits(items, item));

function fitsObject(schema: Schema, value: object): boolean {
  const { properties = {}, required = [], additionalProperties = true, patternProperties = {} } = schema;
  const { maxProperties = Number.POSITIVE_INFINITY } = schema;
  const members = Object.entries(value);
  if (members.length > maxProperties || required.some((name) => !Object.hasOwn(value, name))) return false;
  return members.every(([name, member]) => {
    if (Object.hasOwn(properties, name)) return fits(properties[name]!, member);
    const patterns = Object.entries(patternProperties).filter(([pattern]) => new RegExp(pattern, "u").test(name));
    if (patterns.length) return patterns.every(([, described]) => fits(described, member));
    return typeof additionalProperties === "boolean" ? additionalProperties : fits(additionalProperties, member);
  });
}

// Origins: who is called, and nothing else (RFC 6454).

/**
 * Whether a text is the origin of an http: or https: URL, spelled as browsers spell it: in lower case, without the
 * default port, and with nothing behind the port. Two texts for which this is true name one origin only if they are equal.
 */
export function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && (url.protocol === "https:" || url.protocol === "http:") && url.origin === text;
}
