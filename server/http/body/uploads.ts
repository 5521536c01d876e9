/**
 * Bodies on their way in. Each is bounded in size and in time, all of them together in size: what the clients of a
 * thousand connections send slowly must not fill memory.
 */
import { CairnlogError } from "../../../engine/base/error.js";
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
