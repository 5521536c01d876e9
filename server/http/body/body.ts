/**
 * Bodies on their way in. Each is bounded in size and in time, all of them together in size: what the clients of a
 * thousand connections send slowly must not fill memory. Its values are counted before it is parsed.
 */

import { isUtf8 } from "node:buffer";
import { CairnlogError } from "../../../engine/base/error.js";
import { parseIJson } from "../../../engine/verify/json/canonical.js";
import { HttpError } from "../route/problems.js";
import { PendingBytes, type Share } from "../transport/pending.js";
import type { TransportResponse } from "../transport/transport.js";

/** How often it is looked whether a body is late, in milliseconds. */
const LOOK_MS = 250;
/**
 * What is read on and thrown away of a body whose request is answered already, before its connection is closed. A connection that is
 * closed with unread bytes in it is reset, and a client that is still sending then loses the answer.
 */
const MAX_READ_ON_BYTES = 32 * 2 ** 20;
const READ_ON_MS = 10_000;
/** A client that has sent nothing for so long is not sending, and has the answer: its connection is closed earlier. */
const LULL_MS = 2_000;
/** Seconds after which a client whose body found no room may try again. */
const RETRY_AFTER_S = 2;
/**
 * A body that holds many requests may be as large as this number of others: then a thousand attestations by RSA keys, with
 * titles and statements, fit. Reading four MiB of escapes would hold the event loop for 59 ms. All bodies together are
 * bounded by `maxPendingBytes` as before.
 */
const BULK_BODIES = 3;

export interface UploadBounds {
  /** Largest body, but for those that hold many requests (`BULK_BODIES`). */
  readonly maxBodyBytes: number;
  /** All bodies together, arriving and being handled. */
  readonly maxPendingBytes: number;
  /** Seconds in which a body must have arrived. */
  readonly requestTimeoutSeconds: number;
}

/** Takes a whole body, or why it is refused: called once, unless the body is released before. The bytes are the receiver's. */
type BodyReceiver = (body: Buffer | Error) => void;

/** A body. */
export interface Upload {
  /** Whether its last byte has come. */
  readonly isWhole: boolean;
  /** To be called when its request is answered or aborted: until then its bytes count. */
  release(): void;
  /**
   * Its request is answered, and the connection is to be closed behind it: when the rest has come and was thrown away, or when that
   * is too much or takes too long.
   */
  readOn(response: TransportResponse): void;
}

export class Uploads {
  readonly #bounds: UploadBounds;
  /** Of all bodies, arriving and being handled. */
  readonly pending: PendingBytes;
  /** Bodies that are arriving. Oldest first. */
  readonly #arriving = new Set<Body>();
  /** Bodies that are read on. */
  readonly #readOn = new Set<Body>();
  readonly #timer: NodeJS.Timeout;

  constructor(bounds: UploadBounds) {
    this.#bounds = bounds;
    // One body always fits.
    this.pending = new PendingBytes(Math.max(bounds.maxPendingBytes, BULK_BODIES * bounds.maxBodyBytes));
    this.#timer = setInterval(() => this.#refuseLate(), LOOK_MS).unref();
  }

  /** Bodies that have not arrived in full. */
  get arriving(): number {
    return this.#arriving.size;
  }

  /**
   * Collects the body of a request. Must be called before the library's handler returns; the receiver is called later.
   * It is refused with `payload-too-large` as soon as there are too many bytes, `overloaded` when all bodies together are
   * too large, and a 408 when it takes too long; what comes after that is read and thrown away. When the request is aborted the receiver is not called.
   * @param started when the request came, by `performance.now`
   * @param isBulk whether the body may hold many requests
   */
  read(response: TransportResponse, started: number, receiver: BodyReceiver, isBulk = false): Upload {
    const { maxBodyBytes, requestTimeoutSeconds } = this.#bounds;
    const bounds = { maxBodyBytes: isBulk ? BULK_BODIES * maxBodyBytes : maxBodyBytes, requestTimeoutSeconds };
    return this.#open(bounds, response, started, receiver);
  }

  /** A body that is not wanted, and thrown away. Must be called before the library's handler returns. */
  ignore(response: TransportResponse): Upload {
    const body = this.#open(this.#bounds, response, 0, () => {});
    body.release();
    return body;
  }

  #open(
    bounds: Pick<UploadBounds, "maxBodyBytes" | "requestTimeoutSeconds">,
    response: TransportResponse,
    started: number,
    receiver: BodyReceiver,
  ): Body {
    const body = new Body(bounds, this.pending, this.#arriving, this.#readOn, started, receiver);
    response.onData((chunk, isLast) => body.take(chunk, isLast));
    return body;
  }

  /** Looks no more for bodies that are late. */
  close(): void {
    clearInterval(this.#timer);
  }

  #refuseLate(): void {
    const now = performance.now();
    for (const body of this.#readOn) if (body.closesAt <= now) body.close();
    for (const body of this.#arriving) {
      if (body.lateAt > now) return;
      body.refuse(tooLate(this.#bounds.requestTimeoutSeconds));
    }
  }
}

/** A body on its way in. */
class Body implements Upload {
  readonly lateAt: number;
  readonly #maxBytes: number;
  readonly #share: Share;
  readonly #arriving: Set<Body>;
  readonly #readOn: Set<Body>;
  readonly #receiver: BodyReceiver;
  /** What came before the newest chunk; null when no more is wanted. */
  #chunks: Buffer[] | null = [];
  #length = 0;
  isWhole = false;
  /** Of a body that is read on: the answer behind which the connection is closed, when it came and a chunk last, and what came since. */
  #answered: TransportResponse | null = null;
  #answeredAt = 0;
  #newestAt = 0;
  #thrownAway = 0;

  constructor(
    { maxBodyBytes, requestTimeoutSeconds }: Pick<UploadBounds, "maxBodyBytes" | "requestTimeoutSeconds">,
    pending: PendingBytes,
    arriving: Set<Body>,
    readOn: Set<Body>,
    started: number,
    receiver: BodyReceiver,
  ) {
    this.lateAt = started + requestTimeoutSeconds * 1000;
    this.#maxBytes = maxBodyBytes;
    this.#share = pending.open(() => this.refuse(overloaded()));
    this.#arriving = arriving.add(this);
    this.#readOn = readOn;
    this.#receiver = receiver;
  }

  take(chunk: ArrayBuffer, isLast: boolean): void {
    const chunks = this.#chunks;
    this.isWhole = isLast;
    if (!chunks) {
      this.#throwAway(chunk.byteLength);
      return;
    }
    this.#length += chunk.byteLength;
    const refusal = this.#refusal();
    if (refusal) {
      this.refuse(refusal);
      return;
    }
    const bytes = Buffer.from(chunk);
    if (!isLast) {
      // The socket takes its memory back when this returns.
      chunks.push(Buffer.from(bytes));
      return;
    }
    this.#arriving.delete(this);
    this.#share.settle();
    this.#chunks = null;
    this.#receiver(Buffer.concat([...chunks, bytes]));
  }

  /** Why no more of it is wanted, if it is too large or all bodies together are. */
  #refusal(): Error | null {
    if (this.#length > this.#maxBytes)
      return new CairnlogError("payload-too-large", `The body is larger than ${this.#maxBytes} bytes.`);
    return this.#share.resize(this.#length) ? null : overloaded();
  }

  readOn(response: TransportResponse): void {
    this.#answered = response;
    this.#answeredAt = this.#newestAt = performance.now();
    this.#readOn.add(this);
    response.onAborted(() => this.#forget());
  }

  /** When the connection of a body that is read on is closed, if nothing more comes. */
  get closesAt(): number {
    return Math.min(this.#answeredAt + READ_ON_MS, this.#newestAt + LULL_MS);
  }

  #throwAway(bytes: number): void {
    if (this.#answered) this.#newestAt = performance.now();
    this.#thrownAway += bytes;
    if (this.isWhole || this.#thrownAway > MAX_READ_ON_BYTES) this.close();
  }

  /** Ends the connection, if its request was answered. */
  close(): void {
    const response = this.#answered;
    this.#forget();
    response?.close();
  }

  #forget(): void {
    this.#answered = null;
    this.#readOn.delete(this);
  }

  refuse(error: Error): void {
    this.release();
    this.#receiver(error);
  }

  release(): void {
    this.#chunks = null;
    this.#arriving.delete(this);
    this.#share.release();
  }
}

const overloaded = (): CairnlogError =>
  new CairnlogError("overloaded", "Too many bodies are arriving.", { retryAfter: RETRY_AFTER_S });

const tooLate = (seconds: number): HttpError =>
  new HttpError("request-timeout", `The body did not arrive in ${seconds} seconds; nothing was done.`);

// Counts the values in a body before it is parsed. A megabyte of brackets, commas or names takes two hundred times as
// long to parse as a megabyte of text.

/**
 * Maximum number of members and items in one body. Parsing them takes 20 ms. A composite of 1000 parts has fewer, even
 * if each part has a manifest with an attestation.
 */
const MAX_VALUES = 20_000;
/** Maximum levels of arrays and objects, far more than `parseIJson` accepts. It is slow even to refuse deeper text. */
const MAX_LEVELS = 1024;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const OPEN_OBJECT = 0x7b;
const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;

/**
 * Counts the values in a text that should be JSON.
 * @throws HttpError `malformed-json` when brackets do not match; CairnlogError `not-i-json` when they nest too deep,
 *   and `invalid-input` when there are more than `MAX_VALUES`
 */
function checkExtent(bytes: Uint8Array): void {
  const { length } = bytes;
  let values = 0;
  let level = 0;
  let deepest = 0;
  for (let at = 0; at < length; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) at = stringEnd(bytes, at);
    else if (byte === COMMA) values++;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      values++;
      if (++level > deepest) deepest = level;
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) level--;
  }
  if (level) throw new HttpError("malformed-json", "Malformed JSON: a bracket or a brace has no counterpart.");
  if (deepest > MAX_LEVELS) refuse("not-i-json", "Arrays and objects are nested too deep.");
  if (values > MAX_VALUES) refuse("invalid-input", `A body can hold at most ${MAX_VALUES} members and items.`);
}

function refuse(code: "not-i-json" | "invalid-input", message: string): never {
  throw new CairnlogError(code, message, { details: [{ path: "", message }] });
}

/** The position after the string that begins at `start`, or the end of the text if the string does not end. */
function stringEnd(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  for (; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
  return at;
}

type Values = Readonly<Record<string, unknown>>;

/**
 * A JSON body that is an object. Nothing else is checked.
 * @throws HttpError `malformed-json`, `not-an-object`; CairnlogError `not-i-json`, and `invalid-input` for too many
 *   values
 */
export function parseBody(bytes: Buffer): Values {
  if (!isUtf8(bytes)) throw new HttpError("malformed-json", "The body is not UTF-8.");
  if (bytes.length === 0) throw new HttpError("malformed-json", "The body is empty; it must be a JSON object.");
  checkExtent(bytes);
  let body: unknown;
  try {
    body = parseIJson(bytes.toString("utf8"));
  } catch (error) {
    if (error instanceof CairnlogError && error.code === "invalid-input")
      throw new HttpError("malformed-json", error.message);
    throw error;
  }
  if (!isObject(body)) throw new HttpError("not-an-object", "The body must be a JSON object.");
  return body;
}

const isObject = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);
