/**
 * Reading a request. The socket's objects are valid only until the handler returns, so everything is copied at once;
 * all of it may come from an attacker.
 */

import { randomUUID } from "node:crypto";
import { clientAddress, type Network } from "./client-address.js";
import type { TransportRequest, TransportResponse } from "./transport.js";

/** A request id that a client may choose: it goes into headers and logs as it is. */
const SANE_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** What tells ids of this thread from those of others. */
const THREAD_ID = randomUUID().slice(0, 24);
let issued = 0;

const BYTES = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
/** All of an id but its last four digits. */
let beginning = "";

/** An id that no other request has. A random one for each took 0.8 µs, writing out the whole number 0.2 µs. */
function nextId(): string {
  const low = issued % 65_536;
  if (low === 0) beginning = THREAD_ID + (issued / 65_536).toString(16).padStart(8, "0");
  issued++;
  return beginning + BYTES[low >> 8]! + BYTES[low & 255]!;
}

/**
 * How a request says where it ends. The library takes the first of two lengths, and any transfer coding for chunks, which
 * a proxy in front may read otherwise and so see another request begin (request smuggling): those are `ambiguous`.
 */
export type Framing = "plain" | "chunked" | "ambiguous";

/**
 * What handlers need of a request. Headers that few routes want are copied when they are asked for, while the library's
 * object is valid, or else by `copyRest`: each takes 0.1 µs.
 */
export class Request {
  /** Upper case. */
  readonly method: string;
  /** As sent, without the question mark. */
  readonly query: string;
  /** Parts of the path that the route names, as sent, in order. */
  readonly params: readonly string[];
  /** The client's choice when that is sane, otherwise ours. */
  readonly id: string;
  /** The client's; `unknown` for a request that is neither counted nor logged, and whose route does not ask. */
  readonly address: string;
  readonly framing: Framing;
  /** Null when everything is copied. */
  #incoming: TransportRequest | null;
  #host: string | undefined;
  #authorization: string | undefined;
  #ifNoneMatch: string | undefined;
  #acceptEncoding: string | undefined;

  /** @param method and `address`, which are read already */
  constructor(incoming: TransportRequest, method: string, paramCount: number, address: string) {
    const id = incoming.getHeader("x-request-id");
    const params: string[] = [];
    for (let i = 0; i < paramCount; i++) params.push(incoming.getParameter(i)!);
    this.method = method;
    this.query = incoming.getQuery() ?? "";
    this.params = params;
    this.id = id && SANE_ID.test(id) ? id : nextId();
    this.address = address;
    this.framing = framingOf(incoming, method);
    this.#incoming = incoming;
  }

  /** The `Host` header as sent, which says under which name the client asks; empty without one. */
  get host(): string {
    this.#host ??= this.#header("host");
    return this.#host;
  }

  /** The `Authorization` header as sent; empty without one. Never logged. */
  get authorization(): string {
    this.#authorization ??= this.#header("authorization");
    return this.#authorization;
  }

  /** The `If-None-Match` header as sent; empty without one. */
  get ifNoneMatch(): string {
    this.#ifNoneMatch ??= this.#header("if-none-match");
    return this.#ifNoneMatch;
  }

  /** The `Accept-Encoding` header as sent; empty without one. */
  get acceptEncoding(): string {
    this.#acceptEncoding ??= this.#header("accept-encoding");
    return this.#acceptEncoding;
  }

  /** Copies everything. Must be called before the library's handler returns, if the request is needed after that. */
  copyRest(): void {
    void [this.host, this.authorization, this.ifNoneMatch, this.acceptEncoding];
    this.#incoming = null;
  }

  #header(name: string): string {
    return this.#incoming?.getHeader(name) ?? "";
  }
}

/** The client's address. It takes a system call and its text, 3–7 µs, so only who needs it should ask. */
export function addressOf(request: TransportRequest, response: TransportResponse, trusted: readonly Network[]): string {
  const socket = Buffer.from(response.getRemoteAddressAsText()).toString("latin1");
  return clientAddress(socket, trusted.length ? forwardedFor(request) : "", trusted);
}

/** RFC 9112 §6.1, §6.3. Going through all headers takes 2–3 µs, so reads, which have no body, are spared it. */
function framingOf(request: TransportRequest, method: string): Framing {
  const coding = request.getHeader("transfer-encoding");
  const isRead = method === "GET" || method === "HEAD";
  if (isRead && !coding && !request.getHeader("content-length")) return "plain";
  let [lengths, codings, isEmpty] = [0, 0, false];
  request.forEach((name, value) => {
    if (name === "transfer-encoding") codings++;
    if (name !== "content-length") return;
    lengths++;
    isEmpty ||= !value;
  });
  if (lengths + codings > 1 || isEmpty) return "ambiguous";
  if (!codings) return "plain";
  return coding.toLowerCase() === "chunked" ? "chunked" : "ambiguous";
}

/** All `X-Forwarded-For` headers in order: a proxy may add one of its own below the client's. */
function forwardedFor(request: TransportRequest): string {
  const values: string[] = [];
  request.forEach((name, value) => {
    if (name === "x-forwarded-for") values.push(value);
  });
  return values.join(",");
}
