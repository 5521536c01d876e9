/** The OpenAPI 3.1 document, made from the route table: schemas are JSON Schema already. */
import type { TObject, TSchema } from "typebox";
import { VERSION } from "../version.js";
import { Problem } from "../wire/errors.js";
import { REASONS } from "./answer.js";
import type { Route } from "./route.js";

type Json = Readonly<Record<string, unknown>>;

/** Of answers that may be kept. */
const KEPT_HEADERS = {
  ETag: { required: true, description: "Strong; made from the bytes of the answer.", schema: { type: "string" } },
  "Cache-Control": {
    required: true,
    description: "`immutable` when the answer can never change, otherwise `no-cache`: ask by its tag.",
    schema: { type: "string" },
  },
};
const IF_NONE_MATCH = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "Tags of answers that the client has; one that is still right is answered with 304.",
  schema: { type: "string" },
};

/** The document for a table of routes. */
export function openApi(routes: readonly Route[]): Json {
  const components = new Map<string, unknown>();
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path]![route.method.toLowerCase()] = operation(route, (schema) => hoist(schema, components));
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "cairnlog",
      version: VERSION,
      summary: "A transparency log and attestation service.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: { schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))) },
  };
}

function operation(route: Route, named: (schema: unknown) => unknown): Json {
  const { method, path, summary, params, query, body, answer, status = 200, answerType = "application/json" } = route;
  const parameters = [...parametersOf(params, "path", named), ...parametersOf(query, "query", named)];
  if (route.keep) parameters.push(IF_NONE_MATCH);
  const headers = route.keep ? { headers: KEPT_HEADERS } : {};
  const statuses = refusalsOf(route).map((status) => [
    status,
    { description: REASONS[status], content: { "application/problem+json": { schema: named(Problem) } } },
  ]);
  return {
    operationId: operationId(method, path),
    tags: [path.split("/")[3] ?? "operations"],
    summary,
    ...(parameters.length ? { parameters } : {}),
    ...(body ? { requestBody: { required: true, content: { "application/json": { schema: named(body) } } } } : {}),
    responses: {
      [status]: { description: REASONS[status], ...headers, content: { [answerType]: { schema: named(answer) } } },
      ...(route.keep ? { 304: { description: REASONS[304], ...headers } } : {}),
      ...Object.fromEntries(statuses),
    },
  };
}

function parametersOf(schema: TObject | undefined, where: string, named: (schema: unknown) => unknown): Json[] {
  if (!schema) return [];
  // TypeBox leaves `required` away where nothing is.
  const required: readonly string[] = schema.required ?? [];
  return Object.entries(schema.properties).map(([name, property]) => ({
    name,
    in: where,
    required: required.includes(name) && !Object.hasOwn(property, "default"),
    schema: named(property),
  }));
}

/** The statuses of a route's refusals, ascending. */
function refusalsOf({ params, query, body, limit, refusals = [] }: Route): number[] {
  const statuses = new Set([...refusals, 500]);
  if (limit) statuses.add(429);
  if (params || query || body) statuses.add(422);
  if (body) statuses.add(400).add(413);
  return [...statuses].sort((a, b) => a - b);
}

/** `GET /api/v1/log/{entry_id}` → `get_log_entry_id` */
const operationId = (method: string, path: string): string =>
  `${method.toLowerCase()}_${path
    .replace(/^\/api\/v1/, "")
    .match(/\w+/g)!
    .join("_")
    .replaceAll("-", "_")}`;

/** `schema` with every titled schema in it moved to `components` and referred to. */
function hoist(schema: unknown, components: Map<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => hoist(item, components));
  if (typeof schema !== "object" || schema === null) return schema;
  const { title } = schema as TSchema & { title?: unknown };
  const copy = () => Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, hoist(part, components)]));
  if (typeof title !== "string") return copy();
  if (!components.has(title)) components.set(title, copy());
  return { $ref: `#/components/schemas/${title}` };
}
