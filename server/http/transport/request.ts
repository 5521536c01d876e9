/**
 * Reading a request. The socket's objects are valid only until the handler returns, so everything is copied at once;
 * all of it may come from an attacker.
 */

import { randomUUID } from "node:crypto";
import { REQUEST_ID } from "../../../engine/contract/common.js";
import type { Caller } from "../../../engine/registry/writes/writes.js";
import { clientAddress, limitKey, type Network, UNKNOWN } from "./client-address.js";
import type { TransportRequest, TransportResponse } from "./transport.js";

const SANE_ID = new RegExp(REQUEST_ID);

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
 * a proxy in front may read otherwise and so see another request begin (request smuggling): those are `ambiguous`. It is
 * lax about the end of chunks, and about a header without a name, behind which it sees no further header, a length least
 * of all: a request with chunks is `loose`, and so is one that may have a body and names no length.
 */
type Framing = "plain" | "loose" | "ambiguous";

/** The head that is being read. The library calls back before it returns, and nobody reads another head meanwhile. */
let reading: Request;
const readLine = (name: string, value: string): void => reading.readLine(name, value);

/**
 * What handlers need of a request. All header lines are read in one pass: a line that comes twice is seen, and each look-up
 * of one header costs half of what all lines of a short head cost together. Of lines that come twice the first counts.
 */
export class Request {
  /** Upper case. */
  readonly method: string;
  /** As sent, without the question mark. */
  readonly query: string;
  /** Parts of the path that the route names, as sent, in order. */
  readonly params: readonly string[];
  /** The client's; `unknown` for a request that is neither counted nor logged, and whose route does not ask. */
  address = UNKNOWN;
  /** The client's choice when that is sane, otherwise ours. */
  id = "";
  /** Headers as sent; empty without one. `Host` says under which name the client asks. */
  host = "";
  /** The page that has the browser send it; a browser does not let the page choose it. */
  origin = "";
  /** `Sec-Fetch-Site`: how that page and the service are related, as the browser sees it. */
  fetchSite = "";
  contentType = "";
  /** Never logged. */
  authorization = "";
  ifNoneMatch = "";
  /** `Cairnlog-Size`: how many entries of the log the client has seen. */
  seen = "";
  acceptEncoding = "";
  /** `traceparent`, as sent: whoever logs the request has it checked by `traceOf`. Empty if there is more than one. */
  traceparent = "";
  /** All `X-Forwarded-For` headers in order: a proxy may add one of its own below the client's. */
  forwardedFor = "";
  /** Whether the client wants the connection closed behind the answer. */
  asksClose = false;
  readonly framing: Framing;
  /** Whether there is more than one `Host` line: a proxy in front may go by another one than we do. */
  readonly hasTwoHosts: boolean;
  #hosts = 0;
  #traceparents = 0;
  #lengths = 0;
  #length = "";
  #hasEmptyLength = false;
  #codings = 0;
  #coding = "";

  constructor(incoming: TransportRequest, method: string, paramCount: number) {
    const params: string[] = [];
    for (let i = 0; i < paramCount; i++) params.push(incoming.getParameter(i)!);
    this.method = method;
    this.query = incoming.getQuery() ?? "";
    this.params = params;
    reading = this;
    incoming.forEach(readLine);
    if (!this.id || !SANE_ID.test(this.id)) this.id = nextId();
    this.framing = this.#framing();
    this.hasTwoHosts = this.#hosts > 1;
  }

  /** Whether a body is announced. */
  get hasBody(): boolean {
    return this.#codings > 0 || (this.#lengths > 0 && this.#length !== "0");
  }

  /** Bytes of the body, as its head says; NaN if that is no number. */
  get length(): number {
    return Number(this.#length);
  }

  /** Who pays for what the request has stored. */
  get client(): Caller {
    return { address: limitKey(this.address) };
  }

  /** Called with each header line, in order, its name in lower case. */
  readLine(name: string, value: string): void {
    switch (name) {
      case "host":
        if (!this.#hosts++) this.host = value;
        break;
      case "content-length":
        if (!this.#lengths++) this.#length = value;
        this.#hasEmptyLength ||= !value;
        break;
      case "transfer-encoding":
        if (!this.#codings++) this.#coding = value;
        break;
      case "connection":
        this.asksClose ||= /close/i.test(value);
        break;
      case "content-type":
        this.contentType ||= value;
        break;
      case "authorization":
        this.authorization ||= value;
        break;
      case "x-request-id":
        this.id ||= value;
        break;
      case "if-none-match":
        this.ifNoneMatch ||= value;
        break;
      case "cairnlog-size":
        this.seen ||= value;
        break;
      case "accept-encoding":
        this.acceptEncoding ||= value;
        break;
      case "traceparent":
        this.traceparent = this.#traceparents++ ? "" : value;
        break;
      case "origin":
        this.origin ||= value;
        break;
      case "sec-fetch-site":
        this.fetchSite ||= value;
        break;
      case "x-forwarded-for":
        this.forwardedFor = this.forwardedFor ? `${this.forwardedFor},${value}` : value;
        break;
    }
  }

  /** RFC 9112 §6.1, §6.3. */
  #framing(): Framing {
    if (this.#lengths + this.#codings > 1 || this.#hasEmptyLength) return "ambiguous";
    if (this.#codings) return this.#coding.toLowerCase() === "chunked" ? "loose" : "ambiguous";
    return this.#lengths || READS.has(this.method) ? "plain" : "loose";
  }
}

/** Methods whose requests have no body. */
const READS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** The client's address. It takes a system call and its text, 3–7 µs, so only who needs it should ask. */
export function remoteAddress(
  { forwardedFor }: Request,
  response: TransportResponse,
  trusted: readonly Network[],
): string {
  const socket = Buffer.from(response.getRemoteAddressAsText()).toString("latin1");
  return clientAddress(socket, trusted.length ? forwardedFor : "", trusted);
}
