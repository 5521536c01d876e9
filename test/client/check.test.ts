/** The client's checks of answers against those of TypeBox: every schema of the interface, with values that fit and that do not. */
import fc from "fast-check";
import { Check } from "typebox/value";
import { expect, test } from "vitest";
import { fitsSchema } from "#cairnlog/engine/contract/check.js";
import * as errors from "#cairnlog/engine/contract/common.js";
import * as accounts from "#cairnlog/engine/contract/identity/accounts.js";
import * as auth from "#cairnlog/engine/contract/identity/auth.js";
import * as keys from "#cairnlog/engine/contract/identity/keys.js";
import * as anchoring from "#cairnlog/engine/contract/log/anchoring.js";
import * as audit from "#cairnlog/engine/contract/log/audit-export.js";
import * as log from "#cairnlog/engine/contract/log/log.js";
import * as clientState from "#cairnlog/engine/contract/service/client-state.js";
import * as health from "#cairnlog/engine/contract/service/health.js";
import * as attestations from "#cairnlog/engine/contract/signing/attestations.js";
import * as claims from "#cairnlog/engine/contract/signing/claims.js";
import * as endorsements from "#cairnlog/engine/contract/signing/endorsements.js";
import * as requests from "#cairnlog/engine/contract/signing/requests.js";
import * as trust from "#cairnlog/engine/contract/signing/trust.js";
import * as verification from "#cairnlog/engine/contract/signing/verification.js";
import * as webhooks from "#cairnlog/engine/contract/webhooks.js";

interface Schema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
}

const AREAS = [clientState, errors, health, accounts, auth, keys, anchoring, audit, log, attestations, claims].concat([
  endorsements,
  requests,
  trust,
  verification,
  webhooks,
] as never[]);
const isSchema = (value: unknown): value is Schema => {
  const { type, anyOf } = (value ?? {}) as Schema;
  return typeof type === "string" || Array.isArray(anyOf);
};
const SCHEMAS = AREAS.flatMap((area) => Object.entries(area).filter(([, value]) => isSchema(value))) as [
  string,
  Schema,
][];

const TEXTS = fc.constantFrom(
  ...["", "a", "sha256:", `sha256:${"0".repeat(64)}`, "0".repeat(64), "g".repeat(64), "x".repeat(300)],
  ...["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+01:00", "2026-01-02", "2026-13-02T03:04:05Z", "soon", "ed25519"],
);
const JUNK = fc.oneof(fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 2 ** 60, [], {}, [1], { a: 1 }), TEXTS);

/** Values that often fit a schema; at any place they may hold something else. */
function valuesOf(schema: Schema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 1, arbitrary: JUNK }, { weight: 30, arbitrary: fittingOf(schema) });
}

function fittingOf(schema: Schema): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(valuesOf));
  switch (schema.type) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.integer({ min: -1, max: 1500 });
    case "number":
      return fc.double({ min: -0.5, max: 1.5, noNaN: true });
    case "string":
      return TEXTS;
    case "array":
      return fc.array(valuesOf(schema.items ?? {}), { maxLength: 3 });
    case "object":
      return objectsOf(schema);
    default:
      return JUNK;
  }
}

function objectsOf({ properties = {}, patternProperties = {} }: Schema): fc.Arbitrary<unknown> {
  const members = Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, valuesOf(member)]));
  const requiredKeys = Object.keys(members);
  const whole = fc.record(members, { requiredKeys });
  const partial = fc.record(members, { requiredKeys: [] });
  const [others] = Object.values(patternProperties);
  const more = fc.dictionary(fc.constantFrom("other", "", "__proto__"), others ? valuesOf(others) : JUNK, {
    maxKeys: 1,
  });
  return fc
    .tuple(fc.oneof({ weight: 9, arbitrary: whole }, { weight: 1, arbitrary: partial }), more)
    .map(([own, added]) => ({ ...added, ...own }));
}

test("there are schemas to compare", () => expect(SCHEMAS.length).toBeGreaterThan(100));

test.each(SCHEMAS)("%s", (_, schema) => {
  fc.assert(
    fc.property(valuesOf(schema), (value) => {
      expect(fitsSchema(schema, value)).toBe(Check(schema as never, value));
    }),
    { numRuns: 200 },
  );
});

test("a type that is not understood is an error, and no answer", () => {
  expect(() => fitsSchema({ type: "tuple" }, [])).toThrow("tuple");
});
