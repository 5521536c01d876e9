/**
 * The HTTP server: a table of routes on an HTTP library. Every request takes one way: copied, counted against a limit,
 * read and checked by its route's schemas, handled, answered. Whatever goes wrong on it becomes a problem document.
 */

import { CairnlogError } from "../../engine/base/error.js";
import { failed, registeredTracer } from "../../engine/base/tracing.js";
import type { Logger } from "../process/logger.js";
import { traceOf } from "../process/tracing.js";
import { parseBody, type UploadBounds, Uploads } from "./body/body.js";
import { type Limits, limitHeaders, type Standing } from "./limits/limits.js";
import { answered, asStep, type Measures, requestSpan } from "./observing/measures.js";
import type { PageRules } from "./origins.js";
import {
  checkedContext,
  type Exchange,
  noResource,
  openTo,
  PRIVATE_HEADERS,
  type PreparedRoute,
  type Resource,
  resources,
  WRITES,
  withoutRoute,
} from "./resources.js";
import {
  ambiguousLength,
  type HttpError,
  isCommonplace,
  partRefusal,
  problemAnswer,
  rateLimited,
  refusalCode,
  twoHosts,
} from "./route/problems.js";
import type { Route } from "./route/route.js";
import { Answer, furtherLine, json, writeAnswer } from "./transport/answer.js";
import { kept } from "./transport/caching.js";
import type { Network } from "./transport/client-address.js";
import { PendingBytes } from "./transport/pending.js";
import { Request, remoteAddress } from "./transport/request.js";
import type { TlsFiles } from "./transport/tls.js";
import type {
  ConnectionCount,
  RequestHandler,
  Serving,
  Transport,
  TransportName,
  TransportRequest,
  TransportResponse,
} from "./transport/transport.js";

/** Milliseconds in which bodies that have come are handled in one turn of the event loop; at least one is. */
const TURN_MS = 5;
/** How long `close` waits, without `drainMs`, for answers that are being made, and for clients that read theirs slowly. */
const DRAIN_MS = 7_000;

interface HttpServerOptions {
  readonly transport: Transport;
  /** Milliseconds for which `close` waits for answers that are being made, and for clients that read theirs slowly. */
  readonly drainMs?: number;
  readonly routes: readonly Route[];
  /** A sentence that says where the routes are listed; that of the service if absent. */
  readonly directory?: string;
  /** Which pages may write. */
  readonly pages: PageRules;
  /** Null when nothing is limited. */
  readonly limits: Limits | null;
  readonly trustedProxies: readonly Network[];
  readonly bounds: UploadBounds & {
    /** Connections beyond which a new one is closed at once. */
    readonly maxConnections: number;
    /** Seconds after which a connection without a request is closed; those of uWebSockets.js if absent. */
    readonly idleTimeoutSeconds?: number;
  };
  /** Counts the connections of all front ends; without it, those of this one are counted. */
  readonly connectionCount?: ConnectionCount;
  /** Null for plain HTTP. */
  readonly tls: TlsFiles | null;
  readonly measures: Measures;
  readonly logger: Logger;
  /** Called before a request is handled: what was answered before, by whichever front end, can be read then. */
  readonly catchUp?: () => void;
}

export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #serving: Serving;
  readonly transport: TransportName;
  #isClosing = false;
  readonly #logsAnswers: boolean;
  /** Whether every request's address is wanted. */
  readonly #asksAddress: boolean;
  readonly #tracer = registeredTracer();
  /** Requests that are being handled, or whose answer is not written yet. */
  #active = 0;
  #drained: (() => void) | null = null;
  /** Requests whose body has come, oldest first, until they are handled. */
  readonly #arrived: Exchange[] = [];
  readonly uploads: Uploads;
  /** Answers that clients read slowly. */
  readonly answers: PendingBytes;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#logsAnswers = options.logger.isLevelEnabled("debug");
    this.#asksAddress = options.limits !== null || this.#logsAnswers;
    this.uploads = new Uploads(options.bounds);
    this.answers = new PendingBytes(options.bounds.maxPendingBytes);
    const { tls, measures, transport } = options;
    const { maxConnections, requestTimeoutSeconds, idleTimeoutSeconds } = options.bounds;
    const { connectionCount } = options;
    const { tallies } = measures;
    const handler =
      (resource: Resource): RequestHandler =>
      (response, request) =>
        this.#accept(response, request, resource);
    const handlers = new Map(
      resources(options.routes, tallies).map((resource) => [resource.path, handler(resource)] as const),
    );
    this.transport = transport.name;
    this.#serving = transport.serve({
      tls,
      maxConnections,
      connectionCount,
      requestTimeoutSeconds,
      ...(idleTimeoutSeconds !== undefined && { idleTimeoutSeconds }),
      handlers,
      otherwise: handler(noResource(tallies)),
    });
  }

  /**
   * Starts to listen; port 0 takes a free one.
   * @param isShared whether other threads of this process listen on the same port
   * @returns the port
   * @throws CairnlogError `precondition-failed` when the port is taken or the host is not this machine's
   */
  listen(host: string, port: number, isShared = false): Promise<number> {
    return this.#serving.listen(host, port, isShared);
  }

  /** Reads certificate and key again, for connections to come. @throws CairnlogError `precondition-failed` */
  renewCertificate(): void {
    this.#serving.renewCertificate();
  }

  /** Open connections. */
  get connections(): number {
    return this.#serving.connections;
  }

  /** Connections that were closed at once because there were too many. */
  get connectionsRefused(): number {
    return this.#serving.connectionsRefused;
  }

  /** Requests that are being handled, or whose answer is not written yet. */
  get inFlight(): number {
    return this.#active;
  }

  /** Takes no more requests, lets those being handled be answered, then closes every connection, idle ones too. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#serving.stopListening();
    if (this.#active) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#drained = resolve;
        timer = setTimeout(resolve, this.#options.drainMs ?? DRAIN_MS);
      });
      clearTimeout(timer);
    }
    this.abandon();
  }

  /** Takes no more connections and closes all of them at once. */
  abandon(): void {
    this.#serving.stopListening();
    this.uploads.close();
    this.#serving.close();
  }

  /** Runs in the library's callback: `request` and the body are gone when it returns. */
  #accept(response: TransportResponse, incoming: TransportRequest, resource: Resource): void {
    const started = performance.now();
    const { limits, trustedProxies, pages } = this.#options;
    const method = incoming.getCaseSensitiveMethod();
    const prepared = resource.routes.get(method === "HEAD" ? "GET" : method);
    const request = new Request(incoming, method, resource.params.length);
    if (this.#asksAddress || prepared?.route.asksAddress)
      request.address = remoteAddress(request, response, trustedProxies);
    const refusal = unreadable(request) ?? (prepared && WRITES.has(method) ? pages.refusalOf(request) : null);
    const exchange: Exchange = {
      response,
      request,
      resource,
      prepared,
      started,
      span: this.#tracer ? requestSpan(this.#tracer, request, prepared ? method : null, resource.path) : null,
      refusal,
      // What a page of another origin sends counts as a request of its reader's, and uses up no limit of a kind.
      standing: limits && standingOf(limits, refusal ? undefined : prepared, request.address),
      state: "waiting",
      isCorked: true,
      isAborted: false,
      isActive: false,
      upload: null,
      isWanted: false,
      body: null,
      context: null,
      answer: null,
    };
    // The body of what is refused already is not kept.
    if (prepared?.checkBody && !refusal && !exchange.standing?.exceeded) {
      const isBulk = prepared.route.bulk !== undefined;
      exchange.upload = this.uploads.read(response, started, (body) => this.#received(exchange, body), isBulk);
      exchange.isWanted = true;
    } else if (request.hasBody) exchange.upload = this.uploads.ignore(response);
    this.#proceed(exchange);
    exchange.isCorked = false;
    // Of what is answered already nobody can be told that it was aborted.
    if (exchange.state !== "sent" && !exchange.isAborted) response.onAborted(() => this.#aborted(exchange));
  }

  /**
   * Bodies that came in one turn of the event loop are handled together, when the library has read from every socket. One
   * by one, as they came, the code of the network, of the library and of the service drove each other out of the caches:
   * 392 µs of CPU an attestation at 64 connections, and 336 so. What takes longer than a few milliseconds goes on in the
   * next turn: clients choose how large their bodies are, and everybody else waits for them.
   */
  #received(exchange: Exchange, body: Buffer | Error): void {
    exchange.body = body;
    this.#hold(exchange);
    if (this.#arrived.push(exchange) === 1) setImmediate(() => this.#handleArrived());
  }

  #handleArrived(): void {
    const until = performance.now() + TURN_MS;
    let handled = 0;
    for (const one of this.#arrived) {
      handled++;
      this.#proceed(one);
      if (performance.now() >= until) break;
    }
    this.#arrived.splice(0, handled);
    if (this.#arrived.length) setImmediate(() => this.#handleArrived());
  }

  /**
   * Called when the request is counted and again when its body is there. Nothing on its way waits unless it must: most
   * reads are answered before the library's callback returns, with no promise and no closure made for them.
   */
  #proceed(exchange: Exchange): void {
    const { isWanted, body, refusal, standing, span } = exchange;
    if (exchange.isAborted) return;
    let value: unknown;
    try {
      if (standing?.exceeded) throw rateLimited(standing);
      if (refusal) throw refusal;
      if (isWanted && !body) return;
      if (body instanceof Error) throw body;
      exchange.state = "handled";
      value = span ? asStep(span, () => this.#made(exchange, body)) : this.#made(exchange, body);
    } catch (error) {
      this.#refuse(exchange, error);
      return;
    }
    if (value instanceof Promise) {
      this.#hold(exchange);
      value.then(
        (made) => this.#finish(exchange, made),
        (error) => this.#refuse(exchange, error),
      );
    } else this.#finish(exchange, value);
  }

  /** What is answered, or a promise of it. */
  #made(exchange: Exchange, body: Buffer | null): unknown {
    const { request, resource, prepared } = exchange;
    return prepared ? this.#handle(exchange, prepared, body) : withoutRoute(resource, request, this.#options);
  }

  /** What the route makes of the request, or a promise of it. */
  #handle(exchange: Exchange, prepared: PreparedRoute, bytes: Buffer | null): unknown {
    const { request, resource } = exchange;
    const { path, authorize, handle, bulk } = prepared.route;
    if (this.#isClosing) throw new CairnlogError("closed", "The service is shutting down.");
    this.#options.catchUp?.();
    const body = bytes && !prepared.route.isRaw ? parseBody(bytes) : bytes;
    const check = (proof: unknown) => {
      exchange.context = checkedContext(prepared, resource, request, body, proof);
      return bulk ? this.#handleParts(exchange, prepared.route) : handle(exchange.context);
    };
    const proof = authorize?.({ request, body, path });
    return proof instanceof Promise ? proof.then(check) : check(proof);
  }

  /** Counts the requests in a body, then handles them. If the limit has fewer left, none is counted and nothing is done. */
  async #handleParts(exchange: Exchange, { bulk, limit, handle }: Route): Promise<unknown> {
    const { limits } = this.#options;
    const context = exchange.context!;
    const count = bulk!.count(context.body);
    if (limits) exchange.standing = limits.count(limit!, exchange.request.address, count);
    if (exchange.standing?.exceeded) throw rateLimited(exchange.standing, count);
    return handle(context, (error) => {
      const refusal = partRefusal(error, exchange.request.id);
      this.#note(exchange, refusal.status, error);
      return refusal;
    });
  }

  #finish(exchange: Exchange, value: unknown): void {
    const { prepared, context, request } = exchange;
    let answer: Answer;
    try {
      const { status = 200, keep } = prepared?.route ?? {};
      answer = value instanceof Answer ? value : json(value, { status });
      if (keep) answer = kept(answer, keep(context!), request.ifNoneMatch);
    } catch (error) {
      this.#refuse(exchange, error);
      return;
    }
    this.#answer(exchange, answer);
  }

  #refuse(exchange: Exchange, error: unknown): void {
    const answer = problemAnswer(error, exchange.request.id);
    this.#note(exchange, answer.status, error);
    this.#answer(exchange, answer);
  }

  #note(exchange: Exchange, status: number, error: unknown): void {
    this.#options.measures.refused(refusalCode(error));
    if (status >= 500 && !isCommonplace(error)) this.#logFailure(exchange, status, error);
  }

  #answer(exchange: Exchange, answer: Answer): void {
    exchange.state = "answered";
    // The library is lax about where chunks end, so what follows them must not be taken for a request: while this one has no
    // answer, one that came with it ends the connection; later it is closed.
    // A body that came with its head is whole in the next turn.
    if (isReadAlike(exchange.request) && !this.#isEarly(exchange)) this.#write(exchange, answer);
    else {
      this.#hold(exchange);
      setImmediate(() => this.#write(exchange, answer));
    }
  }

  #write(exchange: Exchange, answer: Answer): void {
    const { response, isCorked } = exchange;
    if (exchange.isAborted) {
      this.#end(exchange);
      return;
    }
    try {
      if (isCorked) this.#writeCorked(exchange, answer);
      else response.cork(() => this.#writeCorked(exchange, answer));
    } catch (error) {
      if (isCorked && exchange.state !== "sent") response.onAborted(() => this.#aborted(exchange));
      this.#breakOff(exchange, error);
    }
  }

  /** The client sees that the answer is not whole. */
  #breakOff(exchange: Exchange, error: unknown): void {
    this.#logFailure(exchange, 500, error);
    if (!exchange.isAborted && exchange.state !== "sent") exchange.response.close();
  }

  #writeCorked(exchange: Exchange, answer: Answer): void {
    const { response, request, resource, standing } = exchange;
    const isWrite = WRITES.has(request.method);
    const [name, value] = isWrite ? PRIVATE_HEADERS : resource.readHeaders;
    let lines = `${value}\r\nx-request-id: ${request.id}`;
    // An origin that may write is one of ours or of the operator's, so it may stand in a header.
    if (isWrite && request.origin && this.#options.pages.allows(request.origin)) lines += openTo(request.origin);
    if (standing) {
      const headers = limitHeaders(standing);
      for (let i = 0; i < headers.length; i += 2) lines += furtherLine(headers[i]!, headers[i + 1]!);
    }
    const isLast = !isReadAlike(request) && !this.#isClosing;
    const how = {
      withBody: request.method !== "HEAD",
      isLast,
      isClosing: this.#isClosing,
      early: this.#isEarly(exchange) ? (body: Buffer) => this.#answerEarly(exchange, body) : null,
      isOver: () => exchange.isAborted,
      failed: (error: unknown) => this.#breakOff(exchange, error),
    };
    const sent = () => this.#sent(exchange, answer.status);
    const share = writeAnswer(response, answer, [name, lines], how, this.answers, sent);
    exchange.answer = share;
    if (share) this.#hold(exchange);
    else sent();
  }

  /**
   * Whether the connection ends behind the answer, and the body of the request has not come in full. A connection goes on behind the
   * rest of a body that is not too large.
   */
  #isEarly({ upload, request }: Exchange): boolean {
    if (!upload || upload.isWhole) return false;
    return !isReadAlike(request) || request.asksClose || request.length > this.#options.bounds.maxBodyBytes;
  }

  /** Behind the answer what still comes of the request is read on, and the connection closed. */
  #answerEarly({ response, upload }: Exchange, body: Buffer): void {
    this.#serving.answerEarly(response, body);
    upload!.readOn(response);
  }

  #sent(exchange: Exchange, status: number): void {
    const { request, resource, prepared, started, span } = exchange;
    exchange.state = "sent";
    if (span) answered(span, status);
    const milliseconds = performance.now() - started;
    (prepared ?? resource).tally.answered(status, milliseconds / 1000);
    if (this.#logsAnswers) {
      const line = { ...lineOf(exchange), status, address: request.address, milliseconds };
      this.#options.logger.debug(line, "answered");
    }
    this.#end(exchange);
  }

  #aborted(exchange: Exchange): void {
    exchange.isAborted = true;
    if (exchange.span) failed(exchange.span, { code: "aborted" });
    this.#options.measures.aborted();
    if (exchange.state !== "handled") this.#end(exchange);
  }

  #end(exchange: Exchange): void {
    exchange.upload?.release();
    exchange.answer?.release();
    exchange.span?.end();
    exchange.span = null;
    if (!exchange.isActive) return;
    exchange.isActive = false;
    if (!--this.#active) this.#drained?.();
  }

  /** Counts it among those that `close` waits for, until its end. */
  #hold(exchange: Exchange): void {
    if (!exchange.isActive) this.#active++;
    exchange.isActive = true;
  }

  #logFailure(exchange: Exchange, status: number, error: unknown): void {
    this.#options.logger.error({ ...lineOf(exchange), status, err: error }, "request failed");
  }
}

/** What every line of the log says of the request that it is about. */
function lineOf({ request: { id, method, traceparent }, resource, span }: Exchange): object {
  const trace = span ? span.spanContext().traceId : traceOf(traceparent);
  return { id, ...(trace && { trace_id: trace }), method, route: resource.path };
}

/** Whether whoever stands between the client and us must have read the request's end where we did. */
const isReadAlike = ({ framing, hasTwoHosts }: Request): boolean => framing === "plain" && !hasTwoHosts;

/** Why nothing of a request is looked at: two readers could read it in two ways. Null for most. */
function unreadable({ framing, hasTwoHosts }: Request): HttpError | null {
  if (framing === "ambiguous") return ambiguousLength();
  return hasTwoHosts ? twoHosts() : null;
}

/** Counts the request. The parts of a body are counted when it is there; until then it costs what any other request costs. */
function standingOf(limits: Limits, prepared: PreparedRoute | undefined, address: string): Standing {
  const { limit, bulk } = prepared?.route ?? {};
  if (limit === null) return limits.look("general", address);
  return limits.count(bulk ? "general" : (limit ?? "general"), address);
}
