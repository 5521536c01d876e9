/** Answers: what a handler gives back, and how it is put on the wire. */
import { turn } from "../../../engine/base/turns.js";
import type { PendingBytes, Share } from "./pending.js";
import type { TransportResponse } from "./transport.js";

/** For every answer that says nothing of its own: refusals, tokens, what depends on who asks. */
const NOT_KEPT = "no-store";
const NO_HEADERS = {};

/** An answer in full. A handler that has nothing to say about status or headers returns its JSON value instead. */
export class Answer {
  readonly status: number;
  readonly contentType: string;
  /** Text of ASCII characters, or bytes. */
  readonly body: Buffer | string;
  /** Its tag, quotes included; null where it has none. */
  readonly etag: string | null;
  readonly cacheControl: string;
  /** Further headers, names in lower case. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(body: Buffer | string, options: Partial<Omit<Answer, "body">> = {}) {
    this.status = options.status ?? 200;
    this.contentType = options.contentType ?? "application/json";
    this.body = body;
    this.etag = options.etag ?? null;
    this.cacheControl = options.cacheControl ?? NOT_KEPT;
    this.headers = options.headers ?? NO_HEADERS;
  }
}

/** An answer that is made while it is sent, a chunk at a time and no faster than the client reads. */
export class StreamedAnswer extends Answer {
  readonly chunks: Iterable<Buffer>;

  constructor(chunks: Iterable<Buffer>, options: Partial<Omit<Answer, "body">>) {
    super(Buffer.alloc(0), options);
    this.chunks = chunks;
  }
}

/** `value` as JSON. */
export function json(value: unknown, options?: Partial<Omit<Answer, "body">>): Answer {
  const text = JSON.stringify(value);
  // A text of ASCII characters needs no memory of its own to be sent from.
  return new Answer(Buffer.byteLength(text) === text.length ? text : Buffer.from(text), options);
}

/** Fits a socket's own buffer. */
const MAX_LAST_BYTES = 64 * 1024;
/**
 * Fits, with its headers, the 16 KiB in which the library gathers what is written in one callback, so that it always takes
 * the whole body.
 */
const MAX_GATHERED_BYTES = 8 * 1024;

/** What a list is made whole up to; a longer one is made while it is sent. */
const MAX_WHOLE_BYTES = 1024 * 1024;
/** About as much of a list is made and sent in one piece. */
const PIECE_BYTES = 128 * 1024;
/** Milliseconds for which one answer is made and sent in one turn of the event loop. */
const TURN_MS = 4;

const COMMA = Buffer.from(",");
const CLOSING_BRACE = Buffer.from("}");

/**
 * An object whose first member, `name`, is an array of texts that are JSON already, followed by the members of `rest`,
 * of which there is at least one. Stored entries are served this way, byte for byte. A long list is read while it is sent.
 * @param item called once for each, in order
 */
export function jsonList(
  name: string,
  count: number,
  item: (i: number) => Buffer,
  rest: Readonly<Record<string, unknown>>,
): Answer {
  const pieces = listPieces(name, count, item, rest);
  const whole: Buffer[] = [];
  let bytes = 0;
  // A `for … of` that is left early would end the generator.
  for (let next = pieces.next(); !next.done; next = pieces.next()) {
    whole.push(next.value);
    bytes += next.value.length;
    if (bytes > MAX_WHOLE_BYTES) return new StreamedAnswer(following(whole, pieces), {});
  }
  return new Answer(whole.length === 1 ? whole[0]! : Buffer.concat(whole));
}

function* following(first: readonly Buffer[], rest: Generator<Buffer>): Generator<Buffer> {
  yield* first;
  yield* rest;
}

function* listPieces(
  name: string,
  count: number,
  item: (i: number) => Buffer,
  rest: Readonly<Record<string, unknown>>,
): Generator<Buffer> {
  let parts: Buffer[] = [Buffer.from(`{${JSON.stringify(name)}:[`)];
  let bytes = 0;
  for (let i = 0; i < count; i++) {
    const text = item(i);
    if (i) parts.push(COMMA);
    parts.push(text);
    bytes += text.length;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(parts);
    [parts, bytes] = [[], 0];
  }
  yield Buffer.concat([...parts, Buffer.from(`],${JSON.stringify(rest).slice(1)}`)]);
}

/**
 * An object of the members of `rest`, of which there is at least one, and behind them `name`: a text that is JSON already,
 * such as a stored entry, which is served byte for byte.
 */
export function jsonEnding(rest: Readonly<Record<string, unknown>>, name: string, item: Buffer): Answer {
  const before = `${JSON.stringify(rest).slice(0, -1)},${JSON.stringify(name)}:`;
  return new Answer(Buffer.concat([Buffer.from(before), item, CLOSING_BRACE]));
}

/** Reason phrases of the statuses that occur. */
export const REASONS: Readonly<Record<number, string>> = {
  200: "OK",
  201: "Created",
  204: "No Content",
  304: "Not Modified",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  422: "Unprocessable Content",
  429: "Too Many Requests",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
};

/** Headers that never change, written by one call: names and values in turns. All of it must be ours. */
export function headerGroup([name, value, ...rest]: readonly [string, string, ...string[]]): readonly [string, string] {
  const lines = [value];
  for (let i = 0; i < rest.length; i += 2) lines.push(`${rest[i]}: ${rest[i + 1]}`);
  return [name, lines.join("\r\n")];
}

/** `line`, a header, as a further line of the value of the header before. */
export const furtherLine = (name: string, value: string): string => `\r\n${name}: ${value}`;

/** How an answer is written. */
interface Course {
  readonly withBody: boolean;
  readonly isLast: boolean;
  readonly isClosing: boolean;
  /** Sends the body of an answer while that of its request is arriving; null if that has come. */
  readonly early: ((body: Buffer) => void) | null;
  readonly isOver: () => boolean;
  readonly failed: (error: unknown) => void;
}

/**
 * Writes an answer into a corked response. What the socket does not take at once is written as it drains, without a copy
 * inside the socket, and counts as `pending` until then. The caller must not call this once the request was aborted.
 * @param first name and value of the first header; the value may hold further lines
 * @param how `withBody` is false for HEAD: the headers as they would be, `content-length` included; after an answer that
 *   `isLast` the connection is closed, and when the service `isClosing`, the client is asked to close it; `isOver` says whether the request was aborted since; `failed` is called when a
 *   streamed answer breaks off; `early` is for a request whose body is arriving, and whose connection is closed behind a short answer
 * @param drained called when the last byte has been handed to the operating system, if that is not at once; never after an
 *   abort
 * @returns what is held for a client that reads slowly, to be released when the request has ended; null when all is sent
 */
export function writeAnswer(
  response: TransportResponse,
  answer: Answer,
  first: readonly [name: string, value: string],
  how: Course,
  pending: PendingBytes,
  drained: () => void,
): Share | null {
  const { withBody, isLast, isClosing, early } = how;
  const { status, contentType, body, etag, cacheControl, headers } = answer;
  const isEmpty = status === 204 || status === 304;
  const hasBody = withBody && !isEmpty;
  const isShort = body.length <= MAX_GATHERED_BYTES && !(answer instanceof StreamedAnswer);
  const isEarly = early !== null && hasBody && isShort;
  // What the library closes after, it keeps until then, and nobody counts that: a longer answer only says that it is the
  // last, and the client closes, or is idle.
  const closes = isLast && hasBody && body.length <= MAX_LAST_BYTES && !(answer instanceof StreamedAnswer);
  // Without a status line it is 200 OK.
  if (status !== 200) response.writeStatus(`${status} ${REASONS[status] ?? ""}`);
  // All by one call: each call of the library takes as long as making the text of all.
  let lines = `${first[1]}\r\ncache-control: ${cacheControl}`;
  if (etag !== null) lines += `\r\netag: ${etag}`;
  if (headers !== NO_HEADERS) for (const name in headers) lines += furtherLine(name, headers[name]!);
  if (!isEmpty) lines += `\r\ncontent-type: ${contentType}`;
  response.writeHeader(first[0], lines);
  if (isClosing || isEarly || (isLast && !closes)) response.writeHeader("connection", "close");
  if (!hasBody) {
    if (!isEmpty && !(answer instanceof StreamedAnswer)) response.writeHeader("content-length", `${body.length}`);
    response.endWithoutBody();
    return null;
  }
  if (isEarly) {
    early(Buffer.from(body as string));
    return null;
  }
  if (closes) {
    response.end(body, true);
    return null;
  }
  if (isShort) {
    response.end(body);
    return null;
  }
  if (answer instanceof StreamedAnswer) return writeChunks(response, answer.chunks, how, pending, drained);
  const [, done] = response.tryEnd(typeof body === "string" ? scratch(body) : body, body.length);
  if (done) return null;
  const rest = typeof body === "string" ? Buffer.from(body, "latin1") : body;
  response.onWritable((offset) => {
    const [taken, finished] = response.tryEnd(rest.subarray(offset), rest.length);
    if (finished) drained();
    return taken;
  });
  return hold(
    pending.open(() => response.close()),
    body.length,
    pending,
  );
}

/** Where texts become bytes; as long as most are. */
const SCRATCH = Buffer.allocUnsafeSlow(16_384);

/** The bytes of an ASCII text, valid until the next call. To allocate for each cost as much as the writing. */
function scratch(text: string): Buffer {
  if (text.length > SCRATCH.length) return Buffer.from(text, "latin1");
  return SCRATCH.subarray(0, SCRATCH.write(text, "latin1"));
}

/** Room for an answer that a client reads slowly. There is some always: every other one can be given up. */
function hold(share: Share, bytes: number, { limit }: PendingBytes): Share {
  share.resize(Math.min(bytes, limit));
  return share;
}

/**
 * What the socket does not take at once it keeps; the next chunk is made when that has drained. A client that reads fast
 * gets no more in one turn of the event loop than others can wait for, and twelve clients begin in as many turns.
 */
function writeChunks(
  response: TransportResponse,
  chunks: Iterable<Buffer>,
  { isOver, failed }: Pick<Course, "isOver" | "failed">,
  pending: PendingBytes,
  drained: () => void,
): Share {
  const iterator = chunks[Symbol.iterator]();
  const share = pending.open(() => response.close());
  let isEnded = false;
  /** Writes what there is time for. */
  const write = (): void => {
    const until = performance.now() + TURN_MS;
    for (let next = iterator.next(); !next.done; next = iterator.next()) {
      const isTaken = response.write(next.value);
      hold(share, isTaken ? 0 : next.value.length, pending);
      if (!isTaken) return;
      if (performance.now() < until) continue;
      void turn().then(goOn);
      return;
    }
    isEnded = true;
    response.end();
    drained();
  };
  const goOn = () => {
    if (isEnded || isOver()) return;
    try {
      response.cork(write);
    } catch (error) {
      isEnded = true;
      failed(error);
    }
  };
  response.onWritable(() => {
    goOn();
    return true;
  });
  void turn().then(goOn);
  return share;
}
