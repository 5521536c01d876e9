/** Makes the OpenAPI 3.1 document from the route table. The schemas are JSON Schema already. */
import type { TObject, TSchema } from "typebox";
import { DOCUMENTED } from "../../../engine/contract/common.js";
import { VERSION } from "../../process/version.js";
import { LIMITS } from "../limits/limits.js";
import type { Proving, Route } from "../route/route.js";
import { REASONS } from "../transport/answer.js";
import { AREAS, areaOf } from "./areas.js";
import { EXAMPLES, type Example } from "./examples.generated.js";
import {
  HEAD_RESPONSES,
  HEADERS,
  headersOf,
  headProblemRef,
  headProblemResponses,
  headRef,
  problemRef,
  problemResponses,
  refusalsOf,
} from "./responses.js";

type Json = Readonly<Record<string, unknown>>;
type Named = (schema: unknown) => unknown;

const ABOUT = `A public, append-only log of keys, attestations and endorsements. Every entry has its own signed tree head.

Bodies are JSON objects in UTF-8; unknown members and unknown query parameters are ignored. Timestamps are ISO 8601.
A key is named by its fingerprint: \`sha256:\` and the SHA-256 of its DER SubjectPublicKeyInfo in hexadecimal.

Every GET answers HEAD too, with the same headers and no body. A path that does not know a method answers 405 with \`Allow\`;
OPTIONS answers 204 with \`Allow\`. A path that nobody knows answers 404. No path fits two templates: a fixed part, such as
\`head\`, is never a value of the parameter that another path has in its place. Refusals are problem documents (RFC 9457) whose member \`code\` is stable. What is no
HTTP, or has headers that are too long, is refused without one, and the connection is closed.

Each client address has so many requests in each window; the RateLimit headers of every answer say how many are left.
A probe (\`/livez\`, \`/readyz\`, \`/metrics\`) is never refused.`;

const SESSION = {
  type: "http",
  scheme: "bearer",
  bearerFormat: "JWT",
  description: `A session of a key: sign the nonce of POST /auth/challenge, exchange it for a token at POST /auth/login.
It lasts an hour unless set otherwise, and dies with its key.

In its place some writes take a detached proof, the member \`auth\` of the body: a challenge of the purpose \`general\`
(POST /auth/challenge), signed by the key that acts. It serves once, for this one write, which the challenge may name
(\`act\`). What it consists of is the schema \`AuthProof\`. Where both are there, the proof counts.`,
};

/** The required proof of a route, in words and for OpenAPI. OpenAPI has no scheme for a proof in the body. */
const PROVING: Readonly<Record<Proving, { readonly words: string; readonly security: readonly Json[] }>> = {
  session: { words: "Needs a session.", security: [{ session: [] }] },
  operator: { words: "Needs a session of the operator key.", security: [{ session: [] }] },
  proof: { words: "Needs a proof in the member `auth`; a session does not serve.", security: [] },
  challenge: { words: "Needs a signed challenge in the body.", security: [] },
  "session-or-proof": {
    words: "Needs a session, or a proof in the member `auth`.",
    security: [{ session: [] }, {}],
  },
  "fresh-session-or-proof": {
    words: "Needs a session that began at most 300 seconds ago, or a proof in the member `auth`.",
    security: [{ session: [] }, {}],
  },
  optional: {
    words: "A session, or a proof in the member `auth`, is needed in some cases only (403 `proof-required`).",
    security: [{}, { session: [] }],
  },
};

const BULK =
  "Each of the requests in the body counts. If fewer are left, the whole is 429, and nothing is counted or done. " +
  "The request itself counts against the limit `general`.";

/**
 * The body of a POST that takes none. Many clients send one with every POST, and their generators want to know that they
 * may.
 */
const NO_BODY = {
  required: false,
  description: "Nothing is taken from it. Clients that send a body with every POST may send any object.",
  content: { "application/json": { schema: { type: "object", additionalProperties: true }, example: {} } },
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
  const schemas = new Map<string, unknown>();
  const named = (schema: unknown) => documented(schema, schemas);
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    const path = paths[route.path]!;
    const described = operation(route, named);
    path[route.method.toLowerCase()] = described;
    if (route.method === "GET") path.head = headOperation(route, described);
  }
  const reads = routes.filter(({ method }) => method === "GET");
  const responses = {
    ...problemResponses(named),
    ...HEAD_RESPONSES,
    ...headProblemResponses(new Set(reads.flatMap(refusalsOf))),
  };
  return {
    openapi: "3.1.0",
    info: {
      title: "cairnlog",
      version: VERSION,
      summary: "A transparency log and attestation service.",
      description: ABOUT,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The service that this document came from." }],
    tags: AREAS.map(({ name, description }) => ({ name, description })),
    paths,
    components: {
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses,
      headers: HEADERS,
      securitySchemes: { session: SESSION },
    },
  };
}

function operation(route: Route, named: Named) {
  const { method, path, summary, params, query, body, proving, limit, bulk, status = 200 } = route;
  const id = operationId(method, path);
  const example = EXAMPLES[id];
  const parameters = [
    ...parametersOf(params, "path", named, example?.params),
    ...parametersOf(query, "query", named, example?.query),
    ...(route.keep ? [IF_NONE_MATCH] : []),
  ];
  const requestBody = body ? bodyOf(body, example, named) : method === "POST" ? NO_BODY : undefined;
  return {
    operationId: id,
    tags: [areaOf(path)],
    summary,
    description: [proving && PROVING[proving].words, limit && limitWords(limit, bulk !== undefined)]
      .filter(Boolean)
      .join(" "),
    security: proving ? PROVING[proving].security : [],
    ...(parameters.length ? { parameters } : {}),
    ...(requestBody ? { requestBody } : {}),
    responses: {
      [status]: success(route, example, named),
      ...notModified(route),
      ...Object.fromEntries(refusalsOf(route).map((status) => [status, problemRef(status)])),
    },
  };
}

/** HEAD of the path of a GET: the same request, and the same headers of the answer. */
function headOperation(route: Route, { operationId: _, responses: __, ...get }: ReturnType<typeof operation>): Json {
  return {
    ...get,
    operationId: operationId("HEAD", route.path),
    summary: `${get.summary}: the headers alone`,
    responses: {
      200: headRef(route),
      ...notModified(route),
      ...Object.fromEntries(refusalsOf(route).map((status) => [status, headProblemRef(status)])),
    },
  };
}

const notModified = (route: Route) =>
  route.keep ? { 304: { description: "The client has the answer.", headers: headersOf(route) } } : {};

const bodyOf = (body: TSchema, example: Example | undefined, named: Named) => ({
  required: true,
  description: describe(body),
  content: { "application/json": { schema: named(body), ...(example?.body ? { example: example.body } : {}) } },
});

function success(route: Route, example: Example | undefined, named: Named): Json {
  const { answer, answerType = "application/json", otherAnswers = {}, status = 200 } = route;
  const others = Object.entries(otherAnswers).map(([type, schema]) => [type, { schema: named(schema) }]);
  const shown = example && { example: example.answer };
  return {
    description: describe(answer) ?? REASONS[status],
    headers: headersOf(route),
    content: { [answerType]: { schema: named(answer), ...shown }, ...Object.fromEntries(others) },
  };
}

const describe = (schema: TSchema): string | undefined => (schema as { readonly description?: string }).description;

function limitWords(name: keyof typeof LIMITS, isBulk: boolean): string {
  const { requests, seconds } = LIMITS[name];
  const words = `Limit \`${name}\`: ${requests} requests in ${seconds} seconds for each address unless set otherwise.`;
  return isBulk ? `${words} ${BULK}` : words;
}

function parametersOf(
  schema: TObject | undefined,
  where: "path" | "query",
  named: Named,
  examples: Readonly<Record<string, unknown>> = {},
): Json[] {
  if (!schema) return [];
  // TypeBox omits `required` if no member is required.
  const required: readonly string[] = schema.required ?? [];
  return Object.entries(schema.properties).map(([name, property]) => ({
    name,
    in: where,
    required: required.includes(name) && !Object.hasOwn(property, "default"),
    description: describe(property),
    schema: named(property),
    ...(Object.hasOwn(examples, name) ? { example: examples[name] } : {}),
  }));
}

/** `GET /api/v1/log/{entry_id}` → `get_log_entry_id` */
const operationId = (method: string, path: string): string =>
  `${method.toLowerCase()}_${path
    .replace(/^\/api\/v1/, "")
    .match(/\w+/g)!
    .join("_")
    .replaceAll("-", "_")}`;

type Schema = Readonly<Record<string, unknown>>;

/**
 * A schema of the wire format as the document shows it: with references in place of its titled schemas, which are moved to
 * `schemas`, and with the keywords that are under `DOCUMENTED` among its own.
 */
function documented(schema: unknown, schemas: Map<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((item) => documented(item, schemas));
  if (typeof schema !== "object" || schema === null) return schema;
  const { [DOCUMENTED]: shown, ...checked } = schema as Schema;
  if (shown !== undefined) return documented({ ...checked, ...(shown as Schema) }, schemas);
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
