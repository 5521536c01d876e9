/**
 * Checks the input of a request by its schemas: path parameters, query, and the body, whose JSON `body/` reads. Unknown members
 * are kept. Errors name each member that does not fit.
 */
import type { TObject, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { CairnlogError, type ErrorDetail } from "../../engine/base/error.js";
import { faultsOf } from "./faults.js";

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
