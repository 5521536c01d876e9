// The schemas of engine/contract for the package of the client: as plain data, and as types.

/** Keywords that check values. Descriptions, titles and examples stay with the service, which documents them. */
const KEPT = new Set(
  [
    "type",
    "const",
    "enum",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "items",
  ].concat([
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "maxProperties",
  ]),
);
/** Keywords that say nothing about values. */
const LEFT_OUT = new Set([
  "description",
  "title",
  "examples",
  "default",
  "documented",
  "deprecated",
  "contentMediaType",
]);
/** Characters from which a part of a schema is written once, under a name. */
const LEAST_SHARED = 24;
/** Keywords whose members are names or patterns of properties, with their schemas. */
const BY_NAME = new Set(["properties", "patternProperties"]);

const isSchema = (value) =>
  typeof value === "object" &&
  value !== null &&
  ["type", "anyOf", "enum", "const"].some(
    (keyword) => typeof value[keyword] === "string" || Array.isArray(value[keyword]),
  );

const schemasOf = (exported) => Object.entries(exported).filter(([, value]) => isSchema(value));

/** @throws Error for a keyword that the client's checks would ignore */
function plain(schema) {
  const entries = Object.entries(schema).flatMap(([keyword, value]) => {
    if (LEFT_OUT.has(keyword) || keyword.startsWith("~")) return [];
    if (!KEPT.has(keyword))
      throw new Error(`A schema of engine/contract has the keyword ${keyword}, which is not known.`);
    if (BY_NAME.has(keyword))
      return [[keyword, Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))]];
    if (keyword === "anyOf") return [[keyword, value.map(plain)]];
    return [[keyword, typeof value === "object" && !Array.isArray(value) ? plain(value) : value]];
  });
  return Object.fromEntries(entries);
}

/** JavaScript that exports the schemas of a module. What occurs in them more than once is written once. */
export function schemaModule(exported) {
  const schemas = schemasOf(exported).map(([name, schema]) => [name, plain(schema)]);
  const times = new Map();
  const count = (value) => {
    if (typeof value !== "object" || value === null) return;
    const text = JSON.stringify(value);
    times.set(text, (times.get(text) ?? 0) + 1);
    if (times.get(text) === 1) for (const part of Object.values(value)) count(part);
  };
  for (const [, schema] of schemas) count(schema);

  const shared = new Map();
  const written = (value) => {
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const text = JSON.stringify(value);
    if (shared.has(text)) return shared.get(text).name;
    const code = Array.isArray(value)
      ? `[${value.map(written).join()}]`
      : `{${Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}:${written(part)}`)}}`;
    if (times.get(text) === 1 || text.length < LEAST_SHARED) return code;
    const name = `shared${shared.size}`;
    shared.set(text, { name, code });
    return name;
  };
  const exports = schemas.map(([name, schema]) => `export const ${name} = ${written(schema)};\n`);
  return [...shared.values()]
    .map(({ name, code }) => `const ${name} = ${code};\n`)
    .concat(exports)
    .join("");
}

/** Declarations of the schemas of a module, and for each the type of the values that fit it. */
export function schemaTypes(exported, typesFile) {
  const lines = schemasOf(exported).map(
    ([name, schema]) => `export type ${name} = ${typeOf(schema)};\nexport declare const ${name}: Schema<${name}>;\n`,
  );
  return `import type { Schema } from ${JSON.stringify(typesFile.startsWith(".") ? typesFile : `./${typesFile}`)};\n${lines.join("")}`;
}

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.anyOf) return schema.anyOf.map((branch) => `(${typeOf(branch)})`).join(" | ");
  switch (schema.type) {
    case "null":
    case "boolean":
    case "string":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array":
      return `(${typeOf(schema.items ?? {})})[]`;
    case "object":
      return objectType(schema);
    default:
      return "unknown";
  }
}

function objectType({ properties = {}, required = [], patternProperties }) {
  const [values] = Object.values(patternProperties ?? {});
  if (values) return `Record<string, ${typeOf(values)}>`;
  const members = Object.entries(properties).map(([name, member]) => {
    const about = member.description === undefined ? "" : `/** ${member.description.replaceAll("*/", "*\\/")} */ `;
    return `${about}${JSON.stringify(name)}${required.includes(name) ? "" : "?"}: ${typeOf(member)};`;
  });
  // Like TypeBox, an object with any members is `{}`.
  if (!members.length) return "{}";
  return `{ ${members.join(" ")} }`;
}
