/**
 * One request to a server that is not trusted, such as a calendar or a witness: the answer is limited in time and size, and
 * redirects are not followed. Its address comes from the operator. Addresses that clients choose are for `server/webhooks`,
 * which checks them.
 */
import { request as httpRequest, type OutgoingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { VERSION } from "../version.js";

export interface Question {
  readonly url: URL;
  readonly headers: OutgoingHttpHeaders;
  /** Sent by POST; null for a GET. */
  readonly body: Uint8Array | null;
}

export interface Bounds {
  /** For the whole answer. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Asks once, on a connection of its own.
 * @param failed makes the error that is thrown, of a reason that completes "The server …"
 * @throws what `failed` makes: for a server that cannot be reached, also because `signal` is aborted; for an answer that is
 *   late or too long
 */
export function exchange(
  { url, headers, body }: Question,
  { timeoutMs, maxBytes, signal }: Bounds,
  failed: (reason: string, options?: ErrorOptions) => Error,
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const all: OutgoingHttpHeaders = { ...headers, "user-agent": `cairnlog/${VERSION}` };
  if (body) all["content-length"] = body.length;
  return new Promise((resolve, reject) => {
    // The connection is closed afterwards: none stays open.
    const request = send(url, { method: body ? "POST" : "GET", headers: all, agent: false, signal });
    const fail = (cause: Error) => reject(failed("cannot be reached", { cause }));
    // Rejects at once: for an answer that is too long, the end may already have arrived.
    const refuse = (reason: string) => {
      reject(failed(reason));
      request.destroy();
    };
    const timer = setTimeout(() => refuse(`did not answer in ${timeoutMs / 1000} seconds`), timeoutMs);
    request.on("close", () => clearTimeout(timer)).on("error", fail);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      let length = 0;
      response.on("error", fail).on("data", (chunk: Buffer) => {
        length += chunk.length;
        chunks.push(chunk);
        if (length > maxBytes) refuse(`answered with more than ${maxBytes} bytes`);
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks) }));
    });
    request.end(body ?? undefined);
  });
}
