/**
 * Checks the input of a request by its schemas: path parameters, query, and the body, whose JSON `body/` reads. Unknown members
 * are kept. Errors name each member that does not fit.
 */
import type { TObject, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Errors } from "typebox/value";
import { CairnlogError, type ErrorDetail } from "../../engine/base/error.js";
import { isObject } from "../../engine/verify/json/shape.js";

/** No sign, no exponent, no leading zero: every number has one spelling. */
const DECIMAL = /^(?:0|[1-9]\d{0,15})$/;

type Values = Readonly<Record<string, unknown>>;

/**
 * A reader of named texts: path parameters or the query. Integers must be strict decimals. A name that occurs twice is
 * refused, because two readers could use different values.
 */
export function textReader(schema: TObject): (pairs: Iterable<readonly [string, string]>) => Values {
  const check = checker(schema);
  const properties = Object.entries(schema.properties) as [string, { type?: string; default?: unknown }][];
  const defaults = Object.fromEntries(
    properties.flatMap(([name, { default: value }]) => (value === undefined ? [] : [[name, value]])),
  );
  const known = new Map(properties.map(([name, { type }]) => [name, { isInteger: type === "integer" }]));
  return (pairs) => {
    const values: Record<string, unknown> = { ...defaults };
    const seen: string[] = [];
    for (const [name, text] of pairs) {
      const property = known.get(name);
      if (!property) continue;
      if (seen.includes(name)) throw invalid([{ path: `/${name}`, message: "It must be given once." }]);
      seen.push(name);
      values[name] = property.isInteger ? decimal(name, text) : text;
    }
    check(values);
    return values;
  };
}

function decimal(name: string, text: string): number {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw invalid([{ path: `/${name}`, message: "It must be a whole number below 2^53, in plain decimal digits." }]);
}

/**
 * A check against a schema. It throws `invalid-input` for a value that does not fit. The schema is compiled at the first
 * check: each front end has them all, and most starts use few.
 */
export function checker(schema: TSchema): (value: unknown) => void {
  let validator: ReturnType<typeof Compile> | undefined;
  return (value) => {
    validator ??= Compile(schema);
    if (!validator.Check(value)) throw invalid(faultsOf(schema, value));
  };
}

function invalid(details: readonly ErrorDetail[]): CairnlogError {
  const [first] = details;
  return new CairnlogError("invalid-input", first ? `${first.path}: ${first.message}` : "It does not fit.", {
    details,
  });
}

// Describes the faults of a value, member by member, as sentences. The compiled check only says whether a value fits.
// This walks through a value that does not fit. An attacker may choose all of it, so the walk ends early: at the first
// invalid item of a list, and after eight faults.

const MAX_FAULTS = 8;

/** The schema keywords in `engine/contract` that the walk follows. The library checks the others. */
interface Keywords {
  readonly type?: string;
  readonly anyOf?: readonly TSchema[];
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, TSchema>>;
  readonly maxProperties?: number;
  readonly items?: TSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** The first faults of `value`; none if it fits. */
function faultsOf(schema: TSchema, value: unknown): ErrorDetail[] {
  const faults: ErrorDetail[] = [];
  for (const fault of faultsAt(schema, value, "")) if (faults.push(fault) === MAX_FAULTS) break;
  return faults;
}

function* faultsAt(schema: TSchema, value: unknown, path: string): Generator<ErrorDetail, void, void> {
  const { type, anyOf, items } = schema as Keywords;
  if (anyOf) yield* alternativeFaults(anyOf, value, path);
  else if (type === "object" && isObject(value)) yield* memberFaults(schema as Keywords, value, path);
  else if (items && Array.isArray(value)) yield* itemFaults(schema as Keywords, value, path);
  else yield* leafFaults(schema, value, path);
}

/** If all alternatives fail, reports the faults of the first one. */
function* alternativeFaults(alternatives: readonly TSchema[], value: unknown, path: string): Generator<ErrorDetail> {
  const failing = alternatives.map((one) => faultsAt(one, value, path));
  const first = failing.map((faults) => faults.next());
  if (first.some(({ done }) => done)) return;
  yield first[0]!.value as ErrorDetail;
  yield* failing[0]!;
}

function* memberFaults(schema: Keywords, value: Readonly<Record<string, unknown>>, path: string) {
  const { properties = {}, required = [], patternProperties, maxProperties = Number.POSITIVE_INFINITY } = schema;
  if (Object.keys(value).length > maxProperties) {
    yield { path, message: `It can have at most ${maxProperties} members.` };
    return;
  }
  for (const name of required)
    if (!Object.hasOwn(value, name)) yield { path: `${path}/${pointer(name)}`, message: "It is missing." };
  for (const [name, schema] of Object.entries(properties))
    if (Object.hasOwn(value, name)) yield* faultsAt(schema, value[name], `${path}/${pointer(name)}`);
  // All values of a map have the same schema. As in a list, only the first invalid one is reported.
  const [kind] = Object.values(patternProperties ?? {});
  if (kind)
    for (const [name, member] of Object.entries(value))
      if (yield* isFaulty(kind, member, `${path}/${pointer(name)}`)) return;
}

function* itemFaults(
  { items, minItems = 0, maxItems = Number.POSITIVE_INFINITY }: Keywords,
  value: readonly unknown[],
  path: string,
) {
  if (value.length < minItems) yield { path, message: `It must have at least ${minItems} item(s).` };
  if (value.length > maxItems) {
    yield { path, message: `It can have at most ${maxItems} items.` };
    return;
  }
  for (const [i, item] of value.entries()) if (yield* isFaulty(items!, item, `${path}/${i}`)) return;
}

function* isFaulty(schema: TSchema, value: unknown, path: string): Generator<ErrorDetail, boolean> {
  let count = 0;
  for (const fault of faultsAt(schema, value, path)) {
    count++;
    yield fault;
  }
  return count > 0;
}

/**
 * Reports the library's first error for a value without members. The library gives at most one error for each keyword.
 */
function* leafFaults(schema: TSchema, value: unknown, path: string): Generator<ErrorDetail> {
  const [error] = Errors(schema, value) as readonly SchemaError[];
  if (error) yield { path, message: sentence(error) ?? `It ${error.message}.` };
}

const pointer = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");

interface SchemaError {
  readonly keyword: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly message: string;
}

function sentence({ keyword, params }: SchemaError): string | undefined {
  switch (keyword) {
    case "type": {
      const type = String(params.type);
      return `It must be ${/^[aeiou]/.test(type) ? "an" : "a"} ${type}.`;
    }
    case "enum":
      return `It must be one of ${(params.allowedValues as unknown[]).join(", ")}.`;
    case "minimum":
      return `It must be at least ${params.limit}.`;
    case "maximum":
      return `It must be at most ${params.limit}.`;
    case "minLength":
      return `It must have at least ${params.limit} character(s).`;
    case "maxLength":
      return `It must have at most ${params.limit} characters.`;
    case "format":
      return params.format === "date-time" ? "It must be an ISO 8601 date and time with an offset." : undefined;
    default:
      return undefined;
  }
}
