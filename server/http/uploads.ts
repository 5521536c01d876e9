/**
 * Bodies on their way in. Each is bounded in size and in time, all of them together in size: what the clients of a
 * thousand connections send slowly must not fill memory.
 */
import type { HttpResponse } from "uWebSockets.js";
import { CairnlogError } from "../../engine/error.js";
import { PendingBytes } from "./pending.js";
import { HttpError } from "./problems.js";

/** How often it is looked whether a body is late, in milliseconds. */
const LOOK_MS = 250;
/** Seconds after which a client whose body found no room may try again. */
const RETRY_AFTER_S = 2;

export interface UploadBounds {
  /** Largest body. */
  readonly maxBodyBytes: number;
  /** All bodies together, arriving and being handled. */
  readonly maxPendingBytes: number;
  /** Seconds in which a body must have arrived. */
  readonly requestTimeoutSeconds: number;
}

/** A body. `release` when its request is answered or aborted: until then its bytes count. */
export interface Upload {
  readonly bytes: Promise<Buffer>;
  release(): void;
}

export class Uploads {
  readonly #bounds: UploadBounds;
  /** Of all bodies, arriving and being handled. */
  readonly pending: PendingBytes;
  /** Bodies that are arriving → what refuses them and when they are late. Oldest first. */
  readonly #arriving = new Map<HttpResponse, { readonly lateAt: number; readonly late: () => void }>();
  readonly #timer: NodeJS.Timeout;

  constructor(bounds: UploadBounds) {
    this.#bounds = bounds;
    // One body always fits.
    this.pending = new PendingBytes(Math.max(bounds.maxPendingBytes, bounds.maxBodyBytes));
    this.#timer = setInterval(() => this.#refuseLate(), LOOK_MS).unref();
  }

  /** Bodies that have not arrived in full. */
  get arriving(): number {
    return this.#arriving.size;
  }

  /**
   * Collects the body of a request. Must be called before the handler returns.
   * @returns `bytes` rejects with `payload-too-large` as soon as there are too many, `overloaded` when all bodies together
   *   are too large, and a 408 when it takes too long; what comes after that is read and thrown away, so that the client
   *   gets to see the answer. It stays pending when the request is aborted.
   */
  read(response: HttpResponse): Upload {
    const { maxBodyBytes, requestTimeoutSeconds } = this.#bounds;
    let chunks: Buffer[] | null = [];
    let length = 0;
    let reject: (error: Error) => void = () => {};
    const end = () => {
      chunks = null;
      this.#arriving.delete(response);
      share.release();
    };
    const refuse = (error: Error) => {
      end();
      reject(error);
    };
    const share = this.pending.open(() => refuse(overloaded()));
    const late = () => refuse(tooLate(requestTimeoutSeconds));
    this.#arriving.set(response, { lateAt: performance.now() + requestTimeoutSeconds * 1000, late });
    const bytes = new Promise<Buffer>((resolve, fail) => {
      reject = fail;
      response.onData((chunk, isLast) => {
        if (!chunks) return;
        length += chunk.byteLength;
        if (length > maxBodyBytes)
          return refuse(new CairnlogError("payload-too-large", `The body is larger than ${maxBodyBytes} bytes.`));
        if (!share.resize(length)) return refuse(overloaded());
        // The socket takes its memory back when this returns.
        chunks.push(Buffer.from(new Uint8Array(chunk)));
        if (!isLast) return;
        this.#arriving.delete(response);
        share.settle();
        resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
        chunks = null;
      });
    });
    return { bytes, release: end };
  }

  /** Looks no more for bodies that are late. */
  close(): void {
    clearInterval(this.#timer);
  }

  #refuseLate(): void {
    const now = performance.now();
    for (const { lateAt, late } of this.#arriving.values()) {
      if (lateAt > now) return;
      late();
    }
  }
}

const overloaded = (): CairnlogError =>
  new CairnlogError("overloaded", "Too many bodies are arriving.", { retryAfter: RETRY_AFTER_S });

const tooLate = (seconds: number): HttpError =>
  new HttpError("request-timeout", `The body did not arrive in ${seconds} seconds; nothing was done.`);
