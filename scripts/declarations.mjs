/**
 * Writes the declarations of the build without TypeBox: types that follow from schemas are written out. A compiler that derives
 * them anew needs seconds and hundreds of megabytes in every project that imports the client.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { schemaTypes } from "./schemas.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, "dist");
const contract = join(dist, "engine", "contract");

/** Stands for TypeBox's declarations. */
const SCHEMA = `/** A schema of the contract: plain JSON Schema, which knows the type of the values that fit it. */
export interface TSchema { readonly [keyword: string]: unknown }
export interface TObject extends TSchema {}
export interface Schema<T> extends TSchema { readonly static?: T }
/** The type of the values that fit a schema. */
export type Static<S extends TSchema> = S extends { readonly static?: infer T } ? NonNullable<T> : never;
`;

const declarations = (folder) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(".d.ts") && !name.startsWith("explorer"))
    .map((name) => join(folder, name));

/** How a module imports one of the contract. */
function imported(from, name) {
  const path = relative(dirname(from), join(contract, name));
  return path.startsWith(".") ? path : `./${path}`;
}

/** After the compiler, which has written the modules of the contract that are read here. */
export async function flattenDeclarations() {
  for (const path of declarations(contract)) {
    const code = readFileSync(path, "utf8");
    if (!/import .*"typebox"/.test(code)) continue;
    const types = schemaTypes(await import(path.replace(/\.d\.ts$/, ".js")), imported(path, "schema.js"));
    // `check` has functions of schemas, and none of its own.
    if (!types.includes("export")) continue;
    const constants = code.match(/^export declare const \w+ = .*;$/gm) ?? [];
    writeFileSync(path, [types, ...constants].join("\n"));
  }
  writeFileSync(join(contract, "schema.d.ts"), SCHEMA);
  for (const path of [...declarations(join(dist, "engine")), ...declarations(join(dist, "server"))]) {
    const code = readFileSync(path, "utf8");
    const flat = code.replace(
      /(?<=^import type \{[^}]*\} from )"typebox"/gm,
      JSON.stringify(imported(path, "schema.js")),
    );
    if (flat.includes('"typebox"')) throw new Error(`${path} still needs TypeBox`);
    if (flat !== code) writeFileSync(path, flat);
  }
}
