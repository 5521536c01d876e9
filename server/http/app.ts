/**
 * The HTTP server: a table of routes on uWebSockets.js. Every request takes one way: copied, counted against a limit,
 * read and checked by its route's schemas, handled, answered. Whatever goes wrong on it becomes a problem document.
 */

import uWS, {
  type HttpRequest,
  type HttpResponse,
  type ListenOptions,
  type TemplatedApp,
  type us_listen_socket,
  type us_socket,
} from "uWebSockets.js";
import { setImmediate } from "node:timers/promises";
import type { TSchema } from "typebox";
import { CairnlogError } from "../../engine/error.js";
import { Answer, json, writeAnswer } from "./answer.js";
import { kept, NOT_KEPT } from "./caching.js";
import type { Network } from "./client-address.js";
import { checker, parseBody, textReader } from "./input.js";
import { type Limits, limitHeaders, type Standing } from "./limits.js";
import type { Logger } from "./logger.js";
import type { Metrics } from "./metrics.js";
import { PendingBytes, type Share } from "./pending.js";
import { HttpError, problemAnswer, rateLimited, refusalCode } from "./problems.js";
import { type Request, readRequest } from "./request.js";
import type { Context, Method, Route } from "./route.js";
import type { TlsFiles } from "./tls.js";
import { type Upload, type UploadBounds, Uploads } from "./uploads.js";

/** Without it the port would be shared with any other process of this user that asks for it. */
const EXCLUSIVE_PORT = 1;
/** How long `close` waits for answers that are being made, and for clients that read theirs slowly. */
const DRAIN_MS = 7_000;
/** How long browsers may remember a preflight, in seconds. */
const PREFLIGHT_MAX_AGE = "86400";
/** Pages of other origins may read what is public; they get to see no answer to these. */
const WRITES: ReadonlySet<string> = new Set<Method>(["POST", "DELETE"]);
/** Stands for every path that no route has, in metrics and logs. */
const UNKNOWN = "(unknown)";

export interface HttpServerOptions {
  readonly routes: readonly Route[];
  /** Null when nothing is limited. */
  readonly limits: Limits | null;
  readonly trustedProxies: readonly Network[];
  readonly bounds: UploadBounds & {
    /** Connections beyond which a new one is closed at once. One has one request at a time: the library sees to that. */
    readonly maxConnections: number;
  };
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** A path and what answers there. */
interface Resource {
  readonly path: string;
  readonly params: readonly string[];
  readonly routes: ReadonlyMap<string, PreparedRoute>;
  /** For `Allow`. */
  readonly methods: readonly string[];
}

interface PreparedRoute {
  readonly route: Route;
  readonly readParams: ReturnType<typeof textReader> | null;
  readonly readQuery: ReturnType<typeof textReader> | null;
  readonly checkBody: ReturnType<typeof checker> | null;
}

/** One request on its way. */
interface Exchange {
  readonly response: HttpResponse;
  readonly request: Request;
  readonly resource: Resource;
  readonly prepared: PreparedRoute | undefined;
  readonly started: number;
  isAborted: boolean;
  /** From when its body is there until its answer is made. What was aborted then still holds its body. */
  isHandled: boolean;
  /** What is held of its body, and of an answer that is read slowly; released at its end. */
  upload: Upload | null;
  answer: Share | null;
}

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #app: TemplatedApp;
  #listening: us_listen_socket | null = null;
  #isClosing = false;
  /** Requests that are being handled, or whose answer is not written yet. */
  readonly #active = new Set<Exchange>();
  #drained: (() => void) | null = null;
  readonly uploads: Uploads;
  /** Answers that clients read slowly. */
  readonly answers: PendingBytes;
  /** Open connections, and those that were closed at once because there were too many. */
  connections = 0;
  connectionsRefused = 0;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.uploads = new Uploads(options.bounds);
    this.answers = new PendingBytes(options.bounds.maxPendingBytes);
    this.#app = options.tls
      ? uWS.SSLApp({ cert_file_name: options.tls.certificate, key_file_name: options.tls.key })
      : uWS.App();
    this.#app.filter((response, change) => this.#connected(response, Number(change)));
    for (const resource of resources(options.routes)) {
      const pattern = resource.path.replace(/\{(\w+)\}/g, ":$1");
      this.#app.any(pattern, (response, request) => this.#accept(response, request, resource));
    }
    const nothing: Resource = { path: UNKNOWN, params: [], routes: new Map(), methods: [] };
    this.#app.any("/*", (response, request) => this.#accept(response, request, nothing));
  }

  /**
   * Starts to listen; port 0 takes a free one.
   * @returns the port
   * @throws CairnlogError `precondition-failed` when the port is taken or the host is not this machine's
   */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      // The types know the options only without a host; the library takes both.
      const listen = this.#app.listen.bind(this.#app) as unknown as (
        host: string,
        port: number,
        options: ListenOptions,
        done: (socket: us_listen_socket | false) => void,
      ) => void;
      listen(host, port, EXCLUSIVE_PORT, (socket) => {
        if (!socket) {
          const reason = `Cannot listen on ${host} port ${port}: the port is in use, or the address is not this machine's.`;
          return reject(new CairnlogError("precondition-failed", reason));
        }
        this.#listening = socket;
        resolve(uWS.us_socket_local_port(socket as us_socket));
      });
    });
  }

  /** Requests that are being handled, or whose answer is not written yet. */
  get inFlight(): number {
    return this.#active.size;
  }

  /** Takes no more requests, lets those being handled be answered, then closes every connection, idle ones too. */
  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.#listening) uWS.us_listen_socket_close(this.#listening);
    this.#listening = null;
    if (this.#active.size) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#drained = resolve;
        timer = setTimeout(resolve, DRAIN_MS);
      });
      clearTimeout(timer);
    }
    this.uploads.close();
    this.#app.close();
  }

  /** The library says +1 and −1; one that is too many and closed here is told as a −1, too. */
  #connected(response: HttpResponse, change: number): void {
    this.connections += change;
    if (change < 0 || this.connections <= this.#options.bounds.maxConnections) return;
    this.connectionsRefused++;
    response.close();
  }

  /** Runs in the library's callback: `request` and the body are gone when it returns. */
  #accept(response: HttpResponse, uwsRequest: HttpRequest, resource: Resource): void {
    const started = performance.now();
    const { trustedProxies } = this.#options;
    const request = readRequest(uwsRequest, response, resource.params.length, trustedProxies);
    const prepared = resource.routes.get(request.method === "HEAD" ? "GET" : request.method);
    const isReadable = prepared?.checkBody && request.framing !== "ambiguous";
    const upload = isReadable ? this.uploads.read(response) : null;
    const state = { isAborted: false, isHandled: false, upload, answer: null };
    const exchange: Exchange = { response, request, resource, prepared, started, ...state };
    response.onAborted(() => {
      exchange.isAborted = true;
      this.#options.metrics.aborted();
      if (!exchange.isHandled) this.#end(exchange);
    });
    // A refusal may come before anybody waits for the body.
    upload?.bytes.catch(() => {});
    this.#serve(exchange).catch((error) => {
      this.#logFailure(exchange, 500, error);
      if (!exchange.isAborted) response.close();
    });
  }

  async #serve(exchange: Exchange): Promise<void> {
    const { request, resource, prepared, upload } = exchange;
    let standing: Standing | null = null;
    let answer: Answer;
    try {
      standing = await this.#standing(exchange);
      if (request.framing === "ambiguous") throw ambiguousLength();
      if (standing?.exceeded) throw rateLimited(standing.name, standing.reset);
      if (prepared) {
        const bytes = upload && (await upload.bytes);
        if (exchange.isAborted) return;
        exchange.isHandled = true;
        this.#active.add(exchange);
        if (this.#isClosing) throw new CairnlogError("closed", "The service is shutting down.");
        const context = await readContext(prepared, resource, request, bytes);
        const { handle, keep, status = 200 } = prepared.route;
        const value = await handle(context);
        answer = value instanceof Answer ? value : json(value, { status });
        if (keep) answer = kept(answer, keep(context), request.ifNoneMatch);
      } else answer = withoutRoute(resource, request);
    } catch (error) {
      answer = problemAnswer(error);
      this.#options.metrics.refused(refusalCode(error));
      if (answer.status >= 500 && !isCommonplace(error)) this.#logFailure(exchange, answer.status, error);
    }
    // The library is lax about where chunks end, so what follows them must not be taken for a request: while this one has no
    // answer, one that came with it ends the connection; later it is closed.
    if (request.framing !== "plain") await setImmediate();
    exchange.isHandled = false;
    this.#write(exchange, answer, standing);
  }

  #standing({ prepared, request }: Exchange): Promise<Standing> | null {
    const { limits } = this.#options;
    if (!limits) return null;
    if (prepared && prepared.route.limit === null) return limits.look("general", request.address);
    return limits.count(prepared?.route.limit ?? "general", request.address);
  }

  #write(exchange: Exchange, answer: Answer, standing: Standing | null): void {
    const { response, request, resource } = exchange;
    if (exchange.isAborted) {
      this.#end(exchange);
      return;
    }
    const headers: Record<string, string> = { "x-request-id": request.id, "x-content-type-options": "nosniff" };
    if (!WRITES.has(request.method) && (resource.methods.includes("GET") || !resource.methods.length)) {
      headers["access-control-allow-origin"] = "*";
      headers["access-control-expose-headers"] = "*";
    }
    if (!answer.headers["cache-control"]) headers["cache-control"] = NOT_KEPT;
    if (standing) Object.assign(headers, limitHeaders(standing));
    if (this.#isClosing) headers.connection = "close";
    this.#active.add(exchange);
    const sent = () => this.#sent(exchange, answer.status);
    const how = { withBody: request.method !== "HEAD", isLast: request.framing !== "plain" && !this.#isClosing };
    exchange.answer = writeAnswer(response, answer, headers, how, this.answers, sent);
  }

  #sent(exchange: Exchange, status: number): void {
    const { request, resource, prepared, started } = exchange;
    const milliseconds = performance.now() - started;
    this.#options.metrics.answered(prepared?.route.method ?? "other", resource.path, status, milliseconds / 1000);
    const { id, method, address } = request;
    this.#options.logger.debug({ id, method, route: resource.path, status, address, milliseconds }, "answered");
    this.#end(exchange);
  }

  #end(exchange: Exchange): void {
    exchange.upload?.release();
    exchange.answer?.release();
    if (this.#active.delete(exchange) && !this.#active.size) this.#drained?.();
  }

  #logFailure({ request, resource }: Exchange, status: number, error: unknown): void {
    const { id, method } = request;
    this.#options.logger.error({ id, method, route: resource.path, status, err: error }, "request failed");
  }
}

/** Refusals that come by the thousand when they come; they are counted, and a line for each would be one burden more. */
const isCommonplace = (error: unknown): boolean =>
  error instanceof CairnlogError && (error.code === "overloaded" || error.code === "closed");

/** Routes by path. */
function resources(routes: readonly Route[]): Resource[] {
  const paths = new Map<string, Map<string, PreparedRoute>>();
  for (const route of routes) {
    const methods = paths.get(route.path) ?? new Map<string, PreparedRoute>();
    if (methods.has(route.method)) throw new Error(`two routes answer ${route.method} ${route.path}`);
    paths.set(route.path, methods.set(route.method, prepare(route)));
  }
  return [...paths].map(([path, methods]) => ({
    path,
    params: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!),
    routes: methods,
    methods: [...methods.keys()].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).concat("OPTIONS"),
  }));
}

const prepare = (route: Route): PreparedRoute => ({
  route,
  readParams: route.params ? textReader(route.params) : null,
  readQuery: route.query ? textReader(route.query) : null,
  checkBody: route.body ? checker(route.body as TSchema) : null,
});

async function readContext(
  prepared: PreparedRoute,
  resource: Resource,
  request: Request,
  bytes: Buffer | null,
): Promise<Context> {
  const body = bytes && parseBody(bytes);
  const proof = await prepared.route.authorize?.({ request, body });
  if (body) prepared.checkBody?.(body);
  return {
    params: (prepared.readParams?.(namedParams(resource, request)) ?? {}) as Context["params"],
    query: (prepared.readQuery?.(new URLSearchParams(request.query)) ?? {}) as Context["query"],
    body,
    request,
    proof,
  };
}

/** Whether some method could answer here: `/log/entries` has the form of `/log/{entry_id}`, but names nothing. */
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

const ambiguousLength = (): HttpError =>
  new HttpError("ambiguous-length", "The request says in two ways, or in none that is known, where its body ends.");

/** A part of a path that is not valid percent-encoding names nothing. */
function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new CairnlogError("not-found", "The path is not validly encoded, so it names nothing.");
  }
}

/** The answer where no route is: a preflight, another method than the path knows, or no such path. */
function withoutRoute(resource: Resource, request: Request): Answer {
  const { methods } = resource;
  const { method } = request;
  if (!isKnown(resource, request))
    throw new CairnlogError("not-found", "There is no such route. GET /api/v1/openapi.json lists all.");
  const allow = methods.join(", ");
  if (method !== "OPTIONS") throw new HttpError("method-not-allowed", `This path answers ${allow} only.`, { allow });
  const cors = {
    "access-control-allow-methods": "GET, HEAD",
    "access-control-allow-headers": "*",
    "access-control-max-age": PREFLIGHT_MAX_AGE,
  };
  return new Answer(Buffer.alloc(0), {
    status: 204,
    headers: methods.includes("GET") ? { allow, ...cors } : { allow },
  });
}
