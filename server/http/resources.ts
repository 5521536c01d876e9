/** The routes by path, with readers for their input, and the answers to requests without a route. */

import type { Span } from "@opentelemetry/api";
import type { TObject, TSchema } from "typebox";
import { CairnlogError } from "../../engine/base/error.js";
import type { Upload } from "./body/body.js";
import { checker, textReader } from "./input.js";
import type { Standing } from "./limits/limits.js";
import type { Tallies, Tally } from "./observing/measures.js";
import type { PageRules } from "./origins.js";
import { HttpError } from "./route/problems.js";
import type { Context, Method, Route } from "./route/route.js";
import { Answer, furtherLine, headerGroup } from "./transport/answer.js";
import type { Share } from "./transport/pending.js";
import type { Request } from "./transport/request.js";
import type { TransportResponse } from "./transport/transport.js";

/** Methods that change something. */
export const WRITES: ReadonlySet<string> = new Set<Method>(["POST", "DELETE"]);
/** How long browsers may remember a preflight, in seconds. */
const PREFLIGHT_MAX_AGE = "86400";
/** Headers of every answer, and of answers that pages of other origins may read. */
const NO_SNIFFING = ["x-content-type-options", "nosniff"] as const;
const OPEN_TO_PAGES = ["access-control-allow-origin", "*", "access-control-expose-headers", "*"] as const;
export const PRIVATE_HEADERS = headerGroup(NO_SNIFFING);
const PUBLIC_HEADERS = headerGroup([...NO_SNIFFING, ...OPEN_TO_PAGES]);

/** Header lines of the answer to a write that a page may see. Its value depends on who asks, so caches must know. */
export const openTo = (origin: string): string =>
  furtherLine("access-control-allow-origin", origin) +
  furtherLine("access-control-expose-headers", "*") +
  furtherLine("vary", "origin");

/** A path and its routes. */
export interface Resource {
  readonly path: string;
  readonly params: readonly string[];
  readonly routes: ReadonlyMap<string, PreparedRoute>;
  /** The value of `Allow`. */
  readonly methods: readonly string[];
  /** Headers of answers to reads: a name and a value. */
  readonly readHeaders: readonly [string, string];
  /** Counts the requests with an unknown method. */
  readonly tally: Tally;
}

export interface PreparedRoute {
  readonly route: Route;
  readonly readParams: ReturnType<typeof textReader> | null;
  readonly readQuery: ((query: string) => Context["query"]) | null;
  readonly checkBody: ReturnType<typeof checker> | null;
  readonly tally: Tally;
}

/** Represents all unknown paths in metrics and logs. */
export const noResource = (tallies: Tallies): Resource => resourceAt("(unknown)", new Map(), tallies);

/** Routes by path. @throws Error if two routes have the same method and path */
export function resources(routes: readonly Route[], tallies: Tallies): Resource[] {
  const paths = new Map<string, Map<string, PreparedRoute>>();
  for (const route of routes) {
    const methods = paths.get(route.path) ?? new Map<string, PreparedRoute>();
    if (methods.has(route.method)) throw new Error(`two routes answer ${route.method} ${route.path}`);
    paths.set(route.path, methods.set(route.method, prepare(route, tallies)));
  }
  return [...paths].map(([path, methods]) => resourceAt(path, methods, tallies));
}

function resourceAt(path: string, routes: ReadonlyMap<string, PreparedRoute>, tallies: Tallies): Resource {
  const isRead = routes.has("GET") || !routes.size;
  const methods = [...routes.keys()].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  return {
    path,
    params: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!),
    routes,
    methods: routes.size ? methods.concat("OPTIONS") : [],
    readHeaders: isRead ? PUBLIC_HEADERS : PRIVATE_HEADERS,
    tally: tallies.open("other", path),
  };
}

const unchecked = (): void => {};

/** Null for a route without a body. */
function bodyCheck({ isRaw, bulk, body }: Route): PreparedRoute["checkBody"] {
  if (isRaw) return unchecked;
  return body ? checker((bulk?.frame ?? body) as TSchema) : null;
}

const prepare = (route: Route, tallies: Tallies): PreparedRoute => ({
  route,
  readParams: route.params ? textReader(route.params) : null,
  readQuery: route.query ? queryReader(route.query) : null,
  checkBody: bodyCheck(route),
  tally: tallies.open(route.method, route.path),
});

/** Where the routes of the service are listed. */
const DIRECTORY = "GET /api/v1/openapi.json lists all.";
const NO_VALUES = Object.freeze({});

/** A reader of the text behind the question mark. The values of an empty one are read once. */
function queryReader(schema: TObject): (query: string) => Context["query"] {
  const read = textReader(schema);
  let ofNothing: Context["query"] | undefined;
  return (query) => {
    if (query) return read(new URLSearchParams(query)) as Context["query"];
    ofNothing ??= Object.freeze(read([])) as Context["query"];
    return ofNothing;
  };
}

/** The input of a route's handler. @throws CairnlogError if the input does not fit the schemas */
export function checkedContext(
  prepared: PreparedRoute,
  resource: Resource,
  request: Request,
  body: unknown,
  proof: unknown,
): Context {
  prepared.checkBody?.(body);
  const { readParams, readQuery } = prepared;
  return {
    params: (readParams ? readParams(namedParams(resource, request)) : NO_VALUES) as Context["params"],
    query: readQuery ? readQuery(request.query) : (NO_VALUES as Context["query"]),
    body,
    request,
    proof,
  };
}

/** Whether the path can be valid. `/log/entries` has the form of `/log/{entry_id}`, but `entries` is not an id. */
function isKnown(resource: Resource, request: Request): boolean {
  const [any] = resource.routes.values();
  if (!any) return false;
  try {
    any.readParams?.(namedParams(resource, request));
    return true;
  } catch {
    return false;
  }
}

const namedParams = (resource: Resource, { params }: Request) =>
  params.map((text, i) => [resource.params[i]!, decodePart(text)] as const);

/** Decodes a part of a path. @throws CairnlogError `not-found` for invalid percent-encoding */
function decodePart(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new CairnlogError("not-found", "The path is not validly encoded, so it names nothing.");
  }
}

/**
 * The answer to a request without a route, which may be a preflight.
 * @param options what pages may do; `directory` is a sentence that says where the routes are listed
 * @throws HttpError `method-not-allowed` for a method that the path does not have; CairnlogError `not-found` for an
 *   unknown path
 */
export function withoutRoute(
  resource: Resource,
  request: Request,
  { pages, directory = DIRECTORY }: { readonly pages: PageRules; readonly directory?: string },
): Answer {
  const { methods } = resource;
  const { method } = request;
  if (!isKnown(resource, request)) throw new CairnlogError("not-found", `There is no such route. ${directory}`);
  const allow = methods.join(", ");
  if (method !== "OPTIONS") throw new HttpError("method-not-allowed", `This path answers ${allow} only.`, { allow });
  return new Answer(Buffer.alloc(0), { status: 204, headers: { allow, ...preflight(resource, request, pages) } });
}

/** What pages may send: reads from everywhere, and writes from where they are allowed. */
function preflight({ methods }: Resource, { origin }: Request, pages: PageRules): Readonly<Record<string, string>> {
  const mayWrite = origin !== "" && pages.allows(origin);
  const offered = methods.filter((method) => method !== "OPTIONS" && (mayWrite || !WRITES.has(method)));
  if (!offered.length) return {};
  const isRead = offered.includes("GET");
  return {
    "access-control-allow-methods": offered.join(", "),
    // `*` does not mean `authorization`.
    "access-control-allow-headers": "*, authorization",
    "access-control-max-age": PREFLIGHT_MAX_AGE,
    ...(isRead ? {} : { "access-control-allow-origin": origin }),
    ...(methods.some((method) => WRITES.has(method)) ? { vary: "origin" } : {}),
  };
}

/** One request on its way. */
export interface Exchange {
  readonly response: TransportResponse;
  readonly request: Request;
  readonly resource: Resource;
  readonly prepared: PreparedRoute | undefined;
  readonly started: number;
  /** Null without a tracer, and when it has ended. */
  span: Span | null;
  /** Why nothing of it is done, known before its body; null for most. */
  readonly refusal: HttpError | null;
  /** Null when nothing is limited. */
  standing: Standing | null;
  /** What was aborted while it was `handled` still holds its body. */
  state: "waiting" | "handled" | "answered" | "sent";
  /** While the library's handler runs, whose writes it gathers. */
  isCorked: boolean;
  isAborted: boolean;
  /** Whether it is being handled, or its answer is not written yet. */
  isActive: boolean;
  /** Whether the body is waited for; of a request that is refused whatever its body is, it is thrown away. */
  isWanted: boolean;
  /** What is held of its body, and of an answer that is read slowly; released at its end. */
  upload: Upload | null;
  answer: Share | null;
  /** Once it is there: its body, or why that was refused. */
  body: Buffer | Error | null;
  /** Once it is checked. */
  context: Context | null;
}
