/**
 * Describes the faults of a value, member by member, as sentences. The compiled check only says whether a value fits.
 * This walks through a value that does not fit. An attacker may choose all of it, so the walk ends early: at the first
 * invalid item of a list, and after eight faults.
 */
import type { TSchema } from "typebox";
import { Errors } from "typebox/value";
import type { ErrorDetail } from "../../engine/base/error.js";
import { isObject } from "../../engine/verify/json/shape.js";

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
export function faultsOf(schema: TSchema, value: unknown): ErrorDetail[] {
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
