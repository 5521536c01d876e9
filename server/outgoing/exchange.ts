/**
 * One request to a server that is not trusted: a calendar, a witness, an endpoint of a webhook. The answer is limited in time
 * and size, and redirects are not followed. Whatever the server does, the request ends within its time.
 */
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import type { Attributes } from "@opentelemetry/api";
import { traceHeaders } from "../process/tracing.js";
import { VERSION } from "../process/version.js";
import { inClientSpan } from "./traced.js";

/**
 * Of a name with several addresses, each is given up for the next after this part of the time. Node's 250 ms are less than a far
 * server takes to accept, or a thread on a busy machine to see that it did.
 */
const TIME_OF_ADDRESS = 1 / 8;
/** What Node gives each, in milliseconds. */
const MIN_ADDRESS_MS = 250;

interface Question {
  readonly url: URL;
  readonly headers: OutgoingHttpHeaders;
  /** Sent by POST; null for a GET. */
  readonly body: Uint8Array | null;
  /** What its span says besides method and status. */
  readonly attributes?: Attributes;
}

interface Bounds {
  /** For the whole answer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** Checks of a connection whose address the operator did not choose. */
interface Door {
  /** Resolves the name. It is not called if the URL has an address. */
  readonly lookup: LookupFunction;
  /** Called before anything is written. If it throws, nothing is. */
  readonly connected: (socket: Socket) => void;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/**
 * Asks once, on a connection of its own.
 * @param failed makes the error that is thrown, of a reason that completes "The server …"
 * @throws what `failed` makes: for a server that cannot be reached, also because `signal` is aborted; for an answer that is
 *   late, too long, or broken off
 */
export function exchange(
  question: Question,
  bounds: Bounds,
  failed: (reason: string, options?: ErrorOptions) => Error,
  door?: Door,
): Promise<RawAnswer> {
  // An address that a stranger chose may be a secret of theirs.
  const address = door ? {} : { "server.address": question.url.hostname, "server.port": portOf(question.url) };
  return inClientSpan(methodOf(question), { ...address, ...question.attributes }, () =>
    ask(question, bounds, failed, door),
  );
}

const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === "https:" ? 443 : 80);
const methodOf = ({ body }: Question): string => (body ? "POST" : "GET");

function ask(
  question: Question,
  { timeoutMs, maxBytes, signal }: Bounds,
  failed: (reason: string, options?: ErrorOptions) => Error,
  door?: Door,
): Promise<RawAnswer> {
  const { url, headers, body } = question;
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const all: OutgoingHttpHeaders = { "user-agent": `cairnlog/${VERSION}`, ...traceHeaders(), ...headers };
  if (body) all["content-length"] = body.length;
  return new Promise((resolve, reject) => {
    // The connection is closed afterwards: none stays open, and none outlives the check of its address.
    const autoSelectFamilyAttemptTimeout = Math.max(MIN_ADDRESS_MS, Math.ceil(timeoutMs * TIME_OF_ADDRESS));
    const method = methodOf(question);
    const options = { method, headers: all, agent: false, signal, autoSelectFamilyAttemptTimeout } as const;
    const request = send(url, door ? { ...options, lookup: door.lookup } : options);
    // Rejects at once: for an answer that is too long, the end may already have arrived.
    const refuse = (reason: string, options?: ErrorOptions) => {
      clearTimeout(timer);
      reject(failed(reason, options));
      request.destroy();
    };
    const fail = (cause: Error) => refuse("cannot be reached", { cause });
    const timer = setTimeout(() => refuse(`did not answer in ${timeoutMs / 1000} seconds`), timeoutMs);
    let hasAnswered = false;
    request.on("error", fail);
    // A connection that ends without an answer, and one whose answer is 101, have no other event than this.
    request.on("close", () => hasAnswered || refuse("closed the connection without an answer"));
    if (door)
      request.on("socket", (socket) => {
        socket.once("connect", () => {
          try {
            door.connected(socket);
          } catch (error) {
            request.destroy(error as Error);
          }
        });
      });
    request.on("response", (response) => {
      hasAnswered = true;
      const chunks: Buffer[] = [];
      let length = 0;
      response.on("error", fail).on("data", (chunk: Buffer) => {
        length += chunk.length;
        chunks.push(chunk);
        if (length > maxBytes) refuse(`answered with more than ${maxBytes} bytes`);
      });
      response.on("close", () => refuse("closed the connection before the end of its answer"));
      response.on("end", () => {
        clearTimeout(timer);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      });
    });
    request.end(body ?? undefined);
  });
}
