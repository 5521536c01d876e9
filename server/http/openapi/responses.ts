/** The parts of the OpenAPI document for answers: the headers of all answers, and all errors of a route. */
import type { TObject, TSchema } from "typebox";
import { DOCUMENTED, Problem } from "../../../engine/contract/common.js";
import { codesOf } from "../route/problems.js";
import type { Route } from "../route/route.js";
import { REASONS } from "../transport/answer.js";

interface Header {
  readonly required: boolean;
  readonly description: string;
  readonly schema: { readonly type: "string" | "integer" };
  readonly example: string | number;
}

const LIMITED = "Absent where limits are off.";

/** Every header that the service itself defines. */
export const HEADERS = {
  "X-Request-Id": {
    required: true,
    description:
      "The client's `X-Request-Id`, if it is 1 to 128 of A-Z a-z 0-9 . _ -, or one of ours; it is in the log.",
    schema: { type: "string" },
    example: "6d8f1c86-3f1f-4f0e-9b7e-1d0a2c9f5e11",
  },
  "X-Content-Type-Options": {
    required: true,
    description: "Always `nosniff`.",
    schema: { type: "string" },
    example: "nosniff",
  },
  "Cache-Control": {
    required: true,
    description:
      "`no-store`, but where the answer carries a tag: there `immutable` when it can never change, otherwise `no-cache`, " +
      "which is to ask by its tag.",
    schema: { type: "string" },
    example: "no-cache",
  },
  ETag: {
    required: true,
    description: "Strong; made from the bytes of the answer.",
    schema: { type: "string" },
    example: '"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"',
  },
  RateLimit: {
    required: false,
    description: `Requests left (\`r\`) and seconds until all are back (\`t\`). ${LIMITED}`,
    schema: { type: "string" },
    example: '"general";r=99;t=60',
  },
  "RateLimit-Policy": {
    required: false,
    description: `The limit: requests (\`q\`) in a window of seconds (\`w\`). ${LIMITED}`,
    schema: { type: "string" },
    example: '"general";q=100;w=60',
  },
  "RateLimit-Limit": {
    required: false,
    description: `Requests allowed in the window. ${LIMITED}`,
    schema: { type: "integer" },
    example: 100,
  },
  "RateLimit-Remaining": {
    required: false,
    description: `Requests left. ${LIMITED}`,
    schema: { type: "integer" },
    example: 99,
  },
  "RateLimit-Reset": {
    required: false,
    description: `Seconds until all are back. ${LIMITED}`,
    schema: { type: "integer" },
    example: 60,
  },
  "Access-Control-Allow-Origin": {
    required: false,
    description:
      "`*`, of GET and HEAD: pages of any origin may read. Of writes the origin of the page, if it may write; absent otherwise.",
    schema: { type: "string" },
    example: "*",
  },
  "Access-Control-Expose-Headers": {
    required: false,
    description: "`*`, where pages may read the answer.",
    schema: { type: "string" },
    example: "*",
  },
  Vary: {
    required: false,
    description: "`origin`, where the answer to a page depends on its origin.",
    schema: { type: "string" },
    example: "origin",
  },
  "Retry-After": {
    required: true,
    description: "Seconds after which to try again.",
    schema: { type: "integer" },
    example: 30,
  },
  "Cairnlog-Leader": {
    required: false,
    description: "Of `not-leader`: the address of the node that writes, if it is known.",
    schema: { type: "string" },
    example: "https://b.log.example",
  },
  "Cairnlog-Size": {
    required: false,
    description:
      "Of `behind`: the number of entries that this node has. A client that sends the header says how many it has seen; a node with fewer waits for them, a second at most.",
    schema: { type: "integer" },
    example: 1042,
  },
  Allow: {
    required: true,
    description: "The methods that the path knows.",
    schema: { type: "string" },
    example: "GET, HEAD, OPTIONS",
  },
  "WWW-Authenticate": {
    required: true,
    description: "Always `Bearer`.",
    schema: { type: "string" },
    example: "Bearer",
  },
} as const satisfies Readonly<Record<string, Header>>;

type HeaderName = keyof typeof HEADERS;

const ONLY_SOME: ReadonlySet<string> = new Set<HeaderName>([
  "ETag",
  "Retry-After",
  "Cairnlog-Leader",
  "Allow",
  "WWW-Authenticate",
]);

/** The headers that every answer may carry. */
const ALWAYS_SENT = Object.keys(HEADERS).filter((name) => !ONLY_SOME.has(name));

const headerRefs = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const WITH_TAG = ["ETag", ...ALWAYS_SENT];

/** The headers of the answer of a route, if it is no error. */
export const headersOf = ({ keep }: Route) => headerRefs(keep ? WITH_TAG : ALWAYS_SENT);

/** The meaning of an error, by its status. */
const MEANINGS: Readonly<Record<number, { readonly means: string; readonly headers?: readonly HeaderName[] }>> = {
  400: { means: "The request or its body cannot be read, or it asks for what is not done any more." },
  401: { means: "Neither a session that holds nor a proof.", headers: ["WWW-Authenticate"] },
  403: {
    means:
      "Who asks may not do that: another key, a key that has ended, a proof that does not hold, a page of another origin.",
  },
  404: { means: "What the path or the body names is not there." },
  409: { means: "It collides with what is there already." },
  410: { means: "Its time is over; or the log is frozen, and `successor` is the one that goes on." },
  405: {
    means: "The path does not know the method. It knows those that stand here, and OPTIONS; `Allow` names them.",
    headers: ["Allow"],
  },
  408: { means: "The body did not arrive in time; nothing was done." },
  413: {
    means:
      "The body is larger than the service takes: 1 MiB, or 3 MiB if it holds many requests, unless set otherwise.",
  },
  415: { means: "A page sends a body that is not `application/json`; nothing was done." },
  421: { means: "The request names another host than the service; nothing was done." },
  422: { means: "A parameter or a member of the body does not fit; `errors` names which." },
  429: { means: "A limit of requests or a budget of bytes is used up.", headers: ["Retry-After"] },
  500: { means: "A fault of the service; its log knows more under the request id." },
  502: { means: "No calendar took the digest; nothing was written." },
  503: {
    means: "The service cannot do it at the moment.",
    headers: ["Retry-After", "Cairnlog-Leader", "Cairnlog-Size"],
  },
};

/** Answers to HEAD that are no errors, as components. */
export const HEAD_RESPONSES = {
  Head: { description: "OK. The headers that GET would have.", headers: headerRefs(ALWAYS_SENT) },
  HeadWithTag: { description: "OK. The headers that GET would have.", headers: headerRefs(WITH_TAG) },
};

export const headRef = ({ keep }: Route) => ({ $ref: `#/components/responses/${keep ? "HeadWithTag" : "Head"}` });

const componentName = (status: number) => REASONS[status]!.replaceAll(" ", "");

export const problemRef = (status: number) => ({ $ref: `#/components/responses/${componentName(status)}` });

/** Every error as a component. */
export function problemResponses(named: (schema: unknown) => unknown): Record<string, unknown> {
  const problem = named(Problem) as { readonly $ref: string };
  return Object.fromEntries(
    Object.entries(MEANINGS).map(([text, { means, headers = [] }]) => {
      const status = Number(text);
      const codes = codesOf(status);
      const schema = { ...problem, properties: { status: { const: status }, code: { enum: codes } } };
      const example = {
        ...{ type: "about:blank", title: REASONS[status], status, detail: means, code: codes[0] },
        request_id: HEADERS["X-Request-Id"].example,
      };
      const content = { "application/problem+json": { schema, example } };
      const description = `${REASONS[status]}. ${means}`;
      return [componentName(status), { description, headers: headerRefs([...ALWAYS_SENT, ...headers]), content }];
    }),
  );
}

export const headProblemRef = (status: number) => ({ $ref: `#/components/responses/Head${componentName(status)}` });

/** The errors that HEAD is answered with, as components. They have no body. */
export function headProblemResponses(statuses: ReadonlySet<number>): Record<string, unknown> {
  return Object.fromEntries(
    [...statuses].sort().map((status) => {
      const { means, headers = [] } = MEANINGS[status]!;
      const description = `${REASONS[status]}, without its body. ${means}`;
      return [`Head${componentName(status)}`, { description, headers: headerRefs([...ALWAYS_SENT, ...headers]) }];
    }),
  );
}

/** The statuses of a route's errors, ascending. During a shutdown, every request gets 503. */
export function refusalsOf({ method, params, query, body, limit, refusals = [] }: Route): number[] {
  const statuses = new Set([...refusals, 405, 500, 503]);
  // A page of another origin, a name that is not the service's, a body of another type.
  if (method !== "GET") statuses.add(403).add(421);
  if (method === "POST") statuses.add(415);
  if (limit) statuses.add(429);
  // A path parameter with an invalid encoding gets 404.
  if (params) statuses.add(404);
  if (query || body || (params && !takesAnyText(params))) statuses.add(422);
  if (body) statuses.add(400).add(408).add(413);
  return [...statuses].sort((a, b) => a - b);
}

const ANNOTATIONS = new Set(["type", "title", "description", "examples", "default", DOCUMENTED]);

/** Whether every member accepts any text. */
const takesAnyText = ({ properties }: TObject): boolean =>
  Object.values(properties).every(
    (schema: TSchema & { type?: unknown }) =>
      schema.type === "string" && Object.keys(schema).every((keyword) => ANNOTATIONS.has(keyword)),
  );
