/**
 * Requests that are refused before the service sees them, in words: because Node's parser cannot read them, or because
 * uWebSockets.js would not take them either.
 */
import type { IncomingMessage } from "node:http";

/** Maximum number of header lines of a request. The parser limits only their bytes, and a line may have very few. */
export const MAX_HEADER_LINES = 98;

export interface EarlyRefusal {
  /** A code and a phrase. */
  readonly status: string;
  /** For people. */
  readonly sentence: string;
}

const BAD_REQUEST = "400 Bad Request";
const TOO_LARGE = "431 Request Header Fields Too Large";

/** Why a request is refused whose head has come; null for one that is not. */
export function refusalOf({ httpVersion, rawHeaders, url }: IncomingMessage): EarlyRefusal | null {
  if (httpVersion !== "1.1")
    return {
      status: "505 HTTP Version Not Supported",
      sentence: `This server does not support HTTP/${httpVersion}: send HTTP/1.1.`,
    };
  if (rawHeaders.length / 2 > MAX_HEADER_LINES)
    return { status: TOO_LARGE, sentence: `The request has more than ${MAX_HEADER_LINES} header lines.` };
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]!.toLowerCase() === "host") hosts++;
  if (hosts !== 1) return { status: BAD_REQUEST, sentence: "The request must have one Host header." };
  if (url !== "*" && !url!.startsWith("/"))
    return { status: BAD_REQUEST, sentence: "The request must name a path, not a whole URL." };
  return null;
}

/** Why bytes that the parser does not take are refused; null when nobody can be told, because the connection failed. */
export function refusalOfError({
  code = "",
  reason,
}: NodeJS.ErrnoException & { reason?: string }): EarlyRefusal | null {
  if (code === "ERR_HTTP_REQUEST_TIMEOUT")
    return { status: "408 Request Timeout", sentence: "The request did not arrive in time." };
  if (code === "HPE_HEADER_OVERFLOW") return { status: TOO_LARGE, sentence: "The head of the request is too long." };
  if (!code.startsWith("HPE_")) return null;
  // The reason is a text of the parser's own.
  return { status: BAD_REQUEST, sentence: `The request cannot be read: ${reason ?? code}.` };
}

/** The headers of such an answer, in turns with their values. It ends its connection. */
export const refusalHeaders = ({ sentence }: EarlyRefusal): string[] => [
  ...["connection", "close", "content-type", "text/plain; charset=utf-8", "cache-control", "no-store"],
  ...["x-content-type-options", "nosniff", "content-length", `${Buffer.byteLength(sentence)}`],
];

/** The whole answer, for a connection of which Node's library makes no request. */
export function refusalBytes(refusal: EarlyRefusal): string {
  const headers = [...refusalHeaders(refusal), "date", new Date().toUTCString()];
  const lines = headers.flatMap((name, i) => (i % 2 ? [] : [`${name}: ${headers[i + 1]}`]));
  return `HTTP/1.1 ${refusal.status}\r\n${lines.join("\r\n")}\r\n\r\n${refusal.sentence}`;
}
